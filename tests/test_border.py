"""The border of the core: what runs with the packages of entities, linking and design deleted, and as with them."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import vbterrier

OPTIONAL = ("entities", "linking", "design")
DEMO = Path(vbterrier.__file__).parent / "demo"
# Each line is one call of the core over the files of the demo.
CALLS = """
import pandas as pd
import vbterrier as vb
from vbterrier.settings import Data, Inference

few = Inference(n_resamples=200)
runs, qrels = {"lexical": "lexical.run", "dense": "dense.run"}, "qrels.txt"
topics = vb.read_topics("topics.tsv")
frames = {name: vb.read_run(path) for name, path in runs.items()}
labels = vb.read_qrels("complete.txt")
tags = vb.read_tags("tags.tsv").groupby("docno")["entity_id"].agg(list).reset_index()
tagged = {name: run.merge(tags, on="docno") for name, run in frames.items()}
print(vb.score(runs, qrels, ["ENDCG@10", "BNDCG@10", "nDCG@10"]))
print(vb.score(runs, None, ["VB@10"], intents="intents.tsv", tags="tags.tsv").means())
print(vb.score({"gold": topics.assign(entity_id="Paris")}, topics.assign(entity_id="Paris"), ["LinkF1"]).means())
print(vb.compare(runs, qrels, ["ENDCG@10"], inference=few))
print(vb.Experiment(list(frames.values()), topics, vb.read_qrels(qrels), ["BNDCG@10", "ENDCG@10"], names=list(runs)))
print(vb.rank_systems(runs, qrels, "ENDCG@10"))
print(vb.evaluate.release_gate("lexical.run", qrels, "nDCG@10", baseline="dense.run", margin=0.2, inference=few))
print(vb.evaluate.leaderboard(runs, qrels, inference=Inference(n_draws=50)))
print(vb.evaluate.audit_judge(runs, qrels, labels={"llm": labels}))
print(vb.evaluate_intents(tagged, topics, ["VB@10"], intents=vb.read_intents("intents.tsv"), inference=few))
vb.write_report(runs, qrels, path=REPORT, inference=few)
"""
COMMANDS = """
score lexical.run dense.run -q qrels.txt
compare lexical.run dense.run -q qrels.txt
rank lexical.run dense.run -q qrels.txt
track lexical.run dense.run -q qrels.txt
gate lexical.run --baseline dense.run -q qrels.txt --margin 0.2
table lexical.run dense.run -q qrels.txt
"""


@pytest.fixture(scope="module")
def core(tmp_path_factory):
    """A copy of the package without the optional packages."""
    folder = tmp_path_factory.mktemp("core")
    ignored = shutil.ignore_patterns("__pycache__", *OPTIONAL)
    shutil.copytree(DEMO.parent, folder / "vbterrier", ignore=ignored)
    return folder


def output(root, *words):
    ours = {"PYTHONPATH": str(root), "PYTHONWARNINGS": "ignore", "PYTHONDONTWRITEBYTECODE": "1"}
    # Pages state the minute in which they are written.
    environment = {**os.environ, **ours, "SOURCE_DATE_EPOCH": "0"}
    done = subprocess.run(
        [sys.executable, *words], cwd=DEMO, env=environment, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.slow
def test_optional_packages_are_deleted(core):
    for name in OPTIONAL:
        code, _, text = output(core, "-c", f"import vbterrier.{name}")
        assert (code, f"No module named 'vbterrier.{name}'" in text) == (1, True)


@pytest.mark.slow
def test_calls_of_the_core_run_alone(core, tmp_path):
    page, results = tmp_path / "report.html", []
    for root in (DEMO.parents[1], core):
        results.append((*output(root, "-c", f"REPORT = {str(page)!r}\n{CALLS}"), page.read_text(encoding="utf-8")))
        page.unlink()
    whole, alone = results
    assert whole[0] == 0, whole[2]
    assert alone == whole


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS.strip().splitlines())
def test_commands_of_the_core_run_alone(core, command):
    alone = output(core, "-m", "vbterrier", *command.split())
    assert alone == output(DEMO.parents[1], "-m", "vbterrier", *command.split())
    assert alone[1], alone[2]
