"""Replicas from candidates generated anew: paraphrased queries, other relaxations, a linker run again."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import InputError, ParameterError, examples
from vbterrier.frames.contracts import frame_of, require
from vbterrier.frames.ids import require_same_kind
from vbterrier.frames.parameters import choice
from vbterrier.frames.runs import places as places_of
from vbterrier.stats.candidates import CandidateArrays

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from vbterrier.annotations import Floats, Ints
    from vbterrier.stats.candidates import Draws, State


ORDERS = ("random", "turn")


class Variants:
    """Take the candidates of each query and replica from one of several I frames.

    For paraphrases of the queries, other weights of constraints, other linkers, or B runs of a stage that is
    random itself. It replaces the candidates, so it stands before other perturbations. A query that none of the frames
    has keeps its candidates; one that some have is taken from these.

    Parameters
    ----------
    frames
        I frames: qid, entity_id, prob [, delta, violations]. To let the intents themselves take part, give them too.
    order
        ``"random"``: each with the same probability; ``"turn"``: replica b of a query takes its frame ``b mod n``, so
        that B frames give each replica its own.

    Raises
    ------
    ParameterError
        No frames, another order.
    InputError
        A frame that holds no intents; when applied: a candidate that is not among the intents, see
        :func:`with_variants`.

    Examples
    --------
    >>> first = pd.DataFrame({"qid": "q1", "entity_id": ["A", "B"], "prob": [0.75, 0.25]})
    >>> second = pd.DataFrame({"qid": ["q1"], "entity_id": ["C"], "prob": [1.0]})
    >>> Variants([first, second], order="turn")
    Variants(2 frames, order='turn')
    """

    def __init__(self, frames: Iterable[Any], *, order: str = "random") -> None:
        self.frames = tuple(frame_of(frame, f"variant {place}").copy() for place, frame in enumerate(frames))
        self.order = order
        choice("order", order, ORDERS)
        if not self.frames:
            raise ParameterError("frames=[]: wanted at least one frame of intents")
        self._read = [CandidateArrays.of(frame, f"variant {place}") for place, frame in enumerate(self.frames)]

    @classmethod
    def of(cls, frame: Any, column: str, *, order: str = "random") -> Variants:
        """Split one frame by a column that names the variant of each row, as the paraphrase it was linked for.

        >>> both = pd.DataFrame({"qid": "q1", "entity_id": ["A", "A"], "prob": 1.0, "paraphrase": ["one", "two"]})
        >>> Variants.of(both, "paraphrase")
        Variants(2 frames, order='random')
        """
        frame = frame_of(frame, "variants")
        require(frame, (column,), "variants")
        if frame[column].isna().any():
            row = int(np.argmax(frame[column].isna().to_numpy()))
            raise InputError(f"variants: row {row} has no {column!r}; it belongs to no variant")
        return cls([group for _, group in frame.groupby(column, sort=True)], order=order)

    def apply(self, state: State, draws: Draws) -> State:
        """Take the candidates of a variant."""
        here = state.candidates
        has, n_constraints, base, delta, violations = here.once(self, self._laid_out)
        topics = slice(here.first, here.first + len(here.topics))
        has = has[:, topics]
        # The variants that have a query come first in its column.
        order = np.argsort(~has, axis=0, kind="stable")
        n = np.maximum(has.sum(axis=0), 1)
        if self.order == "turn":
            turn = draws.replicas[:, None] % n
        else:
            turn = (draws.uniform("variant", np.ones_like(n)) * n).astype(np.int64)
        # Behind all variants stand the intents as they are.
        picked = np.where(has.any(axis=0), order[turn, np.arange(len(n))], len(has))[:, here.topic]
        column = np.arange(here.start, here.start + len(here))
        return replace(
            state,
            log_base=base[picked, column],
            delta=None if delta is None else delta[picked, column],
            violations=None if violations is None else violations[picked, column],
            n_constraints=n_constraints[topics],
        )

    def _laid_out(self, whole: CandidateArrays) -> tuple[NDArray[np.bool_], Ints, Floats, Floats | None, Floats | None]:
        """Which variant has which query, the most constraints that a query has, and the parts of log π.

        The parts have a row for each variant and a last one for the intents themselves.
        """
        all_of_them = [*self._read, whole]
        places = [*(_places(whole, variant) for variant in self._read), np.arange(len(whole))]
        n = len(whole)
        base = np.full((len(places), n), -np.inf)
        has_delta = any(variant.delta is not None for variant in all_of_them)
        delta = np.zeros(base.shape) if has_delta else None
        # Constraints can be dropped where every violation is known by its constraint.
        known = has_delta and all((v.delta is None) or (v.violations is not None) for v in all_of_them)
        most = max(0 if v.violations is None else v.violations.shape[1] for v in all_of_them)
        violations = np.zeros((*base.shape, most)) if known else None
        for number, (variant, place) in enumerate(zip(all_of_them, places, strict=True)):
            met = place >= 0
            base[number, place[met]] = variant.log_base[met]
            if delta is not None and variant.delta is not None:
                delta[number, place[met]] = variant.delta[met]
            if violations is not None and variant.violations is not None:
                violations[number, place[met], : variant.violations.shape[1]] = variant.violations[met]
        has = np.array([np.isin(whole.topics, variant.topics) for variant in self._read])
        if not has.any() and len(whole):
            raise InputError(
                f"variants: no query in common with the intents: {examples(self._read[0].topics)} against "
                f"{examples(whole.topics)}"
            )
        n_constraints = np.zeros(len(whole.topics), dtype=np.int64)
        for variant in all_of_them:
            there = places_of(variant.topics, whole.topics)
            known_here = there[there >= 0]
            n_constraints[known_here] = np.maximum(n_constraints[known_here], variant.n_constraints[there >= 0])
        return has, n_constraints, base, delta, violations

    @cached_property
    def _content(self) -> bytes:
        digest = hashlib.blake2b(self.order.encode())
        for variant in self._read:
            for text in (variant.topics, variant.entity.text.to_pylist()):
                digest.update(repr(text).encode())
            for array in (variant.topic, variant.log_base, variant.delta, variant.violations):
                digest.update(repr(None if array is None else array.shape).encode())
                digest.update(b"" if array is None else array.tobytes())
        return digest.digest()

    def __repr__(self) -> str:
        return f"Variants({len(self.frames)} frames, order={self.order!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Variants) and self._content == other._content

    def __hash__(self) -> int:
        return hash(self._content)


def with_variants(intents: Any, perturbations: Iterable[Any]) -> pd.DataFrame:
    """The intents, and below them with probability 0 the candidates that only variants have.

    Systems are matched with the rows of this frame, so that what a variant brings in can be covered.

    Parameters
    ----------
    intents
        An I frame.
    perturbations
        Perturbations; those that are no :class:`Variants` add nothing.

    Examples
    --------
    >>> intents = pd.DataFrame({"qid": "q1", "entity_id": ["A", "B"], "prob": [0.75, 0.25]})
    >>> variant = pd.DataFrame({"qid": ["q1"], "entity_id": ["C"], "prob": [1.0]})
    >>> with_variants(intents, [Variants([variant])]).values.tolist()
    [['q1', 'A', 0.75], ['q1', 'B', 0.25], ['q1', 'C', 0.0]]
    """
    frame = frame_of(intents, "intents")
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
        both["violations"] = _padded(both)
    return both


def _padded(frame: pd.DataFrame) -> pd.Series[Any]:
    """Lists of violations as long as the longest of their query."""
    lists = frame["violations"].map(lambda value: list(value) if isinstance(value, (list, tuple, np.ndarray)) else [])
    most = lists.str.len().groupby(frame["qid"]).transform("max")
    filled = [values + [0.0] * (n - len(values)) for values, n in zip(lists, most, strict=True)]
    return pd.Series(filled, index=frame.index, dtype=object)


def _places(whole: CandidateArrays, variant: CandidateArrays) -> Ints:
    """The place of each candidate of a variant among the intents; queries that are not evaluated have none."""
    require_same_kind(whole.qid, variant.qid, "intents column 'qid'", "variants column 'qid'")
    require_same_kind(whole.entity, variant.entity, "intents column 'entity_id'", "variants column 'entity_id'")
    found = whole.find(variant)
    strange = (found < 0) & np.isin(variant.topics, whole.topics)[variant.topic]
    if strange.any():
        at = int(np.argmax(strange))
        raise InputError(
            f"variants: candidate {variant.entity.text[at].as_py()!r} of query {variant.topics[variant.topic[at]]!r} "
            "is not among the intents; match the systems with the frame that "
            "vbterrier.stats.with_variants(intents, perturbations) gives, and replicate with it"
        )
    return found
