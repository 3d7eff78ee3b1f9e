"""The linking report: counts, figures compared with scikit-learn, intervals."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import accuracy_score, precision_score, recall_score

from vbterrier.errors import DegenerateWarning, InputError, ParameterError
from vbterrier.kernels.linking import FIGURES, figures
from vbterrier.linking.quality import _limits, linking_report

LINKING_R, LINKING_F1 = (FIGURES.index(name) for name in ("LinkingR", "LinkingF1"))


def collection(n=400, seed=0):
    """Return a gold standard, and a system that answers each query."""
    rng = np.random.default_rng(seed)
    gold = rng.choice(["A", "B", "C", "NIL"], n, p=[0.3, 0.2, 0.1, 0.4])
    answer = np.where(rng.random(n) < 0.7, gold, rng.choice(["A", "B", "C", "NIL"], n))
    qid = [f"q{i}" for i in range(n)]
    return tuple(pd.DataFrame({"qid": qid, "entity_id": column}) for column in (gold, answer))


GOLD, SYSTEM = collection()


def test_figures_are_those_of_scikit_learn_where_definitions_meet():
    """Compute the figures with classes as labels: micro averages over entities for links, the class NIL for NILs."""
    found = linking_report({"mine": SYSTEM}, GOLD).figures().loc["mine"]
    right, given, entities = GOLD["entity_id"], SYSTEM["entity_id"], ["A", "B", "C"]
    assert found["LinkP"] == pytest.approx(precision_score(right, given, labels=entities, average="micro"))
    assert found["LinkR"] == pytest.approx(recall_score(right, given, labels=entities, average="micro"))
    assert found["NilP"] == pytest.approx(precision_score(right, given, labels=["NIL"], average="micro"))
    assert found["NilR"] == pytest.approx(recall_score(right, given, labels=["NIL"], average="micro"))
    assert found["LinkingR"] == pytest.approx(accuracy_score(right, given))
    # With one entity, the weighted mean over two classes equals the total.
    one = [frame.replace({"entity_id": {"B": "A", "C": "A"}}) for frame in (GOLD, SYSTEM)]
    found = linking_report({"mine": one[1]}, one[0]).figures().loc["mine"]
    weighted = precision_score(one[0]["entity_id"], one[1]["entity_id"], average="weighted")
    assert found["LinkingP"] == pytest.approx(weighted)


def test_counts_are_those_of_a_cross_table():
    counts = linking_report({"mine": SYSTEM}, GOLD).counts.set_index("gold")
    link = GOLD["entity_id"] != "NIL"
    said = SYSTEM["entity_id"] != "NIL"
    right = GOLD["entity_id"] == SYSTEM["entity_id"]
    assert counts.loc["link"].tolist() == [
        "mine",
        link.sum(),
        (link & right).sum(),
        (link & said & ~right).sum(),
        (link & ~said).sum(),
        0,
    ]
    assert counts.loc["nil"].tolist() == ["mine", (~link).sum(), 0, (~link & said).sum(), (~link & ~said).sum(), 0]


def test_intervals_are_percentiles_of_figures_over_resampled_queries():
    report = linking_report({"mine": SYSTEM}, GOLD, level=0.9, n_resamples=4000, seed=1)
    rng, gold, given = np.random.default_rng(7), GOLD["entity_id"].to_numpy(), SYSTEM["entity_id"].to_numpy()
    drawn = []
    for _ in range(400):
        rows = rng.integers(len(gold), size=len(gold))
        right = gold[rows] == given[rows]
        drawn.append((right[given[rows] == "NIL"].mean(), right.mean()))
    rows = report.intervals.set_index("measure")
    for name, values in zip(("NilP", "LinkingR"), np.transpose(drawn), strict=True):
        low, high = np.quantile(values, [0.05, 0.95])
        # With 400 resamples the error of a limit is about a tenth of the width.
        width = high - low
        assert abs(rows.loc[name, "low"] - low) < width / 5
        assert abs(rows.loc[name, "high"] - high) < width / 5
    recall = rows.loc["LinkingR"]
    normal = 2 * 1.645 * np.sqrt(recall["value"] * (1 - recall["value"]) / len(gold))
    assert recall["high"] - recall["low"] == pytest.approx(normal, rel=0.08)
    assert rows["value"].between(rows["low"], rows["high"]).all()
    assert rows[["low", "high"]].clip(0, 1).equals(rows[["low", "high"]])
    assert rows["level"].eq(0.9).all()
    assert rows["n_qids"].eq(400).all()


def test_intervals_hold_the_figure_of_the_population_as_often_as_they_say():
    """250 queries with the shares of the paper's Random Document set; see the notes of linking_report."""
    share = np.array([606, 25, 122, 0, 0, 49, 605, 0]) / 1407
    wanted, rng, hits = figures(share.reshape(2, 4)), np.random.default_rng(4), []
    for _ in range(500):
        counts = rng.multinomial(250, share).reshape(2, 4)
        low, high = _limits(counts, 0.95, 500, 0)
        hits.append((low <= wanted) & (wanted <= high))
    held = np.mean(hits, axis=0)[[LINKING_R, LINKING_F1]]
    # Nominal .95, with a tolerance of four standard errors, .04, for 500 resamples and 500 samples.
    assert (np.abs(held - 0.95) < 0.04).all(), held


