"""Scores of systems on one or several collections, and draws of their means."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import InputError, ParameterError, agreeing, examples, excerpt, nearest, warn
from vbterrier.evaluate.comparison import by_collection
from vbterrier.evaluate.inputs import (
    evaluation_target,
    fitted_runs,
    input_table,
    loaded_runs,
    require_scale,
    require_spellings,
    warn_of_uneven_labels,
)
from vbterrier.evaluate.ranking import drawn_means, equal_tails, joint_scores, resampled_counts
from vbterrier.evaluate.scores import Scores, scored_runs
from vbterrier.evaluate.value_tables import require_means
from vbterrier.frames.files.reading import read_values
from vbterrier.frames.score_table import ScoreTable, refuse_ratios
from vbterrier.frames.systems import ONE
from vbterrier.kernels import rankings
from vbterrier.kernels.resample import stream
from vbterrier.kernels.tolerances import REPLICA_ROUNDING
from vbterrier.measures.target import Scoring, align_topics
from vbterrier.measures.unjudged import UnjudgedMeasure, estimand, needs_model, require_use
from vbterrier.settings import Data
from vbterrier.stats.comparisons import letters
from vbterrier.stats.paired_tests import rank_intervals
from vbterrier.unjudged.joint import ScoresOnTopics
from vbterrier.unjudged.model import DEFAULT_POOL_CUTOFF
from vbterrier.unjudged.pool import machine_labels

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vbterrier.annotations import Floats
    from vbterrier.frames.ranking import Run
    from vbterrier.measures.target import EvaluationTarget
    from vbterrier.unjudged.estimated import Joint
    from vbterrier.unjudged.pool import MachineLabels


@dataclass(frozen=True, eq=False)
class Collection:
    """The scores of all systems on a collection; without runs and judgments, from a table of values."""

    name: str
    scores: Joint | ScoresOnTopics
    unjudged: dict[str, float]
    runs: dict[str, Run] = field(default_factory=dict)
    target: Any = None
    labels: MachineLabels | None = None
    # The score that a measure of the E family estimates, in words.
    estimand: str = ""
    # The runs of each system: several if their rankings are equal on all collections.
    members: dict[str, list[str]] = field(default_factory=dict)

    @property
    def topics(self) -> list[str]:
        """The topics, in the order of the scores."""
        return list(self.scores.topics)

    def order(self, names: list[str]) -> list[int]:
        """Return the places of systems in the scores."""
        return [list(self.scores.names).index(name) for name in names]

    def seed(self, seed: int) -> int:
        """Return the seed of the collection: draws of several are independent, also of topics with the same id."""
        return int(stream(seed, "collection", self.name).integers(2**31)) if self.name else seed


def collections_of_values(source: Any, measure: Any) -> tuple[list[Collection], Any]:
    """Collections from a table of values, and the measure."""
    values = source.values if isinstance(source, Scores) else source
    frame = input_table(values, "values", read_values, ("name", "qid", "measure", "value"))
    kinds = list(frame["measure"].astype(str).unique())
    name_of_measure = kinds[0] if measure is None and len(kinds) == 1 else str(measure)
    if name_of_measure not in kinds:
        raise ParameterError(
            f"measure={excerpt(measure)}: wanted one of {examples(kinds)}.{nearest(name_of_measure, kinds)}"
        )
    require_means([name_of_measure])
    refuse_ratios([name_of_measure], "vbterrier.compare")
    frame = frame[frame["measure"].astype(str) == name_of_measure]
    parts = frame.groupby(frame["dataset"].astype(str), sort=True) if "dataset" in frame.columns else [("", frame)]
    collections = []
    for name, part in parts:
        table = ScoreTable.of_frame(part.drop(columns="dataset", errors="ignore"))
        collections.append(Collection(str(name), _observed_scores(table), {}))
    _require_same_systems({each.name: each.scores.names for each in collections})
    return collections, name_of_measure


def _observed_scores(table: ScoreTable) -> ScoresOnTopics:
    """Values of a measure, without unjudged documents, with the interface of a joint distribution."""
    (view,) = table.views()
    values = view.values.T  # shape (S, T)

    def scores(topic: int, n_draws: int, _: int = 0) -> Floats:
        return np.broadcast_to(values[:, topic, None], (len(values), n_draws))

    return ScoresOnTopics(view.names, view.qids, values, scores)


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


def collections_of_runs(
    runs: Any,
    qrels: Any,
    measure: Any,
    labels: Any,
    on_topics: str,
    duplicates: str,
    scale: tuple[int, int] | None,
    system: str | None = None,
) -> list[Collection]:
    """Collections from runs and judgments, in the order of their names.

    Runs with the same rankings are one system, whose name has theirs, as ``"a = b"``.
    """
    parts = by_collection(runs, qrels)
    loaded = {name: loaded_runs(part, duplicates, system) for name, (part, _) in parts.items()}
    _require_same_systems(loaded)
    members = systems_by_ranking(loaded)
    loaded = {
        name: {joined_name: part[same[0]] for joined_name, same in members.items()} for name, part in loaded.items()
    }
    collections = []
    # Sorted, so that results do not depend on the order of collections.
    for name in sorted(parts):
        labelled = labels[name] if name and labels is not None else labels
        target, which = evaluation_target(parts[name][1], None, None), f" of {name!r}" if name else ""
        machine = machine_labels(labelled)
        require_scale(target.frame, scale, f"qrels{which}")
        require_spellings(target, loaded[name], machine, which)
        if machine is not None:
            warn_of_uneven_labels(machine, loaded[name], measure.params.get("cutoff") or DEFAULT_POOL_CUTOFF)
        on_judged = _on_judged_topics(loaded[name], target)
        collection = evaluated_collection(name, on_judged, target, measure, on_topics, machine)
        collections.append(replace(collection, members=members))
    return collections


def systems_by_ranking(loaded: Mapping[str, dict[str, Run]]) -> dict[str, list[str]]:
    """The runs of each system, from runs by collection: those with the same rankings in all collections are one."""
    names_by_ranking: dict[Any, list[str]] = {}
    names = list(next(iter(loaded.values())))
    # Sizes first, since rankings of different sizes differ.
    sizes = {name: tuple(len(runs[name]) for runs in loaded.values()) for name in names}
    n_of_size = Counter(sizes.values())
    for name in names:
        several = n_of_size[sizes[name]] > 1
        key = (sizes[name], *(_digest(runs[name]) for runs in loaded.values())) if several else name
        names_by_ranking.setdefault(key, []).append(name)
    if len(names_by_ranking) < 2:  # noqa: PLR2004 - a ranking needs two systems
        return {name: [name] for name in names}
    return {" = ".join(same): same for same in names_by_ranking.values()}


def _digest(run: Run) -> bytes:
    """A digest of the rankings of a run, the same in any order of its topics and rows."""
    run.refuse_duplicates()
    rows, starts, sizes = run.ordered_rows()
    order = np.array(sorted(range(len(sizes)), key=run.topics.__getitem__), dtype=np.int64)
    _, places = rankings.spans(starts[order], starts[order] + sizes[order])
    data, bounds = run.docno.take(rows[places]).utf8_bytes()
    names = "\n".join(run.topics[place] for place in order).encode("utf-8", "surrogatepass")
    digest = hashlib.sha256(names)
    for part in (sizes[order], np.diff(bounds), data[bounds[0] : bounds[-1]]):
        digest.update(part.tobytes())
    return digest.digest()


def _on_judged_topics(runs: dict[str, Run], target: EvaluationTarget) -> dict[str, Run]:
    """The runs on the topics of the qrels, with one warning for all of them."""
    extra = {topic for run in runs.values() for topic in set(run.topics).difference(target.topics)}
    odd = [run for run in runs.values() if len(run) and not set(run.topics).intersection(target.topics)]
    if odd or not extra:
        # An evaluation names the ids that do not match.
        return runs
    problem = agreeing(len(extra), "topics of the runs are not in the qrels and are left out")
    warn(f"{problem} ({examples(sorted(extra))})")
    return {name: run.only(target.topics) for name, run in runs.items()}


def evaluated_collection(
    name: str,
    runs: dict[str, Run],
    judged: EvaluationTarget,
    measure: Any,
    on_topics: str,
    labels: MachineLabels | None = None,
    pool_cutoff: int | None = None,
) -> Collection:
    """Scores of the runs on a collection, or on its reduced judgments with the pool depth of the complete ones."""
    if isinstance(measure, UnjudgedMeasure):
        # The depth of complete judgments has no effect on other measures.
        evidence: dict[str, Any] = {"labels": labels, "pool_cutoff": pool_cutoff if needs_model([measure]) else None}
        runs, target, models = fitted_runs(runs, judged, measure, on_topics, **evidence)
        joint, shares = joint_scores(runs, target, measure, models)
        return Collection(name, joint, shares, runs, target, labels, estimand(measure, models))
    require_use([measure], labels=labels)
    # The evaluation warns.
    target, runs = align_topics(judged, runs, on_topics, warns=False)
    table = scored_runs(runs, target, [measure], data=Data(on_topics=on_topics, system=ONE)).table
    return Collection(name, _observed_scores(table), unjudged_shares(target, runs, measure), runs, target, labels)


def unjudged_shares(target: EvaluationTarget, runs: dict[str, Run], measure: Any) -> dict[str, float]:
    """Mean share of unjudged documents of each system up to the cutoff."""
    cutoff = measure.params.get("cutoff")
    cuts = {name: Scoring(target, run, cutoff).judged_top(cutoff) for name, run in runs.items()}
    return {name: float(cut.unjudged_share().mean()) for name, cut in cuts.items()}


def drawn_scores(
    collections: list[Collection], names: list[str], source: str, n_draws: int, seed: int, judge: str = ""
) -> tuple[Floats, Floats]:
    """Means over collections of expected and of drawn scores; with ``judge``, another stream for unjudged ones."""
    inner = "unjudged" if source == "collections" else source
    counts = [np.ones(n_draws)] * len(collections)
    if source == "collections":
        counts = [np.asarray(count, np.float64) for count in resampled_counts(len(collections), n_draws, seed)]
    means, draws = np.zeros(len(names)), np.zeros((len(names), n_draws))
    for each, count in zip(collections, counts, strict=True):
        of_grades = int(stream(seed, "judge", judge, each.name).integers(2**31)) if judge else None
        mean, (drawn,) = drawn_means(each.scores, [inner], n_draws, each.seed(seed), of_grades=of_grades)
        order = each.order(names)
        means += mean[order]
        draws += drawn[order] * count
    return means / len(collections), draws / len(collections)


def ranked_systems(
    collections: list[Collection], names: list[str], source: str, *, n_draws: int, level: float, seed: int
) -> pd.DataFrame:
    """A row per system, the best first: its mean with an interval, ranks with intervals, and letters."""
    means, draws = drawn_scores(collections, names, source, n_draws, seed)
    sizes = [len(collections)] if source == "collections" else [len(each.topics) for each in collections]
    df, inflation = (np.inf, 1.0) if source == "unjudged" else (float(sum(sizes) - len(sizes)), 0.0)
    inflation = inflation or float(np.sqrt(max(n / (n - 1) for n in sizes)))
    ranks = rank_intervals(means, draws, level, df=df, inflation=inflation)
    rank = 1 + (means > means[:, None] + REPLICA_ROUNDING).sum(axis=1)
    order = np.argsort(-means, kind="stable")
    differ = ranks.better | ranks.better.T
    signs = np.empty(len(names), dtype=object)
    signs[order] = letters(differ[np.ix_(order, order)])
    low, high = equal_tails(draws, level)
    columns = {"name": names, "uncertainty": source, "mean": means, "low": low, "high": high, "rank": rank}
    columns |= {"rank_low": ranks.low, "rank_high": ranks.high, "letters": signs}
    gap = draws[order[:-1]] - draws[order[1:]]
    beats = np.append(((gap > REPLICA_ROUNDING).mean(axis=1) + (gap >= -REPLICA_ROUNDING).mean(axis=1)) / 2, np.nan)
    return pd.DataFrame(columns).iloc[order].assign(p_beats_next=beats).reset_index(drop=True)
