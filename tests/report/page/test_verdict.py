import itertools
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from vbterrier import compare
from vbterrier.errors import DegenerateWarning, InputError
from vbterrier.intents.coverage import Ties
from vbterrier.report.page.evaluated import ReportContent
from vbterrier.report.page.verdict import _disagreements, _tagging_caveats, agreement, influential_topics, too_few
from vbterrier.settings import Data, Inference

# Half of the documents of a run are unjudged.
pytestmark = pytest.mark.filterwarnings("ignore:.*can be wrong by more than:vbterrier.errors.DegenerateWarning")


def about(page, what):
    return [caveat for caveat in page.caveats if caveat.about == what]


def test_two_systems_by_hand(written, small):
    runs, qrels = small
    page, text, _ = written(
        runs, qrels, ["nDCG@10", "ENDCG@10"], inference=Inference(n_resamples=2000, test="randomisation")
    )
    # 1/log2(3) on every topic; two of 2^10 flips are as extreme.
    assert page.verdict[0].startswith(
        "By nDCG@10, first scores higher than second: 1.000 against 0.631, a difference of "
    )
    assert "0.369 (95% interval 0.000 to 0.564, p = 0.0020, 10 topics)." in page.verdict[0]
    assert page.verdict[0] in text
    assert "test over topics: sign-flip randomisation" in text


@pytest.mark.filterwarnings("ignore:.*have grade 0:vbterrier.errors.DegenerateWarning")
def test_caveats_name_the_share_of_unjudged_documents(written):
    # With nothing else to learn from, an unjudged document is as relevant as its judged neighbours.
    qids, docs = [f"q{number}" for number in range(12)], [f"d{rank}" for rank in range(8)]
    qrels = pd.DataFrame(itertools.product(qids, docs), columns=["qid", "docno"]).assign(label=1)
    judged = qrels[qrels["docno"] < "d5"].drop(columns="label").assign(score=[5.0, 4, 3, 2, 1] * 12)
    runs = {"known": judged, "new": judged.assign(docno=["n0", "n1", *docs[:3]] * 12)}
    page, _, _ = written(runs, qrels, ["BNDCG(prior='pool')@5", "nDCG@5"])
    assert page.verdict[0] == (
        "By BNDCG(prior='pool')@5, known and new score the same on each of 12 topics: 1.000 against 1.000."
    )
    assert page.verdict[1].startswith("By nDCG@5, known scores higher than new")
    assert about(page, "Unjudged documents")[0].text == (
        "Of the first 5 documents, 0.0% (known) to 40.0% (new) are unjudged. Measures that treat unjudged documents as "
        "non-relevant favour known; prefer BNDCG(prior='pool')@5. The tests vary the topics and treat the expected "
        "BNDCG(prior='pool')@5 as exact; \"vbterrier rank --uncertainty both\" also includes the uncertainty of "
        "unjudged documents."
    )
    assert about(page, "Unjudged documents")[0].serious


BOTH = "these systems differ significantly: a vs. b."
REASON = " The difference depends on unjudged documents, which nDCG@10 treats as non-relevant."


@pytest.mark.parametrize("predicted", ["BNDCG@10", "ENDCG@10"])
@pytest.mark.parametrize("is_sure", [False, True])
def test_measures_of_one_metric_that_disagree_are_named(predicted, is_sure):
    sure, unsure, reason = (predicted, "nDCG@10", "") if is_sure else ("nDCG@10", predicted, REASON)
    base = np.linspace(0.2, 0.6, 20)
    rows = [(unsure, "a", base), (unsure, "b", base + np.resize([0.1, -0.1], 20))]
    rows += [(sure, "a", base + 0.1), (sure, "b", base)]
    values = pd.concat(
        pd.DataFrame({"name": name, "qid": np.arange(20).astype(str), "measure": measure, "value": value})
        for measure, name, value in rows
    )
    message = f"By {sure}, but not by {unsure}, {BOTH}{reason}"
    assert _disagreements(
        compare(values, inference=Inference(test="randomisation", n_resamples=500)), [predicted, "nDCG@10"]
    ) == [message]


