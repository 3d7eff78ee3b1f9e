"""Constants of the evidence model, by what they change: refusals, levels of estimates, coverage, unseen documents."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from vbterrier.errors import InputError
from vbterrier.frames.ranking import Run
from vbterrier.unjudged.draws import GradeDraws
from vbterrier.unjudged.evidence import collect_evidence
from vbterrier.unjudged.features import neighbours
from vbterrier.unjudged.fitted import fit
from vbterrier.unjudged.incomplete import shallow_pool
from vbterrier.unjudged.model import Constants, fit_model
from vbterrier.unjudged.pool import Judgments


def judged(n_non_relevant, n=100):
    rows = [("q1", f"d{place}", int(place >= n_non_relevant)) for place in range(n)]
    qrels = pd.DataFrame(rows, columns=["qid", "docno", "label"])
    run = qrels[["qid", "docno"]].assign(score=-np.arange(n, dtype=float)).iloc[::2]
    return {"a": pd.concat([run, pd.DataFrame([("q1", "new", 9.0)], columns=run.columns)])}, qrels


@pytest.mark.parametrize("n_non_relevant", [1, 4])
def test_judgments_with_less_than_5_percent_non_relevant_are_refused(n_non_relevant):
    with pytest.raises(InputError, match="have grade 0"):
        fit(*judged(n_non_relevant))
    assert len(fit(*judged(6)).to_frame()) == 1


def test_neighbours_have_six_pseudo_counts_of_their_topic():
    """One run of a relevant, a non-relevant and an unknown document; the topic's shares have those of all."""
    qrels = pd.DataFrame([("q1", "a", 1), ("q1", "b", 0)], columns=["qid", "docno", "label"])
    run = pd.DataFrame({"qid": "q1", "docno": ["a", "b", "new"], "score": [3.0, 2.0, 1.0]})
    evidence = collect_evidence({"a": Run(run)}, Judgments(qrels), 10, 10)
    names = evidence.docno.text.to_pylist()

    def logit(share):
        return np.log(share / (1 - share))

    # Of n judged and r relevant other documents of the topic, which are also those of the run.
    expected = {}
    for name, n, r in (("a", 1, 0), ("b", 1, 1), ("new", 2, 1)):
        base = (r + 6 * 0.5) / (n + 6)
        expected[name] = logit((r + 6 * base) / (n + 6)) - logit(base)
    assert neighbours(evidence) == pytest.approx([expected[name] for name in names], abs=1e-12)


def frame(rows, last):
    return pd.DataFrame(rows, columns=["qid", "docno", last])


def lists_with_few_and_many_judgments(rng, n_topics=50, n_runs=4, n_docs=20):
    """Runs without common documents; of half of the lists, 2 of 20 documents are judged, of the others 16.

    Shares of relevant documents of lists have the beta distribution of six pseudo-counts, half of them relevant.
    Returns runs, judgments, and the numbers of judged and of relevant judged documents of each list.
    """
    runs, judged, lists = {f"r{run}": [] for run in range(n_runs)}, [], []
    for topic in range(n_topics):
        for name, rows in runs.items():
            hit, n = rng.random(n_docs) < rng.beta(3, 3), 2 if rng.random() < 0.5 else 16
            docnos = [f"{name}-{doc}" for doc in range(n_docs)]
            rows += [(f"q{topic}", docno, -float(rank)) for rank, docno in enumerate(docnos)]
            some = rng.permutation(n_docs)[:n]
            judged += [(f"q{topic}", docnos[doc], int(hit[doc])) for doc in some]
            lists.append((f"q{topic}", name, n, hit[some].sum()))
    lists = pd.DataFrame(lists, columns=["qid", "run", "n", "relevant"])
    return {name: frame(rows, "score") for name, rows in runs.items()}, frame(judged, "label"), lists


def test_two_judgments_of_a_list_move_estimates_of_its_other_documents_as_much_as_they_should():
    """Two relevant documents instead of two others raise the expected share of a list from 3/8 to 5/8."""
    rng, parts = np.random.default_rng(0), []
    for _ in range(8):
        runs, qrels, lists = lists_with_few_and_many_judgments(rng)
        model = fit(runs, qrels, cutoff=20)
        evidence = model.at(20).evidence
        prob = model.draw(20, 100, 0).shares[:, 1:].sum(axis=1)
        docnos = evidence.docno.take(evidence.unjudged_positions).text.to_pylist()
        estimates = pd.DataFrame({"run": [docno.split("-")[0] for docno in docnos], "prob": prob})
        estimates["qid"] = np.array(evidence.topics)[evidence.topic[evidence.unjudged_positions]]
        parts.append(estimates.merge(lists[lists["n"] == 2]))
    means = pd.concat(parts).groupby("relevant")["prob"].mean()
    assert means[2] - means[0] == pytest.approx(0.25, abs=0.03)


def collection():
    rng = np.random.default_rng(0)
    runs, rows = {"a": [], "b": []}, []
    for topic in range(30):
        quality = rng.normal(size=80)
        rows += [(f"q{topic}", f"d{doc}", int(quality[doc] > 0.5)) for doc in range(80)]
        for of_run in runs.values():
            order = np.argsort(-(quality + rng.normal(size=80)))[:40]
            of_run += [(f"q{topic}", f"d{doc}", -float(rank)) for rank, doc in enumerate(order)]
    frames = {name: pd.DataFrame(of_run, columns=["qid", "docno", "score"]) for name, of_run in runs.items()}
    return frames, pd.DataFrame(rows, columns=["qid", "docno", "label"])


