"""The targets: how many times faster than others, how much time and memory at most; measured in the same run."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from suite.engines import IR_MEASURES, OURS, SCORE
from suite.growth import replicated
from suite.memory import peaks
from suite.pairs import POOL, commands, experiments, five_systems, readings
from suite.synthetic import Collection, Shape
from suite.timing import alternating, median, ratio
from suite.ways import way_named
from vbterrier.kernels.resample import stream

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from suite.timing import Times

LARGE = 1000


@dataclass(frozen=True)
class Faster:
    """A way of ours that is at least so many times faster than a peer's; twice for small and large collections."""

    ours: str
    theirs: str
    small: float
    large: float
    text: str = "str"

    def wanted(self, n_queries: int) -> float:
        """The ratio at a size."""
        return self.large if n_queries >= LARGE else self.small


_NDCG, _ALPHA = f"{IR_MEASURES} nDCG@10", f"{IR_MEASURES} alpha_nDCG@10"
_OURS = (f"{SCORE} nDCG@10", f"{SCORE} {POOL}", f"{OURS} {POOL}")
FASTER = (
    *(Faster(ours, _NDCG, 45, large) for ours, large in zip(_OURS, (80, 50, 50), strict=True)),
    *(Faster(ours, _NDCG, 20, large, "object") for ours, large in zip(_OURS, (30, 25, 25), strict=True)),
    *(Faster(ours, "pytrec_eval ndcg_cut_10", 4, 10) for ours in _OURS),
    *(Faster(f"{tool} {measure}", _ALPHA, 60, 60) for tool in (OURS, SCORE) for measure in ("ES@10", "VB@10")),
    Faster(f"{SCORE} RelCov@20", f"{IR_MEASURES} R@20", 30, 30),
)
PEAK_MIB = 250
REPLICAS_SECONDS, BOOTSTRAP_SECONDS = 0.1, 1.5
TIMES_ARROW, TIMES_ONE_SYSTEM, TIMES_EXPERIMENT = 1.3, 3.0, 1.1
FILE_SECONDS = 1.5
N_REPLICAS, N_RESAMPLES, N_TOPICS, N_COLUMNS = 1000, 10_000, 6980, 40


def met(
    sizes: Sequence[tuple[int, int]],
    timings: list[dict[str, Any]],
    rounds: int,
    *,
    seed: int = 0,
    said: Callable[[str], object] = lambda _: None,
) -> list[dict[str, Any]]:
    """A record for each target and size: ``goal``, ``wanted``, ``measured`` (median, low, high), ``unit``, ``met``.

    Ratios are of seconds on processors, that of five systems on the wall. Those of frames with pandas' strings are
    read off the timings.
    """
    found: list[dict[str, Any]] = []
    for n_queries, depth in sizes:
        said(f"targets at {n_queries:,} x {depth:,}")
        where = f"{n_queries:,} x {depth:,}"
        objects = of_objects(n_queries, depth, rounds, seed=seed)
        by_name = {
            row["way"]: row for row in timings if (row["n_queries"], row["source"]) == (n_queries, "memory")
        }  # fmt: skip
        found += _of_ways(by_name, objects, n_queries, where)
        found += _of_collection(Shape("judged", n_queries, depth, seed=seed), rounds)
    said("targets of replicas and resamples")
    return [*found, *_of_statistics(rounds, seed=seed)]


def _of_ways(
    by_name: Mapping[str, Any], objects: Mapping[str, Any], n_queries: int, where: str
) -> list[dict[str, Any]]:
    """How many times faster our ways are, of those that were timed beside their peers."""
    found = []
    for target in FASTER:
        rows = by_name if target.text == "str" else objects
        if target.ours in rows and target.theirs in rows:
            columns = ", object columns" if target.text == "object" else ""
            goal = f"{target.ours} against {target.theirs}{columns}, {where}"
            measured = ratio(rows[target.theirs]["cpu"], rows[target.ours]["cpu"])
            found.append(_record(goal, target.wanted(n_queries), measured, "times faster", at_least=True))
    return found


