import numpy as np
import pandas as pd
import pytest

from vbterrier import DegenerateWarning
from vbterrier.report.page.caveats import deciding


def about(page, what):
    return [caveat for caveat in page.caveats if caveat.about == what]


def test_two_systems_by_hand(written, small):
    runs, qrels = small
    page, text, _ = written(runs, qrels, ["nDCG@10", "BNDCG@10"], n_resamples=2000)
    # 1/log2(3) on every topic; of 2^10 flips, two are as far out.
    assert page.verdict[0].startswith(
        "By nDCG@10, first scores higher than second: 1.000 against 0.631, a difference of "
    )
    assert "0.369 (95% interval 0.369 to 0.369, p = 0.0020, 10 topics)." in page.verdict[0]
    assert page.verdict[0] in text
    assert "test, topic by topic: sign-flip randomisation" in text


def test_what_only_unjudged_documents_decide_is_said(written):
    # Learned from nothing else, an unjudged document is as good as its judged neighbours.
    qids = [f"q{number}" for number in range(12)]
    judged = [(qid, f"d{rank}", 1) for qid in qids for rank in range(8)]
    qrels = pd.DataFrame(judged, columns=["qid", "docno", "label"])
    names = {"known": [f"d{rank}" for rank in range(5)], "new": ["n0", "n1", *(f"d{rank}" for rank in range(3))]}
    runs = {
        name: pd.DataFrame([(qid, docno, -rank) for qid in qids for rank, docno in enumerate(docnos)])
        .set_axis(["qid", "docno", "score"], axis=1)
        .astype({"score": float})
        for name, docnos in names.items()
    }
    page, _, _ = written(runs, qrels, ["BNDCG(prior='pool')@5", "nDCG@5"])
    assert page.verdict[0].startswith("BNDCG(prior='pool')@5 does not tell known and new apart: 1.000 against 1.000")
    assert page.verdict[1].startswith("By nDCG@5, known scores higher than new")
    page, _, _ = written(runs, qrels, ["BNDCG@5", "nDCG@5"])
    assert not any("nobody judged" in sentence for sentence in page.verdict) or "nDCG@5 tells" in page.verdict[-1]
    assert about(page, "Unjudged documents")[0].text == (
        "Of the first 5 documents, 0.0% (known) to 40.0% (new) were never judged. What takes them for not relevant "
        "favours known; look at a bootstrapped measure first."
    )
    assert about(page, "Unjudged documents")[0].grave


def test_measures_of_one_metric_that_disagree_are_named(written, monkeypatch):
    from vbterrier.evaluate.comparing import compare
    from vbterrier.report.page.verdict import _disagreements

    base = np.linspace(0.2, 0.6, 20)
    rows = [("BNDCG@10", "a", base), ("BNDCG@10", "b", base + np.resize([0.1, -0.1], 20))]
    rows += [("nDCG@10", "a", base + 0.1), ("nDCG@10", "b", base)]
    values = pd.concat(
        pd.DataFrame({"name": name, "qid": np.arange(20).astype(str), "measure": measure, "value": value})
        for measure, name, value in rows
    )
    (said,) = _disagreements(compare(values, n_resamples=500), ["BNDCG@10", "nDCG@10"])
    assert said == (
        "nDCG@10 tells a from b apart and BNDCG@10 does not: what decides there are documents that nobody judged, "
        "which nDCG@10 takes for not relevant."
    )
    values["measure"] = values["measure"].map({"BNDCG@10": "nDCG@10", "nDCG@10": "BNDCG@10"})
    assert _disagreements(compare(values, n_resamples=500), ["BNDCG@10", "nDCG@10"]) == [
        "BNDCG@10 tells a from b apart and nDCG@10 does not."
    ]


def test_a_baseline_and_three_systems(written, small):
    runs, qrels = small
    page, text, _ = written({**runs, "twin": runs["first"]}, qrels, "nDCG@10", baseline="first")
    assert page.verdict[0] == (
        "By nDCG@10, against first (1.000, 10 topics): second scores lower; twin is not distinguishable from it."
    )
    assert "corrected for all 2 pairs of a measure (Holm)" in text
    page, text, _ = written({**runs, "twin": runs["first"]}, qrels, "nDCG@10")
    assert page.verdict[0] == (
        "By nDCG@10, 2 of 3 pairs of systems are distinguishable over 10 topics: first has the highest mean, 1.000, "
        "and is not distinguishable from twin."
    )


