"""Files that commands write: never one of their inputs, and no two outputs in one file."""

import shutil

import pytest

from vbterrier.demo import copy_demo

SCORE = ["score", "lexical.run", "-q", "qrels.txt", "-m"]
GATE = ["gate", "dense.run", "--baseline", "lexical.run", "-q", "qrels.txt", "--margin", ".1"]
REFUSED = {
    "report": ["report", "lexical.run", "-q", "qrels.html", "-o", "qrels.html"],
    "score": [*SCORE, "P@1", "-o", "qrels.txt"],
    "score, a link": [*SCORE, "P@1", "-o", "link.txt"],
    "score, labels": [*SCORE, "P@1", "--labels", "llm=q2.txt", "-o", "q2.txt"],
    "score, intents of a measure": [*SCORE, "ES(intents='q2.txt')@1", "-o", "q2.txt"],
    "caption": ["score", "a.caption.txt", "-q", "qrels.txt", "-m", "P@1", "-o", "a.csv"],
    "compare": ["compare", "lexical.run", "dense.run", "-q", "qrels.txt", "-o", "qrels.txt"],
    "rank": ["rank", "lexical.run", "dense.run", "-q", "qrels.txt", "-m", "BNDCG@10", "-o", "qrels.txt"],
    "doctor": ["doctor", "lexical.run", "-q", "qrels.html", "--html", "qrels.html"],
    "gate": [*GATE, "-o", "qrels.txt"],
    "gate, judge": [*GATE, "--judge", "lexical.run"],
    "judge": ["judge", "lexical.run", "-q", "qrels.txt", "-n", "3", "-o", "qrels.txt"],
    "audit": ["audit", "lexical.run", "-q", "qrels.txt", "-j", "llm=q2.txt", "--show", "systems", "-o", "q2.txt"],
    "convert": ["convert", "qrels.txt", "--kind", "qrels", "--to", "beir", "-o", "./qrels.txt"],
    "gate, two outputs": [*GATE, "-o", "new.txt", "--judge", "./new.txt"],
    "page": ["doctor", "lexical.run", "-q", "qrels.txt", "--html", "page.txt"],
}


@pytest.mark.parametrize("case", REFUSED)
def test_no_command_writes_over_an_input(refused, tmp_path, monkeypatch, case):
    copy_demo(tmp_path)
    monkeypatch.chdir(tmp_path)
    for copy in ("qrels.html", "q2.txt"):
        shutil.copy("qrels.txt", copy)
    shutil.copy("lexical.run", "a.caption.txt")
    (tmp_path / "link.txt").symlink_to("qrels.txt")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    words = {"gate, two outputs": "two outputs", "page": "ends in .html"}.get(case, "is an input, which would be lost")
    refused(REFUSED[case], 1 if "gate" in case else 2, words)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_an_earlier_output_is_replaced(command, tmp_path, monkeypatch):
    copy_demo(tmp_path)
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        assert command("score", "lexical.run", "-q", "qrels.txt", "-m", "P@1", "-o", "a.csv")[0] == 0
    assert (tmp_path / "a.csv").read_text().startswith("name,")
