"""Correlated errors of taggers, models of them from labelled documents, and scores under gold tags."""

from collections import Counter
from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.optimize import approx_fprime

from vbterrier.errors import DegenerateWarning, InputError
from vbterrier.kernels.grade_regression import sigmoid
from vbterrier.stats import TagConfusion, fit_tagger
from vbterrier.stats.gold_scores import Posterior, RetrievedPairs, gold_scores
from vbterrier.stats.matches import Matches, Statistic
from vbterrier.stats.replicas import replicate

RARE = 1e-4
N = 4000
ES = [Statistic("ES", 1)]


def systems_of(entities, documents):
    """A system for each entity and document, so that ES shows what that tag became."""
    pairs = product(range(entities), range(documents))
    return {(e, d): Matches(np.array([e]), np.array([0]), docno=[f"d{e}-{d}"]) for e, d in pairs}


def outcomes(noise, entities=3, documents=2, n=N):
    """The candidate that each tag names in each replica, -1 for a lost tag: (entity, document) -> shape (n,)."""
    prob = 2.0 ** np.arange(entities)
    frame = pd.DataFrame({"qid": "q", "entity_id": [*"ABCDEF"[:entities]], "prob": prob / prob.sum()})
    replicas = replicate(frame, systems_of(entities, documents), [noise], ES, n_replicas=n)
    named = np.rint(np.log2(np.maximum(replicas.values[:, 0, :, 0] * prob.sum(), 0.5))).astype(int)
    return dict(zip(replicas.systems, named, strict=True))


@pytest.mark.parametrize("by", ["name", "entity", "mention"])
def test_every_tag_has_the_same_probabilities_whatever_shares_an_error(by):
    result = outcomes(TagConfusion(0.4, lost=0.25, by=by))
    for (entity, _), named in result.items():
        expected = {-1: 0.1, entity: 0.6, **dict.fromkeys({0, 1, 2} - {entity}, 0.15)}
        counts = Counter(named.tolist())
        assert set(counts) == set(expected)
        assert (
            stats.chisquare([counts[key] for key in expected], [share * N for share in expected.values()]).pvalue > RARE
        )


def test_tags_of_a_unit_share_their_error():
    mention, entity, name = (outcomes(TagConfusion(0.4, lost=0.25, by=by)) for by in ("mention", "entity", "name"))
    assert (mention[0, 0] != mention[0, 1]).mean() > 0.3
    assert all((entity[i, 0] == entity[i, 1]).all() for i in range(3))
    assert (name[0, 0] == name[0, 1]).all()
    right = {by: np.array([result[i, 0] == i for i in range(3)]) for by, result in (("entity", entity), ("name", name))}
    assert (right["name"][0] == right["name"][1]).all()
    agree = (right["entity"][0] == right["entity"][1]).mean()
    assert agree == pytest.approx(0.6**2 + 0.4**2, abs=0.04)
    # One candidate replaces the name: both others get the same one.
    wrong = ~right["name"][0] & (name[0, 0] >= 0)
    assert (Counter(zip(name[0, 0][wrong], name[1, 0][wrong], strict=True))).keys() <= {(1, 0), (2, 2)}


def planted(n_documents=300, strength=0.8, seed=0):
    """Gold tags and tags of a tagger that finds some entities mostly and others rarely."""
    rng = np.random.default_rng(seed)
    rate = rng.beta(0.6 * strength, 0.4 * strength, 60)
    gold = [(f"d{d}", f"E{e}") for d in range(n_documents) for e in rng.choice(60, 5, replace=False)]
    kept = [pair for pair in gold if rng.random() < rate[int(pair[1][1:])]]
    return (pd.DataFrame(pairs, columns=["docno", "entity_id"]) for pairs in (kept, gold))


