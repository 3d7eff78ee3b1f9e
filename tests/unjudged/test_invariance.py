"""Estimates of the E family depend on evidence alone: not on names, order, copies or runs without information."""

import importlib.util
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import vbterrier
from vbterrier.demo import demo_folder
from vbterrier.settings import Data
from vbterrier.unjudged import evidence, fit
from vbterrier.unjudged.incomplete import shallow_pool, subsample_qrels

pytestmark = pytest.mark.filterwarnings("ignore::vbterrier.errors.DegenerateWarning")

MEASURE = "ENDCG@10"
COLLECTIONS = ("TREC Web 2012", "TREC DL 2019", "TREC-COVID", "CODEC", "Robust 2003", "eHealth 2018")
# Other ids redraw all documents: three standard deviations of the difference of two means of 1,000 draws.
RENAMED = 0.002


def demo():
    runs = {name: vbterrier.read_run(demo_folder() / f"{name}.run") for name in ("lexical", "dense")}
    return runs, vbterrier.read_qrels(demo_folder() / "qrels.txt")


@pytest.fixture(scope="module")
def collections(shared_data):
    """Four runs of each collection with 30 % of the judgments, and with a pool of depth 5."""
    spec = importlib.util.spec_from_file_location("bench_evidence", Path(__file__).parents[1] / "bench" / "evidence.py")
    bench = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(bench)

    def made(name, regime):
        runs, qrels, *_ = bench.COLLECTIONS[name](shared_data)
        runs = {name: runs[name] for name in sorted(runs)[:4]}
        return runs, subsample_qrels(qrels, 0.7, 1) if regime == "thinned" else shallow_pool(runs, qrels, cutoff=5)

    return made


@pytest.fixture(
    params=[
        pytest.param(("demo", ""), id="demo"),
        *(
            pytest.param((name, regime), id=f"{name}, {regime}", marks=pytest.mark.slow)
            for name in COLLECTIONS
            for regime in ("thinned", "shallow")
        ),
    ],
    scope="module",
)
def case(request):
    """Runs, reduced judgments and, computed once, the estimated scores."""
    name, regime = request.param
    runs, qrels = demo() if name == "demo" else request.getfixturevalue("collections")(name, regime)
    return name, runs, qrels, scored(runs, qrels)


def scored(runs, qrels):
    """The estimated score of each topic and run."""
    values = vbterrier.score(runs, qrels, [MEASURE], data=Data(on_topics="all")).values
    return values.pivot(index="qid", columns="name", values="value")


def change(after, before):
    """The largest change of a mean and of a difference between two."""
    moved = after[before.columns].mean() - before.mean()
    return max(moved.abs().max(), np.ptp(moved))


def renamed(frame, column, prefix):
    return frame.assign(**{column: prefix + frame[column].astype(str)})


@pytest.mark.parametrize("column", ["docno", "qid"])
@pytest.mark.slow
def test_names_of_documents_and_topics_change_no_mean_and_no_order(case, column):
    _, runs, qrels, before = case
    means = before.mean().sort_values()
    pairs = [(a, b) for a, b in pairwise(means.index) if means[b] - means[a] > RENAMED]
    for number in range(10):
        prefix = f"{number}-"
        other = {name: renamed(run, column, prefix) for name, run in runs.items()}
        after = scored(other, renamed(qrels, column, prefix))
        assert change(after, before) <= RENAMED
        assert all(after[a].mean() < after[b].mean() for a, b in pairs)


def test_names_and_order_of_systems_and_rows_change_nothing(case):
    _, runs, qrels, before = case
    names = {name: f"z{9 - place}" for place, name in enumerate(runs)}
    other = {names[name]: run.sample(frac=1, random_state=1) for name, run in reversed(runs.items())}
    after = scored(other, qrels.sample(frac=1, random_state=0)).rename(columns={new: old for old, new in names.items()})
    pd.testing.assert_frame_equal(after[before.columns], before, check_exact=True, check_names=False)


@pytest.mark.parametrize("n_copies", [1, 2, *(pytest.param(n, marks=pytest.mark.nightly) for n in (3, 4)), 5])
def test_copies_change_nothing(case, n_copies):
    _, runs, qrels, before = case
    first, run = next(iter(runs.items()))
    copies = {f"copy {number}": run.assign(score=run["score"] + number) for number in range(n_copies)}
    after = scored({**runs, **copies}, qrels)
    pd.testing.assert_frame_equal(after[before.columns], before, check_exact=True)
    for copy in copies:
        assert after[copy].tolist() == before[first].tolist()


def swapped(run, n_topics):
    """The run with its first two documents in the other order in some topics."""
    ranked = run.sort_values(["qid", "score"], ascending=[True, False], kind="stable").reset_index(drop=True)
    turn = ranked.groupby("qid").cumcount()
    chosen = ranked["qid"].isin(sorted(ranked["qid"].unique())[:n_topics]) & (turn < 2)
    docno = ranked["docno"].to_numpy().copy()
    places = np.flatnonzero(chosen)
    docno[places] = docno[places.reshape(-1, 2)[:, ::-1].reshape(-1)]
    return ranked.assign(docno=docno)


