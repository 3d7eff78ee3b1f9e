"""The linking report: counts, figures compared with scikit-learn, intervals."""

import itertools

import numpy as np
import pandas as pd
import pytest
from night import at_night
from scipy import stats
from sklearn.metrics import accuracy_score, precision_score, recall_score

from vbterrier.errors import DegenerateWarning, InputError, ParameterError
from vbterrier.evaluate.comparison import compare
from vbterrier.evaluate.scores import score
from vbterrier.frames.entity_answers import Gold, answers, decide
from vbterrier.kernels import linking
from vbterrier.kernels.linking import FIGURES, figures
from vbterrier.linking.quality import _limits, linking_report
from vbterrier.report.comparison import comparison_report
from vbterrier.settings import Inference

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
    row = linking_report({"mine": SYSTEM}, GOLD).figures().loc["mine"]
    right, system, entities = GOLD["entity_id"], SYSTEM["entity_id"], ["A", "B", "C"]
    assert row["LinkP"] == pytest.approx(precision_score(right, system, labels=entities, average="micro"))
    assert row["LinkR"] == pytest.approx(recall_score(right, system, labels=entities, average="micro"))
    assert row["NilP"] == pytest.approx(precision_score(right, system, labels=["NIL"], average="micro"))
    assert row["NilR"] == pytest.approx(recall_score(right, system, labels=["NIL"], average="micro"))
    assert row["LinkingR"] == pytest.approx(accuracy_score(right, system))
    # With one entity, the weighted mean over two classes equals the total.
    one = [frame.replace({"entity_id": {"B": "A", "C": "A"}}) for frame in (GOLD, SYSTEM)]
    row = linking_report({"mine": one[1]}, one[0]).figures().loc["mine"]
    weighted = precision_score(one[0]["entity_id"], one[1]["entity_id"], average="weighted")
    assert row["LinkingP"] == pytest.approx(weighted)


def test_links_of_mentions_outside_the_gold_standard_are_reported_and_can_be_counted():
    gold = pd.DataFrame({"qid": ["m1", "m2"], "entity_id": ["A", "B"]})
    table = pd.DataFrame({"qid": ["m1", "m2", "m3", "m4"], "entity_id": ["A", "C", "D", "E"]})
    message = (
        r"2 topics are not in gold and are left out \('m3', 'm4'\): precision counts answers to queries of gold alone"
    )
    with pytest.warns(DegenerateWarning, match=message):
        assert linking_report({"mine": table}, gold).figures().loc["mine", ["LinkP", "LinkR"]].tolist() == [0.5, 0.5]
    every = pd.concat([gold, pd.DataFrame({"qid": ["m3", "m4"], "entity_id": "NIL"})])
    with pytest.warns(DegenerateWarning, match="no query is answered with 'NIL'"):
        counted = linking_report({"mine": table}, every).figures().loc["mine", ["LinkP", "LinkR"]]
    assert counted.tolist() == [0.25, 0.5], "one of four predicted links is right, and one of two gold links"


def test_counts_are_those_of_a_cross_table():
    counts = linking_report({"mine": SYSTEM}, GOLD).counts.set_index("gold")
    link = GOLD["entity_id"] != "NIL"
    answered = SYSTEM["entity_id"] != "NIL"
    right = GOLD["entity_id"] == SYSTEM["entity_id"]
    n_right, n_wrong, n_nil = (link & right).sum(), (link & answered & ~right).sum(), (link & ~answered).sum()
    assert counts.loc["link"].tolist() == ["mine", link.sum(), n_right, n_wrong, n_nil, 0]
    assert counts.loc["nil"].tolist() == [
        "mine",
        (~link).sum(),
        0,
        (~link & answered).sum(),
        (~link & ~answered).sum(),
        0,
    ]


def test_intervals_are_percentiles_of_figures_over_resampled_queries():
    report = linking_report({"mine": SYSTEM}, GOLD, inference=Inference(level=0.9, n_resamples=4000, seed=1))
    rng, gold, system = np.random.default_rng(7), GOLD["entity_id"].to_numpy(), SYSTEM["entity_id"].to_numpy()
    drawn = []
    for _ in range(400):
        rows = rng.integers(len(gold), size=len(gold))
        right = gold[rows] == system[rows]
        drawn.append((right[system[rows] == "NIL"].mean(), right.mean()))
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


