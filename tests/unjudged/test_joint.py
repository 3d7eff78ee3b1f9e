"""Systems drawn together, against the common urn followed by hand, number by number."""

import dataclasses
import itertools
import math

import numpy as np
import pandas as pd
import pytest
from urn import assigned_grades

from vbterrier import read_qrels, read_run
from vbterrier.errors import InputError, ParameterError
from vbterrier.frames.ranking import Run
from vbterrier.unjudged import joint as module
from vbterrier.unjudged.distribution import BootstrapDistribution
from vbterrier.unjudged.incomplete import subsample_qrels
from vbterrier.unjudged.joint import JointDistribution
from vbterrier.unjudged.metrics import AP, NDCG
from vbterrier.unjudged.pool import Judgments
from vbterrier.unjudged.priors import Process

K = 4
# Too narrow by chance once in a million.
SURE = math.sqrt(math.log(2e6) / 2)


def run(lists, **columns):
    rows = [(qid, docno, -float(rank)) for qid, docnos in lists.items() for rank, docno in enumerate(docnos)]
    return pd.DataFrame(rows, columns=["qid", "docno", "score"]).assign(**columns)


def joint_draws(distributions, n_draws=1000, seed=0):
    """Joint draws of all topics, shape (n_systems, n_topics, n_draws)."""
    joint = JointDistribution(distributions)
    return np.stack([joint.scores(topic, n_draws, seed) for topic in range(len(joint.topics))], axis=1)


def pool_of(labels):
    rows = [(qid, docno, label) for qid, of in labels.items() for docno, label in of.items()]
    return pd.DataFrame(rows, columns=["qid", "docno", "label"])


def cuts_of(frames, qrels, k=K):
    pool = Judgments(qrels)
    return {name: pool.judge(Run(frame, name=name), k) for name, frame in frames.items()}


def distribution_of(cuts, metric=None, **process):
    process.setdefault("prior", "pool")
    return {name: BootstrapDistribution(cut, Process(**process), metric) for name, cut in cuts.items()}


def with_strength(distribution, strength):
    """The same distribution with another prior strength."""
    changed = BootstrapDistribution.__new__(BootstrapDistribution)
    changed.__dict__.update({key: value for key, value in distribution.__dict__.items() if key != "distributions"})
    changed.strength = np.full(len(distribution), float(strength))
    changed.model = dataclasses.replace(distribution.model, strength=changed.strength)
    return changed


# The textbook: numbers of documents are cells of [0, 1] within which no system's grade changes.


def ndcg(grades, labels, k=K):
    ideal = sum(g / math.log2(r + 2) for r, g in enumerate(sorted(labels.values(), reverse=True)[:k]))
    return sum(g / math.log2(r + 2) for r, g in enumerate(grades)) / ideal if ideal else 0.0


def joint_by_hand(lists, labels, priors, strength, k=K):
    """{scores of all systems: probability} of one topic; priors: probabilities of grades by system and document."""
    unjudged = sorted({docno for docnos in lists.values() for docno in docnos[:k] if docno not in labels})
    edges = {0.0, 1.0}
    for of in priors.values():
        for prob in of.values():
            edges.update(end for end in itertools.accumulate(prob[:-1]) if end < 1 - 1e-12)
    cells = [((low + high) / 2, high - low) for low, high in itertools.pairwise(sorted(edges))]
    outcome = {}
    for balls in itertools.product(range(len(cells)), repeat=len(unjudged)):
        chance = 1.0
        for i, ball in enumerate(balls):
            fresh, seen = cells[ball][1], balls[:i].count(ball)
            chance *= fresh if math.isinf(strength) else (strength * fresh + seen) / (strength + i)
        number = {docno: cells[ball][0] for docno, ball in zip(unjudged, balls, strict=True)}
        scores = tuple(score_by_hand(lists[name][:k], labels, priors[name], number) for name in lists)
        outcome[scores] = outcome.get(scores, 0.0) + chance
    return outcome


def score_by_hand(docnos, labels, prior, number):
    top = max(labels.values())
    left = [sum(1 for docno, label in labels.items() if label == g and docno not in docnos) for g in range(top + 1)]
    left[0] = 10**6
    new = [docno for docno in docnos if docno not in labels]
    drawn = [sum(end <= number[docno] for end in itertools.accumulate(prior[docno][:-1])) for docno in new]
    grades = {**labels, **dict(zip(new, assigned_grades(drawn, left), strict=True))}
    return round(ndcg([grades[docno] for docno in docnos], labels), 11)


