"""Pages of results: verdict, caveats, contents, and tables with intervals in one column."""

import re
from collections.abc import Iterator

import pandas as pd
import pytest

from vbterrier.evaluate import leaderboard, release_gate
from vbterrier.evaluate.doctor import diagnose
from vbterrier.frames.answer import Caveat
from vbterrier.frames.notebook import Panel
from vbterrier.frames.results import Shown
from vbterrier.settings import Inference


class Result(Shown):
    """A result with all parts of a page."""

    def _line(self) -> str:
        return "two systems"

    def _verdict(self) -> Iterator[str]:
        yield "<b>a</b> is better."
        yield "By a little."

    def _caveats(self) -> Iterator[Caveat]:
        yield Caveat("Topics", "Only & few.", serious=False)
        yield Caveat("Judgments", "None.", serious=True)

    def _panels(self) -> Iterator[Panel]:
        ends = {"low": [0.1, 0.2], "high": [0.3, 0.4]}
        frame = pd.DataFrame({"name": ["a", "b"], "value": [0.2, 0.3], **ends, "n_qids": 50, "level": 0.9, "seed": 7})
        yield Panel("Means", frame, value="value")
        yield Panel("More", pd.DataFrame({"name_a": ["a"], "p_adjusted": [0.5]}), folded=True)


def headings(page):
    """The titles of the columns of each table."""
    tables = re.findall(r"<thead>(.*?)</thead>", page, re.DOTALL)
    return [re.findall(r"<th[^>]*>(.*?)</th>", table) for table in tables]


@pytest.fixture(scope="module")
def page():
    return Result().page()


def test_a_page_says_the_verdict_first_and_then_the_caveats_by_severity(page):
    words = (
        'class="lead">&lt;b&gt;a&lt;/b&gt; is better.',
        "By a little.",
        "1 serious caveat",
        "1 other caveat",
        ">Means</h2>",
    )
    places = [page.index(word) for word in words]
    assert places == sorted(places)
    assert re.search(r'<details class="caveats serious" open>\s*<summary>1 serious caveat</summary>', page)
    assert "Only &amp; few." in page
    assert "two systems" not in page


def test_a_page_has_contents_and_sections_of_the_same_tables(page):
    links = re.findall(r'<li><a href="#([\w-]+)">(.*?)</a>', page)
    assert links == [("means", "Means"), ("more", "Details")]
    assert all(f'<section id="{part}"' in page for part, _ in links)
    assert page.count("<details id=") == 1


def test_columns_have_names_of_people_and_intervals_are_one_column(page):
    assert headings(page) == [["system", "value", "interval", ""], ["a", "adjusted p"]]
    assert ">0.1000 to 0.3000</td>" in page
    assert page.count("<svg") == 2
    # The values of the method that all rows share are a sentence.
    assert '<p class="note">50 topics. 90% intervals, seed 7.</p>' in page


def test_only_the_script_of_the_package_runs(page):
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1]
    assert "default-src 'none'" in policy
    assert policy.count("sha256-") == 2
    assert page.count("<script") == 1


def test_a_diagnosis_names_the_measures_to_use_and_notes_by_severity():
    qrels = pd.DataFrame({"qid": "q1", "docno": ["a", "b"], "label": [1, 0]})
    run = pd.DataFrame({"qid": "q1", "docno": ["a", "c"], "score": [2.0, 1.0]})
    diagnosis = diagnose({"mine": run, "other": run.assign(docno=["c", "d"])}, qrels)
    assert list(diagnosis._verdict()) == [
        (
            "50.0% (mine) to 100.0% (other) of the first 10 documents are unjudged: compare by ENDCG@10, with all runs "
            "in one call, and report BNDCG@10 and Unjudged@10 beside nDCG@10."
        )
    ]
    judged = diagnose({"mine": run.head(1)}, qrels)
    assert list(judged._verdict()) == ["The first 10 documents of all runs are judged: nDCG@10 needs no estimate."]
    positive = diagnose({"mine": run}, qrels[qrels["label"] > 0])
    assert list(positive._verdict()) == [
        (
            "50.0% of the first 10 documents are unjudged, and their relevance cannot be estimated without judged "
            "non-relevant documents: report RR@10 and nDCG@10 with NDCGBound@10 and Unjudged@10."
        )
    ]
    assert {(caveat.about, caveat.serious) for caveat in diagnosis._caveats()} <= {
        ("Judgments", False),
        ("Run 'mine'", False),
    }
    nothing = diagnose({"mine": run.assign(qid="q9")}, qrels)
    assert list(nothing._verdict()) == ["These files support no measure: runs and qrels share no topic or id."]


def test_a_serious_note_is_a_serious_caveat(demo_files):
    runs = [demo_files / f"{name}.run" for name in ("lexical", "dense", "words")]
    diagnosis = diagnose(runs, demo_files / "qrels.txt")
    serious = [caveat.text for caveat in diagnosis._caveats() if caveat.serious]
    assert serious[0].endswith(
        "and the share falls after rank 9; measures with larger cutoffs, and AP, depend on estimates."
    )
    assert len(serious) == len(diagnosis.serious) == 2 < len(diagnosis.notes)


def test_a_track_and_a_gate_begin_with_their_answer(demo_files):
    runs = [demo_files / f"{name}.run" for name in ("lexical", "dense", "words")]
    table = leaderboard(runs, demo_files / "qrels.txt", "ENDCG@10", inference=Inference(n_draws=50))
    first, second, third = table._verdict()
    assert first.startswith("lexical leads with a mean ENDCG@10 (nDCG@10, judged to depth 10) of 0.738 (0.6")
    assert first.endswith(" over 12 topics, from which 2 systems do not differ significantly: dense, words.")
    assert second == "No pair of systems differs significantly; 90% confidence for all together."
    assert (
        third
        == "Complete judgments of these topics would not separate the leader from any of these: that takes more topics."
    )
    (caveat,) = table._caveats()
    assert caveat.text.endswith("unjudged for 1 of 3 systems, at most 32% (dense).")
    decision = release_gate(runs[0], demo_files / "qrels.txt", "nDCG@10", baseline=[runs[2]], margin=0.5)
    assert next(iter(decision._verdict())).startswith(
        "UNKNOWN: 12 queries do not show whether lexical is at most 0.5 worse than words by nDCG@10: mean difference +"
    )
    assert decision.guarantee() in list(decision._verdict())
    assert "advice" not in headings(decision.page())[0]


def test_tracks_and_gates_are_drawn(demo_files):
    pytest.importorskip("matplotlib")
    runs = [demo_files / f"{name}.run" for name in ("lexical", "words")]
    table = leaderboard(runs, demo_files / "qrels.txt", "nDCG@10", inference=Inference(n_draws=50))
    assert [text.get_text() for text in table.plot().get_yticklabels()] == ["lexical", "words"]
    assert table.plot("rank_uncertainty").get_xlabel() == "rank"
    decision = release_gate(runs[0], demo_files / "qrels.txt", "nDCG@10", baseline=[runs[1]], margin=0.5)
    assert [text.get_text() for text in decision.plot().get_yticklabels()] == ["lexical - words"]
