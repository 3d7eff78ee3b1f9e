"""Files of vectors: word2vec, GloVe and Wikipedia2Vec."""

import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vbterrier.entities.rankers.similarity import EntitySimilarity
from vbterrier.entities.vectors import read_vectors

NAMES = ["the", "ENTITY/New_York", "ENTITY/Zürich", "ENTITY/東京", "1", "a-b"]


def written(path, kind, names, vectors):
    header = f"{len(names)} {vectors.shape[1]}\n".encode()
    if kind in {"binary", "binary with newlines"}:
        end = b"\n" if kind != "binary" else b""
        parts = [n.encode() + b" " + v.astype("<f4").tobytes() + end for n, v in zip(names, vectors, strict=True)]
        return path.write_bytes(header + b"".join(parts))
    gap = "\t" if kind == "wikipedia2vec" else " "
    lines = [f"{name}{gap}{' '.join(map(repr, v.tolist()))}\n" for name, v in zip(names, vectors, strict=True)]
    return path.write_bytes((header if kind == "word2vec" else b"") + "".join(lines).encode())


KINDS = ("binary", "binary with newlines", "word2vec", "glove", "wikipedia2vec")


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 1000), d=st.integers(2, 6))
def test_every_format_gives_the_vectors_that_were_written(tmp_path_factory, kind, seed, d):
    path = tmp_path_factory.mktemp("vectors") / "file"
    # Arbitrary bytes, which may be spaces and line ends.
    raw = np.random.default_rng(seed).integers(0, 2**32, (len(NAMES), d), dtype=np.uint32).view(np.float32)
    vectors = np.where(np.isfinite(raw), raw, 1.0).astype(np.float64)
    written(path, kind, NAMES, vectors)
    result = read_vectors(path, form="binary" if kind.startswith("binary") else "auto")
    assert list(result) == NAMES
    assert (len(result), result.dimension) == (len(NAMES), d)
    np.testing.assert_array_equal([result[name] for name in NAMES], vectors)
    again = pickle.loads(pickle.dumps(result))
    np.testing.assert_array_equal(again.table(again.rows(NAMES[::-1])), vectors[::-1])
    entities = read_vectors(path, prefix="ENTITY/", form="binary" if kind.startswith("binary") else "auto")
    assert list(entities) == ["New_York", "Zürich", "東京"]
    np.testing.assert_array_equal(entities["Zürich"], vectors[2])
    assert "the" not in entities
    assert entities.rows(["x", "東京", "New York"]).tolist() == [-1, 2, -1]


def test_binary_and_text_are_recognised(tmp_path):
    vectors = np.random.default_rng(0).normal(size=(len(NAMES), 50))
    for kind in KINDS:
        written(tmp_path / kind, kind, NAMES, vectors)
        assert read_vectors(tmp_path / kind).is_binary is kind.startswith("binary")


def test_rankers_read_the_vectors_of_a_file_as_those_of_a_dictionary(tmp_path):
    names = [f"E{i}" for i in range(30)]
    vectors = np.random.default_rng(0).normal(size=(25, 5)).astype(np.float32).astype(float)
    written(tmp_path / "file", "binary", names[:25], vectors)
    pool = pd.DataFrame({"qid": "q", "docno": [f"d{i}" for i in range(30)], "score": 1.0})
    tags = pd.DataFrame({"docno": pool["docno"], "entity_id": names})
    query = pd.DataFrame({"qid": ["q"], "entity_id": ["E3"]})
    results = []
    for embeddings in (read_vectors(tmp_path / "file"), dict(zip(names[:25], vectors, strict=True))):
        with pytest.warns(UserWarning, match="5 of 30 entities have no vector"):
            results.append(EntitySimilarity(tags, embeddings=embeddings, query_entities=query)(pool))
    pd.testing.assert_frame_equal(*results)


def test_names_without_a_vector_are_missing_as_in_a_mapping(tmp_path):
    (tmp_path / "file").write_text("a 1 2\nb 1 -\nc 1 x\nd 1 nan\n")
    vectors = read_vectors(tmp_path / "file")
    with pytest.raises(KeyError):
        _ = vectors["e"]


def test_tables_of_vectors_are_equal_if_their_files_and_names_are(tmp_path):
    (tmp_path / "file").write_text("a 1 2\nb 1 3\n")
    (tmp_path / "other").write_text("a 1 2\nb 1 3\n")
    one, same, other = (read_vectors(tmp_path / name) for name in ("file", "file", "other"))
    assert one == same
    assert hash(one) == hash(pickle.loads(pickle.dumps(one)))
    assert one != other
    assert one != read_vectors(tmp_path / "file", prefix="a")
