"""The targets: how many times faster than others, how much time and memory at most; measured in the same run."""

import tempfile
from dataclasses import dataclass
from functools import partial

import ir_measures
import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyterrier as pt

from suite.engines import IR_MEASURES, OURS, SCORE
from suite.memory import peaks
from suite.replicas import replicated
from suite.synthetic import Collection, Shape
from suite.timing import alternating, median, ratio
from suite.ways import way_named
from vbterrier.evaluate.scores import score
from vbterrier.frames.files.reading import read_run
from vbterrier.kernels.resample import stream
from vbterrier.stats.topic_intervals import topics_intervals

# Queries from which collections count as large, and as small; fewer are the frames of a notebook.
LARGE, SMALL, N_SYSTEMS = 1000, 100, 5
# The measure of the targets: estimated measures fit a model, which other packages have not.
POOL = "BNDCG(prior='pool')@10"


@dataclass(frozen=True)
class Faster:
    """A way of ours that is at least so many times faster than a peer's, for large and small collections and frames.

    ``frames`` is the goal for the everyday frames of a notebook, nearly all of whose time is fixed cost; without one,
    such frames have no goal.
    """

    ours: str
    theirs: str
    small: float
    large: float
    frames: float | None = None
    text: str = "str"

    def ratio_at(self, n_queries):
        """The goal for a collection of so many queries, ``None`` for none."""
        if n_queries >= LARGE:
            return self.large
        return self.small if n_queries >= SMALL else self.frames


_NDCG, _ALPHA = f"{IR_MEASURES} nDCG@10", f"{IR_MEASURES} alpha_nDCG@10"
_OURS = (f"{SCORE} nDCG@10", f"{SCORE} {POOL}", f"{OURS} {POOL}")
FASTER = (
    *(Faster(ours, _NDCG, 45, large, 10) for ours, large in zip(_OURS, (80, 50, 50), strict=True)),
    *(Faster(ours, _NDCG, 20, large, 4, "object") for ours, large in zip(_OURS, (30, 25, 25), strict=True)),
    *(Faster(ours, "pytrec_eval ndcg_cut_10", 4, 10) for ours in _OURS),
    *(Faster(f"{tool} {measure}", _ALPHA, 60, 60) for tool in (OURS, SCORE) for measure in ("ES@10", "VB@10")),
    Faster(f"{SCORE} RelCov@20", f"{IR_MEASURES} R@20", 30, 30),
)
PEAK_MIB = 250
REPLICAS_SECONDS, BOOTSTRAP_SECONDS = 0.1, 1.5
TIMES_ARROW, TIMES_ONE_SYSTEM, TIMES_EXPERIMENT = 1.3, 3.0, 1.1
FILE_SECONDS, FRAMES_SECONDS = 1.5, 0.004
N_REPLICAS, N_RESAMPLES, N_TOPICS, N_COLUMNS = 1000, 10_000, 6980, 40


def readings(collection):
    """A run's file, read with all its checks; and by pyarrow, without."""
    path, columns = collection.file("run"), ["qid", "Q0", "docno", "rank", "score", "name"]
    text = dict.fromkeys(("qid", "Q0", "docno", "name"), pa.string())
    plain = pacsv.ReadOptions(column_names=columns), pacsv.ParseOptions(delimiter=" ", quote_char=False)
    bare = partial(pacsv.read_csv, path, *plain, pacsv.ConvertOptions(column_types=text))
    return {"ours": partial(read_run, path), "other": bare}


def five_systems(collection):
    """``score`` of five runs, against one."""
    run, qrels = collection.frames["run"], collection.frames["qrels"]
    runs = {f"run {shift}": run.assign(score=run["score"] + shift) for shift in range(N_SYSTEMS)}
    return {"ours": lambda: score(runs, qrels, [POOL]), "other": lambda: score({"run": run}, qrels, [POOL])}


def experiments(collection):
    """``pt.Experiment`` with nDCG@10 and :data:`POOL`, against nDCG@10 alone."""
    run, qrels = collection.frames["run"], collection.frames["qrels"]
    topics, ndcg = run[["qid"]].drop_duplicates().assign(query=""), ir_measures.nDCG @ 10
    measures = {"ours": [ndcg, ir_measures.parse_measure(POOL)], "other": [ndcg]}
    return {
        name: partial(pt.Experiment, [pt.Transformer.from_df(run)], topics, qrels, m) for name, m in measures.items()
    }


def met(sizes, timings, rounds, patience, *, seed=0, notify=lambda _: None):
    """A record for each target and size: ``goal``, ``wanted``, ``measured`` (median, low, high), ``unit``, ``met``.

    Ratios are of seconds on processors, that of five systems on the wall. Those of frames with pandas' strings are
    read off the timings.
    """
    results = []
    for n_queries, depth in sizes:
        where = f"{n_queries:,} x {depth:,}"
        notify(f"targets at {where}")
        rows = {row["way"]: row for row in timings if (row["n_queries"], row["source"]) == (n_queries, "memory")}
        rows = {"str": rows, "object": _of_objects(n_queries, depth, rounds, patience, seed=seed)}
        results += _of_ways(rows, n_queries, where)
        if n_queries < SMALL:
            results += _of_frames(rows, where)
        else:
            results += _of_collection(Shape("judged", n_queries, depth, seed=seed), rounds, patience, where)
    notify("targets of replicas and resamples")
    return [*results, *_of_statistics(rounds, seed=seed)]


