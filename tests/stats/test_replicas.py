"""Replicas: Algorithm 1 as a plain loop on the same random numbers, and invariants."""

import math
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import vbterrier
from vbterrier.errors import InputError, ParameterError
from vbterrier.kernels.resample import stream
from vbterrier.stats import replicas
from vbterrier.stats.matches import Matches, Statistic
from vbterrier.stats.perturbations import (
    Dirichlet,
    DropCandidates,
    DropConstraints,
    IntentBootstrap,
    ScoreNoise,
    TagConfusion,
    TagDropout,
    TemperatureJitter,
)
from vbterrier.stats.replicas import left_out, replicate
from vbterrier.stats.variants import Variants

RARE = 1e-4
ALL = [
    Statistic("ES", 2),
    Statistic("VB", 5),
    Statistic("VB", 5, alpha=0.5, gain="dcg", variance="intent"),
    Statistic("VB", 5, clip=True),
    Statistic("VB", 5, monotone=True),
    Statistic("VarPenalty", 5),
    Statistic("TopIntent", 1),
    Statistic("ES", None, gain="dcg"),
]
PERTURBATIONS = [
    [],
    [Dirichlet(3)],
    [TemperatureJitter(0.5)],
    [ScoreNoise(0.5)],
    [DropCandidates(0.4)],
    [IntentBootstrap()],
    [ScoreNoise(0.5), TemperatureJitter(0.3), Dirichlet(5), DropCandidates(0.2), ScoreNoise(0.1)],
    [TagConfusion(0.5, lost=0.3)],
    [TagDropout()],
    [Dirichlet(2), TagConfusion(0.3), TagDropout()],
]


def one_query(prob, qid="q"):
    """An I frame of candidates E0, E1..."""
    return pd.DataFrame({"qid": qid, "entity_id": [f"E{i}" for i in range(len(prob))], "prob": prob})


def two_queries(prob):
    return pd.concat([one_query(prob, "q1"), one_query(prob, "q2")], ignore_index=True)


def matched(intent, rank, *values, **options):
    return Matches(np.array(intent, int), np.array(rank, int), *map(np.array, values), **options)


def collection(seed, n_topics=6, most=5, depth=6):
    """Unsorted intents, and the matches of a system that tags some documents twice."""
    rng = np.random.default_rng(seed)
    rows = []
    for topic in range(n_topics):
        n = int(rng.integers(1, most + 1))
        prob = rng.dirichlet(np.ones(n))
        rows += [(f"q{topic}", f"E{entity}", p) for entity, p in zip(rng.permutation(9)[:n], prob, strict=True)]
    frame = pd.DataFrame([rows[i] for i in rng.permutation(len(rows))], columns=["qid", "entity_id", "prob"])
    return frame, matches_of(frame, rng, depth)


def matches_of(frame, rng, depth=6):
    pairs = rng.random((len(frame), depth)) < 0.3
    intent, rank = np.nonzero(pairs)
    docno = [f"{frame['qid'][i]}-d{r}" for i, r in zip(intent, rank, strict=True)]
    weight = rng.choice([0.3, 0.8, 1.0], len(intent))
    return Matches(intent, rank, weight, docno, known=pairs.sum(axis=1) + rng.integers(0, 2, len(frame)))


def gain_of(matches, statistic, depth):
    """Gains by entity of one query from (entity, rank, weight, known)."""
    gains = {}
    for entity, (result, n_known) in matches.items():
        here = [(rank, weight) for rank, weight in result if rank < depth]
        if statistic.gain == "binary":
            gains[entity] = max((weight for _, weight in here), default=0.0)
        else:
            ideal = sum(1 / math.log2(rank + 2) for rank in range(min(n_known, depth)))
            dcg = sum(weight / math.log2(rank + 2) for rank, weight in here)
            gains[entity] = min(dcg / ideal, 1.0) if ideal else 0.0
    return gains


def expected_score(candidates, statistic, prob=None):
    """A score of one query of ``by_query``, possibly with other probabilities."""
    prob = prob or {entity: p for entity, (p, _, _) in candidates.items()}
    gains = gain_of({e: (m, k) for e, (_, m, k) in candidates.items()}, statistic, statistic.cutoff or 99)
    return score_of(prob, gains, statistic)