def fitted_to_pool(cutoff):
    runs, qrels = collection()
    judgments = Judgments(shallow_pool(runs, qrels, cutoff=cutoff))
    return fit_model({name: Run(run) for name, run in runs.items()}, judgments, 10)


def test_coefficients_have_one_and_a_half_times_their_covariance():
    runs, qrels = collection()
    model = fit_model(
        {name: Run(run) for name, run in runs.items()}, Judgments(shallow_pool(runs, qrels, cutoff=8)), 10
    )
    drawn = GradeDraws(model, 1000, 0)
    fitted = model.steps[0].regression
    weights = drawn._shared[0].weights[: len(fitted.coef)]
    ratio = weights.var(axis=1) / np.diag(fitted.coef_cov)
    assert ratio.mean() == pytest.approx(1.5, rel=0.1)
    assert ratio.min() > 1.25


# Nothing is uncertain but the regression, and relevant documents that no run could find.
CERTAIN = {
    **dict.fromkeys(("call", "of_run", "of_run_topic", "topic", "topic_selected", "topic_higher"), 0.0),
    **dict.fromkeys(("selected", "excess", "pool", "strange"), 0.0),
    "shift_sds": (0.0,) * 5,
}


def test_intervals_cover_relevant_documents_of_topics_where_few_judgments_determine_the_regression():
    """Twelve topics whose logits have the deviation 1.5, with four judgments each; the covariance alone covers .84."""
    covered = []
    for seed in range(60):
        rng, run, judged, rest = np.random.default_rng(seed), [], [], {}
        for topic in range(12):
            logit = -0.3 + 1.5 * rng.normal() + np.log(5) - np.log(3 + np.arange(1, 41))
            hit, is_judged = rng.random(40) < 1 / (1 + np.exp(-logit)), rng.random(40) < 0.1
            if is_judged.any():
                qid = f"q{topic}"
                run += [(qid, f"d{doc}", -float(doc)) for doc in range(40)]
                judged += [(qid, f"d{doc}", int(hit[doc])) for doc in np.flatnonzero(is_judged)]
                rest[qid] = hit[~is_judged].sum()
        model = fit_model({"a": Run(frame(run, "score"))}, Judgments(frame(judged, "label")), 40)
        drawn = GradeDraws(replace(model, sigma=0.0, constants=Constants(**CERTAIN)), 200, 0)
        evidence = model.evidence
        for topic, qid in enumerate(evidence.topics):
            counts = (drawn.levels[evidence.topic[evidence.unjudged_positions] == topic] > 0).sum(axis=0)
            low, high = np.quantile(counts, [0.05, 0.95])
            covered.append(low <= rest[qid] <= high)
    assert 0.87 <= np.mean(covered) <= 0.95


def test_hidden_documents_are_half_of_those_that_the_judged_share_leaves_open():
    """``h (1 - q)`` times the relevant documents in the evidence, h = .5 (1 + 12/n²) with n effective runs."""
    runs, qrels = collection()
    model = fit_model(
        {name: Run(run) for name, run in runs.items()}, Judgments(shallow_pool(runs, qrels, cutoff=4)), 10
    )
    model = replace(model, sigma=1.0)
    certain = Constants(hidden_sd=0.0)
    hidden, none = (
        GradeDraws(replace(model, constants=constants), 200, 0) for constants in (certain, replace(certain, hidden=0.0))
    )
    n = model.evidence.n_effective
    topics = slice(0, 30)
    retrieved = hidden._retrieved_draws(topics)
    overall = hidden._overall([(topics, retrieved)])
    within = (retrieved.counts + hidden._inside[topics, :, None])[:, 1].sum(axis=0)
    share = 0.5 * (1 + 12 / n**2)
    more = (hidden.unseen_counts - none.unseen_counts)[:, :, 1].sum(axis=1)
    open_part = (1 - overall.judged) * within
    # Of a gamma prior, relevant documents outside that nobody judged keep a part of the mean.
    assert (more / open_part).mean() == pytest.approx(share, rel=0.25)


def test_complete_pools_have_as_many_relevant_documents_as_planted():
    """Eight runs without common documents find all relevant documents but .59 times those that are not judged."""
    ratios = []
    for seed in range(4):
        rng, runs, judged, n_relevant = np.random.default_rng(seed), {}, [], 0
        for topic in range(60):
            hit, is_judged = rng.random((8, 10)) < 0.1, rng.random((8, 10)) < 0.5
            for run, doc in np.ndindex(8, 10):
                runs.setdefault(f"r{run}", []).append((f"q{topic}", f"{run}-{doc}", -float(doc)))
                if is_judged[run, doc]:
                    judged.append((f"q{topic}", f"{run}-{doc}", int(hit[run, doc])))
            n_relevant += hit.sum() + rng.poisson(0.5 * (1 + 12 / 8**2) * 0.5 * hit.sum())
        frames = {name: Run(frame(rows, "score")) for name, rows in runs.items()}
        model = fit_model(frames, Judgments(frame(judged, "label")), 10)
        drawn = GradeDraws(replace(model, sigma=1.0, constants=Constants(**CERTAIN)), 200, 0)
        ratios.append(np.median(drawn.counts[:, :, 1].sum(axis=1)) / n_relevant)
    assert np.mean(ratios) == pytest.approx(1, abs=0.15)