def pairs_of(*measures):
    """Numbers of a page: for each measure, the winners and losers of significant pairs among a, b and c."""
    every = [(*one, pair) for one in measures for pair in (("a", "b"), ("a", "c"), ("b", "c"))]
    rows = [(name, *pair, 1.0 if pair in won else -1.0, bool({pair, pair[::-1]} & won)) for name, won, pair in every]
    pairs = pd.DataFrame(rows, columns=["measure", "name_a", "name_b", "diff", "significant"])
    comparison = SimpleNamespace(pairs=pairs, significant=lambda: pairs["significant"], guessed=())
    return SimpleNamespace(comparison=comparison, compared=tuple(name for name, _ in measures))


@pytest.mark.parametrize(
    ("measures", "message"),
    [
        ([("nDCG@10", {("a", "b")})], []),
        ([("nDCG@10", set()), ("AP", set()), ("RR", set())], ["AP and RR find no significant difference either."]),
        ([("nDCG@10", {("a", "b")}), ("AP", {("a", "b")})], ["AP finds the same significant differences."]),
        (
            [("RBP", {("a", "b")}), ("AP", {("b", "a")}), ("RR", set()), ("P", {("a", "b")})],
            [
                (
                    "P finds the same significant differences; RR finds no significant difference; AP finds a "
                    "significant difference in the opposite direction."
                )
            ],
        ),
        # Lower values of NonRelCov are better.
        (
            [("RelCov@10", {("a", "b")}), ("NonRelCov@10", {("b", "a")})],
            ["NonRelCov@10 finds the same significant differences."],
        ),
        ([("nDCG@10", {("a", "b")}), ("AP", {("a", "b"), ("b", "c")})], ["AP finds other significant differences."]),
        (
            [("ENDCG@10", set()), ("nDCG@10", {("b", "a")}), ("AP", {("a", "b"), ("b", "c")})],
            ["nDCG@10 finds b significantly better than a; AP finds other significant differences."],
        ),
    ],
)
def test_a_second_sentence_compares_the_other_measures_with_the_first(measures, message):
    assert agreement(pairs_of(*measures)) == message


def test_a_baseline_and_three_systems(written, small):
    runs, qrels = small
    page, text, _ = written(
        {**runs, "twin": runs["first"]}, qrels, "nDCG@10", baseline="first", inference=Inference(test="randomisation")
    )
    assert page.verdict[0] == (
        "By nDCG@10, against first (1.000, 10 topics): second scores lower; twin does not differ significantly from it."
    )
    assert "corrected for all 2 pairs of a measure (max-T)" in text
    page, text, _ = written(
        {**runs, "twin": runs["first"]}, qrels, "nDCG@10", inference=Inference(test="randomisation")
    )
    assert page.verdict[0] == (
        "By nDCG@10, 2 of 3 pairs of systems differ significantly over 10 topics: first has the highest mean, 1.000, "
        "and does not differ significantly from twin."
    )


def test_no_significant_difference_among_three(written, small):
    runs, qrels = small
    page, _, _ = written({"a": runs["first"], "b": runs["first"], "c": runs["first"]}, qrels, "nDCG@10")
    assert page.verdict[0] == (
        "By nDCG@10, no two of the 3 systems differ significantly over 10 topics; all means are 1.000."
    )
    page, _, _ = written({"a": runs["first"], "b": runs["first"]}, qrels, "nDCG@10")
    assert page.verdict[0] == "By nDCG@10, a and b score the same on each of 10 topics: 1.000 against 1.000."


def test_one_system_has_means_and_no_pairs(written, small):
    runs, qrels = small
    page, text, data = written({"second": runs["second"]}, qrels)
    assert [message.partition("By ")[2].partition(",")[0] for message in page.verdict][:2] == ["ENDCG@10", "BNDCG@10"]
    assert page.verdict[2] == "By nDCG@10, second scores 0.631 (95% interval 0.436 to 0.745) over 10 topics."
    assert 'id="pairs"' not in text
    assert about(page, "Unjudged documents")[0].text == "50.0% of the first 10 documents are unjudged."
    assert data["systems"] == ["second"]


def test_fewest_influential_topics():
    # Gains .8, 0, .3, -.4: without the first, -.1 are left.
    assert influential_topics(np.array([0.9, 0.5, 0.8, 0.1]), np.array([0.1, 0.5, 0.5, 0.5])).tolist() == [0]
    assert influential_topics(np.array([0.3, 0.3, 0.2]), np.zeros(3)).tolist() == [0, 1, 2]
    assert influential_topics(np.zeros(3), np.zeros(3)).tolist() == []


