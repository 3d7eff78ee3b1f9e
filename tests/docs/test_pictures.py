"""The pictures of the documentation show what the package computes."""

import math
import re
import sys
from pathlib import Path

import pytest

pytest.importorskip("matplotlib")

ROOT = Path(__file__).resolve().parents[2]


def texts(name):
    return re.findall(r"<text [^>]*>([^<]*)</text>", (ROOT / "docs" / "pictures" / name).read_text(encoding="utf-8"))


def test_the_picture_of_unjudged_documents_has_the_scores_of_the_demo(monkeypatch):
    monkeypatch.setattr(sys, "path", [str(ROOT / "tests" / "golden"), *sys.path])
    from make_pictures import scores

    labels, result = scores()
    shown = texts("unjudged.svg")
    documents = ["unjudged" if math.isnan(label) else f"grade {label:.0f}" for label in labels]
    assert [text for text in shown if text in {"unjudged", "grade 0", "grade 1", "grade 2"}] == documents
    values = [f"{value:.2f}" for value, *_ in result.values()]
    assert [text for text in shown if re.fullmatch(r"\d\.\d\d", text)] == values
    # Readers of the start page without the picture get the same numbers.
    page = (ROOT / "docs" / "start.md").read_text(encoding="utf-8")
    assert re.findall(r"(?:\d|)\.\d\d", re.search(r"!\[(Scores[^\]]*)\]", page)[1]) == [
        v.removeprefix("0") for v in values
    ]
    truth = result["with complete judgments"][0]
    for name in ("BNDCG: grades of the topic's own judgments", "ENDCG: grades that all runs suggest"):
        _, low, high = result[name]
        assert low <= truth <= high
