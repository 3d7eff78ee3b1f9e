"""What tests of the measures share: real runs, and a Python process of its own."""

import gzip
import itertools
import json
import math
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
from one_topic import RENAMED, values

import vbterrier


@pytest.fixture(scope="session")
def theirs():
    """A frame of ours with the columns of ir_measures."""
    return lambda frame: frame.rename(columns=RENAMED)


def ends(distribution, level=0.9):
    """The smallest and the largest score whose mid-probability is within the level; the median where none is."""
    reached, within = 0.0, []
    for value, chance in distribution.items():
        if (1 - level) / 2 - 1e-12 <= reached + chance / 2 <= (1 + level) / 2 + 1e-12:
            within.append(value)
        reached += chance
    return (min(within), max(within)) if within else (statistic(distribution, "median"),) * 2


def statistic(outcome, stat):
    mean = sum(value * chance for value, chance in outcome.items())
    if stat == "mean":
        return mean
    if stat == "std":
        return math.sqrt(sum((value - mean) ** 2 * chance for value, chance in outcome.items()))
    if stat == "mode":
        most = max(outcome.values())
        return max(value for value, chance in outcome.items() if chance >= most - 1e-12)
    if stat in ("lo", "hi"):
        return ends(outcome)[stat == "hi"]
    level = 0.5 if stat == "median" else float(stat[1:]) / 100
    reached = itertools.accumulate(outcome.values())
    return next((v for v, c in zip(outcome, reached, strict=True) if c >= level - 1e-12), max(outcome))


@pytest.fixture(scope="session")
def by_hand():
    """Statistics of a distribution, {score: probability} with rising scores, from their definitions."""
    return SimpleNamespace(ends=ends, statistic=statistic)


@pytest.fixture(scope="session")
def values_of():
    """Values of one measure by topic, through ir_measures and from frames of ours."""
    return values


@pytest.fixture(scope="session")
def python():
    """Run code in a process of its own and read the JSON that it prints last."""

    def run(code, *args, path=(), **env):
        root = Path(vbterrier.__file__).resolve().parents[1]
        made = {**os.environ, "PYTHONPATH": os.pathsep.join([*map(str, path), str(root)]), **env}
        done = subprocess.run(
            [sys.executable, "-c", code, *map(str, args)], env=made, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    return run


@pytest.fixture(scope="session")
def covid(shared_data):
    """TREC-COVID: two real runs, the judgments they were pooled with, and those completed afterwards."""
    folder = shared_data / "trec-covid"
    with gzip.open(folder / "expected.ance.json.gz", "rt") as file:
        expected = json.load(file)["ance"]
    return SimpleNamespace(
        incomplete=vbterrier.read_qrels(folder / "qrels.incomplete.txt.gz"),
        complete=vbterrier.read_qrels(folder / "qrels.complete.txt.gz"),
        runs={name: vbterrier.read_run(folder / f"run.{name}.top100.txt.gz") for name in ("ance", "BBGhelani2")},
        expected=expected,
    )


@pytest.fixture(scope="session")
def web(shared_data):
    """TREC Web 2012: diversity judgments and one run."""
    folder = shared_data / "trec_web_diversity"
    qrels = vbterrier.read_qrels(folder / "qrels.2012.diversity.gz")
    return SimpleNamespace(
        qrels=qrels,
        run=vbterrier.read_run(folder / "runs" / "indri-rm-cata-filtered.2012.run.gz"),
        topics=pd.DataFrame({"qid": qrels["qid"].unique(), "query": "a query"}),
    )
