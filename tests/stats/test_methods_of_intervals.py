"""The method that an interval states is the one that made it, also where all topics have the same score."""

import numpy as np
import pandas as pd
import pytest

import vbterrier
from vbterrier.evaluate import IntentOptions
from vbterrier.kernels.resample import constant_limits
from vbterrier.report.comparison import comparison_caption
from vbterrier.report.paper import table_caption
from vbterrier.settings import Inference
from vbterrier.stats.topic_intervals import TOPIC_METHODS, tail_probabilities, topics_intervals

pytestmark = pytest.mark.filterwarnings("ignore::vbterrier.errors.DegenerateWarning")
QRELS = pd.DataFrame({"qid": [f"q{topic}" for topic in range(12)], "docno": "a", "label": 1})
ALL = QRELS[["qid", "docno"]].assign(score=1.0)
HALF = ALL.assign(docno=["a", "b"] * 6)
LIMITS = constant_limits(0.0, 12, (0.0, 1.0), tail_probabilities(0.95))


@pytest.mark.parametrize("method", TOPIC_METHODS)
def test_scores_that_are_equal_on_all_topics_have_bounded_intervals(method):
    values = np.stack([np.zeros(12), np.tile([0.0, 1.0], 6)], axis=1)
    intervals = topics_intervals(values, method=method, n_resamples=50, bounds=(0.0, 1.0))
    equal = "unseen" if method == "unseen" else "bounded"
    assert [intervals.interval_method(place) for place in (0, 1)] == [f"topics ({equal})", f"topics ({method})"]
    assert [intervals.low[0], intervals.high[0]] == pytest.approx(LIMITS.tolist())
    # Without bounds, there is no interval.
    assert topics_intervals(values, method="percentile", n_resamples=50).interval_method(0) == "topics (percentile)"


def test_the_interval_of_unjudged_zero_is_not_called_percentile():
    scores = vbterrier.score(
        {"all": ALL, "half": HALF},
        QRELS,
        ["Unjudged@10", "nDCG@10"],
        inference=Inference(interval="percentile", n_resamples=50),
    )
    table = scores.intervals.set_index(["name", "measure"])
    assert table["method"].to_dict() == {
        ("all", "Unjudged@10"): "topics (bounded)",
        ("all", "nDCG@10"): "topics (bounded)",
        ("half", "Unjudged@10"): "topics (percentile)",
        ("half", "nDCG@10"): "topics (percentile)",
    }
    assert table["n_resamples"].tolist() == [0, 0, 50, 50]
    one = table.loc[("all", "Unjudged@10")]
    assert [one["low"], one["high"]] == pytest.approx(LIMITS.tolist())
    message = " ".join(table_caption(scores))
    assert (
        "topics (bounded): over other topics from the same population, for scores that are equal on all topics"
        in message
    )
    assert "topics (percentile): over other topics from the same population (50 resamples" in message


def test_differences_that_are_equal_on_all_topics_are_not_inverted_from_a_test():
    comparison = vbterrier.compare(
        {"all": ALL, "same": ALL, "half": HALF},
        QRELS,
        ["nDCG@10"],
        inference=Inference(test="t", interval="percentile", n_resamples=50),
    )
    methods = comparison.pairs.set_index(["name_a", "name_b"])["method"]
    assert methods["all", "same"] == "bounded, simultaneous"
    assert methods["all", "half"] == "inverted paired t, simultaneous"
    message = " ".join(table_caption(comparison))
    assert "95%: inverted paired t, simultaneous and bounded, simultaneous" in message
    assert "topics (percentile) and topics (bounded), 50 resamples" in " ".join(comparison_caption(comparison))


def test_merged_statistics_linking_and_pooled_scores_say_so_too():
    values = pd.DataFrame({"name": "a", "qid": list("123456"), "measure": "P@5", "value": 0.0})
    varied = values.assign(name="b", value=[0, 1, 0, 1, 0, 1.0])
    statistics = vbterrier.stats.TopicStatistics(n_resamples=50)
    statistics.add(pd.concat([values, varied]))
    assert statistics.to_frame()["method"].tolist() == ["topics (bounded)", "topics (poisson)"]
    gold = pd.DataFrame({"qid": list("123456"), "entity_id": ["A", "B", "NIL", "C", "NIL", "D"]})
    report = vbterrier.linking.linking_report({"x": gold.assign(entity_id=["A", "B", "NIL", "X", "NIL", "D"])}, gold)
    methods = report.intervals.set_index("measure")["method"]
    assert methods["NilR"] == "queries (bounded)"
    assert methods["LinkR"] == "queries (percentile)"
    intents = pd.DataFrame({"qid": list("123"), "entity_id": "E", "prob": 1.0})
    topics = pd.DataFrame({"qid": list("123"), "query": "x"})
    run = topics[["qid"]].assign(docno=["d", "d", "d"], score=1.0)
    evaluation = vbterrier.evaluate_intents(
        {"x": run, "y": run.assign(docno=["d", "d", "e"])},
        topics,
        intents=intents,
        tagger=pd.DataFrame({"docno": ["d"], "entity_id": ["E"]}),
        measures=["ES"],
        options=IntentOptions(cutoff=5, pool="collection"),
    )
    assert evaluation.intervals.set_index("name")["method"].to_dict() == {
        "x": "topics (bounded)",
        "y": "topics (percentile)",
    }
