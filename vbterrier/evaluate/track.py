"""Leaderboards of a track: intervals of ranks, letters, reusability, automatic judges, and the next judgments."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain, combinations, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import InputError, ParameterError, choice, excerpt, printable, whole
from vbterrier.evaluate.automatic_judges import judge_correlations
from vbterrier.evaluate.collection_scores import Collection, collections_of_runs, collections_of_values, ranked_systems
from vbterrier.evaluate.inputs import measure_with_distribution
from vbterrier.evaluate.judging import JudgingBudget, judge_next
from vbterrier.evaluate.ranking import N_DRAWS
from vbterrier.evaluate.reusability import reusability, run_groups
from vbterrier.evaluate.unjudged_shares import SERIOUS_UNJUDGED_SHARE
from vbterrier.evaluate.value_tables import require_means
from vbterrier.frames.answer import Caveat, Finding
from vbterrier.frames.notebook import Panel, count_text
from vbterrier.frames.pictures import MAX_BARS, Bar, IntervalPicture, Rule
from vbterrier.frames.results import Shown, first_names, measure_text, systems_line
from vbterrier.frames.score_table import refuse_ratios
from vbterrier.measures.text import measures_from
from vbterrier.measures.unjudged import UnjudgedMeasure
from vbterrier.settings import Data, Execution, Inference, with_defaults
from vbterrier.stats.comparisons import share_letter

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import ir_measures

    from vbterrier.frames.results import Figures
    from vbterrier.remedies import Call

# Sources of uncertainty, with the method in tables.
SOURCES = {
    "unjudged": "unjudged (draws, max-T)",
    "topics": "topics (bootstrap, max-T)",
    "both": "unjudged and topics (draws, max-T)",
    "collections": "unjudged and collections (draws, max-T)",
}
MEASURE = "ENDCG@10"
_BATCH_COLUMNS = ("dataset", "qid", "docno", "rank", "n_runs", "worth", "width_before", "width_after", "reason")
_RANKS = ["name", "uncertainty", "rank", "rank_low", "rank_high", "letters"]
# The largest number of systems that a caveat names.
_MAX_NAMED = 5
# Arguments that a plan of judgments has, too.
_NEXT_STEP_ARGUMENTS = ("runs", "qrels", "measure", "labels", "on_topics", "duplicates", "system", "data")


@dataclass(frozen=True, eq=False, repr=False)
class Leaderboard(Shown):
    """Result of :func:`leaderboard`.

    - ``systems``: one row per system, the best mean first: name, measure, mean (of several collections: the mean of
      their means), low, high (of the mean), rank (1 plus the number of systems with a higher mean), rank_low,
      rank_high, letters (two systems without a common letter differ, simultaneously for all pairs), p_beats_next (the
      probability that the system beats the next one; a tie counts half), n_unjudged_share, level, method, n_qids,
      n_draws, seed
    - ``ranks``: name, uncertainty, rank, rank_low, rank_high, letters: a row per system and source of uncertainty
    - ``collections``: dataset, name, mean, rank, n_unjudged_share, n_qids, estimand (the score that a measure of the E
      family estimates, with the depth of its judgments; else empty): a row per system and collection
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

    @property
    def _measure(self) -> str:
        """The measure, with the scores that it estimates."""
        estimands = self.collections.drop_duplicates("dataset")["estimand"].unique()
        return measure_text(self.systems["measure"].iloc[0], "; ".join(filter(None, estimands)))

    def _line(self) -> str:
        n = len(self.systems) - 1
        pairs = list(combinations(self.systems["letters"], 2))
        differ = f"{sum(not share_letter(*pair) for pair in pairs)} of {count_text(len(pairs), 'pair')} differ"
        alike = f"{self.n_inseparable} of {count_text(n, 'neighbouring pair')} cannot be told apart"
        return f"{systems_line(self.systems)}; {differ}; {alike}"

    def _verdict(self) -> Iterator[str]:
        best, n = self.systems.iloc[0], len(self.systems)
        level, topics = f"{100 * best['level']:g}%", count_text(int(best["n_qids"]), "topic")
        tied = self.tied
        mean = f"{best['mean']:.3f} ({best['low']:.3f} to {best['high']:.3f})"
        leads = f"{printable(best['name'])} leads with a mean {self._measure} of {mean} over {topics}"
        if n == 1:
            yield f"{leads}; there is no other system."
            return
        if tied:
            do = "does" if len(tied) == 1 else "do"
            what = f"{count_text(len(tied), 'system')} {do} not differ significantly: {first_names(tied, _MAX_NAMED)}"
            yield f"{leads}, from which {what}."
        else:
            yield f"{leads}, and differs significantly from {'the other' if n == 2 else f'all {n - 1} others'}."  # noqa: PLR2004
        pairs = list(combinations(self.systems["letters"], 2))
        differ = sum(not share_letter(*pair) for pair in pairs)
        count = f"{differ} of {count_text(len(pairs), 'pair')} of systems {'differs' if differ == 1 else 'differ'}"
        count = count if differ else "No pair of systems differs"
        which = ": those that share no letter" if differ else ""
        yield f"{count} significantly{which}; {level} confidence for all together."
        if len(self.batch):
            yield _batch_sentence(self.batch)
        elif tied and (self.systems["n_unjudged_share"] > 0).any():
            yield self._separation()

    @property
    def tied(self) -> list[str]:
        """Systems that share a letter with the leader, in the order of the ranking."""
        first, rest = self.systems["letters"].iloc[0], self.systems.iloc[1:]
        return [
            name for name, letters in zip(rest["name"], rest["letters"], strict=True) if share_letter(first, letters)
        ]

    def _separation(self) -> str:
        """The systems that judgments alone could tell apart from the leader, in a sentence."""
        sources = self.ranks["uncertainty"].unique()
        if "topics" not in sources:
            return ""
        letters = self.ranks[self.ranks["uncertainty"] == "topics"].set_index("name")["letters"]
        first = letters[self.systems["name"].iloc[0]]
        apart = [name for name in self.tied if not share_letter(first, letters[name])]
        if not apart:
            sentence = "Complete judgments of these topics would not separate the leader from any of these"
            return f"{sentence}: that takes more topics."
        leader = printable(self.systems["name"].iloc[0])
        return f"With complete judgments, {leader} would differ significantly from {first_names(apart, _MAX_NAMED)}."

    def _caveats(self) -> Iterator[Caveat]:
        open_, n = self.systems[self.systems["n_unjudged_share"] > SERIOUS_UNJUDGED_SHARE], len(self.systems)
        if len(open_):
            most = open_.sort_values("n_unjudged_share").iloc[-1]
            yield Caveat(
                "Unjudged documents",
                f"More than {SERIOUS_UNJUDGED_SHARE:.0%} of the documents up to the cutoff are unjudged for "
                f"{len(open_)} of {count_text(n, 'system')}, at most {most['n_unjudged_share']:.0%} "
                f"({printable(most['name'])}).",
                serious=True,
            )
        if len(self.reusability):
            lost = self.reusability[~self.reusability["covered"].astype(bool)]
            text = "Without the judgments of its group, the interval of the rank of each system contains its rank."
            if len(lost):
                names = first_names(lost["name"], _MAX_NAMED)
                text = f"Without the judgments of its group, a system would get another rank: {names}."
            yield Caveat("Reusability", text, serious=bool(len(lost)))

    def _evidence(self) -> Iterator[Finding]:
        for row in self.batch.to_dict("records"):
            yield Finding(row["qid"], row["docno"], row["reason"])

    def _next(self, call: Call) -> str:
        if not (self.systems["n_unjudged_share"] > 0).any() or "qrels" not in call.words:
            return ""
        (measure,) = measures_from(self.systems["measure"].iloc[0])
        # Only measures of the B and E families have plans of judgments.
        same = [name for name in _NEXT_STEP_ARGUMENTS if name != "measure" or isinstance(measure, UnjudgedMeasure)]
        if len(self.batch) and call.options is not None:
            return call.next("judge", "judge_next", same, budget=len(self.batch), output="judge.tsv")
        return call.next("judge", "judge_next", same, budget=20)

    def _picture(self) -> IntervalPicture:
        rows = self.systems.head(MAX_BARS)
        bars = [Bar(*row) for row in rows[["name", "mean", "low", "high"]].itertuples(index=False, name=None)]
        one = rows.iloc[0]
        more = f", the first {len(rows)} of {len(self.systems)}" if len(rows) < len(self.systems) else ""
        axis = f"mean {one['measure']}, {100 * one['level']:g}% intervals{more}"
        return IntervalPicture(axis, tuple(bars), (Rule(float(one["mean"]), "leader"),))

    def _figures(self) -> Figures:
        ranks = {"rank_low": "low", "rank_high": "high"}
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


