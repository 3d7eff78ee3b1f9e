"""Replicas from regenerated candidates: paraphrased queries, other relaxations, repeated runs of a linker."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import InputError, ParameterError, choice, examples, whole
from vbterrier.frames.contracts import pandas_frame, require
from vbterrier.frames.ids import require_same_kind
from vbterrier.frames.ranking import places
from vbterrier.stats.candidates import CandidateArrays

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from vbterrier.annotations import Floats, Ints
    from vbterrier.stats.candidates import Draws, State


ORDERS = ("random", "turn")


class Variants:
    """Take the candidates of each query and replica from one of several I frames.

    The frames may come from paraphrases of the queries, other weights of constraints, other linkers, or B runs of a
    random stage. This perturbation replaces the candidates, so apply it before all others. A query that no frame
    contains keeps its candidates; otherwise it uses the frames that contain it.

    Parameters
    ----------
    frames
        I frames: qid, entity_id, prob [, delta, violations]. Include the intents themselves to let them take part. When
        applied, their candidates must be among the intents, see :func:`with_variants`.
    order
        ``"random"``: each frame with the same probability; ``"turn"``: replica b of a query uses its frame ``b mod n``,
        so that B frames give one frame for each replica.
    n_taggings
        Number T of taggings of the documents: replica b has tagging ``b mod T`` with any frame, as matches of variant
        ``frame * T + b mod T``.

    Raises
    ------
    ParameterError
        No frames, an unknown order.
    InputError
        A frame without intents; when applied: a candidate that is not among the intents.

    Examples
    --------
    >>> first = pd.DataFrame({"qid": "q1", "entity_id": ["A", "B"], "prob": [0.75, 0.25]})
    >>> second = pd.DataFrame({"qid": ["q1"], "entity_id": ["C"], "prob": [1.0]})
    >>> Variants([first, second], order="turn")
    Variants(2 frames, order='turn')
    """

    def __init__(self, frames: Iterable[Any], *, order: str = "random", n_taggings: int = 1) -> None:
        self.frames = tuple(pandas_frame(frame, f"variant {place}").copy() for place, frame in enumerate(frames))
        self.order, self.n_taggings = order, whole("n_taggings", n_taggings)
        choice("order", order, ORDERS)
        if not self.frames:
            raise ParameterError("frames=[]: wanted at least one frame of intents")
        self._read = [CandidateArrays.of(frame, f"variant {place}") for place, frame in enumerate(self.frames)]

    def tagged(self, n_taggings: int) -> Variants:
        """Return these variants with a number of taggings of the documents."""
        return Variants(self.frames, order=self.order, n_taggings=n_taggings)

    @classmethod
    def of(cls, frame: Any, column: str, *, order: str = "random") -> Variants:
        """Split one frame by a column that names the variant of each row, such as the paraphrase."""
        frame = pandas_frame(frame, "variants")
        require(frame, (column,), "variants")
        if frame[column].isna().any():
            row = int(np.argmax(frame[column].isna().to_numpy()))
            raise InputError(f"variants: row {row} has no {column!r}, wanted the name of its variant")
        return cls([group for _, group in frame.groupby(column, sort=True)], order=order)

    def apply(self, state: State, draws: Draws) -> State:
        """Replace the candidates by those of a variant."""
        here = state.candidates
        has, n_constraints, base, delta, violations = here.compute_once(self, self._variant_arrays)
        topics = slice(here.first, here.first + len(here.topics))
        has = has[:, topics]
        # The variants that contain a query come first in its column.
        order = np.argsort(~has, axis=0, kind="stable")
        n = np.maximum(has.sum(axis=0), 1)
        if self.order == "turn":
            turn = draws.replicas[:, None] % n
        else:
            turn = (draws.uniform("variant", np.ones_like(n)) * n).astype(np.int64)
        # The last row holds the unchanged intents.
        variant = np.where(has.any(axis=0), order[turn, np.arange(len(n))], -1)
        picked, tagging = variant[:, here.topic], draws.replicas[:, None] % self.n_taggings
        column = np.arange(here.start, here.start + len(here))
        return replace(
            state,
            log_base=base[picked, column],
            delta=None if delta is None else delta[picked, column],
            violations=None if violations is None else violations[picked, column],
            n_constraints=n_constraints[topics],
            variant=np.where(variant >= 0, variant * self.n_taggings + tagging, -1),
        )

    def _variant_arrays(
        self, whole: CandidateArrays
    ) -> tuple[NDArray[np.bool_], Ints, Floats, Floats | None, Floats | None]:
        """Return the queries of each variant (a mask), the most constraints of each query, and the parts of log π.

        The latter have a row for each variant and a last row for the intents.
        """
        sources = [*self._read, whole]
        variant_places = [*(_places(whole, variant) for variant in self._read), np.arange(len(whole))]
        base = np.full((len(variant_places), len(whole)), -np.inf)
        has_delta = any(source.delta is not None for source in sources)
        delta = np.zeros(base.shape) if has_delta else None
        # Constraints can be dropped only if every source lists its violations by constraint.
        by_constraint = has_delta and all((v.delta is None) or (v.violations is not None) for v in sources)
        most = max(0 if v.violations is None else v.violations.shape[1] for v in sources)
        violations = np.zeros((*base.shape, most)) if by_constraint else None
        for row, (source, place) in enumerate(zip(sources, variant_places, strict=True)):
            present = place >= 0
            base[row, place[present]] = source.log_base[present]
            if delta is not None and source.delta is not None:
                delta[row, place[present]] = source.delta[present]
            if violations is not None and source.violations is not None:
                violations[row, place[present], : source.violations.shape[1]] = source.violations[present]
        has = np.array([np.isin(whole.topics, variant.topics) for variant in self._read])
        if not has.any() and len(whole):
            raise InputError(
                f"variants: no query in common with the intents: found {examples(self._read[0].topics)}, wanted "
                f"some of {examples(whole.topics)}"
            )
        n_constraints = np.zeros(len(whole.topics), dtype=np.int64)
        for source in sources:
            topics = places(source.topics, whole.topics)
            present = topics >= 0
            n_constraints[topics[present]] = np.maximum(n_constraints[topics[present]], source.n_constraints[present])
        return has, n_constraints, base, delta, violations

    @cached_property
    def _content(self) -> bytes:
        digest = hashlib.blake2b(f"{self.order} {self.n_taggings}".encode())
        for variant in self._read:
            for text in (variant.topics, variant.entity.text.to_pylist()):
                digest.update(repr(text).encode())
            for array in (variant.topic, variant.log_base, variant.delta, variant.violations):
                digest.update(repr(None if array is None else array.shape).encode())
                digest.update(b"" if array is None else array.tobytes())
        return digest.digest()

    def __repr__(self) -> str:
        taggings = f", n_taggings={self.n_taggings}" if self.n_taggings > 1 else ""
        return f"Variants({len(self.frames)} frames, order={self.order!r}{taggings})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Variants) and self._content == other._content

    def __hash__(self) -> int:
        return hash(self._content)


def with_variants(intents: Any, perturbations: Iterable[Any]) -> pd.DataFrame:
    """Append the candidates that only variants contain to the intents, with probability 0.

    Match the systems with the rows of this frame, so that they can cover the candidates of variants.
    """
    frame = pandas_frame(intents, "intents")
    whole = CandidateArrays.of(frame)
    extra = []
    for perturbation in perturbations:
        if isinstance(perturbation, Variants):
            for table, variant in zip(perturbation.frames, perturbation._read, strict=True):  # noqa: SLF001 - of this module
                new = (whole.find(variant) < 0) & np.isin(variant.topics, whole.topics)[variant.topic]
                extra.append(table.iloc[np.sort(variant.rows[new])])
    if not sum(map(len, extra)):
        return frame
    added = pd.concat([table for table in extra if len(table)]).drop_duplicates(["qid", "entity_id"]).assign(prob=0.0)
    both = pd.concat([frame, added], ignore_index=True)
    if "delta" in both.columns:
        both["delta"] = both["delta"].fillna(0.0)
    if "violations" in both.columns:
        # Lists are padded with 0 to the longest list of their query.
        lists = both["violations"].map(lambda one: list(one) if isinstance(one, (list, tuple, np.ndarray)) else [])
        most = lists.str.len().groupby(both["qid"]).transform("max")
        filled = [values + [0.0] * (n - len(values)) for values, n in zip(lists, most, strict=True)]
        both["violations"] = pd.Series(filled, index=both.index, dtype=object)
    return both


def _places(whole: CandidateArrays, variant: CandidateArrays) -> Ints:
    """Return the row of each candidate of a variant among the intents, -1 for queries that are not evaluated."""
    require_same_kind(whole.qid, variant.qid, "intents column 'qid'", "variants column 'qid'")
    require_same_kind(whole.entity, variant.entity, "intents column 'entity_id'", "variants column 'entity_id'")
    place = whole.find(variant)
    unknown = (place < 0) & np.isin(variant.topics, whole.topics)[variant.topic]
    if unknown.any():
        at = int(np.argmax(unknown))
        raise InputError(
            f"variants: candidate {variant.entity.text[at].as_py()!r} of query {variant.topics[variant.topic[at]]!r} "
            "is not among the intents; match the systems with the frame that "
            "vbterrier.stats.variants.with_variants(intents, perturbations) returns, and replicate with it"
        )
    return place