def score_of(prob, gains, statistic):
    success = sum(prob[entity] * gains[entity] for entity in prob)
    if statistic.measure == "ES":
        return success
    if statistic.measure == "TopIntent":
        best = [entity for entity in prob if prob[entity] >= max(prob.values()) - 1e-12]
        return sum(gains[entity] for entity in best) / len(best)
    variance = success * (1 - success)
    if statistic.variance == "intent":
        variance = sum(prob[entity] * gains[entity] ** 2 for entity in prob) - success**2
    if statistic.measure == "VarPenalty":
        return math.sqrt(max(variance, 0))
    alpha = statistic.alpha
    if statistic.monotone:
        lowest = max(success, (1 - 1 / math.sqrt(1 + alpha**2)) / 2)
        return lowest - alpha * math.sqrt(lowest * (1 - lowest))
    value = success - alpha * math.sqrt(max(variance, 0))
    return max(value, 0.0) if statistic.clip else value


def by_query(frame, matches):
    """Candidates of each query by id, with probability, matches and known documents."""
    queries = {}
    for row, (qid, entity, prob) in enumerate(frame[["qid", "entity_id", "prob"]].itertuples(index=False)):
        here = matches.intent == row
        results = [*zip(matches.rank[here].tolist(), matches.weight[here].tolist(), strict=True)]
        queries.setdefault(qid, {})[entity] = (prob, results, int(matches.known[row]))
    return queries


@pytest.mark.parametrize("seed", range(4))
def test_scores_without_perturbation_are_those_of_the_textbook(seed):
    frame, matches = collection(seed)
    result = replicate(frame, {"a": matches}, [], ALL, n_replicas=3)
    queries = by_query(frame, matches)
    assert result.topics == list(queries)
    for column, statistic in enumerate(ALL):
        for place, candidates in enumerate(queries.values()):
            # The root of a variance of 0 is as exact as the root of a rounding.
            expected = pytest.approx(expected_score(candidates, statistic), abs=1e-7)
            assert result.point[0, column, place] == expected
            assert (result.values[0, column, :, place] == result.point[0, column, place]).all()


@pytest.mark.parametrize("seed", range(3))
def test_replicas_are_those_of_algorithm_1_as_a_plain_loop(seed):
    # A jittered temperature, then a Dirichlet, of one query and replica after the other.
    frame, matches = collection(seed + 10)
    n_replicas, c, scale = 8, 4.0, 0.5
    noise = [TemperatureJitter(scale), Dirichlet(c)]
    result = replicate(frame, {"a": matches}, noise, ALL, n_replicas=n_replicas, seed=seed)
    for place, (qid, candidates) in enumerate(by_query(frame, matches).items()):
        gamma, exponential = (stream(seed, qid, "Dirichlet", what) for what in ("gamma", "exponential"))
        normal = stream(seed, qid, "TemperatureJitter", "log temperature")
        for b in range(n_replicas):
            tau = math.exp(scale * normal.standard_normal())
            powers = {entity: p ** (1 / tau) for entity, (p, _, _) in sorted(candidates.items())}
            shapes = {entity: c * p / sum(powers.values()) for entity, p in powers.items()}
            gammas = [gamma.standard_gamma(shape + 1) for shape in shapes.values()]
            boosts = [math.exp(-exponential.standard_exponential() / shape) for shape in shapes.values()]
            weights = dict(zip(shapes, np.multiply(gammas, boosts), strict=True))
            prob = {entity: w / sum(weights.values()) for entity, w in weights.items()}
            expected = [expected_score(candidates, statistic, prob) for statistic in ALL]
            assert result.values[0, :, b, place] == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize("perturbations", [*PERTURBATIONS, "variants"], ids=repr)