@pytest.mark.parametrize("seed", range(5))
def test_influential_topics_are_the_fewest(seed):
    a, b = np.random.default_rng(seed).normal([[0.2], [0.0]], 1.0, (2, 40))
    topics = influential_topics(a, b)
    if (a - b).sum() <= 0:
        assert not len(topics)
        return
    left = np.delete(a - b, topics)
    assert left.sum() <= 1e-9
    assert np.delete(a - b, topics[:-1]).sum() > 0


def test_caveats_name_runs_with_empty_topics(written, small):
    runs, qrels = small
    part = runs["second"][runs["second"]["qid"].isin(["q0", "q1"])]
    with pytest.warns(DegenerateWarning, match="(no documents|nothing) for 8 of 10"):
        page, text, _ = written({"first": runs["first"], "part": part}, qrels, "nDCG@10", data=Data(on_topics="all"))
    (caveat,) = about(page, "Empty topics")
    assert caveat.serious
    assert caveat.text.startswith("part† returned nothing for 8 of 10 topics, which score as empty rankings. The file")
    assert "† part retrieved nothing for 8 of 10 topics: its numbers may not reflect its quality." in text
    assert "part†" in page.verdict[0]
    # Warnings of the evaluation are caveats.
    assert any("nothing for 8 of 10" in caveat.text for caveat in about(page, "Warning"))
    assert "<h3>Warnings</h3>" not in text


def test_caveats_name_topics_without_judgments_and_ties(written, small):
    runs, qrels = small
    strange = runs["second"].assign(docno=["new"] * 10 + ["newer"] * 10, score=1.0)
    with pytest.warns(DegenerateWarning):
        page, _, _ = written({"first": runs["first"], "strange": strange}, qrels)
    assert about(page, "Topics without judgments")[0].text == (
        "None of the first 10 documents is judged for 10 topics of strange: these scores "
        "depend on the model of unjudged documents alone."
    )
    assert "strange (100%)" in about(page, "Tied scores")[0].text


def test_caveats_recommend_bootstrapped_measures_only_if_computed(written, small):
    runs, qrels = small
    once = runs["second"].assign(docno=["new"] * 10 + ["newer"] + ["good"] * 9)
    page, _, _ = written({"first": runs["first"], "once": once}, qrels, "nDCG@10")
    assert about(page, "Topics without judgments")[0].text == (
        "None of the first 10 documents is judged for 1 topic of once: these scores are not evidence of quality."
    )
    assert about(page, "Unjudged documents")[0].text.endswith("favour first.")


def test_no_caveats_without_unjudged_documents(written, small):
    page, _, _ = written({"first": small[0]["first"]}, small[1])
    families, (subject, text, *_) = page.caveats
    assert (subject, text) == ("Unjudged documents", "All of the first 10 documents of all systems are judged.")
    assert families.about == "Unjudged documents in scores"
    assert "ENDCG@10 estimates the scores that complete judgments would give" in families.text


def values_of(**systems):
    """Runs and judgments with which systems have given values of P@10, in tenths, by topic."""
    qids = [f"q{number}" for number in range(max(map(len, systems.values())))]
    judged = [(qid, f"{kind}{n}", int(kind == "good")) for qid in qids for kind in ("good", "bad") for n in range(10)]
    runs = {}
    for name, scores in systems.items():
        topics = list(zip(qids, scores, strict=True))
        rows = [(qid, f"{'good' if n < of else 'bad'}{n}", 10.0 - n) for qid, of in topics for n in range(10)]
        runs[name] = pd.DataFrame(rows, columns=["qid", "docno", "score"])
    return runs, pd.DataFrame(judged, columns=["qid", "docno", "label"])


