"""How times grow with queries, depth, intents, grades and replicas: exponents of power laws."""

import tempfile
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd

from suite.engines import OURS, SCORE
from suite.synthetic import Collection, Shape
from suite.timing import alternating, median, slope
from suite.ways import Way
from vbterrier.kernels.resample import stream
from vbterrier.stats.matches import Matches, Statistic
from vbterrier.stats.perturbations import Dirichlet
from vbterrier.stats.replicas import replicate

N_QUERIES, N_INTENTS = 250, 8
# What grows, from where; the largest size says what the slope tells, as costs of each call fade.
QUERIES, DEPTHS = ("n_queries", (1000, 2000, 4000, 8000)), ("depth", (500, 1000, 2000, 4000, 8000))
SERIES = (
    *(("judged", measure, *grown) for measure in ("ENDCG@10", "nDCG@10") for grown in (QUERIES, DEPTHS)),
    ("judged", "ENDCG@10", "n_grades", (2, 4, 8, 16)),
    *(("intents", "VB@10", *grown) for grown in (QUERIES, DEPTHS)),
    ("intents", "VB@10", "n_intents", (4, 8, 16, 32)),
)
REPLICAS = (500, 1000, 2000, 4000)


def growth(rounds, *, seed=0, notify=lambda _: None):
    """A record for each series: ``task``, ``by``, ``sizes``, median seconds on processors, ``slope``.

    A slope of 1 is linear. Where other than the depth grows, queries have 250 documents, so that what is measured does
    not hide behind reading rows.
    """
    results = []
    for kind, measure, by, sizes in SERIES:
        notify(f"growth of {measure} with {by}")
        with tempfile.TemporaryDirectory(prefix="vbterrier-bench-") as folder:
            base = Shape(kind, N_QUERIES, 250, seed=seed)
            way = Way(SCORE if kind == "judged" else OURS, measure, kind)
            calls = {size: way.ready(Collection(replace(base, **{by: size}), folder)) for size in sizes}
            results.append(_grown(measure, by, calls, rounds))
    notify("growth of replicas")
    collection = replicated(seed=seed)
    results.append(_grown("VB@10 replicas", "n_replicas", {n: partial(collection, n) for n in REPLICAS}, rounds))
    return results


def _grown(task, by, calls, rounds):
    times, failed = alternating({str(size): call for size, call in calls.items()}, rounds)
    if failed:
        raise RuntimeError(f"{task} by {by}: {failed}")
    seconds = [median(times[str(size)].cpu) for size in calls]
    return {"task": task, "by": by, "sizes": list(calls), "cpu": seconds, "slope": slope(list(calls), seconds)}


def replicated(*, seed=0):
    """A call that draws as many Dirichlet replicas of VB@10 on 250 queries with 8 intents as it is told to."""
    draw = stream(seed, "replicas")
    frame = pd.DataFrame(
        {
            "qid": np.repeat([f"q{topic}" for topic in range(N_QUERIES)], N_INTENTS),
            "entity_id": [f"e{place}" for place in range(N_INTENTS)] * N_QUERIES,
            "prob": draw.dirichlet(np.ones(N_INTENTS), N_QUERIES).ravel(),
        }
    )
    served = np.sort(draw.choice(len(frame), 3 * len(frame) // 4, replace=False))
    docno = [f"d{number}" for number in range(served.size)]
    matches = {"a": Matches(served, draw.integers(0, 10, served.size), docno=docno)}
    return lambda n: replicate(frame, matches, [Dirichlet(10)], [Statistic("VB", 10)], n_replicas=n, seed=seed)
