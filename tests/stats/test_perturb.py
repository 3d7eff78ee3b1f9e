"""Perturbations: formulas on the same random numbers, distributions, and invariants."""

import math
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from vbterrier.errors import InputError, ParameterError
from vbterrier.kernels.resample import stream
from vbterrier.stats.candidates import CandidateArrays, Draws, State
from vbterrier.stats.perturbations import (
    Dirichlet,
    DropCandidates,
    DropConstraints,
    IntentBootstrap,
    ScoreNoise,
    TagConfusion,
    TagDropout,
    TemperatureJitter,
    stability_bounds,
)
from vbterrier.stats.variants import Variants, with_variants

RARE = 1e-4
OF_INTENTS = [Dirichlet(10), TemperatureJitter(0.3), ScoreNoise(0.4), DropCandidates(0.3), IntentBootstrap()]
OF_INTENTS += [DropConstraints(which) for which in (0.5, "one", "turn")]
VALUES = [*OF_INTENTS, TagConfusion(0.2), TagDropout()]


@pytest.fixture
def intents():
    """Three queries, one with a single candidate, one with a candidate of probability 0; unsorted rows."""
    qids, prob = ["q2", "q1", "q1", "q3", "q2", "q2", "q1"], [0.5, 0.3, 0.6, 1.0, 0.5, 0.0, 0.1]
    return pd.DataFrame({"qid": qids, "entity_id": [*"ZBAAYXC"], "prob": prob})


@pytest.fixture
def relaxed():
    """Two queries, one with two constraints and one with none, as RelaxConstraints writes them."""
    violations = [[0.0, 0.0], [1.0, 0.0], [1.0, 0.5]]
    frame = pd.DataFrame({"qid": "q1", "entity_id": [*"ABC"], "prob": without(), "delta": np.sum(violations, axis=1)})
    free = pd.DataFrame({"qid": "q2", "entity_id": ["A", "B"], "prob": [0.25, 0.75], "delta": 0.0})
    return pd.concat([frame.assign(violations=violations), free.assign(violations=[[], []])], ignore_index=True)


def perturbed(frame, perturbations, n=50, seed=0):
    """Probabilities of the candidates in each replica, shape (n, n_rows)."""
    candidates = CandidateArrays.of(frame)
    draws, state = Draws(seed, candidates, n=n), State.from_candidates(candidates)
    for perturbation in perturbations:
        state = perturbation.apply(state, draws.with_name(type(perturbation).__name__))
    prob = np.empty((n, len(frame)))
    prob[:, candidates.rows] = state.prob
    return prob


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_perturbations_are_values(value):
    again = eval(repr(value))
    assert (again, hash(again), pickle.loads(pickle.dumps(value))) == (value, hash(value), value)
    assert len(repr(value)) < 60
    with pytest.raises(AttributeError):
        value.share = 0.5


@pytest.mark.parametrize("value", OF_INTENTS, ids=repr)
def test_probabilities_stay_probabilities_and_what_is_impossible_stays_so(relaxed, value):
    last = pd.DataFrame({"qid": ["q2"], "entity_id": ["Z"], "prob": 0.0, "delta": 0.0, "violations": [[]]})
    relaxed = pd.concat([relaxed, last], ignore_index=True)
    before = relaxed.copy(deep=True)
    prob = perturbed(relaxed, [value], n=200)
    assert (np.isfinite(prob) & (prob >= 0)).all()
    pd.testing.assert_frame_equal(relaxed, before)
    single = pd.DataFrame({"qid": ["q"], "entity_id": ["A"], "prob": [1.0], "delta": 0.5, "violations": [[0.5]]})
    assert (perturbed(single, [value]) == 1.0).all()


@pytest.mark.parametrize(
    "value", [kind(0) for kind in (TemperatureJitter, ScoreNoise, DropConstraints, DropCandidates)]
)
def test_no_noise_is_the_identity_exactly(intents, value):
    candidates = CandidateArrays.of(intents)
    state = State.from_candidates(candidates)
    assert value.apply(state, Draws(0, candidates, n=5)) is state