@pytest.mark.slow
def test_intervals_hold_the_figure_of_the_population_as_often_as_they_say():
    """250 queries with the shares of the paper's Random Document set; see the notes of linking_report."""
    share = np.array([606, 25, 122, 0, 0, 49, 605, 0]) / 1407
    expected, rng, hits = figures(share.reshape(2, 4)), np.random.default_rng(4), []
    for _ in range(500):
        counts = rng.multinomial(250, share).reshape(2, 4)
        low, high = _limits(counts, 0.95, 500, 0)
        hits.append((low <= expected) & (expected <= high))
    held = np.mean(hits, axis=0)[[LINKING_R, LINKING_F1]]
    # Nominal .95, with a tolerance of four standard errors, .04, for 500 resamples and 500 samples.
    assert (np.abs(held - 0.95) < 0.04).all(), held


def test_the_same_seed_says_the_same_whatever_the_order_and_the_company():
    report = linking_report({"mine": SYSTEM, "gold": GOLD}, GOLD)
    shuffled = linking_report({"mine": SYSTEM.sample(frac=1, random_state=1)}, GOLD.sample(frac=1, random_state=2))
    mine = report.intervals[report.intervals["name"] == "mine"].reset_index(drop=True)
    pd.testing.assert_frame_equal(mine, shuffled.intervals)
    assert not mine["low"].equals(linking_report({"mine": SYSTEM}, GOLD, inference=Inference(seed=1)).intervals["low"])
    perfect = report.intervals[report.intervals["name"] == "gold"]
    assert perfect[["value", "high"]].eq(1).all(axis=None)
    # The limit of Clopper and Pearson for the denominator of each figure.
    n_links = (GOLD["entity_id"] != "NIL").sum()
    sizes = np.array([n_links, n_links, n_links, 400 - n_links, 400 - n_links, 400, 400, 400])
    assert perfect["low"].to_numpy() == pytest.approx(0.025 ** (1 / sizes))
    assert report.figures().columns.tolist() == list(FIGURES)
    assert report.figures().index.tolist() == ["mine", "gold"]


def test_a_kind_that_is_never_answered_is_told_and_its_precision_left_open():
    links = SYSTEM[SYSTEM["entity_id"] != "NIL"]
    message = "system 'mine': no query is answered with 'NIL', correct for .* unanswered='nil' counts .* as NIL"
    with pytest.warns(DegenerateWarning, match=message):
        rows = linking_report({"mine": links}, GOLD).intervals.set_index("measure")
    assert rows.loc["NilP", ["value", "low", "high"]].isna().all()
    assert rows.loc["NilR", "value"] == 0
    assert rows["value"].notna().sum() == 7
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


INVALID = {
    "level=1": lambda: {"inference": Inference(level=1)},
    "n_resamples=0": lambda: {"inference": Inference(n_resamples=0)},
    "seed=-1": lambda: {"inference": Inference(seed=-1)},
    "nil=''": lambda: {"nil": ""},
    "multiple_answers='first'": lambda: {"multiple_answers": "first"},
    "unanswered='wrong'": lambda: {"unanswered": "wrong"},
}


@pytest.mark.parametrize("name", INVALID)
def test_invalid_options_and_systems_without_names_are_refused(name):
    with pytest.raises(ParameterError, match=f"{name}: wanted"):
        linking_report({"mine": SYSTEM}, GOLD, **INVALID[name]())
    with pytest.raises(InputError, match="systems: wanted a mapping of name to answers, found DataFrame"):
        linking_report(SYSTEM, GOLD)


def answers_of(words):
    return pd.DataFrame({"qid": [f"q{i}" for i in range(len(words))], "entity_id": words})


@pytest.mark.filterwarnings("ignore:system 'x'")
@pytest.mark.parametrize("seed", [0, *map(at_night, (1, 2, 3))])
@pytest.mark.slow
def test_the_swap_test_is_that_of_all_swaps_one_by_one(seed):
    rng = np.random.default_rng(seed)
    gold, one, other = (rng.choice(["A", "B", "NIL"], 7, p=[0.4, 0.2, 0.4]) for _ in range(3))
    pairs = linking_report({"a": answers_of(one), "b": answers_of(other)}, answers_of(gold)).pairs
    correct = Gold(answers_of(gold))

    def scored(answer):
        return figures(decide(answers(answers_of(answer)), correct).counts)

    observed = np.abs(scored(one) - scored(other))
    # In this order, the last swap of all is the opposite of the first.
    swapped = np.array([scored(np.where(signs, other, one)) for signs in itertools.product([False, True], repeat=7)])
    with np.errstate(invalid="ignore"):
        beyond = (~(np.abs(swapped - swapped[::-1]) < observed - 1e-12)).sum(axis=0)
    expected = np.where(np.isnan(observed), np.nan, beyond / 2**7)
    assert pairs["p_value"].to_numpy() == pytest.approx(expected, nan_ok=True)
    assert (pairs["n_resamples"] == 0).all()
    right = [answer == gold for answer in (one, other)]
    assert (pairs["wins"] == (right[0] & ~right[1]).sum()).all()
    assert (pairs["losses"] == (right[1] & ~right[0]).sum()).all()
    assert (pairs["ties"] == (right[0] == right[1]).sum()).all()