def test_neither_the_number_of_replicas_nor_batches_change_a_replica(monkeypatch, perturbations):
    frame, matches = collection(1)
    if perturbations == "variants":
        second = frame.assign(prob=frame.groupby("qid")["prob"].transform(lambda p: p.to_numpy()[::-1]))
        perturbations = [Variants([frame, second]), ScoreNoise(0.1)]

    def values(n):
        return replicate(frame, {"a": matches}, perturbations, ALL, n_replicas=n, seed=3).values

    whole = values(40)
    assert (values(17) == whole[:, :, :17]).all()
    for size in (1, 40, 280):
        monkeypatch.setattr(replicas, "_ARRAY_SIZE", size)
        assert (values(40) == whole).all()


@pytest.mark.parametrize("perturbations", PERTURBATIONS, ids=repr)
def test_neither_other_queries_nor_the_order_of_rows_change_a_query(perturbations):
    frame, matches = collection(2)
    whole = replicate(frame, {"a": matches}, perturbations, ALL, n_replicas=20, seed=3)
    kept = frame.index[frame["qid"].isin(["q4", "q1"])].to_numpy()
    for rows in (kept, np.random.default_rng(0).permutation(len(frame))):
        place = np.full(len(frame), -1)
        place[rows] = np.arange(len(rows))
        here = np.flatnonzero(place[matches.intent] >= 0)[::-1]
        intent, docno = place[matches.intent[here]], [matches.docno[i] for i in here]
        part = Matches(intent, matches.rank[here], matches.weight[here], docno, matches.known[rows])
        some = frame.iloc[rows].reset_index(drop=True)
        result = replicate(some, {"a": part}, perturbations, ALL, n_replicas=20, seed=3)
        columns = [whole.topics.index(topic) for topic in result.topics]
        assert (result.values == whole.values[..., columns]).all()
        assert (result.point == whole.point[..., columns]).all()


@pytest.mark.parametrize("perturbations", PERTURBATIONS, ids=repr)
def test_other_systems_and_statistics_change_nothing_nor_do_inputs_change(perturbations):
    frame, matches = collection(3)
    before, intent, weight = frame.copy(deep=True), matches.intent.copy(), matches.weight.copy()
    systems = {"b": matches_of(frame, np.random.default_rng(9)), "a": matches}
    both = replicate(frame, systems, perturbations, ALL, n_replicas=20)
    alone = replicate(frame, {"a": matches}, perturbations, ALL[1:2], n_replicas=20)
    assert (both.of("a", ALL[1]) == alone.of("a", ALL[1])).all()
    pd.testing.assert_frame_equal(frame, before)
    assert (matches.intent == intent).all()
    assert (matches.weight == weight).all()


def test_perturbations_of_the_same_class_have_separate_streams():
    def log_odds(*perturbations):
        one = {"a": matched([0], [0])}
        success = replicate(one_query([0.5, 0.5]), one, perturbations, [Statistic("ES")], n_replicas=30).values.ravel()
        return np.log(success / (1 - success))

    once, twice = log_odds(ScoreNoise(0.5)), log_odds(ScoreNoise(0.5), ScoreNoise(0.5))
    assert abs(twice - 2 * once).min() > 1e-6
    assert log_odds(TemperatureJitter(1), ScoreNoise(0.5)) == pytest.approx(once, abs=1e-9), "even odds have no slope"


HASHED = """
import numpy as np, pandas as pd, hashlib
from vbterrier.stats import *
from vbterrier.stats.matches import Matches
from vbterrier.stats.replicas import replicate
frame = pd.DataFrame({"qid": ["é", "b", "é"], "entity_id": ["A", "A", "B"], "prob": [0.5, 1.0, 0.5]})
matches = Matches(np.array([0, 1]), np.array([0, 1]), docno=["x", "y"])
noise = [Dirichlet(2), TemperatureJitter(), ScoreNoise(), DropCandidates(), IntentBootstrap(), TagConfusion(0.5)]
values = replicate(frame, {"a": matches, "b": matches}, noise, n_replicas=20, seed=5).values
print(hashlib.sha256(values.tobytes()).hexdigest())
"""


@pytest.mark.nightly
def test_the_hash_seed_of_python_changes_nothing():
    results = set()
    for seed in ("0", "1", "77"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)}
        command = [sys.executable, "-c", HASHED]
        results.add(subprocess.run(command, capture_output=True, text=True, env=environment, check=True).stdout)
    assert len(results) == 1


