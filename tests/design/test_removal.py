"""Removal of queries: Tables 1 to 3 and Figure 3 of the paper, and errors."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from vbterrier.design.removal import DecisionCounts, simulate_query_addition, simulate_query_removal
from vbterrier.errors import InputError, ParameterError
from vbterrier.evaluate.scores import score
from vbterrier.kernels.linking import scores
from vbterrier.settings import Inference

# Tables 1 and 2: gold links, gold NILs; R_L, P_L, R_N; and P_N, R, which follow.
PRINTED = {
    "manual": (367, 133, 0.866, 0.911, 0.842, 0.742, 0.860),
    "RD": (753, 654, 0.805, 0.891, 0.925, 0.832, 0.861),
    "RM": (169, 777, 0.562, 0.819, 0.978, 0.916, 0.904),
}
# Table 3: queries, removed; mean, std, min, max.
TABLE_3 = [
    (2853, 10, 0.876, 0.000, 0.875, 0.877),
    (2853, 50, 0.876, 0.001, 0.873, 0.879),
    (2853, 100, 0.876, 0.001, 0.872, 0.881),
    (1000, 10, 0.876, 0.001, 0.874, 0.882),
    (1000, 50, 0.876, 0.002, 0.869, 0.888),
    (1000, 100, 0.876, 0.003, 0.865, 0.893),
]


def printed(subset):
    links, nils, link_r, link_p, nil_r, *_ = PRINTED[subset]
    return DecisionCounts.from_rates(links, nils, link_recall=link_r, link_precision=link_p, nil_recall=nil_r)


def sets():
    """The full set, whose counts are sums over the three subsets; and the smaller set with its shares."""
    full = sum(printed(subset).cells for subset in PRINTED)
    smaller = np.rint(full * 1000 / 2853).astype(int)
    return {2853: DecisionCounts(*full.tolist()), 1000: DecisionCounts(*smaller.tolist())}


def frames(counts, rng=None):
    """Gold and system with these counts of queries, shuffled."""
    kinds = np.repeat(np.arange(5), counts.cells)
    if rng is not None:
        rng.shuffle(kinds)
    qid = [f"q{number}" for number in range(len(kinds))]
    answers = (["E", "E", "E", "NIL", "NIL"], ["E", "X", "NIL", "NIL", "X"])
    return [pd.DataFrame({"qid": qid, "entity_id": np.array(column)[kinds]}) for column in answers]


@pytest.mark.parametrize("subset", PRINTED)
def test_counts_from_printed_rates_have_the_rates_that_are_printed_beside_them(subset):
    counts, (*_, nil_p, r) = printed(subset), PRINTED[subset]
    assert (counts.right + counts.wrong + counts.missed, counts.recognised + counts.taken) == PRINTED[subset][:2]
    assert counts.recognised / (counts.recognised + counts.missed) == pytest.approx(nil_p, abs=5e-4)
    assert counts.scores()["R"] == pytest.approx(r, abs=5e-4)


@pytest.mark.parametrize(("n", "m", "mean", "std", "low", "high"), TABLE_3)
def test_removed_queries_change_f1_as_in_table_3_of_the_paper(n, m, mean, std, low, high):
    counts = sets()[n]
    assert len(counts) == n
    assert counts.scores()["F1"] == pytest.approx(0.876, abs=5e-4)
    summaries = [simulate_query_removal(counts, n_removed=m, seed=seed).summary() for seed in range(20)]
    runs = pd.DataFrame([result.set_index("measure").loc["F1"] for result in summaries])
    assert runs["mean"].mean() == pytest.approx(mean, abs=5e-4)
    assert runs["std"].mean() == pytest.approx(std, abs=5e-4)
    ends = runs[["worst", "min", "max", "best"]].to_numpy(float)
    assert (np.diff(ends, axis=1) >= 0).all()
    # Published ends come from other draws: rounded to three digits, they lie within the ends of twenty runs or a tenth
    # of the range beyond.
    slack = 5e-4 + 0.1 * (high - low)
    for published, drawn in ((low, runs["min"]), (high, runs["max"])):
        assert drawn.min() - slack <= published <= drawn.max() + slack


@pytest.mark.parametrize("subset", PRINTED)
@pytest.mark.parametrize("fraction", [0.05, 0.2])
def test_figure_3_model_and_queries_agree(subset, fraction):
    counts = printed(subset)
    simulation = simulate_query_removal(
        *frames(counts, np.random.default_rng(3)), fraction=fraction, n_draws=4000, seed=2
    )
    assert simulation.counts == counts
    summary = simulation.summary()
    pairs = [[measure, source] for measure in ("P", "R", "F1") for source in ("model", "queries")]
    assert summary[["measure", "source"]].to_numpy().tolist() == pairs
    # Two samples of the same distribution have this distance with probability 1/20,000.
    assert (summary["ks"] < 2.3 * np.sqrt(2 / 4000)).all()
    assert (summary["n_removed"] == round(fraction * len(counts))).all()
    spread = summary.pivot(index="measure", columns="source", values="std")
    assert spread["model"].to_numpy() == pytest.approx(spread["queries"].to_numpy(), rel=0.06)


def test_the_distance_sees_another_distribution():
    simulation = simulate_query_removal(*frames(printed("RM")), fraction=0.2, n_draws=2000)
    other = simulate_query_removal(*frames(printed("RM")), fraction=0.4, n_draws=2000)
    mixed = pd.concat([simulation.draws.query("source == 'model'"), other.draws.query("source == 'queries'")])
    odd = type(simulation)(
        mixed, simulation.counts, simulation.n_removed, simulation.worst, simulation.best, 0
    ).summary()
    assert (odd["ks"] > odd["ks_limit"]).all()
    assert simulation.summary()["ks_limit"].to_numpy() == pytest.approx(1.358 * np.sqrt(2 / 2000), abs=1e-4)


def test_the_scores_are_those_of_the_measures():
    counts = printed("manual")
    gold, system = frames(counts)
    names = {"P": "LinkingP", "R": "LinkingR", "F1": "LinkingF1"}
    means = score({"manual": system}, gold, list(names.values()), inference=Inference(n_resamples=2)).means()
    for name, measure in names.items():
        assert counts.scores()[name] == pytest.approx(means.loc["manual", measure])


def test_the_same_seed_the_same_draws_and_counts_alone_the_model_alone():
    counts, options = printed("manual"), {"n_removed": 7, "n_draws": 200}
    gold, system = frames(counts)
    both, turned = (simulate_query_removal(rows, system, **options, seed=5) for rows in (gold, gold[::-1]))
    pd.testing.assert_frame_equal(both.draws, turned.draws)
    alone = simulate_query_removal(counts, **options, seed=5)
    assert set(alone.draws["source"]) == {"model"}
    assert alone.summary()[["ks", "ks_limit"]].isna().all(axis=None)
    pd.testing.assert_frame_equal(both.draws.query("source == 'model'").reset_index(drop=True), alone.draws)
    assert not simulate_query_removal(counts, **options, seed=6).draws.equals(alone.draws)
    assert repr(both).startswith("Removal(7 of 500 queries, F1 0.86")


def test_queries_without_an_answer_are_refused_unless_they_are_nil():
    gold, system = frames(DecisionCounts(5, 1, 1, 5, 1))
    silent = system[system["qid"] != "q0"]
    with pytest.raises(InputError, match=r"1 of 13 queries have no answer.*unanswered='nil'"):
        simulate_query_removal(gold, silent, n_removed=2)
    simulation = simulate_query_removal(gold, silent, n_removed=2, unanswered="nil", n_draws=5)
    assert simulation.counts == DecisionCounts(4, 1, 2, 5, 1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "either n_removed or fraction"),
        ({"n_removed": 1, "fraction": 0.5}, "either n_removed or fraction"),
        ({"n_removed": 13}, "n_removed=13: wanted a whole number from 1 to 12"),
        ({"n_removed": 0}, "n_removed=0"),
        ({"fraction": 1.0}, "fraction=1.0"),
        ({"n_removed": 1, "n_draws": 0}, "n_draws=0"),
    ],
)
def test_parameters_of_removal_out_of_range_are_refused(options, message):
    with pytest.raises(ParameterError, match=message):
        simulate_query_removal(DecisionCounts(5, 1, 1, 5, 1), **options)


def test_tables_that_are_no_decisions_are_refused():
    counts, rates = DecisionCounts(5, 1, 1, 5, 1), {"link_recall": 0.5, "link_precision": 0.9, "nil_recall": 0.5}
    gold, _ = frames(counts)
    with pytest.raises(ParameterError, match="leave out system"):
        simulate_query_removal(counts, gold, n_removed=1)
    with pytest.raises(ParameterError, match="answers of a system"):
        simulate_query_removal(gold, n_removed=1)
    with pytest.raises(ParameterError, match="at least two"):
        simulate_query_removal(DecisionCounts(1, 0, 0, 0, 0), n_removed=1)
    with pytest.raises(ParameterError, match="wrong=-1"):
        DecisionCounts(1, -1, 0, 0, 0)
    with pytest.raises(InputError, match="no counts have these rates"):
        DecisionCounts.from_rates(10, 90, **rates)


def test_a_fraction_of_few_queries_removes_one_at_least_and_leaves_one():
    counts = DecisionCounts(1, 1, 0, 1, 0)
    assert simulate_query_removal(counts, fraction=0.01, n_draws=2).n_removed == 1
    assert simulate_query_removal(counts, fraction=0.99, n_draws=2).n_removed == 2


# Given shares of the removed queries, and added queries.


def test_given_shares_leave_only_right_links_random():
    counts = DecisionCounts(right=20, wrong=10, missed=10, recognised=50, taken=10)
    simulation = simulate_query_removal(counts, n_removed=20, shares=(0.5, 0.8, 0.9), n_draws=4000, seed=1)
    # 10 links of which 8 were resolved, 10 NILs of which 9 were recognised: 0 to 8 of the 8 were right.
    possible = [scores(counts.cells - np.array([right, 8 - right, 2, 9, 1])) for right in range(9)]
    f1 = simulation.draws.loc[simulation.draws["measure"] == "F1", "value"]
    assert set(f1.round(9)) <= {round(value[2], 9) for value in possible}
    assert (simulation.best["F1"], simulation.worst["F1"]) == (
        pytest.approx(possible[0][2]),
        pytest.approx(possible[8][2]),
    )
    # Right ones among the 8 are hypergeometric.
    expected = stats.hypergeom(30, 20, 8).pmf(np.arange(9)) @ [value[2] for value in possible]
    assert f1.mean() == pytest.approx(expected, abs=4 * f1.std() / 4000**0.5)
    assert simulation.draws["source"].unique().tolist() == ["model"]


@pytest.mark.parametrize(
    ("shares", "message"),
    [
        ((1.2, 0.5, 0.5), "shares: a=1.2"),
        ((1.0, 0.0, 0.5), "20 gold links that were resolved to NIL cannot be removed, there are 10"),
        ((0.0, 0.5, 0.0), "20 NILs that were resolved to an entity cannot be removed, there are 10"),
    ],
)
def test_shares_of_more_queries_than_there_are_are_refused(shares, message):
    counts = DecisionCounts(right=20, wrong=10, missed=10, recognised=50, taken=10)
    with pytest.raises(ParameterError, match=message):
        simulate_query_removal(counts, n_removed=20, shares=shares)


def test_added_queries_are_binomial_with_the_observed_proportions():
    counts = DecisionCounts(right=20, wrong=10, missed=10, recognised=50, taken=10)
    table = simulate_query_addition(counts, n_added=50, n_draws=20_000, seed=2).set_index("measure")
    # Recall is the share of right answers: 70 of 100, and Binomial(50, .7) more.
    number, recall = stats.binom(50, 0.7), table.loc["R"]
    assert (recall["value"], recall["mean"]) == (0.7, pytest.approx(0.7, abs=0.001))
    assert recall["std"] == pytest.approx(number.std() / 150, rel=0.02)
    assert [recall["low"], recall["high"]] == pytest.approx(((70 + number.ppf([0.025, 0.975])) / 150).tolist())
    # As the paper says, few removed queries change scores about as much as as many added ones.
    removed = simulate_query_removal(counts, n_removed=5, seed=2).summary().set_index("measure")
    added = simulate_query_addition(counts, n_added=5, seed=2).set_index("measure")
    assert added["std"].to_numpy() == pytest.approx(removed["std"].to_numpy(), rel=0.12)
