"""Entity labels from document labels, and the supervision report."""

import math
from collections import defaultdict

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from planted import planted_collection

from vbterrier.entities.pool import link_pool
from vbterrier.entities.rankers.consensus import ConsensusEntities, RandomEntities
from vbterrier.entities.supervision import closed_entities, entity_labels, supervision_report
from vbterrier.errors import DegenerateWarning, InputError, ParameterError
from vbterrier.frames.linked_pool import LinkedPool

# Topic 1: d1 is relevant, d2 and d3 are not; topic 2: d3 is relevant, d1 is not; topic 3: none is.
POOL = pd.DataFrame(
    [("1", "d1", 3.0), ("1", "d2", 2.0), ("1", "d3", 1.0), ("2", "d3", 2.0), ("2", "d1", 1.0), ("3", "d2", 1.0)],
    columns=["qid", "docno", "score"],
)
QRELS = pd.DataFrame([("1", "d1", 2), ("1", "d2", 0), ("2", "d3", 1)], columns=["qid", "docno", "label"])
TAGS = pd.DataFrame(
    [("d1", "A"), ("d1", "B"), ("d2", "B"), ("d2", "C"), ("d2", "C"), ("d3", "D"), ("d3", "B")],
    columns=["docno", "entity_id"],
)


@pytest.fixture
def pool():
    return link_pool(POOL, TAGS, QRELS)


@st.composite
def collections(draw):
    """Pools of few documents, entities and topics, and their judgments."""
    documents = [f"d{i}" for i in range(6)]
    pool = [
        (f"q{t}", docno)
        for t in range(draw(st.integers(1, 4)))
        for docno in draw(st.lists(st.sampled_from(documents), min_size=1, unique=True))
    ]
    label = [draw(st.sampled_from([None, 0, 1, 2])) for _ in pool]
    tags = draw(st.lists(st.tuples(st.sampled_from(documents), st.sampled_from("ABCDE")), max_size=15))
    # A document of the first pool has an entity, so that ids meet.
    return pool, label, [*tags, (pool[0][1], "A")]


def linked(pool, label, tags):
    frame = pd.DataFrame(pool, columns=["qid", "docno"]).assign(score=1.0, label=label)
    qrels = frame.dropna(subset="label").astype({"label": int})[["qid", "docno", "label"]]
    tagged = pd.DataFrame(tags, columns=["docno", "entity_id"])
    return link_pool(frame[["qid", "docno", "score"]], tagged, qrels if len(qrels) else None)


def derived(pool, label, tags, rel):
    """The rule of the paper, pair by pair: (qid, entity) -> df_rel, df_nonrel."""
    counts = defaultdict(lambda: [0, 0])
    for (qid, docno), grade in zip(pool, label, strict=True):
        for entity in {entity for tagged, entity in tags if tagged == docno}:
            counts[qid, entity][0 if (grade or 0) >= rel else 1] += 1
    return counts


def partition(df_rel, df_nonrel):
    return "common" if df_rel and df_nonrel else "positive" if df_rel else "negative"


def sets_of(collection):
    """qid -> partition -> entities."""
    sets = defaultdict(lambda: defaultdict(set))
    for (qid, entity), both in derived(*collection, 1).items():
        sets[qid][partition(*both)].add(entity)
    return sets


def test_labels_by_hand(pool):
    result = entity_labels(pool)
    assert list(result) == ["qid", "entity_id", "df_rel", "df_nonrel", "df_cand", "label", "partition"]
    assert result.query("qid == '1'").drop(columns=["qid", "label"]).to_numpy().tolist() == [
        ["A", 1, 0, 1, "positive"],
        ["B", 1, 2, 3, "common"],
        ["C", 0, 1, 1, "negative"],
        ["D", 0, 1, 1, "negative"],
    ]
    assert result["label"].fillna(-1).tolist() == [1, -1, 0, 0, 0, -1, 1, 0, 0]
    assert str(result["label"].dtype) == "Int64"
    assert entity_labels(pool, rel=2).query("qid == '2'")["partition"].unique().tolist() == ["negative"]


@settings(max_examples=80, deadline=None)
@given(collections(), st.integers(1, 2))
def test_labels_and_sizes_equal_the_rule_pair_by_pair(collection, rel):
    counts = derived(*collection, rel)
    pool = linked(*collection)
    result = entity_labels(pool, rel).set_index(["qid", "entity_id"])[["df_rel", "df_nonrel", "partition"]]
    assert result.T.to_dict("list") == {pair: [*both, partition(*both)] for pair, both in counts.items()}
    report = supervision_report(pool, rel)
    for name in ("positive", "negative", "common"):
        each = [qid for (qid, _), both in counts.items() if partition(*both) == name]
        assert report.partitions.set_index("partition")["n_pairs"][name] == len(each)
        assert report.topics[f"n_{name}"].tolist() == [each.count(qid) for qid in report.topics["qid"]]
    assert report.partitions["share"].sum() == pytest.approx(1)