def moments_by_hand(outcome):
    scores, chance = np.array(list(outcome)), np.array(list(outcome.values()))
    mean = chance @ scores
    return mean, (scores - mean).T @ (chance[:, None] * (scores - mean))


PLENTY = {"a": 2, "b": 2, "c": 1, "d": 1, "e": 0, "f": 0, **{f"x{i}{g}": g for i in range(5) for g in (1, 2)}}
SCARCE = {"a": 2, "b": 1, "c": 0, "d": 1, "e": 2}
LISTS = {"one": ["n1", "a", "n2", "n3"], "two": ["n3", "n1", "c", "n4"], "three": ["a", "b", "n2", "e"]}
PRIOR = {0: 0.5, 1: 0.3, 2: 0.2}


def same_prior(lists, prior=PRIOR):
    return {name: {docno: list(prior.values()) for docno in docnos} for name, docnos in lists.items()}


def topic_of(labels, lists=LISTS, *, prior=PRIOR, strength=math.inf, **options):
    frames = {name: run({"q": docnos}, **options.get(name, {})) for name, docnos in lists.items()}
    cuts = cuts_of(frames, pool_of({"q": labels}))
    return distribution_of(cuts, prior=prior, prior_strength=strength)


@pytest.mark.parametrize("strength", [0.3, 4.0, math.inf])
@pytest.mark.parametrize("labels", [PLENTY, SCARCE])
def test_draws_follow_the_common_urn(labels, strength):
    outcome = joint_by_hand(LISTS, labels, same_prior(LISTS), strength)
    assert sum(outcome.values()) == pytest.approx(1)
    distributions = topic_of(labels, strength=strength)
    n_draws = 40_000
    draws = joint_draws(distributions, n_draws, seed=3)
    assert draws.shape == (3, 1, n_draws)
    result, counts = np.unique(draws[:, 0].T.round(11), axis=0, return_counts=True)
    seen = dict(zip(map(tuple, result.tolist()), (counts / n_draws).tolist(), strict=True))
    expected = {tuple(np.round(key, 11)): chance for key, chance in outcome.items()}
    apart = {key: abs(seen.get(key, 0) - expected.get(key, 0)) for key in {*seen, *expected}}
    assert set(seen) <= set(expected)
    assert max(apart.values()) < SURE / math.sqrt(n_draws)


@pytest.mark.parametrize("strength", [0.3, 4.0, math.inf])
def test_covariance_is_that_of_all_assignments(strength):
    _, covariance = moments_by_hand(joint_by_hand(LISTS, PLENTY, same_prior(LISTS), strength))
    distributions = topic_of(PLENTY, strength=strength)
    joint = JointDistribution(distributions)
    for a, b in itertools.product(range(3), repeat=2):
        names = list(LISTS)
        assert joint.covariance(names[a], names[b])[0] == pytest.approx(covariance[a, b], abs=1e-11)
    variances = [distribution.std[0] ** 2 for distribution in distributions.values()]
    assert variances == pytest.approx(np.diag(covariance), abs=1e-11)


@pytest.mark.parametrize("strength", [2.0, math.inf])
def test_documents_with_their_own_priors(strength):
    rng = np.random.default_rng(5)
    prob = {name: rng.multinomial(5, [0.4, 0.3, 0.3], K) / 5 for name in LISTS}
    columns = {name: {"grade_prob": of.tolist()} for name, of in prob.items()}
    distributions = topic_of(PLENTY, prior="column", strength=strength, **columns)
    priors = {name: dict(zip(LISTS[name], prob[name].tolist(), strict=True)) for name in LISTS}
    mean, covariance = moments_by_hand(joint_by_hand(LISTS, PLENTY, priors, strength))
    joint = JointDistribution(distributions)
    assert joint.covariance("one", "two")[0] == pytest.approx(covariance[0, 1], abs=1e-11)
    draws = joint.scores(0, 60_000, seed=2)
    assert draws.mean(axis=1) == pytest.approx(mean, abs=0.004)
    assert np.cov(draws) == pytest.approx(covariance, abs=0.002)


@pytest.fixture(scope="module")
def many():
    """Five runs over six topics in part judged."""
    rng = np.random.default_rng(0)
    documents = [f"d{i:02}" for i in range(24)]
    labels = {
        f"q{q}": {docno: int(rng.choice(3, p=[0.5, 0.3, 0.2])) for docno in documents if rng.random() < 0.6}
        for q in range(6)
    }
    frames = {f"r{i}": run({qid: rng.permutation(documents)[:9].tolist() for qid in labels}) for i in range(5)}
    return frames, pool_of(labels)


