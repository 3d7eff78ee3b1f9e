"""Candidate intents as arrays for perturbation, and the random streams of queries."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa

from vbterrier.errors import InputError
from vbterrier.frames.contracts import pandas_frame, require
from vbterrier.frames.entities import intent_probabilities, require_once
from vbterrier.frames.ids import Ids, Lookup, column_ids, column_numbers
from vbterrier.kernels.candidates import keyed_uniforms, normalise_weights, unnormalised_softmax
from vbterrier.kernels.fingerprints import mix
from vbterrier.kernels.resample import stream
from vbterrier.kernels.tolerances import PROBABILITY_ROUNDING

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd
    from numpy.typing import NDArray

    from vbterrier.annotations import Floats, Ints, Words

    Sample = Callable[[np.random.Generator, tuple[int, int], slice], Floats]


T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class CandidateArrays:
    """The candidates of some queries, grouped by query and sorted by id.

    Random numbers are assigned in this order, so that the result does not depend on the order of rows in a file.

    ``qid``: the id of each query, in order of appearance. ``topic``: the index of each candidate's query, increasing,
    shape (n,). ``rows``: the row of each candidate in the original frame. ``log_base``: ``log π + Δ``, the linker's
    part of each log probability; ``-inf`` where π is 0. ``delta``: ``Δ``, the sum of the weighted violations, or
    ``None`` without constraints. ``violations``: each weighted violation, shape (n, most constraints), padded with 0;
    or ``None``. ``root, start, first``: of a block: the candidates that it is part of, and the indices of its first
    candidate and query among them.
    """

    qid: Ids
    topic: Ints
    entity: Ids
    rows: Ints
    log_base: Floats
    delta: Floats | None
    violations: Floats | None
    n_constraints: Ints
    root: CandidateArrays | None = None
    start: int = 0
    first: int = 0
    cache: dict[Any, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, frame: Any, name: str = "intents") -> CandidateArrays:
        """Read an I frame: qid, entity_id, prob [, delta, violations]."""
        frame = pandas_frame(frame, name)
        require(frame, ("qid", "entity_id", "prob"), name)
        entity = column_ids(frame["entity_id"], f"{name} column 'entity_id'")
        qid = column_ids(frame["qid"], f"{name} column 'qid'")
        topics, topic = qid.codes()
        require_once(topics, topic, entity, name)
        rows = np.lexsort((entity.ranks(), topic)).astype(np.int64)
        prob, _ = intent_probabilities(frame["prob"], topics, topic, entity, name)
        violations, n_constraints = _violations(frame, topics, topic, name)
        delta = _total_penalties(frame, violations, name)
        with np.errstate(divide="ignore"):
            log_base = np.log(prob[rows]) + (0.0 if delta is None else delta[rows])
        ids, parts = Ids(pa.array(topics, pa.large_string()), qid.integers), (_at(delta, rows), _at(violations, rows))
        return cls(ids, topic[rows], entity.take(rows), rows, log_base, *parts, n_constraints)

    def __len__(self) -> int:
        return len(self.topic)

    @cached_property
    def starts(self) -> Ints:
        """Index of the first candidate of each query, then the number of candidates, shape (n_topics + 1,)."""
        return np.searchsorted(self.topic, np.arange(len(self.topics) + 1))

    @property
    def span(self) -> slice:
        """The slice of a block among the candidates that it is part of."""
        return slice(self.start, self.start + len(self))

    @property
    def sizes(self) -> Ints:
        """Number of candidates of each query, shape (n_topics,)."""
        return np.diff(self.starts)

    @cached_property
    def topics(self) -> list[str]:
        """The ids of the queries."""
        ids: list[str] = self.qid.text.to_pylist()
        return ids

    def block(self, first: int, last: int) -> CandidateArrays:
        """Return the candidates of consecutive queries."""
        here = slice(int(self.starts[first]), int(self.starts[last]))
        return CandidateArrays(
            Ids(self.qid.text.slice(first, last - first), self.qid.integers),
            self.topic[here] - first,
            Ids(self.entity.text.slice(here.start, here.stop - here.start), self.entity.integers),
            self.rows[here],
            self.log_base[here],
            _at(self.delta, here),
            _at(self.violations, here),
            self.n_constraints[first:last],
            root=self,
            start=here.start,
            first=first,
        )

    def compute_once(self, key: Any, make: Callable[[CandidateArrays], T]) -> T:
        """Return ``make(root)``, computed once for all blocks."""
        root = self.root or self
        if key not in root.cache:
            root.cache[key] = make(root)
        value: T = root.cache[key]
        return value

    @cached_property
    def _index(self) -> tuple[dict[str, int], Lookup]:
        return {topic: place for place, topic in enumerate(self.topics)}, Lookup(self.topic, self.entity)

    def find(self, other: CandidateArrays) -> Ints:
        """Return the index, among these candidates, of each candidate of ``other``; -1 if there is none."""
        places, lookup = self._index
        here = np.array([places.get(topic, -1) for topic in other.topics], dtype=np.int64)[other.topic]
        rows = np.flatnonzero(here >= 0)
        matched = np.full(len(other), -1, dtype=np.int64)
        matched[rows] = lookup.find_one(here[rows], other.entity.take(rows))
        return matched


def _at(array: Floats | None, index: Any) -> Floats | None:
    return None if array is None else array[index]


def _violations(frame: pd.DataFrame, topics: list[str], topic: Ints, name: str) -> tuple[Floats | None, Ints]:
    """Return the lists of the column ``violations`` as one array, and their length for each query."""
    if "violations" not in frame.columns:
        return None, np.zeros(len(topics), dtype=np.int64)
    try:
        lists = pa.array(frame["violations"].tolist(), pa.list_(pa.float64()))
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise InputError(f"{name} column 'violations': wanted a list of numbers in each row, found {error}") from error
    values = lists.flatten().to_numpy(zero_copy_only=False)
    if lists.null_count or not np.isfinite(values).all() or (values < 0).any():
        raise InputError(
            f"{name} column 'violations': wanted a list of numbers of at least 0 in each row; "
            "RelaxConstraints writes this column"
        )
    length = np.diff(lists.offsets.to_numpy())
    most = np.zeros(len(topics), dtype=np.int64)
    np.maximum.at(most, topic, length)
    ragged = length != most[topic]
    if ragged.any():
        row = int(np.argmax(ragged))
        raise InputError(
            f"{name}: row {row} has {length[row]} violations, other rows of query {topics[topic[row]]!r} have "
            f"{most[topic[row]]}; wanted one for each constraint, 0 where it holds"
        )
    filled = np.arange(int(most.max(initial=0))) < length[:, None]
    padded = np.zeros(filled.shape)
    padded[filled] = values
    return padded, most


def _total_penalties(frame: pd.DataFrame, violations: Floats | None, name: str) -> Floats | None:
    total = None if violations is None else violations.sum(axis=1)
    if "delta" not in frame.columns:
        return total
    delta = column_numbers(frame["delta"], f"{name} column 'delta'")
    bad = ~np.isfinite(delta) | (delta < 0)
    if total is not None:
        bad |= np.abs(total - delta) > PROBABILITY_ROUNDING * np.maximum(total, 1)
    if bad.any():
        row = int(np.argmax(bad))
        requirement = "a finite number of at least 0" if total is None else f"the sum of its violations, {total[row]:g}"
        raise InputError(f"{name}: row {row} has delta {delta[row]:g}, wanted {requirement}")
    return delta


@dataclass(frozen=True, eq=False)
class State:
    """Perturbed candidates: one row for each replica, or one row for all replicas; ``π = softmax(log_base - delta)``.

    ``log_base, delta``: shape (b or 1, n). ``violations``: shape (b or 1, n, most constraints). ``n_constraints``: of
    each query. ``variant``: the frame of :class:`~vbterrier.stats.variants.Variants` that each query uses, -1 for the
    candidates as given; shape (b, n_topics), or ``None`` without variants.
    """

    candidates: CandidateArrays
    log_base: Floats
    delta: Floats | None
    violations: Floats | None
    n_constraints: Ints
    variant: Ints | None = None

    @classmethod
    def from_candidates(cls, candidates: CandidateArrays) -> State:
        """Return the state before any perturbation."""
        parts = (_at(candidates.delta, None), _at(candidates.violations, None))
        return cls(candidates, candidates.log_base[None], *parts, candidates.n_constraints)

    def with_base(self, log_base: Floats) -> State:
        """Return a copy with another linker's part."""
        return replace(self, log_base=log_base)

    @property
    def weights(self) -> Floats:
        """π divided by the largest π of the query, shape (b or 1, n)."""
        logits = self.log_base if self.delta is None else self.log_base - self.delta
        return unnormalised_softmax(logits, self.candidates.topic, len(self.candidates.topics))

    @property
    def prob(self) -> Floats:
        """π, shape (b or 1, n)."""
        return normalise_weights(self.weights, self.candidates.topic, len(self.candidates.topics))

    @property
    def alive(self) -> NDArray[np.bool_]:
        """Mask of the candidates that are not removed, shape (b or 1, n)."""
        return self.log_base > -np.inf


