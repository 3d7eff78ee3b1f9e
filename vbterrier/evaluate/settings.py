"""Conditional and full evaluation of entity-oriented systems."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.entities.pool import link_pool
from vbterrier.entities.stage import TopEntities, check_links
from vbterrier.errors import InputError, choice, examples, warn, whole
from vbterrier.evaluate.inputs import input_table, loaded_runs, named_runs, run_of_system
from vbterrier.evaluate.scores import score
from vbterrier.frames.files.reading import read_qrels
from vbterrier.frames.ids import column_ids, column_integers
from vbterrier.frames.linked_pool import LinkedPool
from vbterrier.frames.notebook import Panel
from vbterrier.frames.pipelines import topics_frame
from vbterrier.frames.ranges import score_bounds
from vbterrier.frames.ranking import loaded_run, places
from vbterrier.frames.results import Shown, joined_names, of_means, systems_line
from vbterrier.frames.score_table import refuse_ratios
from vbterrier.frames.systems import ONE
from vbterrier.measures.target import EvaluationTarget, restricted_target
from vbterrier.measures.text import distinct_measures
from vbterrier.settings import UNSET, Data, Execution, Inference, Options, with_defaults
from vbterrier.stats.comparisons import COLUMNS, comparisons
from vbterrier.stats.topic_intervals import N_RESAMPLES, topics_interval

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import ir_measures

    from vbterrier.annotations import Bools, Ints
    from vbterrier.frames.contracts import Bounds
    from vbterrier.frames.ranking import Run
    from vbterrier.frames.results import Figures

SETTINGS = ("conditional", "open-world")
BEYOND_CHOICES = ("keep", "drop")
UNREACHED = ("skip", "zero")


def as_linked_pool(links: Any, pool: Any, *, is_ranked: bool = False) -> LinkedPool:
    """The linked pool, as given or built from tags and a run, which is otherwise unused unless it ``is_ranked``."""
    source = check_links(links)
    if isinstance(source, LinkedPool):
        if pool is not None and not is_ranked:
            warn("pool: ignored, since links are a linked pool; give tags as links to link another pool")
        return source
    if pool is None:
        raise InputError(
            "links: found tags without a pool; give ReachOptions(pool=), the candidate pool, or link_pool(pool, tags)"
        )
    return link_pool(loaded_run("pool", pool, extra=False), source)


class Reachability:
    """Documents of a pool that mention at least one of the first entities of a run."""

    def __init__(self, pool: LinkedPool, entities: Run, cutoff: int) -> None:
        self.pool = pool
        self.reached: Bools = TopEntities.of(pool, entities, cutoff).reached_mask
        if not self.reached.any():
            raise InputError(
                f"entities: no document of the pool mentions any of the first {cutoff} entities of its topic "
                f"(entities: {examples(entities.docno.text[:4].to_pylist())}; links: "
                f"{examples(pool.entities.text[:4].to_pylist())}); check that both use the same ids"
            )

    def document(self, topics: list[str], topic: Ints, docno: Any, name: str) -> Ints:
        """The number of each document in the pool, -1 outside."""
        return self.pool.find_documents(topics, topic, docno, f"{name} column 'docno'")

    def pool_rows(self, run: Run) -> pd.DataFrame:
        """The rows of a run whose documents are in the pool."""
        return run.frame.iloc[np.flatnonzero(self.document(run.topics, run.topic, run.docno, run.name) >= 0)]

    def reachable(self, run: Run) -> pd.DataFrame:
        """The rows of a run whose documents are reachable."""
        document = self.document(run.topics, run.topic, run.docno, run.name)
        if len(document) and (document < 0).all():
            raise InputError(
                f"{run.name}: no document is in the linked pool (run: "
                f"{examples(run.docno.text[:4].to_pylist())}; links: "
                f"{examples(self.pool.docno.text[:4].to_pylist())}); link the pool that systems rank"
            )
        return run.frame.iloc[np.flatnonzero((document >= 0) & self.reached[document])]


class ReachableQrels:
    """Judgments (qid, docno, label), relevant from the label ``rel``, and which of them are of reachable documents."""

    def __init__(self, frame: pd.DataFrame, reachability: Reachability, rel: int) -> None:
        self.frame, self.reachability = frame, reachability
        qid, self._docno = (column_ids(frame[name], f"qrels column {name!r}") for name in ("qid", "docno"))
        self.topics, self.topic = qid.codes()
        self._label = column_integers(frame["label"], "qrels column 'label'")
        self._relevant: Bools = self._label >= rel
        document = reachability.document(self.topics, self.topic, self._docno, "qrels")
        self._pooled: Bools = document >= 0
        self._reachable: Bools = self._pooled & reachability.reached[document]

    def _n(self, rows: Bools) -> Ints:
        """Number of distinct documents per topic in some rows, shape (n_topics,)."""
        pairs = pd.DataFrame({"topic": self.topic[rows], "docno": self._docno.fingerprints[rows]}).drop_duplicates()
        n: Ints = np.bincount(pairs["topic"].to_numpy(), minlength=len(self.topics))
        return n

    @property
    def unreached_mask(self) -> Bools:
        """Topics with relevant documents, none of which is reachable, shape (n_topics,)."""
        without: Bools = (self._n(self._relevant) > 0) & (self._n(self._relevant & self._reachable) == 0)
        return without

    def pooled_only(self) -> pd.DataFrame:
        """The judgments of documents in the pool."""
        return self._select_judgments(self._pooled)

    def conditional(self, unreached: str) -> pd.DataFrame:
        """The judgments of reachable documents; ``unreached`` topics are an error if no other topic is left."""
        without, kept = self.unreached_mask, self._select_judgments(self._reachable)
        if not without.any():
            return kept
        problem = (
            f"{int(without.sum())} of {len(without)} topics have relevant documents, but no reachable one "
            f"({examples([self.topics[place] for place in np.flatnonzero(without)])})"
        )
        if unreached == "zero":
            warn(f"{problem}; they count as topics without relevant documents")
            return kept
        if without.all():
            raise InputError(f"{problem}: no topic is left for the conditional setting; select more entities")
        warn(f"{problem}; they are left out of the conditional setting")
        return self._select_judgments(self._reachable, among=~without[self.topic])

    def _select_judgments(self, kept: Bools, *, among: Bools | bool = True) -> pd.DataFrame:
        """Select rows; a topic without a selected row keeps its rows as non-relevant, so that it still counts."""
        bare = (np.bincount(self.topic[kept], minlength=len(self.topics)) == 0)[self.topic]
        label = np.where(bare, np.minimum(self._label, 0), self._label)
        rows = np.flatnonzero((kept | bare) & among)
        return self.frame.assign(label=label).iloc[rows].reset_index(drop=True)

    def coverage(self) -> pd.DataFrame:
        """One row per topic: numbers of documents in the pool, relevant and reachable."""
        pool, reached = self.reachability.pool, self.reachability.reached
        place = places(self.topics, pool.topics)
        n_pool, n_reachable = (
            np.where(place >= 0, np.bincount(pool.topic[rows], minlength=len(pool.topics) + 1)[place], 0)
            for rows in (np.ones(len(pool), dtype=bool), reached)
        )
        n_relevant = self._n(self._relevant & self._pooled)
        n_both = self._n(self._relevant & self._reachable)
        with np.errstate(invalid="ignore"):
            shares = n_both / n_relevant, (n_reachable - n_both) / (n_pool - n_relevant)
        counts = {"n_pool": n_pool, "n_reachable": n_reachable, "n_relevant": self._n(self._relevant)}
        counts |= {"n_relevant_pool": n_relevant, "n_relevant_reachable": n_both, "unreached": self.unreached_mask}
        return pd.DataFrame({"qid": self.topics, "RelCov": shares[0], "NonRelCov": shares[1], **counts})


def judged_topics(run: pd.DataFrame, judgments: pd.DataFrame) -> pd.DataFrame:
    """The rows of a run whose topics are judged; avoids a second warning about topics left out."""
    return run[run["qid"].isin(judgments["qid"].unique())]


@dataclass(frozen=True, eq=False, repr=False)
class Settings(Shown):
    """Result of :func:`evaluate_settings`.

    - ``values``, ``intervals``: V and C frames with a setting after the name
    - ``gaps``: name, measure, conditional, open_world (means over the topics that both settings have), gap (conditional
      minus open world), low, high (of the gap, topic by topic), level, method, n_qids, RelCov, NonRelCov (mean
      coverage, to interpret the gap)
    - ``comparisons``: a P frame of all systems with the baseline, with a setting; empty without a baseline
    - ``coverage``: one row per topic: qid, RelCov, NonRelCov (NaN if the pool has no such document), n_pool,
      n_reachable, n_relevant (of the judgments), n_relevant_pool, n_relevant_reachable, unreached (True if there are
      relevant documents, none of which is reachable)
    """

    values: pd.DataFrame
    intervals: pd.DataFrame
    gaps: pd.DataFrame
    comparisons: pd.DataFrame
    coverage: pd.DataFrame

    def to_frame(self) -> pd.DataFrame:
        """Return ``gaps``: a row per system and measure."""
        return self.gaps

    def _line(self) -> str:
        return systems_line(self.intervals)

    def _panels(self) -> Iterator[Panel]:
        yield Panel("Conditional minus open world", self.gaps, value="gap", by="measure", rule=0)
        yield from of_means(self.intervals, heads=2)
        if len(self.comparisons):
            yield Panel("Differences a - b", self.comparisons, value="diff", by="measure", rule=0, heads=2)

    def _figures(self) -> Figures:
        return {"forest": lambda: {"intervals": joined_names(self.intervals, "name", "setting")}}

    def means(self) -> pd.DataFrame:
        """Mean scores: one row per system, one column per setting and measure."""
        table = self.intervals.drop_duplicates(["name", "setting", "measure"])
        columns = pd.MultiIndex.from_product([SETTINGS, table["measure"].unique()], names=["setting", "measure"])
        wide = table.pivot(index="name", columns=["setting", "measure"], values="value")
        return wide.reindex(index=table["name"].unique(), columns=columns)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ReachOptions(Options):
    """Documents that entities reach, for :func:`evaluate_settings` and related calls.

    Parameters
    ----------
    cutoff
        The number of entities per topic that select documents, 20 by default.
    rel
        The lowest relevant label, for coverage and unreached topics, 1 by default.
    unreached
        Topics with relevant documents, none of which is reachable: ``"skip"``, the default, leaves them out of the
        conditional setting, ``"zero"`` keeps them as topics without relevant documents. Both warn; ``coverage`` marks
        the topics.
    pool
        The candidate pool, a run, if the links are tags.
    beyond
        Documents outside the pool in the open world: ``"keep"`` them, the default, or ``"drop"`` them from rankings and
        judgments, ``D_ow = D``, so that the gap measures reachability alone. The conditional setting never includes
        them.
    unmatched
        Documents of the pool that mention none of the selected entities, in the closed cells. ``"append"``, the
        default: they follow the others, in the order of the pool (as documents of the pool follow a given run that
        lacks them), so that all four cells have the same recall, as in Table 4 of the paper. ``"drop"``: they are
        removed, as public code of the paper's authors does, and with them recall.
    judgments
        ``"all"``, the default: the same judgments for all cells; ``"reachable"``: for closed documents, only judgments
        of reachable documents (Eq. 1 of the paper).
    train_on
        The documents of the training: ``"conditional"``, the default, or ``"open-world"`` for the whole pool.

    Examples
    --------
    >>> ReachOptions(cutoff=5, unreached="zero").cutoff
    5
    """

    cutoff: int = UNSET
    rel: int = UNSET
    unreached: str = UNSET
    pool: Any = UNSET
    beyond: str = UNSET
    unmatched: str = UNSET
    judgments: str = UNSET
    train_on: str = UNSET


@with_defaults
def evaluate_settings(
    runs: Any,
    qrels: Any,
    measures: Sequence[str | ir_measures.Measure],
    *,
    links: Any,
    entities: Any,
    baseline: str | None = None,
    options: ReachOptions = ReachOptions(cutoff=20, rel=1, unreached="skip", pool=None, beyond="keep"),
    data: Data = Data(topics=None, on_topics="same", system=None),
    inference: Inference = Inference(interval="unseen", level=0.95, n_resamples=N_RESAMPLES, seed=0),
    execution: Execution = Execution(progress=False),
) -> Settings:
    """Evaluate systems on the documents that entities reach and on all of them, in one call.

    Conditional: rankings and judgments of the documents that mention one of the first k entities only,
    ``D_cond(q) = {d in D(q) : Λ(d) ∩ Ê^k ≠ ∅}``, so that recall counts reachable documents alone. Open-world: the
    scores of :func:`vbterrier.score` on unchanged rankings.

    Parameters
    ----------
    runs, qrels, measures
        See :func:`vbterrier.score`; runs may be pipelines, and ``on_topics`` applies to the unchanged rankings.
    links
        Entity links of documents: a :class:`~vbterrier.entities.LinkedPool`, its K frame (its labels are ignored),
        or tags (docno, entity_id [, weight, qid]) together with the candidate pool, a run, in ``options``.
    entities
        The entity run (qid, docno = an entity's id, score) whose first k entities per topic select documents.
    baseline
        The system that all other systems are compared with in each setting.
    options
        A :class:`vbterrier.evaluate.ReachOptions`: ``cutoff``, ``rel``, ``unreached``, ``pool``, ``beyond``.
    data
        A :class:`vbterrier.Data`: ``topics``, ``on_topics`` (``"same"``), ``system``.
    inference
        An :class:`vbterrier.Inference`: ``interval`` (``"unseen"``), ``level`` (0.95), ``n_resamples`` (2,000),
        ``seed`` (0).
    execution
        An :class:`vbterrier.Execution`: ``progress`` (False).

    Returns
    -------
    Settings
        ``gaps``: a row per system and measure, the conditional minus the open-world score; ``values`` and ``intervals``
        by setting.

    Notes
    -----
    Rankings are restricted after retrieval. This equals a ranking of the restricted pool if a system scores documents
    independently. For other systems, such as rerankers that normalise scores by topic, add
    :class:`~vbterrier.entities.stage.EntityReachable` to the pipelines, or use :func:`evaluate_closed_open`.

    Source: Chatterjee: Entities as Retrieval Signals, arXiv 2604.05204, section 2.2.

    Examples
    --------
    >>> run = pd.DataFrame({"qid": ["q1"] * 3 + ["q2"] * 3, "docno": [*"abcabc"], "score": [3.0, 2.0, 1.0] * 2})
    >>> qrels = pd.DataFrame({"qid": ["q1", "q1", "q2", "q2"], "docno": [*"bcbc"], "label": 1})
    >>> tags = pd.DataFrame({"docno": ["a", "b"], "entity_id": ["Texas", "Paris"]})
    >>> entities = pd.DataFrame({"qid": ["q1", "q2"], "docno": "Paris", "score": 1.0})
    >>> options = ReachOptions(pool=run)
    >>> result = evaluate_settings({"mine": run}, qrels, ["AP"], links=tags, entities=entities, options=options)
    >>> result.gaps[["conditional", "open_world", "RelCov", "NonRelCov"]].round(3).values.tolist()
    [[1.0, 0.583, 0.5, 0.0]]
    """
    cutoff, rel, unreached, pool, beyond = options.cutoff, options.rel, options.unreached, options.pool, options.beyond
    topics, on_topics = data.topics, data.on_topics
    interval, level, n_resamples, seed = inference.interval, inference.level, inference.n_resamples, inference.seed
    refuse_ratios(map(str, distinct_measures(measures)), "vbterrier.score")
    choice("beyond", beyond, BEYOND_CHOICES)
    choice("unreached", unreached, UNREACHED)
    reachability = Reachability(as_linked_pool(links, pool), loaded_run("entities", entities), whole("cutoff", cutoff))
    judged = input_table(qrels, "qrels", read_qrels, ())
    runs = load_system_runs(runs, topics, data.system)
    target = restricted_target(EvaluationTarget(judged), runs, on_topics)
    runs = {name: run.only(target.topics) for name, run in runs.items()} if on_topics == "common" else runs
    judgments = ReachableQrels(target.frame, reachability, whole("rel", rel))
    how: dict[str, Any] = {"level": level, "n_resamples": n_resamples, "seed": seed}
    frames = {name: reachability.pool_rows(run) if beyond == "drop" else run.frame for name, run in runs.items()}
    every = judgments.pooled_only() if beyond == "drop" else target.frame
    # Check reachability before scoring, which may be slow.
    reachable = {name: reachability.reachable(run) for name, run in runs.items()}
    within = judgments.conditional(unreached)
    reachable = {name: judged_topics(frame, within) for name, frame in reachable.items()}
    shared: dict[str, Any] = {"data": Data(on_topics="all", system=ONE), "inference": inference, "execution": execution}
    open_world = score(frames, every, measures, **shared)
    conditional = score(reachable, within, measures, **shared)
    coverage = judgments.coverage()
    both = dict(zip(SETTINGS, (conditional, open_world), strict=True))
    compared = pd.DataFrame(columns=["name_a", "name_b", "setting", *COLUMNS[2:]])
    if baseline is not None:
        compared = _by_setting(
            {key: comparisons(scores.values, baseline=baseline, **how) for key, scores in both.items()}
        )
    return Settings(
        _by_setting({setting: scores.values for setting, scores in both.items()}),
        _by_setting({setting: scores.intervals for setting, scores in both.items()}),
        setting_gaps(conditional.values, open_world.values, coverage, interval=interval, **how),
        compared,
        coverage,
    )


def load_system_runs(systems: Any, topics: Any, system: str | None = None) -> dict[str, Run]:
    """Runs of systems by name; pipelines are run on the topics."""
    queries = None if topics is None else topics_frame(topics)
    if queries is None:
        return loaded_runs(systems, system=system)
    return {
        name: run_of_system(name, run, queries, queries) for name, run in named_runs(systems, queries, system).items()
    }


def concatenation(frames: Mapping[Any, pd.DataFrame], columns: list[str]) -> pd.DataFrame:
    """Concatenate frames; their keys become the first columns."""
    every: pd.DataFrame = pd.concat(frames, names=columns).reset_index(columns)
    return every.reset_index(drop=True)


def _by_setting(frames: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Concatenate the frames of the settings, with the setting after the names."""
    every = concatenation(frames, ["setting"])
    names = [name for name in every.columns if name.startswith("name")]
    return every[[*names, *every.columns.difference(names, sort=False)]]


def setting_gaps(
    conditional: pd.DataFrame, open_world: pd.DataFrame, coverage: pd.DataFrame, **options: Any
) -> pd.DataFrame:
    """The gaps between the V frames of two settings, see :class:`Settings`; ``options`` of the interval."""
    key, rows = ["name", "qid", "measure"], []
    both = conditional.merge(open_world, on=key, suffixes=("_a", "_b"), validate="one_to_one")
    for (name, measure), group in both.groupby(["name", "measure"], sort=False):
        a, b = (group.set_index("qid")[side] for side in ("value_a", "value_b"))
        gap = mean_and_interval(a - b, score_bounds(f"{measure} - "), **options)
        rows.append((name, measure, a.mean(), b.mean(), *gap, len(a)))
    columns = ["name", "measure", "conditional", "open_world", "gap", "low", "high", "level", "method", "n_qids"]
    shares = {name: coverage[name].mean() for name in ("RelCov", "NonRelCov")}
    return pd.DataFrame(rows, columns=columns).assign(**shares)


def mean_and_interval(
    differences: pd.Series[float], bounds: Bounds, *, interval: str, level: float, **options: Any
) -> tuple[float, float, float, float, str]:
    """Mean, low, high, level and method of paired differences over topics, which are within bounds."""
    values, qids = np.asarray(differences, dtype=np.float64), list(differences.index)
    ends = topics_interval(values, level=level, method=interval, qids=qids, bounds=bounds, **options)
    return float(differences.mean()), ends.low, ends.high, level, ends.method
