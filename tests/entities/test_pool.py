"""Linked pools against dictionaries of sets, their frames and files, and what is refused."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vbterrier.entities.pool import link_pool, read_links, write_links
from vbterrier.errors import DegenerateWarning, FileError, InputError
from vbterrier.frames.linked_pool import LinkedPool

# NA is an entity of the random tags.
pytestmark = pytest.mark.filterwarnings("ignore:.*is treated as an entity:vbterrier.errors.DegenerateWarning")

DOCUMENTS = [f"d{i}" for i in range(6)]
# Ids that look like numbers, missing values and code points that UTF-16 would sort elsewhere.
ENTITIES = ["Paris", "NA", "007", "7", "\uff5e", "\U0001f600"]
MENTIONS = st.lists(
    st.tuples(st.sampled_from(DOCUMENTS), st.sampled_from(ENTITIES), st.sampled_from([0.0, 0.25, 1.0])),
    min_size=1,
    max_size=25,
)
RANKINGS = st.lists(
    st.permutations(DOCUMENTS).flatmap(lambda d: st.integers(1, 6).map(lambda n: d[:n])), min_size=1, max_size=3
)
LABELS = st.dictionaries(
    st.tuples(st.sampled_from(["q2", "q0", "q1"]), st.sampled_from([*DOCUMENTS, "unretrieved"])), st.integers(-2, 2)
)


def pool_of(rankings):
    # Topics in an order of their own: q2, q0, q1.
    rows = [(f"q{(n + 2) % 3}", d, -float(r)) for n, docs in enumerate(rankings) for r, d in enumerate(docs)]
    return pd.DataFrame(rows, columns=["qid", "docno", "score"])


def tags_of(mentions):
    return pd.DataFrame(mentions, columns=["docno", "entity_id", "weight"])


def qrels_of(labels):
    frame = pd.DataFrame([(*key, label) for key, label in labels.items()], columns=["qid", "docno", "label"])
    return frame.astype({"qid": str, "docno": str, "label": int})


def rows_of(frame):
    return [tuple(None if pd.isna(value) else value for value in row) for row in frame.itertuples(index=False)]


def textbook(rankings, mentions, labels, depth=None):
    """The rows of the K frame by plain loops."""
    rows = []
    for number, documents in enumerate(rankings):
        qid = f"q{(number + 2) % 3}"
        for rank, docno in enumerate(documents[:depth]):
            label = max(labels[qid, docno], 0) if (qid, docno) in labels else -1
            weights = {}
            for one, entity, weight in mentions:
                if one == docno:
                    weights.setdefault(entity, []).append(weight)
            rows += [
                (qid, docno, entity, label, rank, max(weights[entity]), len(weights[entity]))
                for entity in sorted(weights, key=str.encode)
            ]
            if not weights:
                rows.append((qid, docno, None, label, rank, 0.0, 0))
    return rows


def linkable(rankings, mentions, depth=None):
    retrieved = {docno for documents in rankings for docno in documents[:depth]}
    return any(docno in retrieved for docno, _, _ in mentions)


@given(RANKINGS, MENTIONS, LABELS, st.sampled_from([None, 1, 3, 99]), st.randoms())
def test_a_pool_is_what_plain_loops_join_in_any_order_of_rows(rankings, mentions, labels, depth, random):
    expected = textbook(rankings, mentions, labels, depth)
    shuffled = random.sample(mentions, len(mentions))
    frames = pool_of(rankings), tags_of(shuffled), qrels_of(labels)
    before = [frame.copy() for frame in frames]
    if not linkable(rankings, mentions, depth):
        with pytest.raises(InputError, match="has an entity in tags; check the document ids"):
            link_pool(*frames, cutoff=depth)
        return
    pool = link_pool(*frames, cutoff=depth)
    assert rows_of(pool.to_frame()) == expected
    # There and back: the frame in any order of rows is the same pool, but for the order of topics.
    mixed = pool.to_frame().sample(frac=1, random_state=len(mentions))
    again = LinkedPool.from_frame(mixed).to_frame()
    order = {topic: place for place, topic in enumerate(pool.topics)}
    assert sorted(rows_of(again), key=lambda row: order[row[0]]) == expected
    for frame, kept in zip(frames, before, strict=True):
        pd.testing.assert_frame_equal(frame, kept)


@given(RANKINGS, MENTIONS)
def test_pairs_and_their_links(rankings, mentions):
    if not linkable(rankings, mentions):
        return
    pool = link_pool(pool_of(rankings), tags_of(mentions))
    size = len(pool.entities)
    keys = (pool.topic[pool.document] * size + pool.entity).tolist()
    assert pool.pairs.tolist() == sorted(set(keys))
    assert pool.pairs[pool.pair].tolist() == keys
    topic, entity = np.divmod(np.arange(len(pool.topics) * size), size)
    result = pool.find(topic, entity)
    assert result.tolist() == [sorted(set(keys)).index(key) if key in keys else -1 for key in range(len(topic))]
    assert pool.find(topic[:1], np.array([-1])).tolist() == [-1]
    expected = [len(pool.pairs) - 1, 0]
    links = [(place, one) for place, pair in enumerate(expected) for one in np.flatnonzero(pool.pair == pair).tolist()]
    assert np.stack(pool.mentioned(np.array(expected))).T.tolist() == list(map(list, links))


@given(RANKINGS, MENTIONS, LABELS)
def test_a_pool_survives_its_file(tmp_path_factory, rankings, mentions, labels):
    if not linkable(rankings, mentions):
        return
    pool = link_pool(pool_of(rankings), tags_of(mentions), qrels_of(labels))
    path = tmp_path_factory.mktemp("links") / "links.parquet"
    write_links(pool, path)
    again = read_links(path)
    assert again.topics == pool.topics
    assert rows_of(again.to_frame()) == rows_of(pool.to_frame())
    for name in ("topic", "label", "rank", "starts", "entity", "weight", "mentions"):
        assert getattr(again, name).dtype == getattr(pool, name).dtype
        assert getattr(again, name).tolist() == getattr(pool, name).tolist()


POOL = pd.DataFrame({"qid": ["q1", "q1", "q2"], "docno": ["a", "b", "a"], "score": [2.0, 1.0, 1.0]})
TAGS = pd.DataFrame({"docno": ["a", "b"], "entity_id": ["E", "F"]})
LINKS = link_pool(POOL, TAGS, pd.DataFrame({"qid": ["q1"], "docno": ["a"], "label": [1]})).to_frame()


def test_tags_of_one_query_count_for_it_alone():
    table = link_pool(POOL, TAGS.assign(qid=["q2", "q1"])).to_frame()
    assert [row[:3] for row in rows_of(table)] == [("q1", "a", None), ("q1", "b", "F"), ("q2", "a", "E")]


def test_entities_that_came_as_integers_are_text_from_there_on():
    pool = link_pool(POOL, TAGS.assign(entity_id=[1, 2]))
    assert pool.entities.text.to_pylist() == ["1", "2"]
    assert not pool.entities.integers
    assert not LinkedPool.from_frame(pool.to_frame()).entities.integers


def test_an_empty_frame_is_a_pool_of_nothing():
    pool = LinkedPool.from_frame(LINKS.iloc[:0])
    assert (len(pool), pool.topics, len(pool.pairs)) == (0, [], 0)
    assert pool.find(np.array([0]), np.array([0])).tolist() == [-1]
    assert rows_of(pool.to_frame()) == []


def test_files_of_others_are_read_and_others_still_refused(tmp_path):
    path = tmp_path / "links.parquet"
    LINKS.drop(columns="mentions").assign(label=LINKS["label"].astype("int8")).to_parquet(path)
    assert rows_of(read_links(path).to_frame()) == rows_of(LINKS)
    with pytest.raises(FileError, match=r"has [\d,]+ bytes uncompressed, more than [\d,]+; max_bytes="):
        read_links(path, max_bytes=100)
    (tmp_path / "text").write_text("qid\tdocno\n")
    with pytest.raises(FileError, match="text: is not a Parquet file; write links with write_links"):
        read_links(tmp_path / "text")
    LINKS.drop(columns="rank").to_parquet(path)
    with pytest.raises(FileError, match="rank"):
        read_links(path)
    LINKS.assign(weight=3.0).to_parquet(path)
    with pytest.raises(FileError, match=r"links\.parquet: links: row 0 has weight 3"):
        read_links(path)
    path.write_bytes(path.read_bytes()[:-20] + b"x" * 16 + b"PAR1")
    with pytest.raises(FileError, match="is not a readable Parquet file"):
        read_links(path)
    with pytest.raises(FileError, match="no such file"):
        read_links(tmp_path / "none.parquet")
    with pytest.raises(FileError, match="cannot be written"):
        write_links(LinkedPool.from_frame(LINKS), tmp_path / "no folder" / "links.parquet")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["links.parquet", "text"]


def test_a_small_file_of_endless_rows_is_refused(tmp_path):
    """Equal rows pack to nothing: the limit is on what they take when read."""
    path, n = tmp_path / "links.parquet", 1_000_000
    names = pa.array(["x"]).dictionary_encode()
    ids = {
        name: pa.DictionaryArray.from_arrays(pa.array(np.zeros(n, np.int32)), names.dictionary)
        for name in LINKS.columns[:3]
    }
    zeros = pa.array(np.zeros(n, np.int64))
    pq.write_table(pa.table({**ids, "label": zeros, "rank": zeros, "weight": pa.array(np.zeros(n))}), path)
    assert path.stat().st_size < 100_000
    with pytest.raises(FileError, match="has 56,000,000 bytes uncompressed"):
        read_links(path, max_bytes=50_000_000)


@pytest.mark.parametrize("column", ["qid", "docno", "entity_id"])
def test_nested_columns_are_refused_by_name(tmp_path, column):
    path = tmp_path / "links.parquet"
    LINKS.iloc[:1].assign(**{column: [["x"]]}).to_parquet(path)
    with pytest.raises(FileError, match=rf"links\.parquet: column '{column}' holds list<.*, wanted ids as text"):
        read_links(path)


def test_rows_of_two_documents_of_a_rank_may_alternate():
    links = {"qid": "q1", "docno": [*"abab"], "entity_id": [*"EFGH"], "label": 1, "rank": 0, "weight": 1.0}
    pool = LinkedPool.from_frame(pd.DataFrame(links))
    assert [row[1:3] for row in rows_of(pool.to_frame())] == [("a", "E"), ("a", "G"), ("b", "F"), ("b", "H")]


def test_ranks_from_one_are_reported_and_documents_without_entities_need_no_confidence():
    links = pd.concat([LINKS, LINKS.iloc[:1].assign(docno="c", entity_id=None, weight=None)], ignore_index=True)
    assert LinkedPool.from_frame(links).to_frame().query("docno == 'c'")["weight"].tolist() == [0.0]
    with pytest.warns(DegenerateWarning, match="no rank is 0, the first rank"):
        LinkedPool.from_frame(links.assign(rank=links["rank"] + 1))