def test_tests_without_power_are_named(written):
    runs, qrels = values_of(a=[9, 8], b=[1, 2])
    with pytest.warns(DegenerateWarning, match="sign flips of 2 topics"):
        page, _, _ = written(runs, qrels, ["nDCG@10", "P@10"], inference=Inference(test="randomisation"))
    assert page.verdict[0].startswith(
        "By nDCG@10, this test cannot find a difference between a and b with so few topics: "
    )
    # The name of a measure keeps its case.
    assert [caveat.text.partition(":")[0] for caveat in about(page, "Few topics")] == ["nDCG@10", "P@10"]
    # Enough topics for two systems, too few resamples for 28 pairs of them.
    many, qrels = values_of(**{f"s{number}": [number] * 6 + [number + 1] * 6 for number in range(8)})
    with pytest.warns(DegenerateWarning, match="28 tests leaves no p below"):
        page, _, _ = written(many, qrels, "P@10", inference=Inference(test="randomisation", correction="holm"))
    assert page.verdict[0] == (
        "By P@10, this test cannot find a difference between any two of the 8 systems with so few resamples over 12 "
        "topics; the means range from 0.050 (s0) to 0.750 (s7)."
    )
    (caveat,) = about(page, "Few resamples")
    assert caveat.serious
    assert "correction='max-t'" in caveat.text


def test_too_few_topics_of_one_measure_do_not_affect_another():
    message = ("P@10: sign flips of 2 topics leave no p below 0.5: nothing can be significant at the level 0.05",)
    measures = ("AP", "P@10")
    assert [too_few(message, measure, measures) for measure in measures] == ["", "topics"]


def test_infinite_t_is_a_serious_caveat(written):
    runs, qrels = values_of(a=[9, 8], b=[8, 7])
    with pytest.warns(DegenerateWarning, match="t is infinite"):
        page, _, _ = written(runs, qrels, "P@10", inference=Inference(test="bootstrap"))
    assert page.verdict[0].startswith("By P@10, a scores higher than b")
    assert about(page, "Differences without variance")[0].serious


def test_a_single_topic_has_no_interval(written):
    runs, qrels = values_of(a=[9], b=[1])
    with pytest.warns(DegenerateWarning):
        page, text, _ = written(runs, qrels, "P@10")
    assert page.verdict[0] == (
        "By P@10, this test cannot find a difference between a and b with so few topics: 0.900 against 0.100, a "
        "difference of 0.800 (p = 1.0000, 1 topic)."
    )
    assert not about(page, "Influential topics")
    assert "nan" not in text.partition("<main")[2].partition("<script")[0]
    assert "1 topics ·" not in text


def test_systems_with_equal_shares_of_unjudged_documents(written):
    runs, qrels = values_of(a=[9] * 8, b=[3, 4, 5, 6, 7, 8, 5, 5])
    strange = {name: run.assign(docno="new" + run["docno"]) for name, run in runs.items()}
    with pytest.warns(DegenerateWarning, match="0 of the first 80 documents of 8 topics are judged"):
        page, _, _ = written(strange, qrels, "P@10")
    assert about(page, "Unjudged documents")[0].text.startswith("100.0% of the first 10 documents of all systems are")
    assert about(page, "Topics without judgments")[0].text == (
        "None of the first 10 documents is judged for 8 topics of a and 8 topics of b: these scores are not evidence "
        "of quality."
    )
    page, _, _ = written(runs, qrels, "P@10")
    assert (
        about(page, "Influential topics")[0].text
        == "No single topic is decisive: by P@10, a is above b on every topic."
    )


def test_the_lowest_mean_is_the_best_if_lower_is_better(written, mistakes):
    runs, pool = mistakes
    with pytest.warns(DegenerateWarning):
        page, text, _ = written(runs, None, "NonRelCov@1", content=ReportContent(links=pool))
    assert page.verdict[0] == (
        "By NonRelCov@1 (lower is better), 2 of 3 pairs of systems differ significantly over 10 topics: good has the "
        "lowest mean, 0.000, and differs significantly from all others."
    )
    assert "lower is better</span>" in text
    assert about(page, "Influential topics")[0].text == (
        "No single topic is decisive: by NonRelCov@1, good is below bad on every topic."
    )
    # Zero is the best score, not a sign of an empty run.
    assert "†" not in text.partition("<script")[0]


def test_judgments_of_relevant_documents_alone_are_the_first_caveat(written, small):
    runs, qrels = small
    page, _, _ = written(runs, qrels[qrels["label"] > 0])
    assert page.caveats[0].about == "Judgments"
    assert page.caveats[0].text.startswith("Nearly all judged documents are relevant")
    assert page.verdict[0].startswith("By nDCG@10")
    with pytest.raises(InputError, match="have grade 0"):
        written(runs, qrels[qrels["label"] > 0], ["ENDCG@10"])