def distance(draws, distribution):
    """Kolmogorov's distance of draws to a distribution."""
    values, probs = distribution.atoms()
    at = np.searchsorted(np.sort(draws), values + 1e-9, side="right") / len(draws)
    return np.abs(at - np.cumsum(probs)).max()


@pytest.mark.parametrize(("strength", "most_numbers"), [(1.5, 1000), (1.5, 1 << 22), (20.0, 1 << 22), (math.inf, 1000)])
def test_each_system_follows_its_own_law(many, strength, most_numbers, monkeypatch):
    monkeypatch.setattr(module, "BLOCK_CELLS", most_numbers)
    cuts = cuts_of(*many, k=6)
    distributions = distribution_of(cuts, prior="pool+run", all_unjudged="pool", prior_strength=strength)
    n_draws = 8000
    draws = joint_draws(distributions, n_draws, seed=7)
    for at, distribution in enumerate(distributions.values()):
        assert distribution.n_unjudged.max() > 2
        for topic in range(len(distribution)):
            assert distance(draws[at, topic], distribution.distributions[topic]) < SURE / math.sqrt(n_draws)


def test_scores_that_are_no_sums_follow_their_law_and_have_no_closed_form(many):
    cuts = cuts_of(*many, k=5)
    distributions = distribution_of(cuts, AP(), prior_strength=3.0)
    joint, n_draws = JointDistribution(distributions), 5000
    for at, distribution in enumerate(distributions.values()):
        assert distance(joint.scores(2, n_draws, 1)[at], distribution.distributions[2]) < SURE / math.sqrt(n_draws)
    assert np.isnan(joint.covariance("r0", "r1")).all()


def test_no_closed_form_where_grades_run_out():
    distributions = topic_of(SCARCE)
    joint = JointDistribution(distributions)
    for other in ("two", "three"):
        assert np.isnan(joint.covariance("one", other)).all()
        assert np.isnan(joint.covariance(other, "one")).all()
    # A single unjudged document finds both of its grades.
    assert joint.covariance("three", "three")[0] == pytest.approx(distributions["three"].std[0] ** 2)


def test_document_ids_count_within_a_topic_only():
    lists = {"one": {"q1": ["n", "a"], "q2": ["m", "a"]}, "two": {"q1": ["m", "a"], "q2": ["n", "a"]}}
    labels = {qid: {"a": 1, "b": 1, "x": 1, "c": 0} for qid in ("q1", "q2")}
    cuts = cuts_of({name: run(of) for name, of in lists.items()}, pool_of(labels))
    joint = JointDistribution(distribution_of(cuts, prior_strength=math.inf))
    assert joint.n_union.tolist() == [2, 2]
    assert joint.covariance("one", "two").tolist() == [0.0, 0.0]


def test_ids_that_are_numbers():
    frames = {"one": run({"q": [7, 10]}), "two": run({"q": [10, 9]})}
    qrels = pd.DataFrame({"qid": "q", "docno": [1, 2, 3, 9], "label": [1, 1, 0, 0]})
    cuts = cuts_of(frames, qrels)
    joint = JointDistribution(distribution_of(cuts))
    assert joint.n_union.tolist() == [2]
    assert joint.covariance("one", "two")[0] > 0


def test_common_strength_has_the_mean_correlation_of_documents():
    distributions = topic_of(PLENTY)
    distributions = {
        name: with_strength(distribution, s)
        for (name, distribution), s in zip(distributions.items(), (1.0, 4.0, 9.0), strict=True)
    }
    assert [distribution.n_unjudged[0] for distribution in distributions.values()] == [3, 3, 1]
    alike = (3 / 2 + 3 / 5 + 1 / 10) / 7
    joint = JointDistribution(distributions)
    assert joint.strength.tolist() == pytest.approx([1 / alike - 1])
    _, covariance = moments_by_hand(joint_by_hand(LISTS, PLENTY, same_prior(LISTS), 1 / alike - 1))
    assert joint.covariance("one", "two")[0] == pytest.approx(covariance[0, 1], abs=1e-11)
    assert np.cov(joint.scores(0, 40_000, 1)) == pytest.approx(covariance, abs=0.002)


def test_a_system_with_nothing_unjudged_has_no_say_in_the_strength():
    distributions = topic_of(PLENTY, {**LISTS, "known": ["a", "b", "c"]}, strength=3.0)
    distributions["known"] = with_strength(distributions["known"], math.inf)
    assert JointDistribution(distributions).strength.tolist() == pytest.approx([3.0])


@pytest.mark.parametrize("strength", [0.1, 3.0, 1e12, math.inf])
def test_equal_strengths_stay_as_they_are(strength):
    distributions = topic_of(PLENTY, strength=strength)
    assert JointDistribution(distributions).strength.tolist() == [strength]