def test_the_same_seed_says_the_same_whatever_the_order_and_the_company():
    report = linking_report({"mine": SYSTEM, "gold": GOLD}, GOLD)
    shuffled = linking_report({"mine": SYSTEM.sample(frac=1, random_state=1)}, GOLD.sample(frac=1, random_state=2))
    mine = report.intervals[report.intervals["name"] == "mine"].reset_index(drop=True)
    pd.testing.assert_frame_equal(mine, shuffled.intervals)
    assert not mine["low"].equals(linking_report({"mine": SYSTEM}, GOLD, seed=1).intervals["low"])
    perfect = report.intervals[report.intervals["name"] == "gold"]
    assert perfect[["value", "low", "high"]].eq(1).all(axis=None)
    assert report.figures().columns.tolist() == list(FIGURES)
    assert report.figures().index.tolist() == ["mine", "gold"]


def test_a_kind_that_is_never_answered_is_told_and_its_precision_left_open():
    links = SYSTEM[SYSTEM["entity_id"] != "NIL"]
    message = "system 'mine': no query is answered with 'NIL', correct for .* unanswered='nil' counts .* as NIL"
    with pytest.warns(DegenerateWarning, match=message):
        rows = linking_report({"mine": links}, GOLD).intervals.set_index("measure")
    assert rows.loc["NilP", ["value", "low", "high"]].isna().all()
    assert rows.loc["NilR", "value"] == 0
    assert rows["value"].notna().sum() == 6
    again = linking_report({"mine": links}, GOLD, unanswered="nil").figures()
    pd.testing.assert_frame_equal(again, linking_report({"mine": SYSTEM}, GOLD).figures())
    # All queries are answered, so the hint about unanswered queries is absent.
    for answer, kind in (("NIL", "an entity"), ("A", "'NIL'")):
        message = f"no query is answered with {kind}, correct for [0-9]+ queries: its precision is 0$"
        with pytest.warns(DegenerateWarning, match=message):
            linking_report({"mine": GOLD.assign(entity_id=answer)}, GOLD)
    # There is no warning for a kind that the gold standard does not contain.
    of_links = GOLD[GOLD["entity_id"] != "NIL"]
    assert linking_report({"mine": of_links}, of_links).figures().loc["mine", "LinkingP"] == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"level": 1}, "level=1: wanted a number above 0 and below 1"),
        ({"n_resamples": 0}, "n_resamples=0"),
        ({"seed": -1}, "seed=-1"),
        ({"nil": ""}, "nil=''"),
        ({"multiple_answers": "first"}, "multiple_answers='first'"),
        ({"unanswered": "wrong"}, "unanswered='wrong'"),
    ],
)
def test_options_that_do_not_exist_are_refused(options, message):
    with pytest.raises(ParameterError, match=message):
        linking_report({"mine": SYSTEM}, GOLD, **options)


def test_systems_have_names():
    with pytest.raises(InputError, match="systems: wanted a mapping of name to answers, found DataFrame"):
        linking_report(SYSTEM, GOLD)