def _of_ways(rows, n_queries, where):
    """How many times faster our ways are, of those that were timed beside their peers."""
    results = []
    for target in FASTER:
        cpu = {name: row["cpu"] for name, row in rows[target.text].items()}
        target_ratio = target.ratio_at(n_queries)
        if target_ratio is not None and target.ours in cpu and target.theirs in cpu:
            columns = ", object columns" if target.text == "object" else ""
            goal = f"{target.ours} against {target.theirs}{columns}, {where}"
            results.append(
                _record(goal, target_ratio, ratio(cpu[target.theirs], cpu[target.ours]), "times faster", at_least=True)
            )
    return results


def _of_frames(rows, where):
    """Seconds of one call on small frames."""
    way = f"{OURS} {POOL}"
    results = {"": rows["str"].get(way), ", object columns": rows["object"].get(way)}
    return [
        _record(f"{way}{columns}, {where}", FRAMES_SECONDS, _spread(row["cpu"]), "seconds")
        for columns, row in results.items()
        if row is not None
    ]


def _of_objects(n_queries, depth, rounds, patience, *, seed=0):
    """Times on frames that hold ids as objects."""
    shape = Shape("judged", n_queries, depth, text="object", seed=seed)
    with tempfile.TemporaryDirectory(prefix="vbterrier-bench-") as folder:
        collection = Collection(shape, folder)
        calls = {name: way_named(name).ready(collection) for name in (*_OURS, _NDCG)}
        times, _ = alternating(calls, rounds, patience=patience)
    return {name: {"cpu": took.cpu} for name, took in times.items()}


def _of_collection(shape, rounds, patience, where):
    """Reading, files to scores, several systems, pt.Experiment and memory on one collection."""
    with tempfile.TemporaryDirectory(prefix="vbterrier-bench-") as folder:
        collection = Collection(shape, folder)
        collection.keep()
        results = []
        for goal, target_ratio, pair, clock in (
            ("reading a run against bare pyarrow", TIMES_ARROW, readings, "cpu"),
            (f"score, {POOL}, five systems against one on the wall", TIMES_ONE_SYSTEM, five_systems, "wall"),
            (f"pt.Experiment, nDCG@10 and {POOL} against nDCG@10", TIMES_EXPERIMENT, experiments, "cpu"),
        ):
            times, failed = alternating(pair(collection), rounds, patience=patience)
            measured = dict.fromkeys(("median", "low", "high"), float("nan"))
            if not failed:
                measured = ratio(getattr(times["ours"], clock), getattr(times["other"], clock))
            results.append(_record(f"{goal}, {where}", target_ratio, measured, "times the time"))
        if shape.n_queries >= LARGE:
            call = partial(score, {"run": collection.file("run")}, collection.file("qrels"), ["nDCG@10"])
            wall = alternating({"ours": call}, rounds)[0]["ours"].wall
            results.append(_record(f"file to nDCG@10, {where}", FILE_SECONDS, _spread(wall), "seconds on the wall"))
        way = f"{OURS} {POOL}"
        peak = peaks([way], collection, "memory")[way]
        if peak is not None:
            spread = dict.fromkeys(("median", "low", "high"), peak)
            results.append(_record(f"memory above the frames, {POOL}, {where}", PEAK_MIB, spread, "MiB"))
        return results


def _of_statistics(rounds, *, seed):
    values = stream(seed, "values").random((N_TOPICS, N_COLUMNS))
    calls = {
        f"{N_REPLICAS:,} Dirichlet replicas, 250 x 8": partial(replicated(seed=seed), N_REPLICAS),
        f"{N_RESAMPLES:,} resamples of {N_TOPICS:,} topics, {N_COLUMNS} columns": partial(
            topics_intervals, values, n_resamples=N_RESAMPLES
        ),
    }
    times, _ = alternating(calls, rounds)
    limits = zip(calls, (REPLICAS_SECONDS, BOOTSTRAP_SECONDS), strict=True)
    return [_record(goal, limit, _spread(times[goal].cpu), "seconds") for goal, limit in limits]


def _spread(seconds):
    return {"median": median(seconds), "low": float(np.min(seconds)), "high": float(np.max(seconds))}


def _record(goal, limit, measured, unit, *, at_least=False):
    middle = measured["median"]
    reached = bool(middle >= limit if at_least else middle <= limit)
    return {"goal": goal, "at_least": at_least, "wanted": limit, "measured": measured, "unit": unit, "met": reached}
