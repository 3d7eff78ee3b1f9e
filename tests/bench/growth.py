"""Growth of CPU time and memory, and the parts of the cost of a billion rows.

``python tests/bench/growth.py docs/developers/growth.json``. Every size is measured in a separate process: the peak of
memory of the first call on its data, after a call on small data, and the median CPU seconds of three more. Slopes are
those of a line through logarithms, with the standard error of least squares. Writes the JSON of the figure and prints
the tables of docs/developers/growth.md. ``growth.py docs/developers/growth.json many`` replaces the rows of many
systems alone, which are one call each.
"""

import json
import subprocess
import sys
import tempfile
from datetime import datetime, timezone
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from suite import synthetic
from suite.memory import peak_above
from suite.synthetic import Collection, Shape
from suite.timing import Times, median, processor_seconds, slope

import vbterrier
from vbterrier.entities import link_pool
from vbterrier.execution.parallel import map_items
from vbterrier.kernels.resample import stream
from vbterrier.settings import Inference

ROUNDS = 3


def collection(kind="judged", **shape):
    frames = Shape(kind, **{"n_queries": 250, "depth": 250} | shape).made()
    return frames["run"], frames["qrels"]


def scored(measure, kind="judged", **shape):
    run, qrels = collection(kind, **shape)
    return partial(vbterrier.score, {"mine": run}, qrels, [measure])


def systems(call, measure, n_systems):
    run, qrels = collection(n_queries=100, depth=100)
    draw = stream(0, "systems")
    noisy = {f"s{n}": run.assign(score=run["score"] + draw.normal(0, 1, len(run))) for n in range(n_systems)}
    return partial(call, noisy, qrels, measure)


def unjudged(measure, n_unjudged, depth=100):
    """All but so many of the first ``depth`` documents of each topic are judged."""
    run, _ = collection(depth=depth)
    draw = stream(0, "unjudged")
    hidden = np.argsort(draw.random((250, depth)), axis=1) < n_unjudged
    qrels = run[["qid", "docno"]].assign(label=draw.integers(0, 4, len(run)))[~hidden.ravel()]
    return partial(vbterrier.score, {"mine": run}, qrels, [measure])


def links(n_links, *, join):
    synthetic.N_MENTIONS = n_links // (250 * synthetic.N_POOLED)
    run, linked = collection("entities", depth=2000)
    if not join:
        return partial(vbterrier.score, {"mine": run}, linked, ["RelCov@20"])
    pool = linked[["qid", "docno", "rank"]].drop_duplicates().assign(score=lambda rows: -rows["rank"].astype(float))
    qrels = linked[["qid", "docno", "label"]].drop_duplicates()
    return partial(link_pool, pool, linked[["docno", "entity_id"]].drop_duplicates(), qrels)


BY_10, POOL = "ENDCG@10", "BNDCG(prior='pool')@10"
DEPTHS, TOPICS, SYSTEMS = (500, 1000, 2000, 4000, 8000), (500, 1000, 2000, 4000, 8000), (4, 8, 16, 32, 64)
# What is called, what grows, sizes, the unit of a size in what is grown (250 topics a document of depth), and the call.
SERIES = {
    ("score nDCG@10", "rows"): (DEPTHS, 250, lambda n: scored("nDCG@10", depth=n)),
    ("score ENDCG@10", "rows"): (DEPTHS, 250, lambda n: scored(BY_10, depth=n)),
    ("score AP", "rows"): (DEPTHS[:4], 250, lambda n: scored("AP", depth=n)),
    ("score nDCG@10", "topics"): (TOPICS, 1, lambda n: scored("nDCG@10", n_queries=n)),
    ("score ENDCG@10", "topics"): (TOPICS[:4], 1, lambda n: scored(BY_10, n_queries=n)),
    ("score BNDCG(prior='pool')@10", "topics"): (TOPICS, 1, lambda n: scored(POOL, n_queries=n)),
    ("score ES@10", "topics"): (TOPICS, 1, lambda n: scored("ES@10", "intents", n_queries=n)),
    ("score nDCG@10", "systems"): (SYSTEMS, 1, lambda n: systems(vbterrier.score, ["nDCG@10"], n)),
    ("score ENDCG@10", "systems"): (SYSTEMS[:4], 1, lambda n: systems(vbterrier.score, [BY_10], n)),
    ("compare nDCG@10", "systems"): (SYSTEMS, 1, lambda n: systems(vbterrier.compare, ["nDCG@10"], n)),
    ("rank_systems ENDCG@10", "systems"): (SYSTEMS[:4], 1, lambda n: systems(vbterrier.rank_systems, BY_10, n)),
    ("score ENDCG@10", "grades"): ((2, 4, 8, 16), 1, lambda n: scored(BY_10, n_grades=n)),
    ("score BNDCG(prior='pool')@10", "grades"): ((2, 4, 8, 16), 1, lambda n: scored(POOL, n_grades=n)),
    ("score ENDCG@10", "unjudged"): ((5, 10, 20, 40, 80), 1, lambda n: unjudged(BY_10, n)),
    ("score BNDCG(prior='pool',stat='median')@10", "unjudged"): (
        (1, 2, 4, 8), 1, lambda n: unjudged("BNDCG(prior='pool',stat='median')@10", n, 10),
    ),
    ("score RelCov@20", "links"): ((62500, 125000, 250000, 500000, 1000000), 1, lambda n: links(n, join=False)),
    ("link_pool", "links"): ((62500, 125000, 250000, 500000, 1000000), 1, lambda n: links(n, join=True)),
}  # fmt: skip