@dataclass
class Draws:
    """Random numbers of some queries, for successive batches of n consecutive replicas.

    The numbers of replica b of a query depend only on the seed, the query id, the name of the quantity and b: not on
    the number of replicas or queries, nor on the batches.
    """

    seed: int
    candidates: CandidateArrays
    name: str = ""
    first: int = 0
    n: int = 0
    _streams: dict[tuple[str, str, str], np.random.Generator] = field(default_factory=dict, repr=False)

    def with_name(self, name: str) -> Draws:
        """Return the random numbers of another perturbation for the same batch."""
        return replace(self, name=name)

    @property
    def replicas(self) -> Ints:
        """Indices of the batch's replicas, shape (n,)."""
        return np.arange(self.first, self.first + self.n)

    def each(self, quantity: str, sample: Sample, widths: Ints | None = None) -> Floats:
        """Draw a block of columns for each query, with a row for each replica, shape (n, sum of widths).

        ``quantity``: name of the quantity; draw each name once for each batch. ``sample``: called as
        ``sample(generator, shape, columns)``; must draw row by row. ``widths``: number of columns of each query, shape
        (n_topics,); by default its number of candidates.
        """
        widths = self.candidates.sizes if widths is None else widths
        ends = np.cumsum(widths)
        drawn = np.empty((self.n, int(widths.sum())))
        for qid, start, end in zip(self.candidates.topics, (ends - widths).tolist(), ends.tolist(), strict=True):
            if end > start:
                key = (qid, self.name, quantity)
                if key not in self._streams:
                    self._streams[key] = stream(self.seed, *key)
                columns = slice(start, end)
                drawn[:, columns] = sample(self._streams[key], (self.n, end - start), columns)
        return drawn

    def uniform(self, quantity: str, widths: Ints | None = None) -> Floats:
        """Draw uniform numbers in [0, 1), see :meth:`each`."""
        return self.each(quantity, lambda stream, shape, _: stream.random(shape), widths)

    def normal(self, quantity: str, widths: Ints | None = None) -> Floats:
        """Draw standard normal numbers, see :meth:`each`."""
        return self.each(quantity, lambda stream, shape, _: stream.standard_normal(shape), widths)

    def uniform_by_key(self, quantity: str, keys: Words) -> Floats:
        """Draw uniform numbers in [0, 1) that depend only on a key, such as that of a document; shape (n, n_keys)."""
        seed = np.random.SeedSequence(self.seed).generate_state(1, np.uint64)
        name = Ids(pa.array([f"{self.name}\0{quantity}"], pa.large_string())).fingerprints
        return keyed_uniforms(mix(keys ^ mix(seed ^ name)), self.first, self.n)