def test_perturbations_are_applied_in_their_order(intents):
    z = stream(0, "q1", "ScoreNoise", "score").standard_normal((50, 3))
    tau = np.exp(stream(0, "q1", "TemperatureJitter", "log temperature").standard_normal(50))
    noise, jitter, moved = ScoreNoise(1.0), TemperatureJitter(1.0), z[:, 0] - z[:, 1]
    for order, expected in (
        ([noise, jitter], (math.log(2) + moved) / tau),
        ([jitter, noise], math.log(2) / tau + moved),
    ):
        prob = perturbed(intents, order)
        # Candidates A and B of q1.
        assert np.log(prob[:, 2] / prob[:, 1]) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("concentration", [0.1, 1, 10, 1000])
def test_dirichlet_replicas_have_the_mean_and_variance_of_a_dirichlet(intents, concentration):
    n, pi = 4000, intents["prob"].to_numpy()
    prob = perturbed(intents, [Dirichlet(concentration)], n=n)
    variance = pi * (1 - pi) / (concentration + 1)
    assert (np.abs(prob.mean(axis=0) - pi) <= 4.5 * np.sqrt(variance / n) + 1e-12).all()
    assert prob.var(axis=0) == pytest.approx(variance, rel=0.12, abs=1e-12)
    if concentration == 10:
        share = perturbed(intents, [Dirichlet(5)], n=n)[:, 2]
        assert stats.kstest(share, stats.beta(3, 2).cdf).pvalue > RARE


@pytest.mark.parametrize("concentration", [1e-9, 1e-4])
def test_a_tiny_concentration_chooses_one_candidate_and_a_huge_one_keeps_all(intents, concentration):
    prob = perturbed(intents, [Dirichlet(concentration)], n=2000)
    q1 = prob[:, [2, 1, 6]]
    chosen = q1.max(axis=1) > 0.999
    assert chosen.mean() > 0.99
    counts = np.bincount(q1[chosen].argmax(axis=1), minlength=3)
    assert stats.chisquare(counts, np.array([0.6, 0.3, 0.1]) * counts.sum()).pvalue > RARE
    huge = perturbed(intents, [Dirichlet(1e300)])
    assert huge == pytest.approx(np.tile(intents["prob"], (50, 1)), abs=1e-12)


def test_dirichlets_and_temperatures_keep_violations(relaxed):
    # Dropping all constraints afterwards multiplies by exp(Δ) what the Dirichlet drew.
    many = perturbed(relaxed, [Dirichlet(10)], n=4000).mean(axis=0)
    assert many == pytest.approx(relaxed["prob"].to_numpy(), abs=0.01)
    drawn, freed = (perturbed(relaxed, [Dirichlet(10), *more])[:, :3] for more in ([], [DropConstraints(1)]))
    expected = drawn * np.exp(relaxed["delta"].to_numpy()[:3])
    assert freed == pytest.approx(expected / expected.sum(axis=1, keepdims=True), abs=1e-12)
    prob = perturbed(relaxed, [TemperatureJitter(1.0)])
    tau = np.exp(stream(0, "q1", "TemperatureJitter", "log temperature").standard_normal(50))
    assert np.log(prob[:, 0] / prob[:, 2]) == pytest.approx(math.log(2.5) / tau + 1.5, abs=1e-9)


@settings(max_examples=40)
@given(st.lists(st.floats(0, 1), min_size=2, max_size=6), st.floats(0.01, 10), st.integers(0, 1000))
def test_a_jitter_of_temperature_keeps_the_order(weights, scale, seed):
    weights = np.array(weights) + 1e-6
    frame = pd.DataFrame({"qid": "q", "entity_id": [*"abcdef"[: len(weights)]], "prob": weights / weights.sum()})
    candidates = CandidateArrays.of(frame)
    state = TemperatureJitter(scale).apply(State.from_candidates(candidates), Draws(seed, candidates, n=20))
    order = np.argsort(weights)
    steps = np.diff(state.prob[:, order], axis=1)
    assert (steps >= 0).all()
    assert (steps[:, np.diff(weights[order]) == 0] == 0).all()