def test_a_model_has_the_counts_of_plain_loops_and_recovers_a_planted_strength():
    tags, gold = planted()
    model = fit_tagger(tags, gold)
    right, there = (set(frame.itertuples(index=False, name=None)) for frame in (gold, tags))
    n_gold, n_found = Counter(e for _, e in right), Counter(e for _, e in right & there)
    for row in model.entities.itertuples():
        assert (row.n_gold, row.n_found) == (n_gold[row.entity_id], n_found[row.entity_id])
        share = row.n_found / row.n_gold
        mean = sigmoid(np.float64(model.intercept))
        assert min(share, mean) - 1e-9 <= row.found <= max(share, mean) + 1e-9, "shrunk towards the mean"
    assert (model.slope, model.lost, model.spurious, len(model.confusions)) == (0, 1, 0, 0)
    assert model.strength == pytest.approx(0.8, abs=0.35)
    assert "300 labelled documents" in str(model)
    assert fit_tagger(tags.sample(frac=1, random_state=1), gold[::-1]).entities.equals(model.entities)


TAGS = pd.DataFrame({"docno": ["d1", "d2", "d3", "d3", "x"], "entity_id": ["A", "A", "B", "Z", "A"]})
GOLD = pd.DataFrame({"docno": ["d1", "d2", "d3", "d4"], "entity_id": ["B", "A", "C", "B"]})
INTENTS = pd.DataFrame({"qid": ["q", "q", "r"], "entity_id": ["A", "B", "C"], "prob": [0.75, 0.25, 1.0]})
few = pytest.mark.filterwarnings("ignore:.*labelled documents. rates")


@few
def test_confusions_are_between_candidates_of_a_query():
    model = fit_tagger(TAGS, GOLD)
    assert model.confusions.to_numpy().tolist() == [["B", "A", 1.0], ["C", "B", 0.5], ["C", "Z", 0.5]]
    assert (model.lost, model.spurious) == (0.0, 0.75)
    model = fit_tagger(TAGS, GOLD, intents=INTENTS, documents=["d1", "d2", "d3", "d4", "d5"])
    assert model.confusions.to_numpy().tolist() == [["B", "A", 1.0]]
    # B in d4 and C in d3 are lost, B in d1 is replaced by A.
    assert (model.lost, model.spurious, len(model.labelled)) == (pytest.approx(2 / 3), 0.6, 5)


@few
@pytest.mark.parametrize(
    ("sample", "message"),
    [
        ((TAGS.assign(qid="q"), GOLD), "tags: found a column qid; a tagger model needs tags of documents"),
        ((TAGS, GOLD, {"documents": ["d1"]}), r"gold has tags of 3 documents \('d2', 'd3', 'd4'\) that are not among"),
        ((TAGS, GOLD, {"documents": "d1"}), "documents='d1': wanted ids or a frame"),
        ((TAGS, GOLD[:0]), "gold has no rows"),
        ((TAGS, GOLD.assign(entity_id="Z"), {"intents": INTENTS}), "gold has no tag of a candidate"),
        ((TAGS.assign(docno=[1, 2, 3, 3, 4]), GOLD), "docno"),
    ],
)
def test_samples_that_give_no_model(sample, message):
    *frames, options = sample if isinstance(sample[-1], dict) else (*sample, {})
    with pytest.raises(InputError, match=message):
        fit_tagger(*frames, **options)


def test_small_samples_and_other_ids_are_noticed():
    with pytest.warns(DegenerateWarning, match="4 labelled documents: rates of the tagger are mostly guesses"):
        fit_tagger(TAGS, GOLD)
    _, gold = planted()
    with pytest.warns(DegenerateWarning, match="tags have none of the labelled documents"):
        fit_tagger(TAGS.assign(docno="unknown"), gold)