def test_order_of_systems_rows_and_topics_changes_nothing(many):
    frames, qrels = many
    names = list(frames)
    cuts = cuts_of(frames, qrels)
    first = JointDistribution(distribution_of(cuts, prior_strength=2.0))
    turned = {name: frames[name].sample(frac=1, random_state=1) for name in reversed(names)}
    cuts = cuts_of(turned, qrels.sort_values("qid", ascending=False, kind="stable"))
    second = JointDistribution(distribution_of(cuts, prior_strength=2.0))
    assert second.topics == first.topics[::-1]
    for topic in range(6):
        np.testing.assert_array_equal(second.scores(5 - topic, 60, 4)[::-1], first.scores(topic, 60, 4))


def test_seeds_and_topics_are_told_apart(many):
    cuts = cuts_of(*many)
    distributions = distribution_of(cuts)
    one, same, other = (joint_draws(distributions, 40, seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()
    lists = {qid: ["n1", "n2", "n3"] for qid in ("q1", "q2")}
    cuts = cuts_of({"r": run(lists)}, pool_of(dict.fromkeys(lists, PLENTY)))
    alike = joint_draws(distribution_of(cuts), 40)[0]
    assert (alike[0] != alike[1]).any()


@pytest.mark.filterwarnings("ignore::vbterrier.errors.DegenerateWarning")
def test_nothing_unjudged_and_nothing_retrieved():
    frames = {"full": run({"q": ["a", "c"]}), "none": run({"q": []})}
    cuts = cuts_of(frames, pool_of({"q": PLENTY}))
    joint = JointDistribution(distribution_of(cuts))
    assert joint.n_union.tolist() == [0]
    draws = joint.scores(0, 3)
    assert draws[0].tolist() == [joint.distributions[0].mean[0]] * 3
    assert draws[1].tolist() == [0.0] * 3
    assert joint.covariance("full", "none").tolist() == [0.0]
    assert joint_draws(distribution_of(cuts), 0).shape == (2, 1, 0)


@pytest.mark.filterwarnings("ignore:.*(is|are) left out:vbterrier.errors.DegenerateWarning")
def test_what_does_not_belong_together_is_refused(many):
    frames, qrels = many
    cuts = cuts_of(frames, qrels)
    distributions = distribution_of(cuts)
    with pytest.raises(InputError, match="no systems"):
        JointDistribution({})
    with pytest.raises(ParameterError, match="no system 'r9'"):
        JointDistribution(distributions).covariance("r0", "r9")
    fewer = cuts_of(frames, qrels[qrels["qid"] != "q3"])
    with pytest.raises(InputError, match="'r1' have different topics: 'q3'"):
        JointDistribution({**distributions, "r1": distribution_of(fewer)["r1"]})
    with pytest.raises(InputError, match="'r1' have different grades or gains"):
        JointDistribution({**distributions, "r1": distribution_of(cuts, NDCG("exp-log2"))["r1"]})


@pytest.mark.filterwarnings("ignore:.*(is|are) left out:vbterrier.errors.DegenerateWarning")
def test_shared_documents_narrow_differences_on_trec_covid(shared_data):
    folder = shared_data / "trec-covid"
    frames = {name: read_run(folder / f"run.{name}.top100.txt.gz") for name in ("ance", "BBGhelani2")}
    qrels = read_qrels(folder / "qrels.complete.txt.gz")
    topics = set(frames["ance"]["qid"]) & set(frames["BBGhelani2"]["qid"])
    cuts = cuts_of(frames, subsample_qrels(qrels[qrels["qid"].isin(topics)], 0.5, 1), k=10)
    distributions = distribution_of(cuts, prior_strength=5.0)
    joint, n_draws = JointDistribution(distributions), 1500
    covariance = joint.covariance("ance", "BBGhelani2")
    closed = np.flatnonzero(~np.isnan(covariance))
    assert len(closed) > 20
    draws = np.array([joint.scores(topic, n_draws, 1) for topic in closed])
    spread = np.array([distribution.std[closed] for distribution in distributions.values()])
    sampled = ((draws[:, 0] - draws[:, 0].mean(1)[:, None]) * (draws[:, 1] - draws[:, 1].mean(1)[:, None])).mean(axis=1)
    assert sampled == pytest.approx(covariance[closed], abs=0.004)
    assert (covariance[closed] >= -1e-12).all()
    independent = (spread**2).sum()
    assert 0.4 < (independent - 2 * covariance[closed].sum()) / independent < 0.7