def of_objects(n_queries: int, depth: int, rounds: int, *, seed: int = 0) -> dict[str, dict[str, list[float]]]:
    """Times on frames that hold ids as objects."""
    shape = Shape("judged", n_queries, depth, text="object", seed=seed)
    with tempfile.TemporaryDirectory(prefix="vbterrier-bench-") as folder:
        collection = Collection(shape, folder)
        named = [way_named(name) for name in (*_OURS, _NDCG)]
        times, _ = alternating({way.name: way.ready(collection) for way in named}, rounds)
    return {name: {"cpu": took.cpu} for name, took in times.items()}


def _of_collection(shape: Shape, rounds: int) -> list[dict[str, Any]]:
    """Reading, files to scores, several systems, pt.Experiment and memory on one collection."""
    where = f"{shape.n_queries:,} x {shape.depth:,}"
    with tempfile.TemporaryDirectory(prefix="vbterrier-bench-") as folder:
        collection = Collection(shape, folder)
        collection.keep()
        found = []
        for goal, wanted, calls, clock in (
            ("reading a run against bare pyarrow", TIMES_ARROW, readings(collection), "cpu"),
            (
                f"score, {POOL}, five systems against one on the wall",
                TIMES_ONE_SYSTEM,
                five_systems(collection),
                "wall",
            ),
            (f"pt.Experiment, nDCG@10 and {POOL} against nDCG@10", TIMES_EXPERIMENT, experiments(collection), "cpu"),
        ):
            measured = _measured(*alternating(calls, rounds), clock)
            found.append(_record(f"{goal}, {where}", wanted, measured, "times the time"))
        times, _ = alternating(commands(collection), rounds)
        if shape.n_queries >= LARGE:
            wall = _spread(times["ours"].wall)
            found.append(_record(f"file to nDCG@10, {where}", FILE_SECONDS, wall, "seconds on the wall"))
        way = f"{OURS} {POOL}"
        peak = peaks([way], collection, "memory")[way]
        if peak is not None:
            spread = dict.fromkeys(("median", "low", "high"), peak)
            found.append(_record(f"memory above the frames, {POOL}, {where}", PEAK_MIB, spread, "MiB"))
        return found


def _of_statistics(rounds: int, *, seed: int) -> list[dict[str, Any]]:
    from vbterrier.stats.topic_intervals import topics_intervals

    values = stream(seed, "values").random((N_TOPICS, N_COLUMNS))
    calls: dict[str, Callable[[], object]] = {
        "replicas": partial(replicated(seed=seed), N_REPLICAS),
        "bootstrap": partial(topics_intervals, values, n_resamples=N_RESAMPLES),
    }
    times, _ = alternating(calls, rounds)
    goals = (
        (f"{N_REPLICAS:,} Dirichlet replicas, 250 x 8", REPLICAS_SECONDS, "replicas"),
        (f"{N_RESAMPLES:,} resamples of {N_TOPICS:,} topics, {N_COLUMNS} columns", BOOTSTRAP_SECONDS, "bootstrap"),
    )
    return [_record(goal, wanted, _spread(times[name].cpu), "seconds") for goal, wanted, name in goals]


def _measured(times: dict[str, Times], failed: dict[str, str], clock: str) -> dict[str, float]:
    """The ratio of ours to the other, of seconds on processors (``"cpu"``) or on the wall (``"wall"``)."""
    if failed:
        return dict.fromkeys(("median", "low", "high"), float("nan"))
    return ratio(getattr(times["ours"], clock), getattr(times["other"], clock))


def _spread(seconds: list[float]) -> dict[str, float]:
    return {"median": median(seconds), "low": float(np.min(seconds)), "high": float(np.max(seconds))}


def _record(
    goal: str, wanted: float, measured: dict[str, float], unit: str, *, at_least: bool = False
) -> dict[str, Any]:
    middle = measured["median"]
    reached = bool(middle >= wanted if at_least else middle <= wanted)
    return {"goal": goal, "at_least": at_least, "wanted": wanted, "measured": measured, "unit": unit, "met": reached}