def test_a_confused_tag_of_a_single_candidate_is_lost():
    system = {"a": matched([0], [0], docno=["d"])}
    single = replicate(one_query([1.0]), system, [TagConfusion(0.3)], n_replicas=2000)
    assert set(single.values.ravel()) == {0.0, 1.0}
    assert stats.binomtest(int((single.values[0, 0] == 0).sum()), 2000, 0.3).pvalue > RARE


def test_a_document_has_the_same_noise_in_every_system_and_at_every_rank():
    alone = [matched([0], [rank], docno=["x"]) for rank in (0, 4)]
    first, second = matched([0, 1], [0, 3], docno=["x", "y"]), matched([2, 0], [0, 4], docno=["z", "x"])
    systems = dict(enumerate([*alone, first, second]))
    frame, es = one_query([0.2, 0.3, 0.5]), [Statistic("ES", 5)]
    values = replicate(frame, systems, [TagConfusion(0.5, by="mention")], es, n_replicas=50).values[:, 0, :, 0]
    assert (values[0] == values[1]).all()
    assert len(set(values[0].round(3))) == 3
    assert (values[2:] >= values[0] - 1e-15).all(), "what covers x and more scores no less than x alone"


def test_documents_have_noise_of_their_own():
    systems = {name: matched([0, 2], [0, 0], docno=[name, name]) for name in "xy"}
    frame, es = two_queries([0.7, 0.3]), [Statistic("ES", 1)]
    values = replicate(frame, systems, [TagConfusion(0.5, by="mention")], es, n_replicas=2000).values[:, 0] > 0.5
    columns = [values[0, :, 0], values[0, :, 1], values[1, :, 0], values[1, :, 1]]
    assert (np.abs(np.corrcoef(columns)[np.triu_indices(4, 1)]) < 4 / math.sqrt(2000)).all()


def test_tags_hold_with_the_probability_that_their_weight_states_and_without_noise_as_observed():
    systems = {"a": matched([0, 1], [0, 1], [0.3, 1.0], docno=["x", "y"])}
    values = replicate(one_query([0.5] * 2), systems, [TagDropout()], [Statistic("ES", 2)], n_replicas=4000).values
    assert set(values.ravel()) == {0.5, 1.0}
    assert stats.binomtest(int((values == 1).sum()), 4000, 0.3).pvalue > RARE
    frame, matches = collection(5)
    result = replicate(frame, {"a": matches}, [TagConfusion(0.0)], ALL, n_replicas=4)
    assert (result.values == result.point[:, :, None]).all()


@pytest.mark.parametrize("gain", ["binary", "dcg"])
def test_gains_of_confused_tags_are_the_textbook_loop(gain):
    # All tags are confused and there are two candidates: each tag names the other one.
    pairs = [0, 0, 1, 1], [0, 2, 2, 3], [0.5, 1.0, 0.25, 1.0]
    matches = matched(*pairs, docno=["a", "c", "c", "d"], known=np.array([3, 4]))
    statistic = Statistic("ES", 4, gain=gain)
    value = replicate(one_query([0.9, 0.1]), {"a": matches}, [TagConfusion(1.0)], [statistic], n_replicas=2).values
    swapped = {"E0": ([(2, 0.25), (3, 1.0)], 3), "E1": ([(0, 0.5), (2, 1.0)], 4)}
    expected = score_of({"E0": 0.9, "E1": 0.1}, gain_of(swapped, statistic, 4), statistic)
    assert value.ravel() == pytest.approx([expected, expected], abs=1e-12)


def test_confused_tags_of_a_document_count_once_with_the_larger_weight_and_gain_no_more_than_all():
    matches = matched([0, 1], [0, 0], [0.5, 0.75], docno=["d", "d"], known=np.array([1, 1, 2]))
    dcg = [Statistic("ES", 2, gain="dcg"), Statistic("ES", 3, gain="dcg")]
    result = replicate(one_query([0.0, 0.0, 1.0]), {"a": matches}, [TagConfusion(1.0)], dcg[:1], n_replicas=200)
    ideal = 1 + 1 / math.log2(3)
    assert {round(value * ideal, 12) for value in result.values.ravel()} == {0.0, 0.5, 0.75}
    matches = matched([0, 0, 0], range(3), docno=["a", "b", "c"], known=np.array([3, 1]))
    result = replicate(one_query([0.0, 1.0]), {"a": matches}, [TagConfusion(1.0)], dcg[1:], n_replicas=2)
    assert (result.values == 1.0).all()