@few
def test_fitted_errors_repeat_and_have_the_posterior_rates():
    documents = [f"d{number}" for number in range(40)]
    gold = pd.DataFrame({"docno": documents * 2, "entity_id": ["A"] * 40 + ["B"] * 40})
    tags = pd.DataFrame({"docno": documents[:30] + documents, "entity_id": ["A"] * 30 + ["C"] * 40})
    intents = pd.DataFrame({"qid": "q", "entity_id": ["A", "B", "C"], "prob": [1 / 7, 2 / 7, 4 / 7]})
    model = fit_tagger(tags, gold, intents=intents)
    result = outcomes(model.errors)
    posterior = model.entities.set_index("entity_id")["found"]
    for entity, name in enumerate("AB"):
        right = result[entity, 0] == entity
        assert stats.binomtest(int(right.sum()), N, posterior[name]).pvalue > RARE
    # B was always replaced by C, and is in nearly all replicas; both documents get the same candidate.
    wrong = (result[1, 0] != 1) & (result[1, 1] != 1)
    assert (result[1, 0][wrong] == result[1, 1][wrong]).all()
    assert (result[1, 0] == 2).mean() > 0.9
    assert repr(model.errors).startswith("TaggerErrors(40 labelled documents")


@few
def test_fitted_errors_follow_other_errors():
    model = fit_tagger(TAGS, GOLD, intents=INTENTS)
    # All tags are lost by then; a wrong tag is one of the candidate that it names by then.
    frame = pd.DataFrame({"qid": "q", "entity_id": [*"ABC"], "prob": [1 / 7, 2 / 7, 4 / 7]})
    noise = [TagConfusion(1.0, lost=1.0), model.errors]
    assert not replicate(frame, systems_of(3, 1), noise, ES, n_replicas=20).values.any()
    both = replicate(frame, systems_of(3, 1), [TagConfusion(0.5, by="mention"), model.errors], ES, n_replicas=N)
    rate = model.entities.set_index("entity_id")["found"]
    right = (both.values[0, 0, :, 0].round(6) == round(1 / 7, 6)).mean()
    assert right > 0.5 * rate["A"] - 0.05, "A that stayed A and was found, and some that others became"


def pairs_of(n_topics=40, seed=0, *, share=0.3, tagged=0.6):
    """Retrieved documents, each about one of the two intents of its query; some are tagged, some labelled."""
    rng = np.random.default_rng(seed)
    topic, prob = np.repeat(np.arange(n_topics), 2), np.tile([0.7, 0.3], n_topics)
    count = np.repeat(rng.integers(1, 6, n_topics), 2)
    intent = np.repeat(np.arange(2 * n_topics), count)
    rank = np.concatenate([np.arange(each) for each in count])
    meant = rng.random((n_topics, 6)) < 0.7
    about = meant[topic[intent], rank] == (intent % 2 == 0)
    labelled = (rng.random((n_topics, 6)) < share)[topic[intent], rank]
    result = about & (rng.random((n_topics, 2)) < tagged)[topic[intent], intent % 2]
    topics = [f"q{number:02d}" for number in range(n_topics)]
    return RetrievedPairs(topics, topic, prob, intent, rank, result, labelled, about & labelled), about


def coefficients(seed):
    """Coefficients of seven features, two of attestation, and the logarithm of the standard deviation of effects."""
    return np.append(np.random.default_rng(seed).normal(0, 0.7, 9), -0.4)


def test_the_gradient_is_that_of_the_density():
    posterior, at = Posterior(pairs_of()[0], 0.5), coefficients(1)
    slope = approx_fprime(at, lambda one: posterior.negative(one)[0], 1e-6)
    assert posterior.negative(at)[1] == pytest.approx(slope, abs=2e-4)