def test_the_log_of_the_temperature_is_normal_and_so_is_noise_of_each_score(intents):
    prob = perturbed(intents, [TemperatureJitter(0.3)], n=3000)
    log_tau = -np.log(np.log(prob[:, 2] / prob[:, 1]) / math.log(2))
    assert stats.kstest(log_tau / 0.3, "norm").pvalue > RARE
    other = np.log(prob[:, 2] / prob[:, 6]) / math.log(6)
    assert np.log(other) == pytest.approx(-log_tau, abs=1e-9), "one temperature a query"
    prob = perturbed(intents, [ScoreNoise(0.5)], n=3000)
    ab = np.log(prob[:, 2] / prob[:, 1]) - math.log(2)
    bc = np.log(prob[:, 1] / prob[:, 6]) - math.log(3)
    assert stats.kstest(ab / (0.5 * math.sqrt(2)), "norm").pvalue > RARE
    assert np.corrcoef(ab, bc)[0, 1] == pytest.approx(-0.5, abs=0.06)


def without(*constraints):
    violations = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 0.5]])
    violations[:, constraints] = 0.0
    prob = np.array([0.5, 0.3, 0.2]) * np.exp(-violations.sum(axis=1))
    return prob / prob.sum()


def test_one_constraint_is_dropped_in_turn_or_any_with_the_same_probability(relaxed):
    prob = perturbed(relaxed, [DropConstraints("turn")], n=4)
    assert prob[:, :3] == pytest.approx(np.array([without(b % 2) for b in range(4)]), abs=1e-12)
    assert prob[:, 3:] == pytest.approx(np.tile([0.25, 0.75], (4, 1)), abs=1e-12), "no constraints, nothing dropped"
    prob = perturbed(relaxed, [DropConstraints("one")], n=1000)[:, :3]
    first, second = (np.isclose(prob, without(c), atol=1e-12).all(axis=1) for c in (0, 1))
    assert (first ^ second).all()
    assert stats.binomtest(int(first.sum()), 1000).pvalue > RARE


def test_each_constraint_is_dropped_with_its_probability_on_its_own(relaxed):
    prob = perturbed(relaxed, [DropConstraints(0.3)], n=3000)[:, :3]
    counts = [int(np.isclose(prob, without(*c), atol=1e-12).all(axis=1).sum()) for c in ((), (0,), (1,), (0, 1))]
    assert sum(counts) == 3000
    assert stats.chisquare(counts, np.array([0.49, 0.21, 0.21, 0.09]) * 3000).pvalue > RARE
    assert perturbed(relaxed, [DropConstraints(1)])[0, :3] == pytest.approx([0.5, 0.3, 0.2], abs=1e-12)


def test_constraints_are_dropped_from_the_number_of_each_query_if_there_is_one(intents, relaxed):
    frame = pd.DataFrame({"qid": ["a", "a", "b", "b"], "entity_id": ["A", "B"] * 2, "prob": 0.5})
    frame["violations"] = [[1.0], [1.0], [0.0, 0.5, 1.0], [0.5, 0.5, 0.5]]
    prob = perturbed(frame.iloc[:2], [DropConstraints("one")])
    assert perturbed(frame, [DropConstraints("one")])[:, :2] == pytest.approx(prob, abs=1e-15)
    for without_any in (intents, relaxed.drop(columns="violations")):
        with pytest.raises(InputError, match="DropConstraints needs the column 'violations', which RelaxConstraints"):
            perturbed(without_any, [DropConstraints("one")])


def test_candidates_are_dropped_with_their_probability_and_never_all(intents):
    prob = perturbed(intents, [DropCandidates(0.4)], n=4000)
    lost = prob == 0
    # The expected proportion: removed, unless all would be and this one is kept.
    for rows, size in (([2, 1, 6], 3), ([0, 4], 2)):
        here = lost[:, rows]
        assert not here.all(axis=1).any()
        expected = 0.4 - 0.4**size / size
        for column in here.T:
            assert stats.binomtest(int(column.sum()), 4000, expected).pvalue > RARE
    kept = ~lost[:, 2] & ~lost[:, 1] & lost[:, 6]
    assert prob[kept][:, [2, 1]] == pytest.approx(np.tile([2 / 3, 1 / 3], (kept.sum(), 1)), abs=1e-12)


