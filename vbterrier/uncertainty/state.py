"""What perturbations work on: the candidates of each replica, and the random numbers of each query."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from vbterrier.frames.ids import Ids
from vbterrier.kernels.order import mix
from vbterrier.kernels.perturb import keyed_uniforms
from vbterrier.kernels.probability import normalised, raised
from vbterrier.kernels.resample import stream

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from vbterrier.uncertainty.candidates import Candidates

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]
    Words = NDArray[np.uint64]
    Sample = Callable[[np.random.Generator, tuple[int, int], slice], Floats]


@dataclass(frozen=True, eq=False)
class State:
    """What perturbations have made of the candidates: one row a replica, or one row for all replicas.

    ``π = softmax(log_base - delta)`` over each query.

    Parameters
    ----------
    candidates
        The unperturbed candidates.
    log_base
        The linker's part of log π up to a constant of each query, shape (b or 1, n); ``-inf`` for what is not there.
    delta
        The violations' part, shape (b or 1, n), or ``None``.
    violations
        Weighted violations of each constraint, shape (b or 1, n, most constraints), or ``None``.
    n_constraints
        Constraints of each query, shape (n_topics,).
    """

    candidates: Candidates
    log_base: Floats
    delta: Floats | None
    violations: Floats | None
    n_constraints: Ints

    @classmethod
    def unperturbed(cls, candidates: Candidates) -> State:
        """The state before any perturbation."""
        delta, violations = candidates.delta, candidates.violations
        return cls(
            candidates,
            candidates.log_base[None],
            None if delta is None else delta[None],
            None if violations is None else violations[None],
            candidates.n_constraints,
        )

    def with_base(self, log_base: Floats) -> State:
        """The same with another linker's part."""
        return replace(self, log_base=log_base)

    def with_violations(self, violations: Floats) -> State:
        """The same with other violations."""
        return replace(self, violations=violations, delta=violations.sum(axis=-1))

    @property
    def weights(self) -> Floats:
        """π up to a factor of each query: 1 for its most probable candidate, shape (b or 1, n)."""
        logits = self.log_base if self.delta is None else self.log_base - self.delta
        return raised(logits, self.candidates.topic, len(self.candidates.topics))

    @property
    def prob(self) -> Floats:
        """π, shape (b or 1, n)."""
        return normalised(self.weights, self.candidates.topic, len(self.candidates.topics))

    @property
    def alive(self) -> NDArray[np.bool_]:
        """Which candidates there are, shape (b or 1, n)."""
        return self.log_base > -np.inf


@dataclass
class Draws:
    """Random numbers of some queries, for one batch of consecutive replicas after another.

    What replica b of a query draws depends on the seed, the query's id, the name of what is drawn and b alone: not on
    how many replicas or queries there are, nor on batches.

    Parameters
    ----------
    seed
        The user's seed.
    candidates
        The queries and their candidates.
    name
        Of the perturbation that draws.
    first, n
        The first replica of the batch, from 0, and how many there are.
    """

    seed: int
    candidates: Candidates
    name: str = ""
    first: int = 0
    n: int = 0
    _streams: dict[tuple[str, str, str], np.random.Generator] = field(default_factory=dict, repr=False)

    def named(self, name: str) -> Draws:
        """The numbers of another perturbation, of the same batch."""
        return replace(self, name=name)

    @property
    def replicas(self) -> Ints:
        """The numbers of the batch's replicas, shape (n,)."""
        return np.arange(self.first, self.first + self.n)

    def each(self, what: str, sample: Sample, widths: Ints | None = None) -> Floats:
        """Draw for each query a block of one row a replica, side by side, shape (n, sum of widths).

        Parameters
        ----------
        what
            The name of what is drawn; each name is drawn once a batch.
        sample
            Called as ``sample(generator, shape, columns)``; must draw row by row.
        widths
            Columns of each query, shape (n_topics,); those of its candidates where none are given.
        """
        widths = self.candidates.sizes if widths is None else widths
        ends = np.cumsum(widths)
        drawn = np.empty((self.n, int(widths.sum())))
        for qid, start, end in zip(self.candidates.topics, (ends - widths).tolist(), ends.tolist(), strict=True):
            if end > start:
                columns = slice(start, end)
                drawn[:, columns] = sample(self._stream(qid, what), (self.n, end - start), columns)
        return drawn

    def uniform(self, what: str, widths: Ints | None = None) -> Floats:
        """Numbers in [0, 1), see :meth:`each`."""
        return self.each(what, lambda stream, shape, _: stream.random(shape), widths)

    def normal(self, what: str, widths: Ints | None = None) -> Floats:
        """Standard normal numbers, see :meth:`each`."""
        return self.each(what, lambda stream, shape, _: stream.standard_normal(shape), widths)

    def keyed(self, what: str, keys: Words) -> Floats:
        """Numbers in [0, 1) of things that have a key each, as documents, whatever others there are; (n, n_keys)."""
        seed = np.random.SeedSequence(self.seed).generate_state(1, np.uint64)
        name = fingerprint_of(f"{self.name}\0{what}")
        return keyed_uniforms(mix(keys ^ mix(seed ^ name)), self.first, self.n)

    def _stream(self, qid: str, what: str) -> np.random.Generator:
        key = (qid, self.name, what)
        if key not in self._streams:
            self._streams[key] = stream(self.seed, *key)
        return self._streams[key]


def fingerprint_of(text: str) -> Words:
    """The fingerprint of one text, shape (1,)."""
    return Ids(pa.array([text], pa.large_string())).prints