def test_coverage_and_density_are_those_of_all_possible_gold_tags():
    pairs, _ = pairs_of(4, seed=2, share=0.4)
    posterior, at = Posterior(pairs, 1.0), coefficients(3)
    nodes, weights = np.polynomial.hermite_e.hermegauss(5)
    weights = weights / weights.sum()
    effect = np.exp(at[9]) * np.log1p(pairs.rank)[:, None] * nodes
    r, attested = sigmoid((pairs.features @ at[:7])[:, None] + effect), sigmoid(posterior.v @ at[7:9])
    coverage = posterior.coverage(at, [1, 2, None])
    log_density = 0.0
    for intent in range(len(pairs.prob)):
        rows = np.flatnonzero(pairs.intent == intent)
        some = 1 - weights @ np.prod(1 - r[rows], axis=0)
        total, covered = 0.0, np.zeros(3)
        for about in product([0, 1], repeat=len(rows)):
            if any(pairs.labelled[row] and pairs.gold[row] != one for row, one in zip(rows, about, strict=True)):
                continue
            likelihood = weights @ np.prod(np.where(np.array(about)[:, None], r[rows], 1 - r[rows]), axis=0)
            likelihood *= 1 - attested[intent] + attested[intent] * any(about) / some
            total += likelihood
            covered += likelihood * np.array([about[0], any(about[:2]), any(about)])
        log_density += np.log(total)
        assert coverage[:, intent] == pytest.approx(covered / total, abs=1e-9)
    penalty = 0.5 * float(posterior.precision @ (at - posterior.mean) ** 2)
    assert posterior.negative(at)[0] == pytest.approx(penalty - log_density, abs=1e-6)


def test_documents_that_repeat_each_other_cover_less_and_the_first_is_unchanged():
    pairs, _ = pairs_of(share=0)
    posterior, at = Posterior(pairs, 1.0), coefficients(4)
    # No intent must be attested, so that documents are independent given the effects.
    at[7:9] = -30, 0
    fewer, same, more = (posterior.coverage(at, [1, 3], factor) for factor in (0.5, 1.0, 2.0))
    assert fewer[0] == pytest.approx(same[0], abs=1e-12)
    assert more[0] == pytest.approx(same[0], abs=1e-12)
    several = pairs.sums(np.ones(len(pairs.rank))) > 1
    assert (fewer[1] < same[1])[several].all()
    assert (same[1] < more[1])[several].all()


def test_draws_have_the_mean_of_the_estimate_and_do_not_exceed_1():
    pairs, _ = pairs_of(60, seed=5)
    estimates, draws = gold_scores(pairs, [Statistic("ES", 1), Statistic("VB", 5)], n_replicas=60, seed=1)
    assert draws.mean(axis=1) == pytest.approx(estimates.mean(axis=1), abs=1e-9)
    assert draws.max() <= 1
    assert (draws.std(axis=1) > estimates.std(axis=1) / 2).all()


def test_labels_of_all_documents_give_the_score_itself():
    pairs, about = pairs_of(share=1.1)
    statistics = [Statistic("ES", 2), Statistic("VB", None)]
    for result in gold_scores(pairs, statistics, n_replicas=20, seed=0):
        for row, (statistic, cutoff) in enumerate(zip(statistics, (2, 9), strict=True)):
            covered = np.zeros(len(pairs.prob))
            np.maximum.at(covered, pairs.intent, about & (pairs.rank < cutoff))
            es = np.bincount(pairs.topic, pairs.prob * covered)
            value = es if statistic.measure == "ES" else es - np.sqrt(np.maximum(es * (1 - es), 0))
            assert result[row] == pytest.approx(np.full(20, value.mean()), abs=1e-9)


@pytest.mark.nightly
def test_estimates_are_close_to_gold_where_tags_are_not():
    covered, errors = 0, []
    for seed in range(12):
        pairs, about = pairs_of(120, seed, tagged=0.4)
        gold, tagged = (np.zeros(len(pairs.prob)) for _ in range(2))
        np.maximum.at(gold, pairs.intent, about)
        np.maximum.at(tagged, pairs.intent, pairs.tagged)
        truth, naive = ((pairs.prob * one).sum() / 120 for one in (gold, tagged))
        estimates, draws = gold_scores(pairs, [Statistic("ES", None)], n_replicas=100, seed=seed)
        low, high = np.quantile(draws[0], [0.025, 0.975])
        covered += low <= truth <= high
        errors.append((abs(estimates.mean() - truth), abs(naive - truth)))
    ours, theirs = np.mean(errors, axis=0)
    assert covered >= 10
    assert ours < theirs / 8


def test_no_labelled_document_is_an_error():
    with pytest.raises(InputError, match="labels of none of the retrieved documents"):
        gold_scores(pairs_of(share=0)[0], ES, n_replicas=5, seed=0)