def test_drawn_swaps_are_close_to_all_of_them(monkeypatch):
    _, other = collection(seed=5)
    systems = {"a": SYSTEM.head(60), "b": other.head(60)}
    exact = linking_report(systems, GOLD.head(60)).pairs
    monkeypatch.setattr(linking, "_MOST_SWAPS", 1)
    drawn = linking_report(systems, GOLD.head(60), inference=Inference(n_resamples=20_000)).pairs
    assert (set(exact["n_resamples"]), set(drawn["n_resamples"])) == ({0}, {20_000})
    assert drawn["p_value"].to_numpy() == pytest.approx(exact["p_value"].to_numpy(), abs=0.015)
    assert exact["p_delta"].to_numpy() == pytest.approx(exact["p_value"].to_numpy(), abs=0.08)


@pytest.mark.nightly
def test_the_swap_test_holds_its_level_and_finds_differences():
    n_samples = 200
    rng, n = np.random.default_rng(7), 100
    rejected = np.zeros(2)
    for _ in range(n_samples):
        gold = rng.choice(["A", "B", "NIL"], n, p=[0.4, 0.2, 0.4])
        answers = [np.where(rng.random(n) < rate, gold, rng.choice(["A", "B", "NIL"], n)) for rate in (0.7, 0.7, 0.95)]
        frames = {name: answers_of(answer) for name, answer in zip("abc", answers, strict=True)}
        pairs = linking_report(frames, answers_of(gold), inference=Inference(n_resamples=199)).pairs
        f1 = pairs[pairs["measure"] == "LinkingF1"].set_index(["name_a", "name_b"])["p_value"]
        rejected += f1[[("a", "b"), ("a", "c")]].to_numpy() <= 0.05
    assert 0 < rejected[0] <= stats.binom.ppf(0.999, n_samples, 0.05)
    assert rejected[1] > 0.95 * n_samples


@pytest.mark.slow
def test_intervals_of_differences_agree_with_the_swap_test():
    rng = np.random.default_rng(3)
    n_excluded = 0
    for _ in range(30):
        gold = rng.choice(["A", "NIL"], 40)
        frames = {
            name: answers_of(np.where(rng.random(40) < rate, gold, rng.choice(["A", "NIL"], 40)))
            for name, rate in (("a", 0.8), ("b", 0.4))
        }
        pairs = linking_report(frames, answers_of(gold)).pairs
        rejected = pairs["p_value"] <= 0.05
        assert not (((pairs["low"] > 0) | (pairs["high"] < 0)) & ~rejected).any()
        assert not ((pairs["low"] < 0) & (pairs["high"] > 0) & rejected).any()
        n_excluded += int(((pairs["low"] > 0) & rejected).sum())
    assert n_excluded > 20


def test_without_errors_intervals_leave_room_for_some():
    report = linking_report({"a": GOLD.head(3)}, answers_of(["A", "B", "NIL"]).assign(entity_id=GOLD["entity_id"][:3]))
    rows = report.intervals.set_index("measure")
    assert rows.loc["LinkingF1", ["low", "high"]].tolist() == pytest.approx([0.025 ** (1 / 3), 1])
    assert len(report.pairs) == 0


def test_comparisons_count_correct_answers():
    _, other = collection(seed=5)
    runs = {
        name: frame.rename(columns={"entity_id": "docno"}).assign(score=1.0)
        for name, frame in (("a", SYSTEM), ("b", other))
    }
    comparison = compare(runs, GOLD, ["LinkingF1", "LinkP"])
    assert comparison.pairs["measure"].tolist() == ["LinkingF1", "LinkP"]
    a, b = (frame["entity_id"] == GOLD["entity_id"] for frame in (SYSTEM, other))
    for row in comparison.pairs.itertuples():
        first, second = (a, b) if row.name_a == "a" else (b, a)
        assert (row.wins, row.losses, row.ties) == (
            (first & ~second).sum(), (second & ~first).sum(), (first == second).sum()
        )  # fmt: skip
    # Values alone say nothing of correct answers, unless they have LinkingR.
    values = score(runs, GOLD, ["LinkingF1"])
    assert compare(values).pairs[["wins", "losses", "ties"]].isna().all(axis=None)
    both = compare(score(runs, GOLD, ["LinkingF1", "LinkingR"])).pairs
    assert both["wins"].tolist()[0] == comparison.pairs["wins"].iloc[0]
    text = comparison_report(compare(values), "table")
    assert "NA" not in text