def test_nothing_distinguishable_among_three(written, small):
    runs, qrels = small
    page, _, _ = written({"a": runs["first"], "b": runs["first"], "c": runs["first"]}, qrels, "nDCG@10")
    assert page.verdict[0] == (
        "By nDCG@10, no two of the 3 systems are distinguishable over 10 topics; the means go from 1.000 (c) "
        "to 1.000 (a)."
    )


def test_one_system_has_means_and_no_pairs(written, small):
    runs, qrels = small
    page, text, data = written({"second": runs["second"]}, qrels)
    assert page.verdict[1] == "second has a nDCG@10 of 0.631 (95% interval 0.631 to 0.631) over 10 topics."
    assert 'id="pairs"' not in text
    assert about(page, "Unjudged documents")[0].text == "50.0% of the first 10 documents were never judged."
    assert data["systems"] == ["second"]


def test_fewest_topics_that_decide():
    a, b = np.array([0.9, 0.5, 0.8, 0.1]), np.array([0.1, 0.5, 0.5, 0.5])
    # Gains .8, 0, .3, -.4: without the first, -.1 are left.
    assert deciding(a, b).tolist() == [0]
    assert deciding(b, a).tolist() == []
    assert deciding(np.array([0.3, 0.3, 0.2]), np.zeros(3)).tolist() == [0, 1, 2]
    assert deciding(np.zeros(3), np.zeros(3)).tolist() == []


@pytest.mark.parametrize("seed", range(5))
def test_without_the_deciding_topics_it_is_over_and_without_one_less_it_is_not(seed):
    a, b = np.random.default_rng(seed).normal([[0.2], [0.0]], 1.0, (2, 40))
    topics = deciding(a, b)
    if (a - b).sum() <= 0:
        assert not len(topics)
        return
    left = np.delete(a - b, topics)
    assert left.sum() <= 1e-9
    assert np.delete(a - b, topics[:-1]).sum() > 0


def test_runs_that_returned_nothing_are_said(written, small):
    runs, qrels = small
    part = runs["second"][runs["second"]["qid"].isin(["q0", "q1"])]
    with pytest.warns(DegenerateWarning, match="retrieved nothing for 8 of 10"):
        page, text, _ = written({"first": runs["first"], "part": part}, qrels, "nDCG@10", on_topics="all")
    (caveat,) = about(page, "Empty topics")
    assert caveat.grave
    assert caveat.text.startswith("part returned nothing for 8 of 10 topics, which score as empty rankings. Its differ")
    assert "part†" in page.verdict[0]
    assert "Warnings on the way" in text


def test_topics_without_any_judgment_and_ties_are_said(written, small):
    runs, qrels = small
    strange = runs["second"].assign(docno=["new"] * 10 + ["newer"] * 10, score=1.0)
    with pytest.warns(DegenerateWarning):
        page, _, _ = written({"first": runs["first"], "strange": strange}, qrels)
    assert about(page, "Topics without judgments")[0].text == (
        "For 10 topics none of the first 10 documents of strange is judged: its scores there are a guess from "
        "the prior."
    )
    assert "strange (100%)" in about(page, "Tied scores")[0].text


def test_without_a_bootstrapped_measure_nobody_is_sent_to_one(written, small):
    runs, qrels = small
    once = runs["second"].assign(docno=["new"] * 10 + ["newer"] + ["good"] * 9)
    page, _, _ = written({"first": runs["first"], "once": once}, qrels, "nDCG@10")
    assert about(page, "Topics without judgments")[0].text == (
        "For 1 topic none of the first 10 documents of once is judged: its scores there say nothing of its documents."
    )
    assert about(page, "Unjudged documents")[0].text.endswith("favours first.")


def test_nothing_against_it(written, small):
    runs, qrels = small
    page, _, _ = written({"first": runs["first"]}, qrels)
    assert [caveat.text for caveat in page.caveats] == [
        "None: all of the first 10 documents of all systems are judged."
    ]
