"""How replicas are scored: queries in blocks, all replicas of a block at once."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from vbterrier.errors import InputError
from vbterrier.kernels.vb import per_topic
from vbterrier.parallel.bars import bar
from vbterrier.uncertainty.state import Draws, State
from vbterrier.uncertainty.statistics import Served

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from vbterrier.uncertainty.candidates import Candidates
    from vbterrier.uncertainty.matches import Laid
    from vbterrier.uncertainty.statistics import Statistic

    Floats = NDArray[np.float64]

# Numbers of one array held at a time: replicas times the candidates, violations or matches of some queries.
_ROOM = 100_000


class Plan:
    """Systems and statistics over the same candidates, scored block by block."""

    def __init__(self, whole: Candidates, systems: list[Laid], statistics: list[Statistic]) -> None:
        self.whole, self.systems, self.statistics = whole, systems, statistics
        self.kinds = list(dict.fromkeys((statistic.cutoff, statistic.gain) for statistic in statistics))

    def scores(
        self,
        n_replicas: int,
        seed: int,
        of_intents: list[tuple[str, Any]],
        of_tags: list[tuple[str, Any]],
        *,
        undefined: bool = False,
        progress: bool = False,
    ) -> Floats:
        """Scores, shape (n_systems, n_statistics, B, n_topics)."""
        gains = None if of_tags else [[system.gain(*kind) for kind in self.kinds] for system in self.systems]
        shape = (len(self.systems), len(self.statistics), n_replicas, len(self.whole.topics))
        values = np.empty(shape)
        batches = self._batches(n_replicas, seed, with_tags=bool(of_tags))
        for first, last, draws in _shown(batches, shape[-1], progress=progress):
            state = State.unperturbed(draws.candidates)
            for name, perturbation in of_intents:
                state = perturbation.apply(state, draws.named(name))
            weights = state.weights
            total = per_topic(weights, draws.candidates.topic, last - first)
            if undefined:
                total[total == 0] = np.nan
            elif not (total > 0).all():
                self._refuse(total, first, of_intents)
            rows = slice(draws.first, draws.first + draws.n)
            for number, system in enumerate(self.systems):
                if gains is None:
                    found = self._noisy(system, first, last, of_tags, draws)
                else:
                    found = [gain[:, draws.candidates.span] for gain in gains[number]]
                served = [Served(weights, total, gain, draws.candidates.topic) for gain in found]
                for column, statistic in enumerate(self.statistics):
                    kind = self.kinds.index((statistic.cutoff, statistic.gain))
                    values[number, column, rows, first:last] = statistic.of(served[kind])
        return values

    def _noisy(self, system: Laid, first: int, last: int, of_tags: list[tuple[str, Any]], draws: Draws) -> list[Floats]:
        tagged, here = system.tagged(first, last)
        for name, perturbation in of_tags:
            tagged = perturbation.apply(tagged, draws.named(name))
        return [system.noisy_gain(tagged, here, *kind) for kind in self.kinds]

    def _batches(self, n_replicas: int, seed: int, *, with_tags: bool) -> Iterator[tuple[int, int, Draws]]:
        """Consecutive queries and consecutive replicas, as many as there is room for."""
        cost = self.whole.sizes * (1 if self.whole.violations is None else 1 + self.whole.violations.shape[1])
        if with_tags:
            n = len(self.whole.topics)
            counts = [np.bincount(self.whole.topic[system.intent], minlength=n) for system in self.systems]
            cost = np.max([cost, *counts], axis=0)
        ends = np.cumsum(cost)
        block = (ends - cost) // max(1, _ROOM // n_replicas)
        bounds = [0, *(np.flatnonzero(np.diff(block)) + 1).tolist(), len(cost)] if len(cost) else []
        for first, last in pairwise(bounds):
            draws = Draws(seed, self.whole.block(first, last))
            step = max(1, 2 * _ROOM // max(1, int(cost[first:last].sum())))
            for start in range(0, n_replicas, step):
                yield first, last, replace(draws, first=start, n=min(step, n_replicas - start))

    def _refuse(self, total: Floats, first: int, of_intents: list[tuple[str, Any]]) -> None:
        _, topic = np.argwhere(~(total > 0))[0]
        raise InputError(
            f"query {self.whole.topics[first + int(topic)]!r} has no candidate left after "
            f"{' >> '.join(repr(perturbation) for _, perturbation in of_intents)}; keep one at least"
        )


def _shown(
    batches: Iterator[tuple[int, int, Draws]], n_topics: int, *, progress: bool
) -> Iterator[tuple[int, int, Draws]]:
    """The same, with a bar that counts queries."""
    if not progress:
        yield from batches
        return
    with bar(None, "replicas", total=n_topics, unit="query") as shown:
        for first, last, draws in batches:
            yield first, last, draws
            shown.update(last - shown.n)


class LeftOut:
    """Replica b is without the b-th candidate of each query."""

    def apply(self, state: State, draws: Draws) -> State:
        """Take one candidate away; all of them where there is no b-th, which leaves the score undefined."""
        here = state.candidates
        number = np.arange(len(here)) - here.starts[here.topic]
        turn = draws.replicas[:, None]
        gone = number == turn
        whose = per_topic((gone & state.alive).astype(np.float64), here.topic, len(here.topics)) > 0
        return state.with_base(np.where(gone | ~whose[:, here.topic], -np.inf, state.log_base))