@pytest.mark.filterwarnings("ignore:labels. .*judged documents a topic:vbterrier.errors.DegenerateWarning")
def test_labels_of_machines_are_evidence_in_the_report(written, small):
    runs, qrels = small
    new = runs["second"].head(10)[["qid", "docno"]]
    labels = [pd.concat([qrels, new.assign(label=grade)]) for grade in (0, 1)]
    one, other = (
        written(runs, qrels, ["ENDCG@10", "nDCG@10"], data=Data(labels={"llm": of}))[0].verdict[0] for of in labels
    )
    assert one != other


@pytest.mark.slow
def test_a_difference_of_a_few_topics_is_serious_if_it_is_significant(written):
    qids = [f"q{number}" for number in range(200)]
    qrels = pd.DataFrame({"qid": qids * 2, "docno": ["good"] * 200 + ["bad"] * 200, "label": [1] * 200 + [0] * 200})
    best = qrels[["qid", "docno"]].assign(score=[2.0] * 200 + [1.0] * 200)
    # Ten topics decide, a twentieth of all.
    for decisive, serious in ((10, True), (11, False), (2, False)):
        worse = best.assign(score=best["score"].where(~best["qid"].isin(qids[:decisive]), 3 - best["score"]))
        page, _, _ = written({"best": best, "worse": worse}, qrels, ["P@1", "nDCG@5"])
        (caveat,) = about(page, "Influential topics")
        assert caveat.text.startswith(f"Without {decisive} of 200 topics (q0")
        assert caveat.text.endswith("the mean P@1 of best would not be above that of worse.")
        # Two topics decide, but the difference is not significant.
        assert caveat.serious == serious, decisive


@pytest.mark.parametrize(
    ("shares", "oracle", "message", "serious"),
    [
        (
            {"a": 0.9, "b": 0.4},
            0.75,
            "40.0% (b) to 90.0% (a) of the first 5 documents have a candidate as a tag. The best",
            True,
        ),
        (
            {"a": 0.9, "b": 0.6},
            np.nan,
            "60.0% (b) to 90.0% (a) of the first 5 documents have a candidate as a tag.",
            False,
        ),
        ({"a": 0.8, "b": 0.8}, np.nan, "80.0% of the first 5 documents have a candidate as a tag.", False),
        ({"a": np.nan, "b": 0.8}, np.nan, "80.0% of the first 5 documents have a candidate as a tag.", False),
    ],
)
def test_caveats_name_the_systems_with_the_fewest_and_the_most_tags(shares, oracle, message, serious):
    covered = {name: SimpleNamespace(tagged=share, oracle=oracle, ties=Ties()) for name, share in shares.items()}
    (caveat,) = _tagging_caveats(SimpleNamespace(covered=covered, cutoff=5))
    assert caveat.text.startswith(message)
    assert ("an expected success of 0.750." in caveat.text) == np.isfinite(oracle)
    assert caveat.serious == serious


GUESSES = "of the tags are decided by a tie and are guesses"


@pytest.mark.parametrize(
    ("ties", "message", "serious"),
    [
        ({"a": Ties(0.0, 0.0), "b": Ties(0.0, 0.0)}, "", False),
        (
            {"a": Ties(0.02, 0.0), "b": Ties(0.04, 0.0)},
            f"Of b, 4% {GUESSES}.",
            False,
        ),
        (
            {"a": Ties(0.47, 0.0), "b": Ties(0.3, 0.0)},
            f"Of a, 47% {GUESSES}.",
            True,
        ),
        (
            {"a": Ties(0.0, 0.25), "b": Ties()},
            "Of a, 25% of the mentions have no tag because of a tie or none fits.",
            True,
        ),
    ],
)
def test_tags_by_tie_are_no_full_tagging(ties, message, serious):
    covered = {name: SimpleNamespace(tagged=1.0, oracle=np.nan, ties=each) for name, each in ties.items()}
    (caveat,) = _tagging_caveats(SimpleNamespace(covered=covered, cutoff=5))
    assert caveat.text == f"100.0% of the first 5 documents have a candidate as a tag. {message}".strip()
    assert caveat.serious == serious
