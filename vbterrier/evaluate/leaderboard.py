"""Leaderboards of a track: intervals of ranks, letters, reusability, automatic judges, and the next judgments."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import combinations, pairwise
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import (
    InputError,
    ParameterError,
    agreeing,
    choice,
    chosen,
    examples,
    nearest,
    printable,
    warn,
    whole,
)
from vbterrier.evaluate.comparison import by_collection
from vbterrier.evaluate.inputs import (
    loaded_runs,
    measure_with_distribution,
    quietly,
    require_scale,
    require_spelling,
    require_spellings,
    table_of,
    target_of,
    warn_if_uneven,
    warn_of_uneven_labels,
)
from vbterrier.evaluate.judging import JudgingBudget, judge_next
from vbterrier.evaluate.ranking import N_DRAWS, drawn_means, equal_tails, joint_scores, resampled_counts
from vbterrier.evaluate.scores import Scores, score
from vbterrier.evaluate.value_tables import require_means
from vbterrier.frames.contracts import frame_of, is_frame
from vbterrier.frames.files.reading import read_groups, read_qrels, read_values
from vbterrier.frames.notebook import Caveat, Panel, Shown, counted, systems_line
from vbterrier.frames.values import measure_tables
from vbterrier.kernels.resample import stream
from vbterrier.log import tracked
from vbterrier.measures.target import Scoring, aligned
from vbterrier.measures.text import measures_from
from vbterrier.measures.unjudged import UnjudgedMeasure, models_of
from vbterrier.settings import Data, Execution, Inference
from vbterrier.stats.agreement import EQUAL, rank_biased_overlap, rank_correlations
from vbterrier.stats.comparisons import letters, share_letter
from vbterrier.stats.paired_tests import rank_intervals
from vbterrier.unjudged.evidence import evidence_of, pool_depth
from vbterrier.unjudged.incomplete import leave_group_out
from vbterrier.unjudged.model import DEPTH
from vbterrier.unjudged.pool import labels_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import ir_measures

    from vbterrier.annotations import Floats
    from vbterrier.frames.notebook import Figures
    from vbterrier.frames.ranking import Run
    from vbterrier.measures.target import EvaluationTarget
    from vbterrier.unjudged.estimated import Joint
    from vbterrier.unjudged.pool import MachineLabels

# Sources of uncertainty, with the method in tables.
SOURCES = {
    "unjudged": "unjudged (draws, max-T)",
    "topics": "topics (bootstrap, max-T)",
    "both": "unjudged and topics (draws, max-T)",
    "collections": "unjudged and collections (draws, max-T)",
}
MEASURE = "ENDCG@10"
STATISTICS = ("tau", "tau_ap", "rbo")
# The smallest value of each statistic.
LEAST = (-1.0, -1.0, 0.0)
# Systems that a verdict names.
_NAMED = 5
_BATCH = ("dataset", "qid", "docno", "rank", "n_runs", "worth", "width_before", "width_after", "reason")
_RANKS = ["name", "uncertainty", "rank", "rank_low", "rank_high", "letters"]
_REUSE = ["group", "name", "n_runs", "n_removed", "rank", "letters", "rank_without", "low", "high", "letters_without"]
_REUSE += ["recovered", "covered"]
_JUDGES = ("judge", "statistic", "uncertainty", "value", "low", "high", "level", "n_systems", "n_qids")


# A share of unjudged documents that is a caveat, and the most systems that one names.
_MANY_UNJUDGED, _MOST_NAMED = 0.2, 5


@dataclass(frozen=True, eq=False, repr=False)
class Leaderboard(Shown):
    """Result of :func:`leaderboard`.

    - ``systems``: one row per system, the best mean first: name, measure, mean (of several collections: the mean of
      their means), low, high (of the mean), rank (1 plus the number of systems with a higher mean), rank_low,
      rank_high, letters (two systems without a common letter differ, simultaneously for all pairs), p_beats_next (the
      probability that the system beats the next one; a tie counts half), n_unjudged_share, level, method, n_qids,
      n_draws, seed
    - ``ranks``: name, uncertainty, rank, rank_low, rank_high, letters: a row per system and source of uncertainty
    - ``collections``: dataset, name, mean, rank, n_unjudged_share, n_qids: a row per system and collection
    - ``reusability``: a row per system whose group was left out: group, name, n_runs (of the group), n_removed
      (judgments that it alone contributed), rank and letters with all judgments, rank_without, low, high (the interval
      of its rank) and letters_without without them, recovered (rank_without is one of the ranks of the systems that it
      shares a letter with), covered (low to high contains its rank)
    - ``judges``: a row per automatic judge, statistic (tau: Kendall's τ_b; tau_ap; rbo) and source of uncertainty:
      judge, statistic, uncertainty, value, low, high, level, n_systems, n_qids (topics that the judge labelled: both
      leaderboards are of these), n_draws, seed
    - ``batch``: the documents to judge next: dataset, and the columns of
      :class:`vbterrier.unjudged.judge_next.JudgingPlan`
    """

    systems: pd.DataFrame
    ranks: pd.DataFrame
    collections: pd.DataFrame
    reusability: pd.DataFrame
    judges: pd.DataFrame
    batch: pd.DataFrame

    @property
    def n_inseparable(self) -> int:
        """Number of neighbours in the ranking that share a letter."""
        return sum(bool(share_letter(*pair)) for pair in pairwise(self.systems["letters"]))

    def ranks_by_source(self) -> pd.DataFrame:
        """Return ``ranks`` as a table with a row per system and a column of intervals per source of uncertainty."""
        ranks = joined_ranks(self.ranks, "rank_low", "rank_high", "ranks")
        wide = ranks.pivot(index="name", columns="uncertainty", values="ranks")[[*ranks["uncertainty"].unique()]]
        return self.systems[["name", "rank"]].join(wide, on="name")

    def to_frame(self) -> pd.DataFrame:
        """Return ``systems``: a row per system."""
        return self.systems

    def _line(self) -> str:
        n = len(self.systems) - 1
        pairs = list(combinations(self.systems["letters"], 2))
        differ = f"{sum(not share_letter(*pair) for pair in pairs)} of {counted(len(pairs), 'pair')} differ"
        return f"{systems_line(self.systems)}; {differ}; {self.n_inseparable} of {n} neighbours do not"

    def _verdict(self) -> Iterator[str]:
        best, n = self.systems.iloc[0], len(self.systems)
        level, topics = f"{100 * best['level']:g}%", counted(int(best["n_qids"]), "topic")
        rest = self.systems.iloc[1:]
        alike = [
            name for name, of in zip(rest["name"], rest["letters"], strict=True) if share_letter(best["letters"], of)
        ]
        more = f" and {len(alike) - _MOST_NAMED} more" if len(alike) > _MOST_NAMED else ""
        same = f"does not differ significantly from {', '.join(map(printable, alike[:_MOST_NAMED]))}{more}"
        yield (
            f"{printable(best['name'])} has the highest mean {best['measure']}, {best['mean']:.3f} over {topics} (rank "
            f"{best['rank_low']:g} to {best['rank_high']:g} of {n}), and "
            f"{same if alike else 'differs significantly from all others'}."
        )
        pairs = list(combinations(self.systems["letters"], 2))
        differ = sum(not share_letter(*pair) for pair in pairs)
        said = f"{differ} of {counted(len(pairs), 'pair')} of systems {'differs' if differ == 1 else 'differ'}"
        said = said if differ else "No pair of systems differs"
        which = ": those that share no letter" if differ else ""
        yield f"{said} significantly{which}; {level} confidence for all together."

    def _caveats(self) -> Iterator[Caveat]:
        open_, n = self.systems[self.systems["n_unjudged_share"] > _MANY_UNJUDGED], len(self.systems)
        if len(open_):
            most = open_.sort_values("n_unjudged_share").iloc[-1]
            yield Caveat(
                "Unjudged documents",
                f"More than {_MANY_UNJUDGED:.0%} of the documents up to the cutoff are unjudged for {len(open_)} of "
                f"{counted(n, 'system')}, at most {most['n_unjudged_share']:.0%} ({printable(most['name'])}).",
                serious=True,
            )
        if len(self.reusability):
            lost = self.reusability[~self.reusability["covered"].astype(bool)]
            names = ", ".join(map(printable, lost["name"].head(_MOST_NAMED)))
            text = "Without the judgments of its group, the interval of the rank of each system contains its rank."
            if len(lost):
                more = f" and {len(lost) - _MOST_NAMED} more" if len(lost) > _MOST_NAMED else ""
                text = f"Without the judgments of its group, a system would get another rank: {names}{more}."
            yield Caveat("Reusability", text, serious=bool(len(lost)))

    def _figures(self) -> Figures:
        ranks = {"rank": "expected_rank", "rank_low": "low", "rank_high": "high"}
        plain = self.systems.drop(columns=["low", "high"])
        means = self.systems.rename(columns={"mean": "value", "n_draws": "n_resamples"})
        return {
            "forest": lambda: {"intervals": means},
            "rank_uncertainty": lambda: {"ranking": plain.rename(columns=ranks)},
        }

    def _panels(self) -> Iterator[Panel]:
        systems = joined_ranks(self.systems, "rank_low", "rank_high", "ranks")
        yield Panel("Leaderboard", systems, value="mean", rows=len(systems))
        level = f"{100 * systems['level'].iloc[0]:g}%"
        by_source = self.ranks_by_source()
        yield Panel(f"Intervals of ranks by source of uncertainty, {level}", by_source, rows=len(systems))
        if self.collections["name"].duplicated().any():
            yield Panel("Collections", self.collections, heads=2)
        if len(self.reusability):
            title = "Reusability: ranks without a group's judgments"
            yield Panel(title, self.reusability, value="rank_without", heads=2)
        if len(self.judges):
            yield Panel("Automatic judges", self.judges, value="value", by="statistic", heads=3)
        if len(self.batch):
            yield Panel("Judge next, in this order", self.batch, heads=3)


def joined_ranks(frame: pd.DataFrame, low: str, high: str, name: str) -> pd.DataFrame:
    """Replace the ends of intervals of ranks by a column of text, such as 1-3."""
    place = list(frame.columns).index(low)
    ends = frame[low].map("{:g}".format) + "-" + frame[high].map("{:g}".format)
    table = frame.drop(columns=[low, high])
    table.insert(place, name, ends)
    return table


@dataclass(frozen=True, eq=False)
class _Collection:
    """The scores of all systems on a collection; without runs and judgments, from a table of values."""

    name: str
    scores: Joint | SimpleNamespace
    unjudged: dict[str, float]
    runs: dict[str, Run] = field(default_factory=dict)
    target: Any = None
    labels: MachineLabels | None = None

    @property
    def topics(self) -> list[str]:
        return list(self.scores.topics)

    def order(self, names: list[str]) -> list[int]:
        return [list(self.scores.names).index(name) for name in names]

    def seed(self, seed: int) -> int:
        # Draws of several collections are independent, also of topics with the same id.
        return int(stream(seed, "collection", self.name).integers(2**31)) if self.name else seed


def leaderboard(
    runs: Any,
    qrels: Any = None,
    measure: str | ir_measures.Measure | None = None,
    *,
    groups: Any = None,
    automatic: Mapping[str, Any] | None = None,
    budget: int | JudgingBudget = 0,
    uncertainty: str = "both",
    data: Data | None = None,
    inference: Inference | None = None,
    execution: Execution | None = None,
) -> Leaderboard:
    """Rank the runs of a track with intervals of ranks and letters, and examine its judgments.

    Parameters
    ----------
    runs, qrels
        As for :func:`vbterrier.score`. For several collections, mappings of the name of a collection to its runs and
        to its qrels (and to the labels of ``data``), with the same systems in all; topics with the same id in two
        collections are different topics. Or values instead of runs, without qrels:
        :class:`~vbterrier.evaluate.scores.Scores`, a frame (name, qid, measure, value, optional dataset) or its path.
    measure
        The measure, ``"BNDCG@10"`` for runs by default, and the only one of values. Measures that are not bootstrapped
        treat unjudged documents as they do otherwise, without uncertainty.
    groups
        The group of each run, a mapping or a frame or file (name, group), to examine reusability: the judgments that
        one group alone contributed are removed, for each group in turn.
    automatic
        Automatic judges by name: their labels of the same topics, as qrels (for several collections, a mapping of
        these), or a leaderboard, a mapping of system to score.
    budget
        The budget of the next batch of judgments, 0 for none, or a :class:`vbterrier.evaluate.JudgingBudget`; see
        :func:`vbterrier.judge_next`. Each of several collections is planned with the whole budget before the documents
        that narrow its intervals most are selected.
    uncertainty
        The source of uncertainty of the main table. ``"unjudged"``: the labels of unjudged documents of these topics.
        ``"topics"``: other topics from the same populations. ``"both"``. ``"collections"``: other collections from the
        same population, and labels of unjudged documents; the topics of a collection stay together.
    data
        A :class:`vbterrier.Data`: ``labels``, ``on_topics`` (``"same"``), ``duplicates`` (``"error"``), ``scale``,
        ``pool_cutoff``. ``pool_cutoff`` is for ``groups``; ``scale`` also for automatic judges.
    inference
        An :class:`vbterrier.Inference`: ``level`` (0.9), ``n_draws`` (2,000), ``seed`` (0).
    execution
        An :class:`vbterrier.Execution`: ``progress`` (False).

    Raises
    ------
    InputError, ParameterError
        See :func:`vbterrier.score`; a label outside the scale; a topic in two spellings; collections with different
        systems; one topic, if topics are resampled; an automatic judge without labels for all topics of a collection,
        or for all documents of a system up to the cutoff; a run without a group, one group; ``"collections"`` for one
        collection; a batch for a measure that is not bootstrapped.

    Warns
    -----
    DegenerateWarning
        Topics of runs or of a judge that are not in the qrels are left out, and topics that a judge did not label from
        the comparison with it; larger shares of some systems' documents
        are labelled than of others', by an automatic judge or in ``labels``.

    Notes
    -----
    Intervals of ranks and pairs that differ: :func:`vbterrier.stats.paired_tests.rank_intervals`. With probability
    ``level``, no pair of systems without a common letter is in the wrong order. Scores of leaderboards of
    automatic judges use the same measure. The interval of a correlation is one of its expectation over leaderboards of
    as many topics: quantiles of draws, shifted by the difference between the value and their mean, since resamples of a
    sample have lower correlations than samples. With groups of one run, a system that has siblings under another name
    in the pool appears more reusable than new systems will be: give each team one group.

    Examples
    --------
    >>> qrels = pd.DataFrame({"qid": ["q1"] * 3 + ["q2"] * 3, "docno": [*"abc"] * 2, "label": [1, 0, 0] * 2})
    >>> def run(order):
    ...     return pd.DataFrame({"qid": ["q1"] * 3 + ["q2"] * 3, "docno": [*order] * 2, "score": [3, 2, 1] * 2})
    >>> found = leaderboard({"good": run("abc"), "bad": run("cba"), "worse": run("cba")}, qrels, "nDCG@10")
    >>> found.systems[["name", "rank", "rank_low", "rank_high", "letters"]].values.tolist()
    [['good', 1, 1, 1, 'a'], ['bad', 2, 2, 3, 'b'], ['worse', 2, 2, 3, 'b']]
    """
    labels, on_topics, duplicates, scale, pool_cutoff = chosen(
        "leaderboard", Data, data, labels=None, on_topics="same", duplicates="error", scale=None, pool_cutoff=None
    )
    level, n_draws, seed = chosen("leaderboard", Inference, inference, level=0.9, n_draws=N_DRAWS, seed=0)
    (progress,) = chosen("leaderboard", Execution, execution, progress=False)
    choice("uncertainty", uncertainty, SOURCES)
    batch = JudgingBudget.of(budget)
    for name, value, low in (("n_draws", n_draws, 2), ("budget", batch.n, 0)):
        whole(name, value, low=low)
    options: dict[str, Any] = {"n_draws": n_draws, "level": level, "seed": seed}
    if qrels is None:
        for name, option in (("groups", groups), ("labels", labels), ("budget", batch.n or None)):
            if option is not None:
                raise ParameterError(f"{name}: found values, which have no judgments; give runs and qrels")
        collections, wanted = _of_values(runs, measure)
    else:
        (wanted,) = measures_from(MEASURE if measure is None else measure)
        if batch.n:
            measure_with_distribution(wanted)
        if not isinstance(wanted, UnjudgedMeasure):
            require_means([str(wanted)])
        collections = _of_runs(runs, qrels, wanted, labels, on_topics, duplicates, scale)
    names = sorted(collections[0].scores.names)
    members = None if groups is None else _groups(groups, names)
    sources = _sources(collections, uncertainty)
    rankings = {source: _ranked(collections, names, source, **options) for source in sources}
    main = rankings[uncertainty]
    about: dict[str, Any] = {"level": level, "method": SOURCES[uncertainty]}
    about |= {"n_qids": sum(len(each.topics) for each in collections), "n_draws": n_draws, "seed": seed}
    systems = main.drop(columns="uncertainty").assign(measure=str(wanted), **about)
    shares = np.mean([[each.unjudged.get(name, np.nan) for name in systems["name"]] for each in collections], axis=0)
    systems.insert(len(systems.columns) - len(about), "n_unjudged_share", shares)
    columns = ["name", "measure", "mean", "low", "high", "rank", "rank_low", "rank_high", "letters", "p_beats_next"]
    systems = systems[[*columns, "n_unjudged_share", *about]]
    return Leaderboard(
        systems,
        pd.concat([rankings[source][_RANKS] for source in sources], ignore_index=True),
        _by_collection(collections, list(systems["name"])),
        _reusability(collections, wanted, members, main, uncertainty, pool_cutoff, progress=progress, **options),
        _judges(collections, wanted, automatic or {}, names, on_topics, scale=scale, **options),
        _batch(collections, wanted, batch, level, on_topics),
    )


def _of_values(source: Any, measure: Any) -> tuple[list[_Collection], Any]:
    values = source.values if isinstance(source, Scores) else source
    frame = table_of(values, "values", read_values, ("name", "qid", "measure", "value"))
    kinds = list(frame["measure"].astype(str).unique())
    wanted = kinds[0] if measure is None and len(kinds) == 1 else str(measure)
    if wanted not in kinds:
        raise ParameterError(f"measure={measure!r}: wanted one of {examples(kinds)}.{nearest(wanted, kinds)}")
    require_means([wanted])
    frame = frame[frame["measure"].astype(str) == wanted]
    parts = frame.groupby(frame["dataset"].astype(str), sort=True) if "dataset" in frame.columns else [("", frame)]
    collections = []
    for name, part in parts:
        collections.append(_Collection(str(name), _known(part.drop(columns="dataset", errors="ignore")), {}))
    _require_same_systems({each.name: each.scores.names for each in collections})
    return collections, wanted


def _known(frame: pd.DataFrame) -> SimpleNamespace:
    """Values of a measure, without unjudged documents, with the interface of a joint distribution."""
    (table,) = measure_tables(frame, by_id=True)
    values = table.values.T  # shape (S, T)

    def scores(topic: int, n_draws: int, _: int = 0) -> Floats:
        return np.broadcast_to(values[:, topic, None], (len(values), n_draws))

    rows = [SimpleNamespace(mean=row) for row in values]
    return SimpleNamespace(names=table.names, topics=table.qids, distributions=rows, scores=scores)


def _require_same_systems(names: Mapping[str, Any]) -> None:
    if len(next(iter(names.values()), ())) < 2:  # noqa: PLR2004 - a ranking needs two
        raise InputError("a leaderboard needs at least two systems; give more runs")
    (first, systems), *others = names.items()
    for other, other_names in others:
        odd = sorted(set(systems) ^ set(other_names))
        if odd:
            raise InputError(
                f"collections {first!r} and {other!r} have different systems ({examples(odd)}): wanted each system on "
                "each collection; leave out the system or the collection"
            )


def _of_runs(
    runs: Any, qrels: Any, measure: Any, labels: Any, on_topics: str, duplicates: str, scale: tuple[int, int] | None
) -> list[_Collection]:
    parts = by_collection(runs, qrels)
    loaded = {name: loaded_runs(part, duplicates) for name, (part, _) in parts.items()}
    _require_same_systems(loaded)
    collections = []
    # Sorted, so that results do not depend on the order of collections.
    for name in sorted(parts):
        labelled = labels[name] if name and labels is not None else labels
        target, which = target_of(parts[name][1], None, None), f" of {name!r}" if name else ""
        machine = labels_of(labelled)
        require_scale(target.frame, scale, f"qrels{which}")
        require_spellings(target, loaded[name], machine, which)
        if machine is not None:
            warn_of_uneven_labels(machine, loaded[name], measure.params.get("cutoff") or DEPTH)
        collections.append(
            _evaluated(name, _on_judged_topics(loaded[name], target), target, measure, on_topics, machine)
        )
    return collections


def _on_judged_topics(runs: dict[str, Run], target: EvaluationTarget) -> dict[str, Run]:
    """The runs on the topics of the qrels, with one warning for all of them."""
    extra = {topic for run in runs.values() for topic in set(run.topics).difference(target.topics)}
    odd = [run for run in runs.values() if len(run) and not set(run.topics).intersection(target.topics)]
    if odd or not extra:
        # An evaluation names the ids that do not match.
        return runs
    said = agreeing(len(extra), "topics of the runs are not in the qrels and are left out")
    warn(f"{said} ({examples(sorted(extra))})")
    return {name: run.only(target.topics) for name, run in runs.items()}


def _evaluated(
    name: str,
    runs: dict[str, Run],
    judged: EvaluationTarget,
    measure: Any,
    on_topics: str,
    labels: MachineLabels | None = None,
    horizon: int = 0,
) -> _Collection:
    """Scores of the runs on a collection, or on its reduced judgments with the horizon of the complete ones."""
    models = models_of([measure], runs, judged, labels=labels, horizon=horizon)
    target, runs = aligned(judged, runs, on_topics)
    if isinstance(measure, UnjudgedMeasure):
        joint, shares = joint_scores(runs, target, measure, models)
        return _Collection(name, joint, shares, runs, target, labels)
    frames = {system: run.frame for system, run in runs.items()}
    values = score(
        frames, target.frame, [measure], data=Data(on_topics=on_topics), inference=Inference(interval="normal")
    ).values
    return _Collection(name, _known(values), _unjudged(target, runs, measure), runs, target, labels)


def _unjudged(target: EvaluationTarget, runs: dict[str, Run], measure: Any) -> dict[str, float]:
    """Mean share of unjudged documents of each system up to the cutoff."""
    cutoff = measure.params.get("cutoff")
    cuts = {name: Scoring(target, run, cutoff).judged(cutoff) for name, run in runs.items()}
    return {name: float(cut.unjudged_share().mean()) for name, cut in cuts.items()}


def _sources(collections: list[_Collection], uncertainty: str) -> list[str]:
    single = next((each for each in collections if len(each.topics) == 1), None)
    if uncertainty in ("topics", "both") and single is not None:
        raise InputError(
            f"uncertainty={uncertainty!r} resamples topics, but there is only {single.topics[0]!r}; ask for 'unjudged'"
        )
    if uncertainty == "collections" and len(collections) == 1:
        raise ParameterError("uncertainty='collections' needs several; give mappings of runs and qrels by collection")
    sources = ["unjudged"] if single is not None else ["unjudged", "topics", "both"]
    return [*sources, "collections"] if len(collections) > 1 else sources


def _draws(
    collections: list[_Collection], names: list[str], source: str, n_draws: int, seed: int, own: str = ""
) -> tuple[Floats, Floats]:
    """Means over collections of expected and of drawn scores; with ``own``, unjudged documents have another stream."""
    inner = "unjudged" if source == "collections" else source
    counts = [np.ones(n_draws)] * len(collections)
    if source == "collections":
        counts = [np.asarray(count, np.float64) for count in resampled_counts(len(collections), n_draws, seed)]
    means, draws = np.zeros(len(names)), np.zeros((len(names), n_draws))
    for each, count in zip(collections, counts, strict=True):
        of_grades = int(stream(seed, "judge", own, each.name).integers(2**31)) if own else None
        mean, drawn = drawn_means(each.scores, inner, n_draws, each.seed(seed), progress=False, of_grades=of_grades)
        order = each.order(names)
        means += mean[order]
        draws += drawn[order] * count
    return means / len(collections), draws / len(collections)


def _ranked(
    collections: list[_Collection], names: list[str], source: str, *, n_draws: int, level: float, seed: int
) -> pd.DataFrame:
    means, draws = _draws(collections, names, source, n_draws, seed)
    sizes = [len(collections)] if source == "collections" else [len(each.topics) for each in collections]
    df, inflation = (np.inf, 1.0) if source == "unjudged" else (float(sum(sizes) - len(sizes)), 0.0)
    inflation = inflation or float(np.sqrt(max(n / (n - 1) for n in sizes)))
    ranks = rank_intervals(means, draws, level, df=df, inflation=inflation)
    rank = 1 + (means > means[:, None] + EQUAL).sum(axis=1)
    order = np.argsort(-means, kind="stable")
    differ = ranks.better | ranks.better.T
    signs = np.empty(len(names), dtype=object)
    signs[order] = letters(differ[np.ix_(order, order)])
    low, high = equal_tails(draws, level)
    columns = {"name": names, "uncertainty": source, "mean": means, "low": low, "high": high, "rank": rank}
    columns |= {"rank_low": ranks.low, "rank_high": ranks.high, "letters": signs}
    gap = draws[order[:-1]] - draws[order[1:]]
    beats = np.append(((gap > EQUAL).mean(axis=1) + (gap >= -EQUAL).mean(axis=1)) / 2, np.nan)
    return pd.DataFrame(columns).iloc[order].assign(p_beats_next=beats).reset_index(drop=True)


def _by_collection(collections: list[_Collection], names: list[str]) -> pd.DataFrame:
    rows = []
    for each in collections:
        means = np.array([row.mean.mean() for row in each.scores.distributions])[each.order(names)]
        part = pd.DataFrame({"dataset": each.name, "name": names, "mean": means})
        part["rank"] = part["mean"].round(9).rank(ascending=False, method="min").astype(int)
        part["n_unjudged_share"] = [each.unjudged.get(name, np.nan) for name in names]
        rows.append(part.assign(n_qids=len(each.topics)))
    return pd.concat(rows, ignore_index=True)


def _groups(groups: Any, names: list[str]) -> dict[str, str]:
    """The group of each run."""
    if not hasattr(groups, "items") or is_frame(groups):
        frame = table_of(groups, "groups", read_groups, ("name", "group"))
        twice = frame["name"][frame["name"].duplicated()]
        if len(twice):
            raise InputError(f"groups: run {twice.iloc[0]!r} is duplicated; keep one row per run")
        groups = dict(zip(frame["name"], frame["group"], strict=True))
    unknown, without = [name for name in groups if name not in names], [name for name in names if name not in groups]
    if unknown:
        raise ParameterError(f"groups: no run is called {unknown[0]!r}.{nearest(str(unknown[0]), names)}")
    if without:
        raise ParameterError(f"groups: {len(without)} runs have no group ({examples(without)}); give each run a group")
    if len(set(groups.values())) == 1:
        raise ParameterError(
            f"groups: all runs are of {next(iter(groups.values()))!r}: without it, nothing is judged; wanted two groups"
        )
    return dict(groups)


def _reusability(
    collections: list[_Collection],
    measure: Any,
    groups: dict[str, str] | None,
    table: pd.DataFrame,
    uncertainty: str,
    depth: int | None,
    *,
    progress: bool,
    **options: Any,
) -> pd.DataFrame:
    """Leave out the judgments that each group alone contributed, in all collections, and rank all systems again."""
    if groups is None:
        return pd.DataFrame(columns=_REUSE)
    names = sorted(groups)
    cutoff = measure.params.get("cutoff") or DEPTH
    reduced, horizons = [], []
    for each in collections:
        runs = {name: each.runs[name] for name in names}
        frames = {name: run.frame for name, run in runs.items()}
        reduced.append(leave_group_out(frames, each.target.frame, groups, depth or cutoff))
        evidence = evidence_of(runs, each.target.judgments(), cutoff, max(DEPTH, cutoff))
        horizons.append(pool_depth(evidence) if isinstance(measure, UnjudgedMeasure) else 0)
    rows: list[tuple[Any, ...]] = []
    by_name = table.set_index("name")
    n_groups = len(set(groups.values()))
    for parts in tracked(zip(*reduced, strict=True), "groups", shown=progress, total=n_groups, unit="group"):
        without, n_removed = [], 0
        for each, part, horizon in zip(collections, parts, horizons, strict=True):
            n_removed += len(each.target.frame) - len(part.qrels)
            target = target_of(part.qrels, None, None)
            kept = {name: run.only(target.topics) for name, run in each.runs.items()}
            # The complete judgments are checked; a run without judged documents is no mismatch of ids here.
            without.append(quietly(_evaluated, each.name, kept, target, measure, "all", each.labels, horizon))
        landed = _ranked(without, names, uncertainty, **options).set_index("name")
        for name in parts[0].runs:
            at, own = landed.loc[name], by_name.loc[name]
            low, high = at["rank_low"], at["rank_high"]
            shared = by_name["rank"][[share_letter(own["letters"], other) for other in by_name["letters"]]]
            recovered = bool(shared.min() <= at["rank"] <= shared.max())
            ends = low, high, at["letters"], recovered, low <= own["rank"] <= high
            where = own["rank"], own["letters"], at["rank"], *ends
            rows.append((parts[0].name, name, len(parts[0].runs), n_removed, *where))
    return pd.DataFrame(rows, columns=_REUSE)


def _judges(
    collections: list[_Collection],
    measure: Any,
    automatic: Mapping[str, Any],
    names: list[str],
    on_topics: str,
    *,
    scale: tuple[int, int] | None,
    n_draws: int,
    level: float,
    seed: int,
) -> pd.DataFrame:
    """Correlations of the leaderboard of each automatic judge with that of the judgments."""
    rows: list[tuple[Any, ...]] = []
    for judge, judge_labels in automatic.items():
        fixed, labelled, compared = _table(judge, judge_labels, names), [], collections
        if fixed is None:
            labelled = [_labelled(judge, each, judge_labels, measure, on_topics, scale) for each in collections]
            compared = [_on_topics(*pair) for pair in zip(collections, labelled, strict=True)]
        sizes = [len(each.topics) for each in compared]
        for source in ("topics", "both") if min(sizes) > 1 else ("unjudged",):
            means, draws = _draws(compared, names, source, n_draws, seed)
            if fixed is None:
                other, drawn = _draws(labelled, names, source, n_draws, seed, judge)
            else:
                other, drawn = fixed, np.broadcast_to(fixed[:, None], draws.shape)
            values = np.array(_correlated(means, other))
            correlations = np.array([_correlated(*pair) for pair in zip(draws.T, drawn.T, strict=True)])
            # Resamples of a sample have lower correlations than samples: their mean becomes the value.
            low, high = equal_tails(correlations.T, level) - correlations.mean(axis=0) + values
            for statistic, *ends in zip(STATISTICS, values, np.maximum(low, LEAST), np.minimum(high, 1.0), strict=True):
                rows.append((judge, statistic, source, *ends, level, len(names), sum(sizes)))
    return pd.DataFrame(rows, columns=list(_JUDGES)).assign(n_draws=n_draws, seed=seed)


def _on_topics(each: _Collection, labelled: _Collection) -> _Collection:
    """The scores on a collection, of the topics that an automatic judge labelled."""
    places = [each.topics.index(topic) for topic in labelled.topics]
    rows = [SimpleNamespace(mean=row.mean[places]) for row in each.scores.distributions]

    def scores(topic: int, n_draws: int, seed: int) -> Floats:
        return each.scores.scores(places[topic], n_draws, seed)

    part = SimpleNamespace(names=each.scores.names, topics=labelled.topics, distributions=rows, scores=scores)
    return replace(each, scores=part)


def _correlated(truth: Floats, estimate: Floats) -> tuple[float, float, float]:
    correlation = rank_correlations(truth, estimate)
    return correlation.tau, correlation.tau_ap, rank_biased_overlap(truth, estimate)


def _table(judge: str, source: Any, names: list[str]) -> Floats | None:
    """The leaderboard of an automatic judge, if it is given as scores of systems."""
    if is_frame(source) and {"name", "value"} <= set(frame_of(source, judge).columns):
        frame = frame_of(source, judge)
        source = dict(zip(frame["name"], frame["value"], strict=True))
    if is_frame(source) or not hasattr(source, "items") or not set(names).intersection(source):
        return None
    without = [name for name in names if name not in source]
    if without:
        raise InputError(
            f"automatic judge {judge!r}: {len(without)} of {len(names)} systems have no score ({examples(without)}); "
            "add them, or leave those runs out"
        )
    scores = np.array([float(source[name]) for name in names])
    if not np.isfinite(scores).all():
        name = names[int(np.argmin(np.isfinite(scores)))]
        raise InputError(f"automatic judge {judge!r}: the score of {name!r} is {source[name]}, wanted a finite number")
    return scores


def _labelled(
    judge: str, each: _Collection, source: Any, measure: Any, on_topics: str, scale: tuple[int, int] | None
) -> _Collection:
    """The scores of all systems by the labels of an automatic judge, on the topics that it labelled."""
    if each.target is None:
        raise ParameterError(f"automatic judge {judge!r}: found values, which have no documents; give its leaderboard")
    if each.name:
        if not hasattr(source, "items") or each.name not in source:
            raise InputError(f"automatic judge {judge!r}: no labels for collection {each.name!r}; give some for each")
        source = source[each.name]
    frame = table_of(source, f"judge {judge!r}", read_qrels, ("qid", "docno", "label"))
    require_scale(frame, scale, f"automatic judge {judge!r}")
    own = frame["qid"].astype(str)
    require_spelling(f"automatic judge {judge!r}", own.unique(), each.topics)
    labelled_topics, where = set(own), f" of {each.name!r}" if each.name else ""
    missing = [topic for topic in each.topics if topic not in labelled_topics]
    n_topics = f"{len(missing)} of {len(each.topics)} topics{where} ({examples(missing)})"
    if len(missing) == len(each.topics):
        raise InputError(f"automatic judge {judge!r}: no label for {n_topics}; use the same ids of topics")
    if missing:
        warn(f"judge {judge!r}: no label for {n_topics}: its leaderboard is compared on the others alone")
    kept = own.isin(each.topics)
    if not kept.all():
        warn(f"judge {judge!r}: {agreeing(own[~kept].nunique(), 'topics are not in the qrels and are left out')}")
    target = target_of(frame[kept].reset_index(drop=True), None, None)
    runs = {name: run.only(target.topics) for name, run in each.runs.items()}
    shares = _unjudged(target, runs, measure)
    nothing = [name for name, share in shares.items() if share == 1]
    if nothing:
        raise InputError(
            f"automatic judge {judge!r}: labelled no document of {len(nothing)} of {len(shares)} systems "
            f"({examples(nothing)}) up to the cutoff; label them, or leave these runs out"
        )
    warn_if_uneven(f"automatic judge {judge!r}", {name: 1 - share for name, share in shares.items()}, "its leaderboard")
    return _evaluated(each.name, runs, target, measure, on_topics)


def _batch(
    collections: list[_Collection], measure: Any, budget: JudgingBudget, level: float, on_topics: str
) -> pd.DataFrame:
    """The next judgments of all collections."""
    if not budget.n:
        return pd.DataFrame(columns=list(_BATCH))
    rows = []
    for each in collections:
        named: dict[str, Any] = {"quota": budget.quota, "costs": budget.costs}
        by_topic: dict[str, Any] = {
            name: labels[each.name] if each.name and hasattr(labels, "items") else labels
            for name, labels in named.items()
        }
        frames = {name: run.frame for name, run in each.runs.items()}
        data, inference = Data(labels=each.labels, on_topics=on_topics), Inference(level=level)
        plan = judge_next(
            frames, each.target.frame, JudgingBudget(budget.n, **by_topic), measure, data=data, inference=inference
        )
        price = (by_topic["costs"] or {}).get
        rows.append(
            plan.documents.assign(dataset=each.name, cost=[float(price(qid, 1)) for qid in plan.documents["qid"]])
        )
    batch = pd.concat(rows, ignore_index=True)
    if len(collections) > 1:
        narrowing = (batch["width_before"] - batch["width_after"]) / batch["cost"]
        # A plan is sequential: a document never precedes those above it in its collection.
        running = narrowing.groupby(batch["dataset"]).cummin()
        batch = batch.loc[running.sort_values(ascending=False, kind="stable").index]
        batch = batch[batch["cost"].cumsum() <= budget.n]
    return batch[[*_BATCH]].reset_index(drop=True)