def test_resampled_intents_weigh_what_they_are_drawn(intents):
    prob = perturbed(intents, [IntentBootstrap()], n=20)
    uniform = stream(0, "q1", "IntentBootstrap", "intent").random((20, 3))
    for b in range(20):
        counts = np.bincount((uniform[b] * 3).astype(int), minlength=3)
        weights = counts * np.array([0.6, 0.3, 0.1])
        assert prob[b, [2, 1, 6]] == pytest.approx(weights / weights.sum(), abs=1e-12)
    # Two candidates of q2 are possible: the third is never drawn and does not count as a draw.
    assert set(prob[:, 0].round(9)) <= {0.0, 0.5, 1.0}
    assert set(prob[:, 3]) == {1.0}


@pytest.fixture
def variants():
    first = pd.DataFrame({"qid": ["q1", "q1", "q2"], "entity_id": ["A", "B", "Y"], "prob": [0.9, 0.1, 1.0]})
    second = pd.DataFrame({"qid": ["q1", "q1", "other"], "entity_id": ["D", "A", "A"], "prob": [0.25, 0.75, 1.0]})
    return [first, second]


def test_variants_in_turn_give_each_replica_its_own_and_random_ones_come_equally_often(intents, variants):
    frame = with_variants(intents, [Variants(variants)])
    assert frame["entity_id"].tolist() == [*intents["entity_id"], "D"]
    assert frame["prob"].tolist() == [*intents["prob"], 0.0]
    prob = perturbed(frame, [Variants(variants, order="turn")], n=4)
    a, b, c, d = 2, 1, 6, 7
    assert prob[:, [a, b, c, d]] == pytest.approx(np.array([[0.9, 0.1, 0, 0], [0.75, 0, 0, 0.25]] * 2), abs=1e-12)
    assert prob[:, 4] == pytest.approx(1.0, abs=1e-15), "of q2 one variant is known: it is taken always"
    assert prob[:, 3] == pytest.approx(1.0, abs=1e-15), "of q3 none is: its candidates stay"
    first = np.isclose(perturbed(frame, [Variants(variants)], n=1000)[:, a], 0.9)
    assert stats.binomtest(int(first.sum()), 1000).pvalue > RARE


def test_variants_bring_their_own_violations(relaxed):
    other = pd.DataFrame({"qid": "q1", "entity_id": ["A", "B"], "prob": [0.5, 0.5]})
    other["violations"] = [[0.0, 0.0, 2.0], [0.0, 0.0, 0.0]]
    several = Variants([other, relaxed], order="turn")
    frame = with_variants(relaxed, [several])
    prob = perturbed(frame, [several, DropConstraints(1)], n=2)
    odds = math.exp(2.0)
    assert prob[0, :3] == pytest.approx([odds / (odds + 1), 1 / (odds + 1), 0.0], abs=1e-12)
    assert prob[1, :3] == pytest.approx([0.5, 0.3, 0.2], abs=1e-12)


def test_variants_may_come_as_one_frame_with_a_column(variants):
    both = pd.concat([variants[0].assign(paraphrase="a"), variants[1].assign(paraphrase="b")], ignore_index=True)
    assert Variants.of(both, "paraphrase") == Variants(variants)
    with pytest.raises(InputError, match="variants: row 2 has no 'paraphrase'"):
        Variants.of(both.assign(paraphrase=["a", "a", None, "b", "b", "b"]), "paraphrase")


def test_variants_are_equal_by_content(variants):
    one, same = Variants(variants), Variants([frame.copy() for frame in variants])
    assert (one, hash(one)) == (same, hash(same))
    others = [variants[::-1], [variants[0], variants[1].assign(entity_id=["E", "A", "A"])]]
    assert one not in [Variants(variants, order="turn"), *map(Variants, others)]