def one(name, by, size):
    """The peak and the seconds of one size, in this process."""
    sizes, _, made = SERIES[name, by]
    made(sizes[0])()
    call, times = made(size), Times()
    peak = peak_above(call)
    for _ in range(ROUNDS):
        times.take(call)
    return {"cpu": median(times.cpu), "peak": peak}


# Calls of many systems on 100 topics by 100 documents, and their sizes.
MANY_SYSTEMS = (300, 600, 1000)
MANY = (
    ("compare", ["nDCG@10"]),
    ("leaderboard", "nDCG@10"),
    ("rank_systems", BY_10),
    ("rank_systems", "BNDCG@10"),
)
CALLS = {
    "compare": vbterrier.compare,
    "leaderboard": vbterrier.evaluate.leaderboard,
    "rank_systems": vbterrier.rank_systems,
}


def many(call, measure, n_systems):
    """The peak and the seconds of one call of many systems, in this process, after a call of four."""
    function = CALLS[call]
    systems(function, measure, 4)()
    made = systems(function, measure, n_systems)
    before = processor_seconds()
    peak = peak_above(made)
    return {"cpu": processor_seconds() - before, "peak": peak}


def many_systems():
    """A record for each call and number of systems, each in a separate process."""
    results = []
    for call, measure in MANY:
        for n_systems in MANY_SYSTEMS:
            command = [sys.executable, __file__, "many", call, json.dumps(measure), str(n_systems)]
            done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
            name = measure if isinstance(measure, str) else measure[0]
            results.append({"call": f"{call} {name}", "systems": n_systems} | json.loads(done.stdout))
            print(results[-1], file=sys.stderr, flush=True)
    return results


def fitted(sizes, values):
    """The slope of the logarithms, and its standard error."""
    b, x = slope(sizes, values), np.log(sizes) - np.mean(np.log(sizes))
    y = np.log(np.maximum(values, 1e-6))
    residual = y - y.mean() - b * x
    return b, float(np.sqrt((residual**2).sum() / (len(x) - 2) / (x**2).sum()))


def grown():
    results = []
    for (name, by), (sizes, unit, _) in SERIES.items():
        print(f"{name} by {by}", file=sys.stderr, flush=True)
        command = [sys.executable, __file__, name, by]
        done = [subprocess.run([*command, str(size)], stdout=subprocess.PIPE, check=True) for size in sizes]
        points = [json.loads(each.stdout) for each in done]
        real = [size * unit for size in sizes]
        record = {"call": name, "by": by, "sizes": real}
        for key in ("cpu", "peak"):
            values = [point[key] for point in points]
            record |= {key: values, f"{key}_slope": fitted(real, values)}
        results.append(record)
    return results


def square(number):
    return number * number


def parts(n_queries=2000, depth=1000, n_tasks=1000):
    """CPU seconds of a million rows read and scored, and of the scheduler and caller for a task; bytes of a row."""
    import distributed

    results = {}
    with tempfile.TemporaryDirectory() as folder:
        made = Collection(Shape("judged", n_queries, depth, ids="clueweb"), folder)
        made.keep()
        path, n = Path(folder) / "run.parquet", n_queries * depth / 1e6
        calls = {"read": lambda: vbterrier.read_run(path)}
        for measure in ("nDCG@10", POOL, "AP"):
            calls[measure] = partial(
                vbterrier.score,
                {"mine": made.frames["run"]},
                made.frames["qrels"],
                [measure],
                inference=Inference(interval="normal"),
            )
        for name, call in calls.items():
            call()
            times = Times()
            for _ in range(ROUNDS):
                times.take(call)
            results[name] = [seconds / n for seconds in times.cpu]
        results["bytes"] = path.stat().st_size / n / 1e6
    # The scheduler is a thread of this process.
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0") as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        list(map_items(square, range(10), client=client))
        results["task"] = []
        for _ in range(ROUNDS):
            before = processor_seconds()
            list(map_items(square, range(n_tasks), client=client))
            results["task"].append((processor_seconds() - before) / n_tasks)
    return results


def number(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.2g}"


def tables(document):
    head = ["call", "by", "sizes", "CPU s", "slope ± SE", "peak MiB", "slope ± SE"]
    lines = [head, [":---"] * len(head)]
    for one_ in document["growth"]:
        cells = [f"`{one_['call']}`", one_["by"], f"{one_['sizes'][0]:,} to {one_['sizes'][-1]:,}"]
        for key in ("cpu", "peak"):
            b, error = one_[f"{key}_slope"]
            cells += [f"{number(one_[key][0])} to {number(one_[key][-1])}", f"{b:.2f} ± {error:.2f}"]
        lines.append(cells)
    lines += [[], ["part", "least", "most"], [":---"] * 3]
    for name, values in document["parts"].items():
        lines.append([name, f"{np.min(values):.2g}", f"{np.max(values):.2g}"])
    return "\n".join(f"| {' | '.join(line)} |" if line else "" for line in lines)


if __name__ == "__main__":
    if sys.argv[1] == "many":
        print(json.dumps(many(sys.argv[2], json.loads(sys.argv[3]), int(sys.argv[4]))))
    elif sys.argv[2:] == ["many"]:
        result = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")) | {"many": many_systems()}
        Path(sys.argv[1]).write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    elif len(sys.argv) == 4:
        print(json.dumps(one(sys.argv[1], sys.argv[2], int(sys.argv[3]))))
    else:
        now = datetime.now(timezone.utc).isoformat(timespec="seconds")
        versions = {"python": sys.version.split()[0], "numpy": np.__version__, "pandas": pd.__version__}
        result = {"made": now, "versions": versions, "growth": grown(), "parts": parts(), "many": many_systems()}
        Path(sys.argv[1]).write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
        print(tables(result))