@settings(max_examples=80, deadline=None)
@given(collections())
def test_contamination_equals_the_comparison_of_every_two_topics(collection):
    sets = sets_of(collection)
    report = supervision_report(linked(*collection))
    shares, n_bad, n = [], 0, 0
    for qid, result in zip(report.topics["qid"], report.topics["contamination"], strict=True):
        negatives = sets[qid]["negative"]
        bad = {e for e in negatives for other in sets if other != qid and e in sets[other]["positive"]}
        if negatives:
            assert result == pytest.approx(len(bad) / len(negatives))
            shares.append(len(bad) / len(negatives))
        else:
            assert math.isnan(result)
        n_bad, n = n_bad + len(bad), n + len(negatives)
    row = report.contamination.iloc[0]
    assert row["n_qids"] == len(shares)
    expected = [n_bad / n, np.mean(shares), np.max(shares)] if n else [np.nan] * 3
    assert row[["pooled", "mean", "max"]].tolist() == pytest.approx(expected, nan_ok=True)
    assert row["std"] == pytest.approx(np.std(shares, ddof=1) if len(shares) > 1 else np.nan, nan_ok=True)


def test_frequencies_count_a_document_of_several_pools_once(pool):
    table = supervision_report(pool).frequencies.set_index(["partition", "quantity"])
    assert list(table) == ["n_pairs", "mean", "q25", "median", "q75"]
    # Of three documents, A is in one, B in all, C in one, D in one.
    df = {"positive": [1, 1], "negative": [1, 1, 1, 3, 1], "common": [3, 3]}
    for name, values in df.items():
        row = table.loc[name, "df"]
        assert row.tolist() == pytest.approx([len(values), np.mean(values), *np.quantile(values, [0.25, 0.5, 0.75])])
        assert table.loc[(name, "idf"), "mean"] == pytest.approx(np.mean([math.log(3 / n) for n in values]))
    assert table.loc[("common", "df_cand"), "mean"] == 2.5


@pytest.mark.parametrize("negatives", ["all", "hard", "random"])
def test_frequencies_equal_a_loop_over_the_pairs(collection, negatives):
    made = collection(4)
    mentions = set(map(tuple, made["tags"][["docno", "entity_id"]].to_numpy().tolist()))
    label = {(q, d): n for q, d, n in made["qrels"][["qid", "docno", "label"]].itertuples(index=False)}
    pools = made["run"].groupby("qid")["docno"].agg(list).to_dict()
    documents = set(made["run"]["docno"])
    rows = []
    for qid, docnos in pools.items():
        for entity in {entity for docno, entity in mentions if docno in docnos}:
            docs = [docno for docno in docnos if (docno, entity) in mentions]
            relevant = sum(label.get((qid, docno), 0) > 0 for docno in docs)
            kind = "positive" if relevant == len(docs) else "common" if relevant else "negative"
            df = sum((docno, entity) in mentions for docno in documents)
            rows.append((qid, entity, kind, len(docs), df, math.log(len(documents) / df)))
    pairs = pd.DataFrame(rows, columns=["qid", "entity_id", "partition", "df_cand", "df", "idf"])
    report = supervision_report(link_pool(made["run"], made["tags"], made["qrels"]), negatives=negatives)
    table = report.frequencies.set_index(["partition", "quantity"])
    groups = dict(iter(pairs.groupby("partition")))
    if negatives != "all":
        groups[f"negative ({negatives})"] = None
    assert set(table.index.get_level_values(0)) == set(groups) | {"positive", "negative", "common"}
    for kind, group in groups.items():
        for quantity in ("df_cand", "df", "idf"):
            row = table.loc[(kind, quantity)]
            if group is None:
                assert row["n_pairs"] == report.topics["n_sampled"].sum()
                continue
            values = group[quantity]
            expected = [len(values), values.mean(), *np.quantile(values, [0.25, 0.5, 0.75])]
            assert row.tolist() == pytest.approx(expected), (kind, quantity)


