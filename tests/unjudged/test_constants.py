"""Constants of the evidence model, by what they change: refusals, levels of features, widths and unseen documents."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from vbterrier.errors import InputError
from vbterrier.frames.ranking import Run
from vbterrier.unjudged.draws import GradeDraws
from vbterrier.unjudged.evidence import evidence_of
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
    evidence = evidence_of({"a": Run(run)}, Judgments(qrels), 10, 10)
    names = evidence.docno.text.to_pylist()

    def logit(share):
        return np.log(share / (1 - share))

    # Of n judged and r relevant other documents of the topic, which are also those of the run.
    expected = {}
    for name, n, r in (("a", 1, 0), ("b", 1, 1), ("new", 2, 1)):
        base = (r + 6 * 0.5) / (n + 6)
        expected[name] = logit((r + 6 * base) / (n + 6)) - logit(base)
    assert neighbours(evidence) == pytest.approx([expected[name] for name in names], abs=1e-12)


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
    retrieved = hidden._retrieved(topics)
    overall = hidden._overall([(topics, retrieved)])
    within = (retrieved.counts + hidden._inside[topics, :, None])[:, 1].sum(axis=0)
    share = 0.5 * (1 + 12 / n**2)
    more = (hidden.unseen - none.unseen)[:, :, 1].sum(axis=1)
    open_part = (1 - overall.judged) * within
    # Of a gamma prior, relevant documents outside that nobody judged keep a part of the mean.
    assert (more / open_part).mean() == pytest.approx(share, rel=0.25)
