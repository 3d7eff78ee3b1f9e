"""Bad input to the audit of a judge, the gate of a release and the leaderboard of a track: an error or a count."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest

from vbterrier.errors import DegenerateWarning, InputError, ParameterError
from vbterrier.evaluate import JudgingBudget, audit_judge, leaderboard, release_gate
from vbterrier.settings import Data, Inference

QUERIES, DEPTH = 20, 20
RNG = np.random.default_rng(0)
POOL = pd.DataFrame({"qid": np.repeat([f"q{i}" for i in range(QUERIES)], DEPTH)})
POOL["docno"] = [f"d{i}" for i in range(DEPTH)] * QUERIES
TRUTH = POOL.assign(label=RNG.integers(0, 3, len(POOL)))
RUNS = {name: POOL.assign(score=TRUTH["label"] + RNG.random(len(POOL))) for name in "abc"}
HUMAN = TRUTH.sample(frac=0.4, random_state=0)
LABELS = TRUTH.assign(label=np.where(RNG.random(len(POOL)) < 0.2, 2 - TRUTH["label"], TRUTH["label"]))
TRAFFIC = pd.DataFrame({"qid": [f"q{i}" for i in range(QUERIES)], "weight": 1.0, "segment": [*"s" * 10, *"t" * 9, "u"]})


def audit(runs=RUNS, qrels=HUMAN, labels=LABELS, **options):
    return audit_judge(runs, qrels, labels={"llm": labels}, budget=2, inference=Inference(n_draws=50), **options)


def gate(run=RUNS["a"], qrels=TRUTH, **options):
    return release_gate(
        {"new": run},
        qrels,
        baseline={"old": RUNS["b"]},
        margin=0.05,
        budget=0,
        inference=Inference(n_resamples=100),
        **options,
    )


def track(runs=RUNS, qrels=HUMAN, **options):
    return leaderboard(runs, qrels, inference=Inference(n_draws=50), **options)


def spelt(frame):
    """Half of the rows of a query have its id in capitals."""
    return frame.assign(qid=frame["qid"].mask((frame["qid"] == "q1") & (np.arange(len(frame)) % 2 == 0), "Q1"))


def only_of(name):
    """Labels of the first ten documents of one run."""
    return LABELS.merge(RUNS[name].sort_values("score").groupby("qid").tail(10)[["qid", "docno"]])


RATED = "the rating of 'd[0-9]+' for query 'q[0-9]+' is 2, wanted a whole number from 0 to 1"
SPELT = "differ only in case, blanks or Unicode form; use one spelling"
MISSING = HUMAN.assign(label=HUMAN["label"].astype(float).mask(HUMAN["qid"] == "q1"))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: audit(data=Data(scale=(0, 1))), InputError, f"qrels: {RATED}"),
        (lambda: gate(data=Data(scale=(0, 1))), InputError, f"qrels: {RATED}"),
        (lambda: track(data=Data(scale=(0, 1))), InputError, f"qrels: {RATED}"),
        *(
            (
                lambda call=call, scale=scale: call(data=Data(scale=scale)),
                ParameterError,
                "wanted the smallest and the largest",
            )
            for call in (audit, gate, track)
            for scale in ((3, 0), (0,), 3, (0.5, 1), "0,3")
        ),
        (
            lambda: track(
                qrels=HUMAN.assign(label=HUMAN["label"].clip(upper=1)),
                automatic={"llm": LABELS},
                data=Data(scale=(0, 1)),
            ),
            InputError,
            f"automatic judge 'llm': {RATED}",
        ),
        *((lambda call=call: call(qrels=MISSING), InputError, "column 'label'.*holds nan") for call in (audit, track)),
        (lambda: audit(labels=MISSING), InputError, "labels 'llm' column 'label'.*holds nan"),
        (lambda: audit(qrels=spelt(HUMAN)), InputError, f"qrels: query .*{SPELT}"),
        (
            lambda: audit(labels=spelt(LABELS)),
            InputError,
            f"labels: query 'Q1' and 'q1' of the ratings {SPELT}",
        ),
        (lambda: audit({**RUNS, "c": spelt(RUNS["c"])}), InputError, f"run 'c': query 'Q1' and 'q1' .*{SPELT}"),
        (lambda: gate(qrels=spelt(TRUTH)), InputError, f"qrels: query .*{SPELT}"),
        (lambda: gate(run=spelt(RUNS["a"])), InputError, f"run 'new': query 'Q1' and 'q1' .*{SPELT}"),
        (lambda: gate(data=Data(labels={"llm": spelt(LABELS)})), InputError, f"labels: query 'Q1' and 'q1' .*{SPELT}"),
        (
            lambda: gate(data=Data(queries=TRAFFIC.replace("q1", "Q1"))),
            InputError,
            f"queries: query 'Q1' and 'q1' .*{SPELT}",
        ),
        (lambda: track(qrels=spelt(HUMAN)), InputError, f"qrels: query .*{SPELT}"),
        (lambda: track({**RUNS, "c": spelt(RUNS["c"])}), InputError, f"run 'c': query 'Q1' and 'q1' .*{SPELT}"),
        (lambda: track(data=Data(labels={"llm": spelt(LABELS)})), InputError, f"labels: query 'Q1' and 'q1' .*{SPELT}"),
        (lambda: track(automatic={"llm": spelt(LABELS)}), InputError, f"judge 'llm': query 'Q1' and 'q1' .*{SPELT}"),
        (
            lambda: track({"one": RUNS, "two": RUNS}, {"one": HUMAN, "two": spelt(HUMAN)}),
            InputError,
            f"qrels of 'two': query .*{SPELT}",
        ),
        (
            lambda: gate(data=Data(queries=TRAFFIC.assign(weight=0))),
            InputError,
            "queries: all 20 weights are 0; wanted at least one above 0",
        ),
        (
            lambda: gate(data=Data(queries=TRAFFIC.assign(weight=-1))),
            InputError,
            "the weight of 'q0' is -1, wanted a finite",
        ),
        (
            lambda: track(budget=JudgingBudget(3, costs=dict.fromkeys(TRAFFIC["qid"], 0))),
            ParameterError,
            "wanted a number above 0",
        ),
        (lambda: track(groups=dict.fromkeys("abc", "x")), ParameterError, "groups: all runs are of 'x'"),
        (
            lambda: track(automatic={"llm": {"a": 1.0, "b": float("nan"), "c": 2.0}}),
            InputError,
            "automatic judge 'llm': the score of 'b' is nan, wanted a finite number",
        ),
        (lambda: gate(qrels=TRUTH[TRUTH["qid"] == "q1"]), InputError, "at least two rated queries"),
        (
            lambda: track({name: run[run["qid"] == "q1"] for name, run in RUNS.items()}, HUMAN[HUMAN["qid"] == "q1"]),
            InputError,
            "resamples topics, but there is only 'q1'",
        ),
    ],
)
def test_an_error_says_what_is_wrong(call, error, message):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DegenerateWarning)
        with pytest.raises(error, match=message) as caught:
            call()
    assert "\n" not in str(caught.value)


def test_segments_with_one_query_and_weights_of_zero_are_counted():
    decision = gate(data=Data(queries=TRAFFIC.assign(weight=[0] * 3 + [1] * 17)))
    excluded = decision.excluded.set_index("reason")[["n", "examples"]]
    assert excluded.loc["queries of weight 0"].tolist() == [3, "'q0', 'q1', 'q2'"]
    assert excluded.loc["segments with fewer than two queries, or draws, without limits"].tolist() == [1, "'u'"]
    assert decision.segments["segment"].tolist() == ["s", "t"]


@pytest.mark.slow
def test_groups_and_families_with_one_run_are_results_of_one_run():
    table = track(groups={"a": "x", "b": "y", "c": "y"}).reusability.set_index("name")
    assert table["n_runs"].to_dict() == {"a": 1, "b": 2, "c": 2}
    table = audit(families={"a": "x"})
    assert table.bias.query("by == 'family'")["group"].tolist() == ["x"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: audit(labels=only_of("a")),
            "judge 'llm': .* up to the cutoff have neither a label nor a judgment",
        ),
        (
            lambda: gate(qrels=HUMAN, data=Data(labels={"llm": only_of("a")})),
            "labels of 'llm': labelled .* of 'old', but 100%",
        ),
        (
            lambda: track(data=Data(labels={"llm": only_of("a")})),
            "labels of 'llm': labelled .*, but 100% of those of 'a'",
        ),
        (
            lambda: track(automatic={"llm": only_of("a")}),
            "automatic judge 'llm': labelled .*, but 100% of those of 'a'",
        ),
    ],
)
def test_judges_that_labelled_documents_of_some_systems_only_are_reported(call, message):
    with warnings.catch_warnings(record=True) as record:
        warnings.simplefilter("always")
        call()
    assert any(re.search(message, str(one.message)) for one in record)