@pytest.mark.parametrize(
    ("matches", "expected"),
    [
        (matched([0], [2], nil=np.array([1]), until=np.array([2])), [0.25, 0.25, 0.75, 0.75]),
        (matched([], [], nil=np.array([1]), until=np.array([np.iinfo(np.int64).max])), [0.25] * 4),
    ],
    ids=["tagged", "silent"],
)
def test_a_nil_intent_is_served_up_to_the_first_tagged_document(matches, expected):
    frame = one_query([0.75, 0.25]).assign(entity_id=["A", "NIL"])
    result = replicate(frame, {"a": matches}, [], [Statistic("ES", k) for k in (1, 2, 3, None)], n_replicas=1)
    assert result.point.ravel() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    "statistic", [*ALL, Statistic("VB", 10, 0.5, "dcg", "intent", clip=True), Statistic("VB", None)]
)
def test_statistics_are_called_as_the_measures_are(statistic):
    parameters = {"VB": ["gain", "variance", "alpha", "clip", "monotone"], "VarPenalty": ["gain", "variance"]}
    options = {name: getattr(statistic, name) for name in parameters.get(statistic.measure, ["gain"])}
    measure = getattr(vbterrier, statistic.measure)(**options)
    assert str(statistic) == str(measure if statistic.cutoff is None else measure @ statistic.cutoff)


def test_the_jackknife_is_the_textbook_loop_over_possible_candidates():
    frame, matches = collection(6)
    result = left_out(frame, {"a": matches}, ALL)
    queries = by_query(frame, matches)
    assert result.shape == (1, len(ALL), max(map(len, queries.values())), len(queries))
    for place, candidates in enumerate(queries.values()):
        names = sorted(candidates)
        assert np.isnan(result[0, :, len(names) :, place]).all()
        for number, gone in enumerate(names):
            rest = {entity: candidates[entity] for entity in names if entity != gone}
            total = sum(p for p, _, _ in rest.values())
            prob = {entity: p / total for entity, (p, _, _) in rest.items()}
            expected = [expected_score(rest, statistic, prob) if rest else np.nan for statistic in ALL]
            assert result[0, :, number, place] == pytest.approx(expected, abs=1e-7, nan_ok=True)
    statistics = [Statistic("ES"), Statistic("TopIntent")]
    result = left_out(one_query([0.5, 0.0, 0.5]), {"a": matched([0], [0])}, statistics)
    assert np.isnan(result[0, :, 1]).all()
    assert result[0, :, [0, 2], 0].tolist() == [[0.0, 0.0], [1.0, 1.0]]


def test_frames_of_results_have_their_contract():
    frame, matches = collection(7)
    result = replicate(frame, {"a": matches, "b": matches}, [Dirichlet(5)], ALL[:2], n_replicas=40, seed=2)
    table = result.frame(level=0.9)
    assert " ".join(table.columns) == "name qid measure value mean std low high level method"
    assert len(table) == 2 * 2 * 6
    row = table[(table["name"] == "b") & (table["measure"] == "VB@5") & (table["qid"] == result.topics[2])].iloc[0]
    draws = result.of("b", ALL[1])[:, 2]
    assert (row["mean"], row["std"]) == pytest.approx((draws.mean(), draws.std(ddof=1)), abs=1e-12)
    assert (row["low"], row["high"]) == pytest.approx(tuple(np.quantile(draws, [0.05, 0.95])), abs=1e-12)
    intervals = result.intervals(level=0.9)
    columns = "name measure value low high level method n_qids n_resamples seed mean"
    assert intervals.columns.tolist() == columns.split()
    means = result.of("a", ALL[0]).mean(axis=1)
    expected = [result.point[0, 0].mean(), means.mean(), *np.quantile(means, [0.05, 0.95])]
    assert intervals.loc[0, ["value", "mean", "low", "high"]].tolist() == pytest.approx(expected)
    assert intervals["method"].unique().tolist() == ["replicas (percentile)"]


