"""Scores of many systems on the same topics, with intervals."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import nan
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import ParameterError
from vbterrier.evaluate.inputs import named_runs, target_of
from vbterrier.execution.distribute import Scorer, spread
from vbterrier.execution.parallel import workers
from vbterrier.frames.contracts import systems_of
from vbterrier.frames.files.reading import read_answers, read_qrels
from vbterrier.frames.notebook import Panel, Shown, of_means, systems_line
from vbterrier.frames.parameters import choice, whole
from vbterrier.frames.values import KEY
from vbterrier.log import tracked
from vbterrier.measures.external import is_mean, mean_of
from vbterrier.measures.linking import is_linking
from vbterrier.measures.target import aligned, require_one_tagger
from vbterrier.measures.text import measures_from
from vbterrier.measures.unjudged import Bootstrapped
from vbterrier.stats.topic_intervals import (
    COLUMNS,
    N_RESAMPLES,
    TOPIC_METHODS,
    check_level,
    interval_rows,
    tables_of,
    topic_values,
    unjudged_interval,
)

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping, Sequence

    import ir_measures
    from numpy.typing import NDArray

    from vbterrier.frames.notebook import Figures
    from vbterrier.measures.target import EvaluationTarget


TOPICS = ("same", "all", "common")


@dataclass(frozen=True, eq=False, repr=False)
class Scores(Shown):
    """What :func:`score` found.

    Parameters
    ----------
    values
        The V frame: name, qid, measure, value; a row for each system, topic and measure.
    intervals
        The C frame: name, measure, value (the mean), low, high, level, method, n_qids, n_resamples, seed; one row for
        each system, measure and method. ``method`` names the source of uncertainty: ``topics (...)`` for other topics
        of the kind, ``unjudged (normal)`` for judging what is unjudged on these.
    missing
        name, n_qids, n_missing: how many of the topics a system retrieved nothing for; they score as an empty ranking.
    """

    values: pd.DataFrame
    intervals: pd.DataFrame
    missing: pd.DataFrame

    def _line(self) -> str:
        return systems_line(self.intervals)

    def _panels(self) -> Iterator[Panel]:
        yield from of_means(self.intervals)
        missing = self.missing[self.missing["n_missing"] > 0]
        if len(missing):
            yield Panel("Topics for which a system retrieved nothing", missing)

    def _figures(self) -> Figures:
        return {"forest": lambda: {"intervals": self.intervals}, "curve": lambda: {"scores": self.intervals}}

    def means(self) -> pd.DataFrame:
        """A row a system, a column a measure."""
        table = self.intervals.drop_duplicates(["name", "measure"])
        names, measures = table["name"].unique(), table["measure"].unique()
        return table.pivot(index="name", columns="measure", values="value").loc[names, measures]


def score(
    runs: Any,
    qrels: Any = None,
    measures: Sequence[str | ir_measures.Measure] = (),
    *,
    intents: Any = None,
    tags: Any = None,
    on_topics: str = "same",
    duplicates: str = "error",
    interval: str = "percentile",
    level: float = 0.95,
    n_resamples: int = N_RESAMPLES,
    seed: int = 0,
    memory: int | str | None = None,
    resume: str | os.PathLike[str] | None = None,
    n_jobs: int = 1,
    client: Any = None,
    progress: bool = False,
) -> Scores:
    """Evaluate systems with measures of this package and of ir_measures, with intervals of the means.

    Parameters
    ----------
    runs
        A mapping of name to run; or one run, or several paths, which are named after their files. A run is a frame
        (qid, docno, score) or the path of a TREC run; for measures of linking alone, also the answers (qid, entity_id).
    qrels
        A frame or the path of TREC qrels. They may be left out where ``intents`` are given. For measures of linking
        alone, the gold standard: a frame (qid, entity_id) or a path, see :func:`vbterrier.frames.read_answers`.
    measures
        Measure objects or their text.
    intents
        For measures of ambiguous queries, and for diversity measures such as alpha_nDCG where ``tags`` are given too:
        a frame (qid, entity_id, prob), a registered name or a path.
    tags
        What documents are about: a frame (docno, entity_id[, weight, qid]), a registered name or a path; otherwise the
        column ``entity_id`` of the runs, or diversity qrels.
    on_topics
        ``"same"``: all topics of the qrels, a topic for which a run has nothing scoring as an empty ranking; refused
        when runs differ in their topics. ``"all"``: the same without refusing. ``"common"``: only topics for which
        every run has something.
    duplicates
        ``"error"``, or ``"first"`` to keep the best rank of a document that stands twice.
    interval
        ``"percentile"``, ``"bca"`` or ``"studentised"``: the bootstrap over topics; ``"poisson"``: its percentiles
        where every topic is drawn by itself; ``"normal"``: Student's t.
    level
        Nominal coverage of all intervals.
    n_resamples
        Resamples of the topics.
    seed
        Decides the resamples of the topics, which all systems and measures share. Draws of measures follow their own.
    memory
        Read runs from files in chunks of whole topics that take no more than this, as ``"1 GiB"`` or a number of bytes,
        whatever the size of the files; ``None`` reads each run whole. A run may then be several files: a list of paths,
        a folder, or a pattern such as ``"bm25/*.gz"``. See the notes.
    resume
        A folder for what is finished, from which the same call goes on after an interruption; it implies ``memory``
        (1 GiB unless given).
    n_jobs
        Processes of this machine; -1 for as many as there are processors. Each works on a run; where there are fewer
        runs than processes, and ``memory`` is given, all work on the chunks of each run.
    client
        A ``distributed.Client``, or the address of a Dask scheduler as ``"tcp://host:8786"``, whose workers do so
        instead. Files of runs are read by the workers, from the same paths; chunks by the calling process.
    progress
        Show a progress bar over runs, or over the blocks of their files.

    Returns
    -------
    Scores

    Raises
    ------
    InputError
        Frames or files that cannot be evaluated; runs with different topics; two systems of one name.
    ParameterError
        Measures or options that do not exist.
    ServiceError
        A cluster that does not answer or goes away.

    Notes
    -----
    The numbers are the same for any number of processes and workers. What ``memory`` bounds is each of them: in the
    calling process, chunks that are on their way to workers take an eighth of it at most.

    With ``memory``, every value is what it is without. Of each topic the rows that measures look at are kept: the
    first k, the first 3k for the learned prior, which looks at all topics at once. Measures of others without a
    cutoff, or with one above 100, are evaluated topic by topic as these come, and only values are kept; so are our own
    without a cutoff, where their value of a topic depends on that topic alone, and others are refused. ``memory``
    bounds what reading and evaluating take beside judgments, intents, tags and kept rows. Where the rows of a topic do
    not stand together, they are parted by topic first, into temporary files as large as the run unpacked (in ``resume``
    where it is given, else where temporary files go). One topic must fit into a sixteenth of ``memory``.

    ``resume`` tells inputs by size, time of change and samples of the run files, judgments, measures and version, and
    refuses others.

    Examples
    --------
    >>> import pandas as pd
    >>> qrels = pd.DataFrame({"qid": ["q1", "q2"], "docno": ["a", "b"], "label": [1, 1]})
    >>> run = pd.DataFrame({"qid": ["q1", "q2"], "docno": ["a", "new"], "score": [1.0, 1.0]})
    >>> score({"mine": run}, qrels, ["BNDCG@10", "nDCG@10"]).means().round(3).loc["mine"].tolist()
    [0.923, 0.5]
    """
    asked = list(dict.fromkeys(measures_from(*([measures] if isinstance(measures, str) else measures))))
    if not asked:
        raise ParameterError("no measures; name at least one, as 'BNDCG@10'")
    choice("on_topics", on_topics, TOPICS)
    check_level(level)
    choice("interval", interval, TOPIC_METHODS)
    whole("n_resamples", n_resamples, low=2)
    whole("seed", seed, low=0)
    # Answers have files of their own; beside other measures they stand in runs and qrels.
    linking = all(is_linking(measure) for measure in asked)
    judged = target_of(qrels, intents, tags, read_answers if linking else read_qrels)
    named = list(systems_of(named_runs(runs)))
    wanted = _with_spreads(asked)
    scorer = Scorer(judged, wanted, duplicates, is_linking=linking, memory=memory, resume=resume)
    loaded: Mapping[str, Any]
    with workers(n_jobs, client) as hands:
        if hands.are_elsewhere and not scorer.is_shared_out(named, hands.n):
            slot, loaded, rows = spread(scorer, named, on_topics, hands, progress=progress)
        else:
            loaded, in_parts = scorer.loaded(named, workers=hands, progress=progress)
            require_one_tagger(loaded.values())
            slot, loaded = aligned(judged, loaded, on_topics)
            bar = tracked(loaded.items(), "scoring", shown=progress and len(loaded) > 1, total=len(loaded), unit="run")
            rows = [row for name, run in bar for row in scorer.rows(name, run, slot, in_parts.get(name))]
    every = pd.DataFrame(rows, columns=["name", "qid", "measure", "value"])
    found = _intervals(every, asked, list(loaded), interval, level=level, n_resamples=n_resamples, seed=seed)
    return Scores(
        every[every["measure"].isin(list(map(str, asked)))].reset_index(drop=True), found, _missing(slot, loaded)
    )


def _missing(slot: EvaluationTarget, runs: Mapping[str, Any]) -> pd.DataFrame:
    rows = [(name, len(slot.topics), len(set(slot.topics).difference(run.topics))) for name, run in runs.items()]
    return pd.DataFrame(rows, columns=["name", "n_qids", "n_missing"])


def _spread(measure: ir_measures.Measure) -> ir_measures.Measure | None:
    """The measure that gives the standard deviation of each topic of a mean over unjudged documents."""
    return measure(stat="std") if isinstance(measure, Bootstrapped) and measure["stat"] == "mean" else None


def _with_spreads(measures: Sequence[ir_measures.Measure]) -> list[ir_measures.Measure]:
    spreads = [spread for measure in measures if (spread := _spread(measure)) is not None]
    return list(dict.fromkeys([*measures, *spreads]))


def _intervals(
    values: pd.DataFrame,
    measures: Sequence[ir_measures.Measure],
    names: Sequence[str],
    interval: str,
    *,
    level: float,
    **options: int,
) -> pd.DataFrame:
    keys = [values[key].to_numpy(dtype=object) for key in KEY]
    numbers = values["value"].to_numpy(dtype=np.float64)
    averaged = pd.Index(keys[2]).isin([str(measure) for measure in measures if is_mean(measure)])
    if np.isfinite(numbers[averaged]).all():
        tables = tables_of([key[averaged] for key in keys], numbers[averaged])
    else:
        # Says which value it is that no mean can take.
        tables = topic_values(values[averaged])
    # One stream for all, so that equal values have equal intervals.
    made = [dict(zip(COLUMNS, row, strict=True)) for row in interval_rows(tables, interval, level=level, **options)]
    ends_of = {(row["name"], row["measure"]): row for row in made}
    by_system = _by_system(keys[0], keys[2], numbers)
    rows: list[tuple[Any, ...]] = []
    for name, measure in product(names, measures):
        scores = by_system.get((name, str(measure)))
        if scores is None:
            continue
        found = ends_of.get((name, str(measure)))
        ends = [(nan, nan, "none", 0)]
        if found is not None:
            ends = [(found["low"], found["high"], found["method"], found["n_resamples"])]
        spread = _spread(measure)
        if spread is not None:
            end = unjudged_interval(scores, by_system[name, str(spread)], level=level)
            ends.append((end.low, end.high, end.method, 0))
        head = (name, str(measure), mean_of(measure, scores))
        rows += [
            (*head, low, high, level, method, len(scores), used, options["seed"]) for low, high, method, used in ends
        ]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _by_system(
    names: NDArray[np.object_], measures: NDArray[np.object_], values: NDArray[np.float64]
) -> dict[tuple[str, str], NDArray[np.float64]]:
    """The values of each system and measure, topics in the order of rows."""
    if not len(values):
        return {}
    (name, known), (measure, kinds) = pd.factorize(names), pd.factorize(measures)
    column = name * len(kinds) + measure
    order = np.argsort(column, kind="stable")
    firsts = np.flatnonzero(np.diff(column[order], prepend=-1))
    keys = ((known[at // len(kinds)], kinds[at % len(kinds)]) for at in column[order][firsts])
    return dict(zip(keys, np.split(values[order], firsts[1:]), strict=True))
