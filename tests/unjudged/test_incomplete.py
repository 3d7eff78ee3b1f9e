"""Judgments that are made incomplete."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import vbterrier
from vbterrier.errors import DegenerateWarning
from vbterrier.frames.ids import column_ids
from vbterrier.unjudged.incomplete import (
    _uniforms,
    budget_pool,
    grade_prevalence,
    leave_group_out,
    merge_duplicates,
    one_kind_pools,
    shallow_pool,
    subsample_qrels,
    subsample_topics,
)

QIDS = ("q1", "q2", "q3")


def run(**lists):
    rows = [(qid, docno, -float(rank)) for qid, docnos in lists.items() for rank, docno in enumerate(docnos)]
    return pd.DataFrame(rows, columns=["qid", "docno", "score"])


def judged(docnos, labels=None, qid="q1"):
    labels = [1] * len(docnos) if labels is None else labels
    return pd.DataFrame({"qid": qid, "docno": list(docnos), "label": labels})


def random_setting(seed, n_runs=4):
    rng = np.random.default_rng(seed)
    documents = [f"d{i}" for i in range(12)]
    runs = {
        f"r{i}": run(**{qid: rng.permutation(documents)[: rng.integers(1, 9)].tolist() for qid in QIDS})
        for i in range(n_runs)
    }
    qrels = pd.concat([judged(documents, rng.integers(-1, 3, 12), qid) for qid in QIDS])
    return runs, qrels.sample(frac=1, random_state=seed, ignore_index=True).assign(other=range(36))


def pairs(frame):
    return set(zip(frame["qid"], frame["docno"], strict=True))


def first(frame, depth):
    return pairs(vbterrier.frames.ranked(frame, depth))


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.filterwarnings("ignore::vbterrier.errors.DegenerateWarning")
def test_what_a_group_alone_contributed_goes(seed):
    runs, qrels = random_setting(seed)
    groups = {"r0": "A", "r1": "B", "r2": "A", "r3": "C"}
    results = list(leave_group_out(runs, qrels, groups=groups, cutoff=3))
    assert [(part.name, part.runs) for part in results] == [("A", ("r0", "r2")), ("B", ("r1",)), ("C", ("r3",))]
    for group, left, names, _ in results:
        contributed = set().union(*(first(runs[name], 3) for name in names))
        others = set().union(*(first(runs[name], 3) for name in runs if groups[name] != group))
        kept = [pair not in contributed - others for pair in zip(qrels["qid"], qrels["docno"], strict=True)]
        assert not all(kept)
        pd.testing.assert_frame_equal(left, qrels[kept].reset_index(drop=True))


def test_only_the_first_ranks_count_in_the_order_of_trec_eval():
    # Equal scores: the later docno stands first.
    tied = run(q1=["a", "b"]).assign(score=1.0)
    with pytest.warns(DegenerateWarning, match="1 topic loses all judgments"):
        left = {
            group: list(qrels["docno"]) for group, qrels, _, _ in leave_group_out({"one": tied}, judged("b"), cutoff=1)
        }
    assert left == {"one": []}
    (result,) = leave_group_out({"one": tied}, judged("ab"), cutoff=1)
    assert list(result.qrels["docno"]) == ["a"]


def test_all_rows_of_a_document_go_together():
    diversity = pd.DataFrame(
        {"qid": "q1", "iteration": list("121"), "docno": list("aab"), "label": [1, 0, 1], "prob": 0.5}
    )
    (result,) = leave_group_out({"one": run(q1=["a"])}, diversity)
    assert list(result.qrels["docno"]) == ["b"]
    assert list(result.qrels) == list(diversity)
    many = pd.concat([diversity.assign(docno=diversity["docno"] + str(i)) for i in range(200)])
    fates = many.assign(kept=1).merge(subsample_qrels(many, 0.5, 3).assign(left=1), how="left").fillna(0)
    assert fates.groupby("docno")["left"].nunique().max() == 1
    assert 120 < fates.groupby("docno")["left"].max().sum() < 280


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**9), st.sampled_from([0.1, 0.3, 0.5, 0.7]), st.randoms(use_true_random=False))
def test_the_choice_depends_on_nothing_but_seed_topic_and_document(seed, share, random):
    qrels = pd.concat([judged([f"d{i}" for i in range(30)], qid=qid) for qid in QIDS], ignore_index=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DegenerateWarning)
        result = subsample_qrels(qrels, share, seed)
        order = random.sample(range(90), 90)
        shuffled = subsample_qrels(qrels.iloc[order], share, seed)
        alone = subsample_qrels(qrels[qrels["qid"] == "q2"], share, seed)
        more = subsample_qrels(qrels, min(share + 0.2, 1), seed)
    assert pairs(shuffled) == pairs(result)
    assert pairs(alone) == {pair for pair in pairs(result) if pair[0] == "q2"}
    assert pairs(more) <= pairs(result)
    expected = [pair for pair in zip(qrels["qid"], qrels["docno"], strict=True) if pair in pairs(result)]
    assert list(zip(result["qid"], result["docno"], strict=True)) == expected


def test_thinning_keeps_rows_columns_and_the_callers_frame():
    _, qrels = random_setting(1)
    before = qrels.copy()
    result = subsample_qrels(qrels, 0.4, 2)
    pd.testing.assert_frame_equal(qrels, before)
    pd.testing.assert_frame_equal(result, qrels[qrels["other"].isin(result["other"])].reset_index(drop=True))
    pd.testing.assert_frame_equal(subsample_qrels(qrels, 0, 2), qrels)
    with pytest.warns(DegenerateWarning, match="3 topics lose all judgments"):
        assert not len(subsample_qrels(qrels, 1, 2))


def test_the_same_seed_gives_the_same_judgments_everywhere():
    # Numbers that a change of the scheme would change: results of simulations are compared over years.
    assert subsample_qrels(judged("abcdefghij"), 0.5, 7)["docno"].tolist() == list("abcfgij")


def test_chances_are_uniform_and_independent_of_each_other():
    n = 20_000
    docno = column_ids(pd.Series([f"document-{i}" for i in range(n)]), "docno")
    qid = column_ids(pd.Series(["q1"] * n), "qid")
    other = column_ids(pd.Series(["q2"] * n), "qid")
    drawn = [_uniforms(qid, docno, 1), _uniforms(qid, docno, 2), _uniforms(other, docno, 1)]
    for chances in drawn:
        assert 0 <= chances.min() < chances.max() < 1
        assert stats.kstest(chances, "uniform").pvalue > 0.001
    # Of independent uniforms the correlation has a standard deviation of 1/sqrt(n).
    assert np.abs(np.corrcoef([*drawn, np.roll(drawn[0], 1)])[np.triu_indices(4, 1)]).max() < 4 / n**0.5


def test_integers_are_the_text_they_read_as():
    numbers = pd.DataFrame({"qid": [1] * 20, "docno": range(20), "label": 1})
    text = numbers.astype({"qid": str, "docno": str})
    assert subsample_qrels(numbers, 0.5)["docno"].astype(str).tolist() == subsample_qrels(text, 0.5)["docno"].tolist()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.filterwarnings("ignore::vbterrier.errors.DegenerateWarning")
def test_a_shallow_pool_holds_what_runs_have_at_the_top(seed):
    runs, qrels = random_setting(seed, n_runs=2)
    result = shallow_pool(runs, qrels, cutoff=2)
    expected = set().union(*(first(frame, 2) for frame in runs.values()))
    kept = [pair in expected for pair in zip(qrels["qid"], qrels["docno"], strict=True)]
    pd.testing.assert_frame_equal(result, qrels[kept].reset_index(drop=True))


def test_subsampling_topics_thins_a_share_of_them_as_subsample_qrels_does():
    qids = [f"q{i}" for i in range(20)]
    qrels = pd.concat([judged([f"d{i}" for i in range(50)], qid=qid) for qid in qids], ignore_index=True)
    thinned, result = pairs(subsample_qrels(qrels, 0.8, 3)), subsample_topics(qrels, 0.3, 0.8, 3)
    left = {qid: {pair for pair in pairs(result) if pair[0] == qid} for qid in qids}
    chosen = {qid for qid in qids if len(left[qid]) < 50}
    assert len(chosen) == 6
    assert all(left[qid] == {pair for pair in thinned if pair[0] == qid} for qid in chosen)
    pd.testing.assert_frame_equal(result, subsample_topics(qrels, 0.3, 0.8, 3))
    # Neither the order of rows nor the share removed changes which topics are chosen, and a larger share adds topics.
    shuffled = subsample_topics(qrels.sample(frac=1, random_state=1), 0.3, 0.8, 3)
    assert pairs(shuffled) == pairs(result)
    with pytest.warns(DegenerateWarning, match="30% of the topics subsampled by 1: 6 topics lose all judgments"):
        assert set(subsample_topics(qrels, 0.3, 1, 3)["qid"]) == set(qids) - chosen
    with pytest.warns(DegenerateWarning, match="lose all judgments"):
        assert not chosen & set(subsample_topics(qrels, 0.6, 1, 3)["qid"])
    assert chosen != {qid for qid, n in subsample_topics(qrels, 0.3, 0.8, 4).value_counts("qid").items() if n < 50}
    pd.testing.assert_frame_equal(subsample_topics(qrels, 0, 0.8), qrels)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.filterwarnings("ignore::vbterrier.errors.DegenerateWarning")
def test_a_budget_judges_the_first_documents_of_reciprocal_rank_fusion(seed):
    runs, qrels = random_setting(seed)
    fused = {}
    for frame in runs.values():
        for qid, docno, score in frame[["qid", "docno", "score"]].itertuples(index=False):
            fused[qid, docno] = fused.get((qid, docno), 0) + 1 / (61 - score)
    expected = set()
    for qid in QIDS:
        pool = [pair for pair in pairs(qrels) & set(fused) if pair[0] == qid]
        order = sorted(pool, key=lambda pair: (round(fused[pair], 12), pair[1]), reverse=True)
        expected |= set(order[:5])
    result = budget_pool(runs, qrels, budget=5)
    kept = [pair in expected for pair in zip(qrels["qid"], qrels["docno"], strict=True)]
    assert len(expected) == 15
    pd.testing.assert_frame_equal(result, qrels[kept].reset_index(drop=True))
    pd.testing.assert_frame_equal(budget_pool(dict(reversed(runs.items())), qrels, budget=5), result)


def test_a_budget_counts_judged_documents_not_rows_and_keeps_no_unretrieved_ones():
    diversity = pd.DataFrame(
        {"qid": "q1", "iteration": list("12121"), "docno": list("aabbd"), "label": [1, 0, 1, 0, 1]}
    )
    runs = {"one": run(q1=["unknown", "a", "b"])}
    assert list(budget_pool(runs, diversity, budget=1)["docno"]) == ["a", "a"]
    assert list(budget_pool(runs, diversity, budget=9)["docno"]) == list("aabb")


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.filterwarnings("ignore::vbterrier.errors.DegenerateWarning")
def test_a_pool_of_one_kind_evaluates_the_other_kinds(seed):
    runs, qrels = random_setting(seed)
    kinds = {"r0": "lexical", "r1": "neural", "r2": "lexical", "r3": "sparse"}
    results = list(one_kind_pools(runs, qrels, kinds=kinds, cutoff=3))
    assert [(part.name, part.runs) for part in results] == [
        ("pool of lexical", ("r1", "r3")),
        ("pool of neural", ("r0", "r2", "r3")),
        ("pool of sparse", ("r0", "r1", "r2")),
    ]
    for part in results:
        pool = {name: frame for name, frame in runs.items() if name not in part.runs}
        assert part.evidence == part.runs
        pd.testing.assert_frame_equal(part.qrels, shallow_pool(pool, qrels, cutoff=3))


def test_lost_topics_are_told():
    qrels = pd.concat([judged("ab", [1, 0]), judged("cd", [1, 0], "q2"), judged("e", [0], "q3")])
    runs = {"one": run(q1=["b"], q2=["x"], q3=["e"])}
    message = r"pool of depth 5: 1 topic loses all judgments \('q2'\), 1 topic loses all relevant documents \('q1'\)"
    with pytest.warns(DegenerateWarning, match=message):
        assert list(shallow_pool(runs, qrels, cutoff=5)["docno"]) == ["b", "e"]


def test_files_are_read(shared_data):
    folder = shared_data / "trec-covid"
    complete, path = folder / "qrels.complete.txt.gz", folder / "run.ance.top100.txt.gz"
    qrels = vbterrier.read_qrels(complete)
    with pytest.warns(DegenerateWarning, match=r"1 topic loses all relevant documents \('1'\)"):
        result = shallow_pool({"ance": path}, complete, cutoff=10)
    assert pairs(result) == first(vbterrier.read_run(path), 10) & pairs(qrels)
    gone = 1 - len(subsample_qrels(complete, 0.3, 1)) / len(qrels)
    assert gone == pytest.approx(0.3, abs=4 * (0.21 / len(qrels)) ** 0.5)


def test_prevalence_compares_the_pool_with_unjudged_documents():
    complete = pd.concat([judged([f"d{i}" for i in range(60)], [i % 3 for i in range(60)], qid) for qid in QIDS])
    left = complete[complete["docno"].isin([f"d{i}" for i in range(30)])]
    runs = {
        "same": run(**{qid: [f"d{i}" for i in range(30, 60)] for qid in QIDS}),
        "good": run(**{qid: [f"d{i}" for i in range(32, 60, 3)] for qid in QIDS}),
        "known": run(**{qid: ["d0", "d1"] for qid in QIDS}),
    }
    table = grade_prevalence(runs, left, complete=complete, cutoff=30).set_index(["name", "grade"])
    assert table.loc["same", "share_unjudged"].tolist() == pytest.approx([1 / 3] * 3)
    assert table.loc["good", "share_unjudged"].tolist() == [0, 0, 1]
    assert table.loc["all", "n_unjudged"].sum() == 30 * len(QIDS)
    assert table.loc["same", "p_value"].iloc[0] == pytest.approx(1)
    assert table.loc["good", "p_value"].iloc[0] < 1e-6
    assert table.loc["known", "p_value"].isna().all()
    assert table["share_pool"].groupby("name").sum().tolist() == pytest.approx([1] * 4)


def test_duplicates_become_one_document_in_runs_and_qrels():
    same = {"copy": "a", "copy2": "a"}
    result = merge_duplicates(run(q1=["copy", "b", "a", "copy2"]), same)
    assert result["docno"].tolist() == ["a", "b"]
    labels = merge_duplicates(judged(["a", "copy", "b"], [0, 2, 1]), same)
    assert labels[["docno", "label"]].to_numpy().tolist() == [["a", 2], ["b", 1]]
