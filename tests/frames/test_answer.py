"""Answers: the same verdict, caveats and next step in every output; calls that run as printed."""

import json
import warnings
from pathlib import Path

import pytest

import vbterrier
from vbterrier.demo import demo_folder
from vbterrier.errors import DegenerateWarning
from vbterrier.evaluate import release_gate
from vbterrier.frames.answer import Answer, Caveat, Finding, counted_caveats

RUNS = [str(demo_folder() / f"{name}.run") for name in ("lexical", "dense")]
QRELS = str(demo_folder() / "qrels.txt")
EVIL = "<b>\x1b[31m"


@pytest.fixture(scope="module")
def gate():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return release_gate(RUNS[1], QRELS, "nDCG@10", baseline=[RUNS[0]], margin=0.02)


def test_every_output_has_the_verdict_and_each_caveat_once(gate):
    answer = gate.answer()
    assert [caveat.text for caveat in answer.caveats] == [
        "nDCG@10 treats unjudged documents as non-relevant: 31.7% of dense; use ENDCG@10, or judge them."
    ]
    for text in (str(gate), gate.page(), gate._repr_html_()):
        assert text.count(answer.verdict) == 1
        assert text.count(answer.caveats[0].text) == 1
    assert json.loads(answer.json())["verdict"] == answer.verdict


def test_notebooks_mark_serious_caveats():
    table = vbterrier.compare(RUNS, QRELS, "nDCG@10")
    assert table._repr_html_().count("<li><strong>Serious caveat:</strong> Unjudged documents: ") == 1
    assert "Serious" not in vbterrier.compare(RUNS, QRELS, "BNDCG@10")._repr_html_()


def test_a_call_runs_as_it_is_printed(gate):
    answer = gate.answer()
    with pytest.warns(DegenerateWarning):
        again = eval(answer.made_by, {"vbterrier": vbterrier})
    assert again.answer() == answer
    scores = vbterrier.score(RUNS, QRELS, ["nDCG@10"], inference=vbterrier.Inference(level=0.9))
    assert scores.answer().next == f"vbterrier.compare({RUNS}, {QRELS!r}, ['nDCG@10'])"
    compared = eval(scores.answer().next, {"vbterrier": vbterrier})
    assert compared.pairs["measure"].tolist() == ["nDCG@10"]


def test_arguments_without_a_short_text_have_names():
    frames = {"a": vbterrier.read_run(RUNS[0]), "b": vbterrier.read_run(RUNS[1])}
    comparison = vbterrier.compare(frames, vbterrier.read_qrels(QRELS), "nDCG@10", baseline="a")
    assert comparison.answer().made_by == "vbterrier.compare(runs, qrels, 'nDCG@10', baseline='a')"


def test_results_keep_the_warnings_of_their_own_call_alone(gate):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        other = vbterrier.score(RUNS, QRELS, ["nDCG@10"])
    assert not [one for one in other.answer().caveats if one.about == "Warning"]
    assert [one.about for one in gate.answer().caveats] == ["Warning"]


def test_equal_caveats_are_counted_and_serious_ones_come_first():
    caveats = [Caveat("A", "Two  runs.", serious=False), Caveat("B", "More.", serious=True)]
    told = counted_caveats([*caveats, Caveat("A", "two runs", serious=True)])
    assert [(one.text, one.n, one.serious) for one in told] == [("Two  runs.", 2, True), ("More.", 1, True)]
    assert told[0].line() == "A: Two  runs. (2 times)"


def test_texts_of_an_answer_are_escaped():
    parts = {"reason": EVIL, "next": EVIL, "caveats": (Caveat(EVIL, EVIL, False),), "decision": "FAIL"}
    answer = Answer(EVIL, evidence=(Finding(EVIL, EVIL, EVIL),), **parts)
    assert "\x1b" not in answer.head() + answer.foot() + answer.html()
    assert "<b>" not in answer.html()
    assert "✗ " in answer.html()
    assert (str(answer), answer._repr_html_()) == (f"{answer.head()}\n{answer.foot()}", answer.html())
    # A long call does not widen a notebook.
    assert "overflow-wrap: anywhere" in answer.html()


def test_record_has_the_documented_keys(gate):
    page = (Path(__file__).parents[2] / "docs" / "reference" / "answer.md").read_text(encoding="utf-8")
    documented = [line.split("`")[1] for line in page.splitlines() if line.startswith("| `")]
    assert list(gate.answer().record()) == documented