def test_near_copies_change_little_and_the_less_the_nearer(case):
    name, runs, qrels, before = case
    run = next(iter(runs.values()))
    moved = [change(scored({**runs, "near": swapped(run, n)}, qrels), before) for n in (1, 100)]
    assert moved[0] <= 0.003
    assert moved[1] <= (0.015 if name == "demo" else 0.01)


def unknown_in_cut(run):
    """The run with an unknown document at rank 5 of each topic."""
    ranked = run.sort_values(["qid", "score"], ascending=[True, False], kind="stable")
    fifth = ranked.groupby("qid").cumcount() == 4
    return ranked.assign(docno=ranked["docno"].where(~fifth, "unknown " + ranked["qid"].astype(str)))


def invented(qrels, n):
    qids = np.repeat(qrels["qid"].unique(), n)
    rank = np.tile(np.arange(n), len(qids) // n)
    return pd.DataFrame({"qid": qids, "docno": [f"invented {place}" for place in rank], "score": -rank.astype(float)})


def of_other_topics(qrels):
    """Random documents of all topics."""
    qids, rng = np.repeat(qrels["qid"].unique(), 20), np.random.default_rng(0)
    frame = pd.DataFrame({"qid": qids, "docno": rng.choice(sorted(qrels["docno"].unique()), len(qids))})
    return frame.drop_duplicates().assign(score=lambda rows: -np.arange(len(rows), dtype=float))


def judged(qrels):
    """Random judged documents of each topic, of which the evidence of the other runs lacks some."""
    shuffled = qrels.sample(frac=1, random_state=3).groupby("qid").head(20)[["qid", "docno"]]
    return shuffled.assign(score=-np.arange(len(shuffled), dtype=float))


# The largest change of a mean or a difference on the collections, and on the demo, with its twelve topics and two runs.
USELESS = {
    "empty": (lambda run, _: run.iloc[:0], 0.0, 0.0),
    "one document": (lambda _, qrels: invented(qrels, 1).iloc[:1], 0.003, 0.003),
    "20 unknown documents a topic": (lambda _, qrels: invented(qrels, 20), 0.01, 0.01),
    "documents of other topics": (lambda _, qrels: of_other_topics(qrels), 0.015, 0.035),
    "judged documents in random order": (lambda _, qrels: judged(qrels), 0.035, 0.03),
    "a near copy with an unknown document a topic": (lambda run, _: unknown_in_cut(run), 0.015, 0.035),
}


@pytest.mark.parametrize("useless", USELESS)
def test_runs_without_information_change_little(case, useless):
    name, runs, qrels, before = case
    make, on_collections, on_demo = USELESS[useless]
    after = scored({**runs, "useless": make(next(iter(runs.values())), qrels)}, qrels)
    assert change(after, before) <= (on_demo if name == "demo" else on_collections)


@pytest.mark.slow
def test_a_run_of_all_judged_documents_in_random_order_changes_means_of_a_shallow_pool_little():
    """Unjudged documents then have fewer runs than any judged one, which says nothing about their relevance."""
    rng = np.random.default_rng(0)
    runs, rows = {"a": [], "b": []}, []
    for topic in range(20):
        quality = rng.normal(size=60)
        rows += [(f"q{topic}", f"d{doc}", int(quality[doc] > 0.5)) for doc in range(60)]
        for run in runs.values():
            order = np.argsort(-(quality + rng.normal(size=60)))[:20]
            run += [(f"q{topic}", f"d{doc}", -float(rank)) for rank, doc in enumerate(order)]
    runs = {name: pd.DataFrame(run, columns=["qid", "docno", "score"]) for name, run in runs.items()}
    qrels = shallow_pool(runs, pd.DataFrame(rows, columns=["qid", "docno", "label"]), cutoff=5)
    assert change(scored({**runs, "judged": judged(qrels)}, qrels), scored(runs, qrels)) <= 0.045


def test_evidence_united_run_by_run_is_that_of_all_runs_at_once(monkeypatch):
    runs, qrels = demo()
    runs["copy"] = runs["dense"]
    at_once = fit(runs, qrels, cutoff=10).at(10)
    monkeypatch.setattr(evidence, "_ENTRIES", 1)
    by_run = fit(runs, qrels, cutoff=10).at(10)
    for name in (
        "counts",
        "topic",
        "level",
        "distinct",
        "run_keys",
        "run",
        "rank",
        "item",
        "fusion_scores",
        "trust",
        "keys",
    ):
        np.testing.assert_array_equal(getattr(at_once.evidence, name), getattr(by_run.evidence, name), name)
    assert at_once.evidence.docno.text.equals(by_run.evidence.docno.text)
    np.testing.assert_array_equal(at_once.features.design, by_run.features.design)
