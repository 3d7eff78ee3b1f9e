"""Shares of the variance of a mean: topics, unjudged documents, intents and tags."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import InputError, ParameterError, examples
from vbterrier.evaluate.inputs import named_runs, tags_of, target_of
from vbterrier.evaluate.replicas import matches_of, nil_of, statistic_of
from vbterrier.evaluate.scores import TOPICS as ON_TOPICS
from vbterrier.frames.contracts import systems_of
from vbterrier.frames.named import named
from vbterrier.frames.notebook import Panel, Shown, of_means, systems_line
from vbterrier.frames.parameters import choice, whole
from vbterrier.frames.runs import loaded_run
from vbterrier.intents.coverage import Intents, Tags, cover
from vbterrier.log import tracked
from vbterrier.measures.artifact import IntentSet
from vbterrier.measures.base import deepest
from vbterrier.measures.intents import is_ambiguous
from vbterrier.measures.target import Scoring, aligned, require_one_tagger
from vbterrier.measures.text import measures_from
from vbterrier.measures.unjudged import Bootstrapped
from vbterrier.stats.comparisons import pairs_of
from vbterrier.stats.crossed import crossed_replicas, first_order, sources_of
from vbterrier.stats.perturbations import Dirichlet
from vbterrier.stats.topic_intervals import check_level
from vbterrier.stats.variance_components import INTERACTIONS, METHODS, SCORES, TOPICS, combine_sources
from vbterrier.stats.variants import with_variants
from vbterrier.unjudged.joint import JointDistribution

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import ir_measures

    from vbterrier.annotations import Floats
    from vbterrier.frames.notebook import Figures
    from vbterrier.frames.ranking import Run
    from vbterrier.measures.target import EvaluationTarget
    from vbterrier.stats.variance_components import Combined


UNJUDGED = "unjudged"


class Contrast:
    """Systems, or their differences: what rows of an array of systems become.

    Parameters
    ----------
    systems
        All names.
    pairs
        Names of two systems each; ``None`` for the systems themselves.
    """

    def __init__(self, systems: Sequence[str], pairs: Sequence[tuple[str, str]] | None) -> None:
        self.names = list(systems) if pairs is None else [f"{a} - {b}" for a, b in pairs]
        at = {name: place for place, name in enumerate(systems)}
        self._left, self._right = ([at[pair[side]] for pair in pairs or ()] for side in (0, 1))
        self.is_difference = pairs is not None

    def __call__(self, scores: Floats) -> Floats:
        """The same along the first axis."""
        return scores[self._left] - scores[self._right] if self.is_difference else scores


@dataclass(frozen=True, eq=False)
class Drawn:
    """Scores of m systems or differences on n topics, and draws of what is uncertain within each.

    Parameters
    ----------
    names
        Of the m.
    values
        The scores themselves, shape (m, n).
    expected, variances
        Over what is uncertain, where they are known exactly, shape (m, n).
    draws
        Topic after topic, shape (m, B).
    source
        As :func:`vbterrier.stats.variance_components.combine_sources` takes it.
    """

    names: list[str]
    values: Floats
    expected: Floats | None
    variances: Floats | None
    draws: Iterable[Floats]
    source: str | dict[str, Floats]


def unjudged(
    measure: Bootstrapped,
    slot: EvaluationTarget,
    runs: Mapping[str, Run],
    pairs: Sequence[tuple[str, str]] | None,
    *,
    n_draws: int,
    seed: int,
    progress: bool,
) -> Drawn:
    """Draws of what unjudged documents could be, one document being the same in all systems.

    Raises
    ------
    ParameterError
        A statistic other than the mean.
    """
    if measure["stat"] != "mean":
        raise ParameterError(f"{measure}: the scores themselves are drawn; leave out stat={measure['stat']!r}")
    laws, cuts = {}, {}
    for name, run in runs.items():
        scoring = Scoring(slot, run, measure.cutoff)
        laws[name], cuts[name] = measure.distribution(scoring), measure.judged(scoring)
    joint, contrast = JointDistribution(laws, cuts), Contrast(list(runs), pairs)
    # In an order that is not that of the qrels, so that it changes nothing.
    order = sorted(range(len(joint.topics)), key=joint.topics.__getitem__)
    expected = contrast(np.array([law.mean for law in laws.values()]))[:, order]
    variances = None if contrast.is_difference else np.array([law.std**2 for law in laws.values()])[:, order]
    shown = tracked(order, "drawing", shown=progress and len(order) > 1, unit="topic")
    draws = (contrast(joint.scores(topic, n_draws, seed)) for topic in shown)
    return Drawn(contrast.names, expected, expected, variances, draws, UNJUDGED)


def replicated(
    measure: ir_measures.Measure,
    slot: EvaluationTarget,
    runs: Mapping[str, Run],
    pairs: Sequence[tuple[str, str]] | None,
    *,
    intents: Any,
    tags: Any,
    sources: Mapping[str, Sequence[Any]],
    n_draws: int,
    seed: int,
    progress: bool,
) -> Drawn:
    """Replicas under perturbed intents and tags, all systems meeting the same.

    Raises
    ------
    InputError
        Topics without intents; runs tagged in different ways.
    ParameterError
        No intents; measures that bring their own.
    """
    if intents is None:
        raise ParameterError(f"{measure}: give the intents whose uncertainty counts, a frame (qid, entity_id, prob)")
    nil, depth = nil_of([measure]), deepest([measure])
    if tags is None:
        require_one_tagger(runs.values())
    perturbations = [one for some in sources.values() for one in some]
    frame = with_variants(_of_topics(named("intents", intents), slot.topics), perturbations)
    known, candidates = Tags(tags_of(tags, runs, depth)), Intents(frame)
    matches = {name: matches_of(cover(run, candidates, known, depth, nil=nil), run) for name, run in runs.items()}
    made, again = crossed_replicas(
        frame, matches, sources, statistic_of(measure), n_replicas=n_draws, seed=seed, progress=progress
    )
    order, contrast = np.argsort(np.array(made.topics, dtype=object)), Contrast(list(runs), pairs)
    scores = contrast(made.values[:, 0])[..., order]
    parts = {
        name: first_order(np.moveaxis(scores, 1, 0), np.moveaxis(contrast(values)[..., order], 1, 0))
        for name, values in again.items()
    }
    values = contrast(made.point[:, 0])[:, order]
    return Drawn(contrast.names, values, None, None, np.moveaxis(scores, 2, 0), parts or next(iter(sources)))


def _of_topics(intents: pd.DataFrame, topics: Sequence[str]) -> pd.DataFrame:
    qid = intents["qid"].astype(str)
    without = sorted(set(topics).difference(qid))
    if without:
        raise InputError(f"intents: {len(without)} topics ({examples(without)}) have none; add some, or leave them out")
    return intents[qid.isin(set(topics))].reset_index(drop=True)


N_DRAWS = 1000


@dataclass(frozen=True, eq=False, repr=False)
class VarianceShares(Shown):
    """What :func:`variance_shares` found.

    Parameters
    ----------
    intervals
        The C frame: name, measure, value, low, high, level, method, n_qids, n_resamples, seed, and ``mean``, which
        intervals lie around (the mean of the replicas; elsewhere it is the value). A row for all sources together, as
        ``topics and unjudged (nested)``, one for the topics alone, one for each source alone.
    shares
        name, measure, source, variance (of the mean), share, low, high (of the share), level, n_qids, n_draws, seed:
        the rows of a system sum to its total.
    advice
        What would narrow the intervals: name, measure, change, these_topics, other_topics, at_best, n_qids, level. The
        three are half-widths ``z √V``: of the mean over these topics once they are known, of the mean over others of
        the kind, and of what the source does not contribute, below which no settling of it leads. ``n_qids`` is how
        many topics, with all else as it is, have the half-width ``at_best``.
    """

    intervals: pd.DataFrame
    shares: pd.DataFrame
    advice: pd.DataFrame

    def _line(self) -> str:
        return f"{systems_line(self.intervals)}; {self.intervals['method'].iloc[0]}"

    def _panels(self) -> Iterator[Panel]:
        yield Panel("Shares of the variance", self.shares, value="share", rule=0)
        yield from of_means(self._around())
        yield Panel("Half-widths that would be left", self.advice)

    def _around(self) -> pd.DataFrame:
        """Intervals with a mean of its own only where they lie around replicas."""
        mean = self.intervals["mean"]
        return self.intervals.assign(mean=mean.where(mean != self.intervals["value"]))

    def _figures(self) -> Figures:
        return {"variance_shares": lambda: {"shares": self}, "forest": lambda: {"intervals": self._around()}}


def variance_shares(
    runs: Any,
    qrels: Any = None,
    measure: str | ir_measures.Measure = "BNDCG@10",
    *,
    intents: Any = None,
    tags: Any = None,
    perturb: Sequence[Any] | Mapping[str, Any] = (Dirichlet(),),
    baseline: str | None = None,
    scores: str = "expected",
    method: str = "nested",
    n_draws: int = N_DRAWS,
    level: float = 0.95,
    seed: int = 0,
    on_topics: str = "same",
    duplicates: str = "error",
    progress: bool = False,
) -> VarianceShares:
    """One interval of a mean for all that is uncertain about it, and what to do about it: judge more, or add topics.

    Of a bootstrapped measure, topics and unjudged documents are uncertain; of a measure over intents, topics and what
    the replicas perturb. The variance of the mean is ``Var_t(μ_t)/n + Σ_t σ_t²/n²``, of topics and of what is uncertain
    within them; see :func:`vbterrier.stats.variance_components.combine_sources`.

    Parameters
    ----------
    runs, qrels, on_topics, duplicates
        As :func:`vbterrier.score` takes them.
    measure
        A bootstrapped measure, or one over intents (``ES``, ``VB``...); or its text.
    intents, tags
        For measures over intents: a frame (qid, entity_id, prob), a registered name, a path or an
        :class:`vbterrier.IntentSet`; a frame (docno, entity_id[, weight, qid]), a name, a path, or ``None`` for the
        column ``entity_id`` of the runs.
    perturb
        What is uncertain about intents and tags: perturbations of :mod:`vbterrier.stats`, each a source of its
        own, called ``intents`` or ``tags`` after what it perturbs; or a mapping of names to one or several.
    baseline
        A system: of the others' differences from it instead of systems, named ``"a - baseline"``. What two systems
        share cancels: documents have one grade and one noise for both.
    scores
        ``"expected"``: what is true lies about the scores (or the means of the replicas) as draws do. ``"measured"``:
        the scores lie about what is true; their spread over topics holds the noise, which is taken out of it.
    method
        Of the combined interval, ``"nested"`` resampling or ``"normal"``.
    n_draws
        Draws within each topic, and resamples of the topics; at least 2.
    level
        Nominal coverage of all intervals.
    seed
        Decides draws and resamples.
    progress
        Show progress.

    Returns
    -------
    VarianceShares

    Raises
    ------
    InputError
        See :func:`vbterrier.score`.
    ParameterError
        A measure without any source within topics; intents for one that needs none, none for one that does.

    Notes
    -----
    Judging narrows what is said of *these* topics (``these_topics``). For other topics of the kind, expected scores
    under a prior that is right are as good as judged ones: true scores spread over topics by as much more as was
    uncertain, so that the interval will be about as wide as the combined one is now. On TREC-COVID with judgments
    hidden, their variance exceeded that of expected scores (learned prior) by 1.3 to 2.6 times the variance within
    topics, never by less. What is wrong with a prior in all topics alike is in none of these numbers.

    Variances within topics are exact for systems where the measure's law has closed moments, from draws elsewhere.

    Examples
    --------
    >>> import pandas as pd
    >>> qids = ["q1", "q2", "q3", "q4"]
    >>> qrels = pd.DataFrame([(q, d, int(d < q[1] or d == "a")) for q in qids for d in "abc"],
    ...                      columns=["qid", "docno", "label"])
    >>> run = pd.DataFrame([(q, d, -r) for q in qids for r, d in enumerate(["new", "b", "a"][int(q[1]) % 2:])],
    ...                    columns=["qid", "docno", "score"])
    >>> found = variance_shares({"mine": run}, qrels, "BNDCG@3")
    >>> found.intervals["method"].tolist()
    ['topics and unjudged (nested)', 'topics (percentile)', 'unjudged (normal)']
    >>> found.shares.groupby("name")["share"].sum().tolist()
    [1.0]
    """
    (wanted,) = measures_from(measure)
    for option, value, legal in (
        ("scores", scores, SCORES),
        ("method", method, METHODS),
        ("on_topics", on_topics, ON_TOPICS),
    ):
        choice(option, value, legal)
    check_level(level)
    whole("n_draws", n_draws, low=2)
    whole("seed", seed, low=0)
    if isinstance(intents, IntentSet):
        tags, intents = intents.tags() if tags is None else tags, intents.intents()
    judged = target_of(qrels, intents, tags)
    loaded = {name: loaded_run(name, run, duplicates) for name, run in systems_of(named_runs(runs))}
    if not loaded:
        raise InputError("no systems; name at least one")
    pairs = None if baseline is None else pairs_of(list(loaded), baseline)
    slot, loaded = aligned(judged, loaded, on_topics)
    options: dict[str, Any] = {"n_draws": n_draws, "seed": seed, "progress": progress}
    if isinstance(wanted, Bootstrapped):
        drawn = unjudged(wanted, slot, loaded, pairs, **options)
    elif is_ambiguous(wanted):
        given: dict[str, Any] = {"intents": intents, "tags": tags, "sources": sources_of(perturb)}
        drawn = replicated(wanted, slot, loaded, pairs, **given, **options)
    else:
        raise ParameterError(
            f"{wanted}: nothing but the topics is uncertain of it, see vbterrier.score; wanted a bootstrapped measure, "
            "as 'BNDCG@10', or one over intents, as 'ES@10'"
        )
    found = combine_sources(
        drawn.draws,
        drawn.source,
        values=drawn.values if scores == "measured" else drawn.expected,
        variances=drawn.variances,
        scores=scores,
        method=method,
        level=level,
        n_qids=drawn.values.shape[1],
        n_draws=n_draws,
        seed=seed,
    )
    about = {"level": level, "n_qids": found.n_qids, "n_draws": n_draws, "seed": seed}
    return VarianceShares(
        _intervals(found, drawn, str(wanted), n_draws, seed),
        _shares(found, drawn.names, str(wanted)).assign(**about),
        _advice(found, drawn.names, str(wanted)),
    )


def _intervals(found: Combined, drawn: Drawn, measure: str, n_draws: int, seed: int) -> pd.DataFrame:
    """A row for all sources, the topics, and each other source; systems in order."""
    alone = [found.alone(source) for source in found.sources if source not in (TOPICS, INTERACTIONS)]
    values = drawn.values.mean(axis=1)
    rows = [
        (
            name,
            measure,
            values[at],
            ends.low[at],
            ends.high[at],
            found.level,
            ends.method,
            found.n_qids,
            resamples,
            seed,
        )
        for at, name in enumerate(drawn.names)
        for ends in (found.interval, found.topics, *alone)
        for resamples in [0 if ends.method.endswith("(normal)") else n_draws]
    ]
    columns = ["name", "measure", "value", "low", "high", "level", "method", "n_qids", "n_resamples", "seed"]
    return pd.DataFrame(rows, columns=columns).assign(mean=np.repeat(found.means, 2 + len(alone)))


def _shares(found: Combined, names: Sequence[str], measure: str) -> pd.DataFrame:
    numbers = {"variance": found.variances, "share": found.shares, "low": found.low, "high": found.high}
    return pd.DataFrame(
        {
            "name": np.repeat(np.array(names, dtype=object), len(found.sources)),
            "measure": measure,
            "source": found.sources * len(names),
            **{name: array.ravel() for name, array in numbers.items()},
        }
    )


def _advice(found: Combined, names: Sequence[str], measure: str) -> pd.DataFrame:
    """What is left as it is, with twice the topics, and with each source settled; systems in order."""
    within = found.variances[:, 1:].sum(axis=1)
    changes = {"none": (within, found.total, found.total)}
    changes["twice the topics"] = (within / 2, found.total / 2, found.total / 2)
    settled = [source for source in found.sources if source not in (TOPICS, INTERACTIONS)]
    changes |= {f"{source} settled": found.left(source) for source in settled}
    rows = []
    for at, name in enumerate(names):
        for change, variances in changes.items():
            these, others, best = (float(found.reach(variance)[at]) for variance in variances)
            left, total = float(variances[2][at]), float(found.total[at])
            n_qids = found.n_qids * total / left if left > 0 else np.inf if total > 0 else float(found.n_qids)
            rows.append((name, measure, change, these, others, best, n_qids, found.level))
    columns = ["name", "measure", "change", "these_topics", "other_topics", "at_best", "n_qids", "level"]
    return pd.DataFrame(rows, columns=columns)