def test_what_is_excluded_stands_beside_what_it_would_have_offered():
    made = planted_collection(n_topics=12, linker_recall=0.8, seed=3)
    pool = link_pool(made.pool, made.tags, made.qrels)
    report = supervision_report(pool, alpha=1.0, shrinkage=4.0)
    labels = entity_labels(pool).query("partition == 'common'")
    p_rel, p_other = (labels["df_rel"] + 1) / (40 + 2), (labels["df_nonrel"] + 1) / (160 + 2)
    odds = np.log(p_rel / (1 - p_rel)) - np.log(p_other / (1 - p_other))
    oer = ((1 - np.exp(-labels["df_cand"] / 4)) * odds).to_numpy()
    assert report.pairs.query("name == 'common'")["oer"].tolist() == pytest.approx(oer)
    row = report.evidence.set_index("partition").loc["common"]
    core = (labels["df_cand"] > 2) & (labels["df_rel"] > labels["df_nonrel"]) & (oer >= 0.5)
    expected = [oer.mean(), *np.quantile(oer, [0.25, 0.5, 0.75]), (oer > 0).mean(), (oer < 0).mean(), core.mean()]
    names = ["mean", "q25", "median", "q75", "share_positive", "share_negative", "core"]
    assert row[names].tolist() == pytest.approx(expected)
    assert row["n_pairs"] == len(oer)
    classes = ["core", "conditional", "generic bait", "anti-signal", "sparse", "neutral"]
    assert report.evidence[classes].sum(axis=1).tolist() == pytest.approx([1, 1, 1])
    # What speaks for relevance is planted among relevant and other documents: exclusion loses more than it keeps.
    assert row["share_positive"] > 0.5 > report.partitions["share"][0]


def test_topics_that_contrast_nothing_and_unjudged_documents_are_counted(pool):
    report = supervision_report(pool)
    assert (report.n_documents, report.n_unjudged, report.n_without_relevant) == (6, 3, 1)
    # The two entities of topic 3 are negatives without an OER.
    assert report.evidence.set_index("partition")["n_pairs"].to_dict() == {"positive": 2, "negative": 3, "common": 2}
    assert report.topics["contamination"].tolist() == [0.5, 1.0, 0.0]


def test_a_pool_without_a_link_has_empty_partitions():
    links = {"qid": ["1"], "docno": "d", "entity_id": None, "label": 1, "rank": 0, "weight": 0.0}
    pool = LinkedPool.from_frame(pd.DataFrame(links))
    assert entity_labels(pool).empty
    report = supervision_report(pool)
    assert report.partitions["n_pairs"].tolist() == [0, 0, 0]
    assert report.contamination[["pooled", "mean", "std", "max"]].isna().all(axis=None)
    assert report.evidence.drop(columns=["partition", "n_pairs"]).isna().all(axis=None)


# Candidates derived from labels

DIAGNOSTIC = pytest.mark.filterwarnings("ignore:closed_entities:vbterrier.errors.DegenerateWarning")


def pairs_of(frame):
    return set(frame[["qid", "docno", "label"]].itertuples(index=False, name=None))


@DIAGNOSTIC
@given(collection=collections())
@settings(max_examples=100)
def test_candidates_are_the_labelled_entities(collection):
    pool = linked(*collection)
    if (pool.label < 0).all():
        with pytest.raises(InputError, match="no document of the links is judged"):
            closed_entities(pool)
        return
    labels = entity_labels(pool).rename(columns={"entity_id": "docno"})
    every = closed_entities(pool)
    assert pairs_of(every) == pairs_of(labels.dropna(subset="label"))
    run = labels.assign(score=labels["df_cand"].astype(float))[["qid", "docno", "score"]]
    kept = closed_entities(pool, run.iloc[::2])
    candidates = set(map(tuple, run.iloc[::2, :2].to_numpy()))
    assert pairs_of(kept) == {pair for pair in pairs_of(every) if pair[:2] in candidates}
    assert kept.merge(run, on=["qid", "docno"]).eval("score_x == score_y").all()
    balanced = closed_entities(pool, balanced=True, seed=3)
    assert pairs_of(balanced) <= pairs_of(every)
    counts = every.groupby("qid")["label"].agg(["sum", "size"])
    sampled = balanced.groupby("qid")["label"].agg(["sum", "size"]).reindex(counts.index, fill_value=0)
    assert sampled["sum"].equals(counts["sum"])
    negatives = np.minimum(counts["size"] - counts["sum"], counts["sum"])
    assert (sampled["size"] - sampled["sum"]).equals(negatives)


@DIAGNOSTIC
def test_candidates_say_that_they_read_judgments_and_which_topics_they_lose(pool):
    with pytest.warns(DegenerateWarning, match="as a diagnostic only") as raised:
        assert set(closed_entities(pool)["qid"]) == {"1", "2", "3"}
    assert len(raised) == 1
    with pytest.warns(DegenerateWarning, match=r"1 topic has no candidate \('3'\)"):
        closed_entities(pool, balanced=True)
    with pytest.raises(InputError, match="links are tags without a pool"):
        closed_entities(TAGS)


