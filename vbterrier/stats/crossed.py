"""Replicas under several sources of uncertainty at once, and their first-order Sobol indices."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from vbterrier.errors import ParameterError
from vbterrier.stats.replicas import N_REPLICAS, Replicas, check_perturbation, numbered, replicate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from vbterrier.annotations import Floats
    from vbterrier.stats.candidates import Draws
    from vbterrier.stats.matches import Matches, Statistic

__all__ = ["crossed_replicas", "first_order", "sources_of"]


@dataclass(frozen=True)
class _Named:
    """A perturbation with a separate name for its random numbers."""

    perturbation: Any
    name: str

    @property
    def target(self) -> str:
        return getattr(self.perturbation, "target", "intents")

    def apply(self, state: Any, draws: Draws) -> Any:
        return self.perturbation.apply(state, replace(draws, name=self.name))


def sources_of(perturbations: Sequence[Any] | Mapping[str, Any]) -> dict[str, list[Any]]:
    """Group perturbations by source of uncertainty, ``"intents"`` or ``"tags"``, with the class name if several.

    Parameters
    ----------
    perturbations
        A sequence, in which each perturbation is a separate source; or a mapping of names to one or several
        perturbations of the same source.

    Raises
    ------
    ParameterError
        No perturbation, an object that is not a perturbation, a reserved name.

    Examples
    --------
    >>> from vbterrier.stats import Dirichlet, TagDropout, TemperatureJitter
    >>> list(sources_of([Dirichlet(), TagDropout()])), list(sources_of([Dirichlet(), TemperatureJitter()]))
    (['intents', 'tags'], ['intents (Dirichlet)', 'intents (TemperatureJitter)'])
    """
    if hasattr(perturbations, "items"):
        named = {
            str(name): list(some) if isinstance(some, (list, tuple)) else [some] for name, some in perturbations.items()
        }
    else:
        listed = list(perturbations) if isinstance(perturbations, (list, tuple)) else [perturbations]
        targets = [getattr(one, "target", "intents") for one in listed]
        kinds = numbered(f"{target} ({type(one).__name__})" for target, one in zip(targets, listed, strict=True))
        names = [target if targets.count(target) == 1 else kind for target, kind in zip(targets, kinds, strict=True)]
        named = dict(zip(names, ([one] for one in listed), strict=True))
    if not named or not all(named.values()):
        raise ParameterError("replicas: no perturbation; give at least one, such as [Dirichlet(10)]")
    for name, some in named.items():
        if name in {"topics", "interactions"}:
            raise ParameterError(f"replicas: a source cannot be called {name!r}, the name of another row of the result")
        for one in some:
            check_perturbation(one)
            if len(named) > 1 and "turn" in {getattr(one, "order", None), getattr(one, "which", None)}:
                raise ParameterError(
                    f"{type(one).__name__} takes turns, which are the same in every draw, so that its variance cannot "
                    "be separated from other sources; use random draws, or this perturbation alone"
                )
    return named


def crossed_replicas(
    intents: Any,
    systems: Mapping[str, Matches],
    sources: Mapping[str, Sequence[Any]],
    statistic: Statistic,
    *,
    n_replicas: int = N_REPLICAS,
    seed: int = 0,
    progress: bool = False,
) -> tuple[Replicas, dict[str, Floats]]:
    """Replicas under all sources at once, and for each source replicas that share only the draws of this source.

    Returns
    -------
    (replicas, again)
        The replicas, equal to those of :func:`replicate`; and, with two sources or more, for each source the scores of
        shape (n_systems, B, n_topics) with new draws of all other sources, for :func:`first_order`. The cost is one
        additional evaluation for each source.

    Raises
    ------
    InputError, ParameterError
        See :func:`replicate`.
    """
    pairs = [(source, one) for source, some in sources.items() for one in some]
    names = numbered(type(one).__name__ for _, one in pairs)

    def drawn(kept: str | None) -> Replicas:
        # "anew" is part of the name of the random stream.
        noise = [
            _Named(one, name if kept in {None, source} else f"{name} anew")
            for (source, one), name in zip(pairs, names, strict=True)
        ]
        return replicate(intents, systems, noise, [statistic], n_replicas=n_replicas, seed=seed, progress=progress)

    replicas = drawn(None)
    again = {source: drawn(source).values[:, 0] for source in sources} if len(sources) > 1 else {}
    return replicas, again


def first_order(scores: Floats, again: Floats) -> Floats:
    """``Var(E[score | source])`` from pairs of scores that share only the draws of that source, over the first axis.

    It is their covariance (Sobol 1993) around their common mean (Janon et al. 2014).

    >>> shared, own, other = np.random.default_rng(1).normal(size=(3, 100_000))
    >>> float(first_order(shared + 2 * own, shared + 2 * other).round(1))
    1.0
    """
    n = len(scores)
    middle = (scores.mean(axis=0) + again.mean(axis=0)) / 2
    return np.asarray(((scores - middle) * (again - middle)).sum(axis=0) / (n - 1))