def _batch_sentence(batch: pd.DataFrame) -> str:
    """A sentence on the change that the next judgments are expected to bring."""
    before, after = (f"±{width / 2:.3f}" for width in (batch["width_before"].iloc[0], batch["width_after"].iloc[-1]))
    several = f"{len(batch)} judgments, of {count_text(batch['qid'].nunique(), 'topic')}, are"
    change = f"narrow the interval of a mean from {before} to {after}"
    if before == after:
        change = f"narrow the interval of a mean, {before}, by less than 0.001"
    return f"The next {several if len(batch) > 1 else 'judgment is'} expected to {change}."


def joined_ranks(frame: pd.DataFrame, low: str, high: str, name: str) -> pd.DataFrame:
    """Replace the ends of intervals of ranks by a column of text, such as 1-3."""
    place = list(frame.columns).index(low)
    ends = frame[low].map("{:g}".format) + "-" + frame[high].map("{:g}".format)
    table = frame.drop(columns=[low, high])
    table.insert(place, name, ends)
    return table


@with_defaults
def leaderboard(
    runs: Any,
    qrels: Any = None,
    measure: str | ir_measures.Measure | None = None,
    *,
    groups: Any = None,
    automatic: Mapping[str, Any] | None = None,
    budget: int | JudgingBudget = 0,
    uncertainty: str = "both",
    data: Data = Data(labels=None, on_topics="same", duplicates="error", system=None, scale=None, pool_cutoff=None),
    inference: Inference = Inference(level=0.9, n_draws=N_DRAWS, seed=0),
    execution: Execution = Execution(progress=False),
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
        The measure, by default ``"ENDCG@10"`` for runs, and the only one of values. Measures of neither the B nor the E
        family have no uncertainty about unjudged documents.
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
        A :class:`vbterrier.Data`: ``system``, ``labels``, ``on_topics`` (``"same"``), ``duplicates`` (``"error"``),
        ``scale``, ``pool_cutoff``. ``pool_cutoff`` is for ``groups``; ``scale`` also for automatic judges.
    inference
        An :class:`vbterrier.Inference`: ``level`` (0.9), ``n_draws`` (2,000), ``seed`` (0).
    execution
        An :class:`vbterrier.Execution`: ``progress`` (False).

    Returns
    -------
    Leaderboard
        ``systems``: a row per system, with rank interval and letters; further tables for the options given.

    Raises
    ------
    InputError, ParameterError
        See :func:`vbterrier.score`; a label outside the scale; a topic in two spellings; collections with different
        systems; one topic, if topics are resampled; an automatic judge without labels for all topics of a collection,
        or for all documents of a system up to the cutoff; a run without a group, one group; ``"collections"`` for one
        collection; a batch for a measure of neither the B nor the E family.

    Warns
    -----
    DegenerateWarning
        Topics of runs or of a judge that are not in the qrels are left out, and topics that a judge did not label from
        the comparison with it; larger shares of some systems' documents are labelled than of others', by an automatic
        judge or in ``labels``.

    Notes
    -----
    Runs with the same rankings are one system, named ``"a = b"``; a document that only runs of one group retrieve is
    that group's, and a leaderboard of an automatic judge has the mean score of such runs.
    Intervals of ranks and pairs that differ: :func:`vbterrier.stats.paired_tests.rank_intervals`. With probability
    ``level``, no pair of systems without a common letter is in the wrong order. Scores of leaderboards of
    automatic judges use the same measure. The interval of a correlation is one of its expectation over leaderboards of
    as many topics: quantiles of draws, shifted by the difference between the value and their mean, since resamples of a
    sample have lower correlations than samples. With groups of one run, a system whose team has other runs
    in the pool appears more reusable than new systems will be: give each team one group.

    Examples
    --------
    >>> qrels = pd.DataFrame({"qid": ["q1"] * 3 + ["q2"] * 3, "docno": [*"abc"] * 2, "label": [1, 0, 0] * 2})
    >>> def run(order):
    ...     return pd.DataFrame({"qid": ["q1"] * 3 + ["q2"] * 3, "docno": [*order] * 2, "score": [3, 2, 1] * 2})
    >>> result = leaderboard({"good": run("abc"), "bad": run("cba"), "worse": run("cba")}, qrels, "nDCG@10")
    >>> result.systems[["name", "rank", "rank_low", "rank_high", "letters"]].values.tolist()
    [['good', 1, 1, 1, 'a'], ['bad = worse', 2, 2, 2, 'b']]
    """
    labels, on_topics, duplicates, scale, pool_cutoff = (
        data.labels,
        data.on_topics,
        data.duplicates,
        data.scale,
        data.pool_cutoff,
    )
    level, n_draws, seed = inference.level, inference.n_draws, inference.seed
    progress = execution.progress
    choice("uncertainty", uncertainty, SOURCES)
    batch = JudgingBudget.of(budget)
    for name, value, low in (("n_draws", n_draws, 2), ("budget", batch.n, 0)):
        whole(name, value, low=low)
    options: dict[str, Any] = {"n_draws": n_draws, "level": level, "seed": seed}
    if qrels is None:
        for name, option in (("groups", groups), ("labels", labels), ("budget", batch.n or None)):
            if option is not None:
                raise ParameterError(f"{name}: found values, which have no judgments; give runs and qrels")
        collections, parsed = collections_of_values(runs, measure)
    else:
        (parsed,) = measures_from(MEASURE if measure is None else measure)
        if batch.n:
            measure_with_distribution(parsed)
        if not isinstance(parsed, UnjudgedMeasure):
            require_means([str(parsed)])
            refuse_ratios([str(parsed)], "vbterrier.compare")
        collections = collections_of_runs(runs, qrels, parsed, labels, on_topics, duplicates, scale, data.system)
    names = sorted(collections[0].scores.names)
    of_systems = collections[0].members.values()
    group_by_run = None if groups is None else run_groups(groups, sorted(chain.from_iterable(of_systems)))
    sources = _sources(collections, uncertainty)
    rankings = {source: ranked_systems(collections, names, source, **options) for source in sources}
    main = rankings[uncertainty]
    about: dict[str, Any] = {"level": level, "method": SOURCES[uncertainty]}
    about |= {"n_qids": sum(len(each.topics) for each in collections), "n_draws": n_draws, "seed": seed}
    systems = main.drop(columns="uncertainty").assign(measure=str(parsed), **about)
    shares = np.mean([[each.unjudged.get(name, np.nan) for name in systems["name"]] for each in collections], axis=0)
    systems.insert(len(systems.columns) - len(about), "n_unjudged_share", shares)
    columns = ["name", "measure", "mean", "low", "high", "rank", "rank_low", "rank_high", "letters", "p_beats_next"]
    systems = systems[[*columns, "n_unjudged_share", *about]]
    return Leaderboard(
        systems,
        pd.concat([rankings[source][_RANKS] for source in sources], ignore_index=True),
        _by_collection(collections, list(systems["name"])),
        reusability(collections, parsed, group_by_run, main, uncertainty, pool_cutoff, progress=progress, **options),
        judge_correlations(collections, parsed, automatic or {}, names, on_topics, scale=scale, **options),
        _batch(collections, parsed, batch, level, on_topics),
    )


def _sources(collections: list[Collection], uncertainty: str) -> list[str]:
    single = next((each for each in collections if len(each.topics) == 1), None)
    if uncertainty in ("topics", "both") and single is not None:
        raise InputError(
            f"uncertainty={excerpt(uncertainty)} resamples topics, but there is only "
            f"{single.topics[0]!r}; ask for 'unjudged'"
        )
    if uncertainty == "collections" and len(collections) == 1:
        raise ParameterError("uncertainty='collections' needs several; give mappings of runs and qrels by collection")
    sources = ["unjudged"] if single is not None else ["unjudged", "topics", "both"]
    return [*sources, "collections"] if len(collections) > 1 else sources


def _by_collection(collections: list[Collection], names: list[str]) -> pd.DataFrame:
    rows = []
    for each in collections:
        means = each.scores.means.mean(axis=1)[each.order(names)]
        part = pd.DataFrame({"dataset": each.name, "name": names, "mean": means})
        part["rank"] = part["mean"].round(9).rank(ascending=False, method="min").astype(int)
        part["n_unjudged_share"] = [each.unjudged.get(name, np.nan) for name in names]
        rows.append(part.assign(n_qids=len(each.topics), estimand=each.estimand))
    return pd.concat(rows, ignore_index=True)


def _batch(
    collections: list[Collection], measure: Any, budget: JudgingBudget, level: float, on_topics: str
) -> pd.DataFrame:
    """The next judgments of all collections."""
    if not budget.n:
        return pd.DataFrame(columns=list(_BATCH_COLUMNS))
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
            frames,
            each.target.frame,
            measure,
            budget=JudgingBudget(budget.n, **by_topic),
            data=data,
            inference=inference,
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
    return batch[[*_BATCH_COLUMNS]].reset_index(drop=True)