@DIAGNOSTIC
def test_samples_and_random_scores_do_not_depend_on_other_topics_or_rows():
    planted = planted_collection(n_topics=4, n_documents=60, n_relevant=12)
    linked = link_pool(planted.pool, planted.tags, planted.qrels)
    every = closed_entities(linked, balanced=True, seed=5)
    alone = planted.pool["qid"].iloc[0]
    one = link_pool(planted.pool[planted.pool["qid"] == alone], planted.tags, planted.qrels)
    assert pairs_of(closed_entities(one, balanced=True, seed=5)) == pairs_of(every[every["qid"] == alone])
    assert pairs_of(closed_entities(linked, balanced=True, seed=6)) != pairs_of(every)
    some = every.sample(frac=0.5, random_state=1)
    scores, again, other = (
        RandomEntities(seed=seed)(run).set_index(["qid", "docno"])["score"]
        for seed, run in ((2, every), (2, some), (3, some))
    )
    assert again.to_dict() == scores.loc[again.index].to_dict() != other.to_dict()


def test_random_scores_are_uniform_and_independent_of_labels():
    rows = pd.MultiIndex.from_product([range(100)] * 2, names=["qid", "docno"]).to_frame(index=False).astype(str)
    scores = RandomEntities()(rows.assign(score=0.0)).set_index(["qid", "docno"])["score"].unstack()
    values = scores.to_numpy()
    assert 0 <= values.min() < 0.001
    assert 0.999 < values.max() < 1
    assert abs(values.mean() - 0.5) < 4 * 0.2887 / 100
    # Means of rows and of columns vary as those of independent numbers do.
    for axis in (0, 1):
        assert values.mean(axis=axis).std() == pytest.approx(0.02887, rel=0.3)


# Samples of negatives


# A ranking may hold none of the entities of a small pool.
@pytest.mark.filterwarnings("ignore:entity run. none of its:vbterrier.errors.DegenerateWarning")
@settings(max_examples=80, deadline=None)
@given(collection=collections(), order=st.permutations([*"ABCDE"]))
def test_hard_and_random_negatives_by_hand(collection, order):
    sets = sets_of(collection)
    pool = linked(*collection)
    run = pd.DataFrame([(qid, entity, -float(place)) for qid in pool.topics for place, entity in enumerate(order[:4])])
    results = {
        "hard": supervision_report(pool, negatives="hard", ranking=run.set_axis(["qid", "docno", "score"], axis=1)),
        "random": supervision_report(pool, negatives="random", seed=1),
    }
    for place, qid in enumerate(pool.topics):
        negatives, n = sets[qid]["negative"], len(sets[qid]["positive"])
        hard = [entity for entity in order[:4] if entity in negatives][:n]
        bad = [entity for entity in hard if any(entity in sets[other]["positive"] for other in sets if other != qid)]
        row = results["hard"].topics.iloc[place]
        assert (row["n_sampled"], row["n_contaminated"]) == (len(hard), len(bad))
        assert results["random"].topics["n_sampled"][place] == min(n, len(negatives))
    for name, report in results.items():
        assert report.contamination["negatives"].item() == name
        frequencies = report.frequencies.set_index(["partition", "quantity"]).loc[(f"negative ({name})", "df_cand")]
        assert frequencies["n_pairs"] == report.topics["n_sampled"].sum()


def test_hard_negatives_are_those_of_consensus_unless_a_ranking_is_given():
    made = planted_collection(n_topics=6, n_documents=80, n_relevant=16, linker_recall=0.3)
    pool = link_pool(made.pool, made.tags, made.qrels)
    consensus = ConsensusEntities(pool, support="rank")(made.topics)
    one, other = (supervision_report(pool, negatives="hard", ranking=run) for run in (None, consensus))
    pd.testing.assert_frame_equal(one.topics, other.topics)
    assert one.topics["n_sampled"].sum() > 0
    with pytest.raises(ParameterError, match="ranking is for negatives='hard'"):
        supervision_report(pool, ranking=consensus)


def test_frequencies_of_the_collection_replace_those_of_the_pools(pool):
    df = {"A": 10, "B": 100, "C": 1, "D": 1000}
    table = supervision_report(pool, df=df, n_documents=1000).frequencies.set_index(["partition", "quantity"])
    assert table.loc[("common", "df"), "median"] == 100
    assert table.loc[("positive", "idf"), "mean"] == pytest.approx(math.log(100) / 2)
    with pytest.raises(InputError, match=r"1 entity of the pools has no frequency \('D'\)"):
        supervision_report(pool, df=dict.fromkeys("ABC", 5), n_documents=1000)
    message = "'B' has 2, wanted at least 3, its documents in the pools, and at most n_documents=9"
    with pytest.raises(InputError, match=message):
        supervision_report(pool, df=df | {"A": 2, "B": 2, "D": 2}, n_documents=9)
    with pytest.raises(ParameterError, match="give both, or neither"):
        supervision_report(pool, df=df)