def test_resampled_intents_are_called_so_and_take_the_jackknife():
    frame, matches = collection(8)
    result = replicate(frame, {"a": matches}, [IntentBootstrap()], ALL[:2], n_replicas=60)
    without = left_out(frame, {"a": matches}, ALL[:2])
    for table, method in (
        (result.frame(), "percentile"),
        (result.intervals(method="bca"), "bca, acceleration 0"),
        (result.intervals(method="bca", left_out=without), "bca"),
        (result.frame(method="bca", left_out=without), "bca"),
    ):
        assert table["method"].unique().tolist() == [f"intents ({method})"]


def test_no_topics_and_no_systems_are_empty_results():
    frame, nobody, noise = collection(9)[0], {"a": matched([], [], docno=[])}, [Dirichlet(), TagConfusion()]
    empty = replicate(frame.iloc[:0], nobody, noise, n_replicas=3)
    assert (empty.values.shape, len(empty.frame())) == ((1, 2, 3, 0), 0)
    assert replicate(frame, {}, noise, n_replicas=3).values.shape == (0, 2, 3, 6)
    assert (replicate(frame, nobody, noise, n_replicas=3).values == 0).all()


def test_a_bar_is_shown_when_asked_for(capsys, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    frame, matches = collection(9)
    replicate(frame, {"a": matches}, [Dirichlet()], n_replicas=3)
    assert not capsys.readouterr().err
    replicate(frame, {"a": matches}, [Dirichlet()], n_replicas=3, progress=True)
    assert "replicas:   0%|          | 0/6" in capsys.readouterr().err


class Emptied:
    def apply(self, state, draws):
        assert draws.n > 0
        return state.with_base(np.where(state.candidates.topic == 1, -np.inf, state.log_base))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"n_replicas": 0}, ParameterError, "n_replicas=0: wanted a whole number of at least 1"),
        ({"n_replicas": 2.0}, ParameterError, "n_replicas=2.0"),
        ({"seed": -1}, ParameterError, "seed=-1: wanted a whole number of at least 0"),
        ({"perturbations": [Dirichlet]}, ParameterError, r"wanted an object with apply, such as Dirichlet\(10\)"),
        ({"perturbations": ["noise"]}, ParameterError, "perturbation 'noise': wanted an object with apply"),
        ({"perturbations": [Emptied()]}, InputError, "has no candidate left after .*Emptied"),
        ({"perturbations": [DropConstraints()]}, InputError, "needs the column 'violations'"),
    ],
)
def test_what_cannot_be_replicated_is_refused(options, error, message):
    frame, matches = collection(0)
    perturbations = options.pop("perturbations", [Dirichlet()])
    with pytest.raises(error, match=message):
        replicate(frame, {"a": matches}, perturbations, **options)


ONE, DCG = one_query([1.0], "1"), [Statistic("ES", None, gain="dcg")]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"statistics": DCG}, "gain='dcg' without a cutoff needs the number of known documents"),
        ({"perturbations": [Variants([ONE.assign(qid=[1])])]}, "'qid' holds text, variants .* integers"),
        ({"perturbations": [Variants([ONE.assign(qid="2")])]}, "no query in common .*: found '2', wanted"),
    ],
)
def test_matches_that_do_not_fit_are_refused(options, message):
    with pytest.raises((InputError, ParameterError), match=message):
        replicate(ONE, {"bm25": matched([0], [0])}, **{"perturbations": [], **options})


def test_what_was_not_replicated_is_said():
    frame, matches = collection(0)
    result = replicate(frame, {"a": matches}, [], n_replicas=1)
    with pytest.raises(ParameterError, match="system 'b' was not replicated; found 'a'"):
        result.of("b", Statistic("ES"))
    with pytest.raises(ParameterError, match="statistic 'ES@3' was not replicated; found 'ES@10', 'VB@10'"):
        result.of("a", Statistic("ES", 3))