def test_frames_of_variants_are_checked_and_left_alone(intents, variants):
    with pytest.raises(InputError, match=r"variant 1: the probabilities of query 'q1' sum to 0.9"):
        Variants([variants[0], variants[1].assign(prob=[0.15, 0.75, 1.0])])
    with pytest.raises(InputError, match=r"candidate 'D' of query 'q1' is not among the intents; match the systems"):
        perturbed(intents, [Variants(variants)])
    held = Variants(variants)
    variants[0].loc[0, "prob"] = 0.0
    assert held.frames[0]["prob"].tolist() == [0.9, 0.1, 1.0]


PLAIN = pd.DataFrame({"qid": ["q"], "entity_id": ["C"], "prob": [1.0]})
OTHER = PLAIN.assign(violations=[[2.0, 0.0]], delta=2.0)


@pytest.mark.parametrize(
    ("variant", "delta", "violations"),
    [(OTHER, 2.0, [[0.0, 0.0], [1.0, 0.0], [2.0, 0.0]]), (PLAIN, 0.0, [[0.0], [1.0], [0.0]])],
    ids=["the longest list of the query", "no constraints"],
)
def test_candidates_of_variants_come_with_lists_of_the_same_length(variant, delta, violations):
    parts = pd.DataFrame({"qid": "q", "entity_id": ["A", "B"], "prob": [0.5, 0.5], "delta": [0.0, 1.0]})
    both = with_variants(parts.assign(violations=[[0.0], [1.0]]), [Variants([variant])])
    assert both["entity_id"].tolist() == ["A", "B", "C"]
    assert both["prob"].tolist() == [0.5, 0.5, 0.0]
    assert both["delta"].tolist() == [0.0, 1.0, delta]
    assert both["violations"].tolist() == violations


# Claims C1 and C2 of the paper


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 6), st.integers(0, 10**6), st.floats(0, 5), st.floats(0, 1))
def test_changes_stay_within_the_bounds(n, seed, alpha, share):
    rng = np.random.default_rng(seed)
    pi, other = rng.dirichlet(np.full(n, 0.5), 2)
    moved = (1 - share) * pi + share * other
    gain = rng.choice([0.0, 1.0, rng.random()], n)
    epsilon, es, es2 = float(np.abs(pi - moved).sum()), float(min(pi @ gain, 1)), float(min(moved @ gain, 1))
    row = stability_bounds(es, min(epsilon, 2.0), alpha=alpha).iloc[0]

    def vb(p):
        return p - alpha * math.sqrt(max(p * (1 - p), 0))

    slack = 1e-7 * (1 + alpha)
    assert abs(es2 - es) <= row["ES_change"] + slack <= row["C1"] + 2 * slack
    assert abs(vb(es2) - vb(es)) <= row["VB_change"] + slack
    assert row["VB_low"] - slack <= vb(es2) <= row["VB_high"] + slack
    # Where the paper's bound holds, it is at least as wide.
    assert math.isnan(row["C2"]) or row["VB_change"] <= row["C2"] + slack


def test_bounds_are_attained_and_c2_is_silent_where_its_condition_fails():
    result = stability_bounds([0.8, 1.0, 0.0, 0.5], 0.1)
    # π = (.8, .2) with the first intent covered, moved to (.75, .25): ε = .1.
    assert result["ES_change"].tolist() == pytest.approx([0.05] * 4)
    assert result.loc[1, "VB_low"] == pytest.approx(0.95 - math.sqrt(0.95 * 0.05))
    assert result["C2"].isna().tolist() == [False, True, True, False]
    tau = stability_bounds([0.8, 0.8], [0.1, 0.4], tau=0.1)["C2"]
    assert tau.tolist() == pytest.approx([0.1 * (1 + 0.8 / 0.6), float("nan")], nan_ok=True)
    for options, message in (
        ({"success": 1.1, "distance": 0.1}, "success: wanted numbers from 0 to 1"),
        ({"success": 0.5, "distance": 2.1}, "distance: wanted numbers from 0 to 2"),
        ({"success": [0.5, 0.6], "distance": [0.1]}, r"distance has shape \(1,\)"),
        ({"success": 0.5, "distance": 0.1, "tau": 0.6}, "tau=0.6"),
    ):
        with pytest.raises(ParameterError, match=message):
            stability_bounds(**options)
