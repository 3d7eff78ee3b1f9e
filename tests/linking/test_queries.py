"""Names in queries that are not written in full: parts of names, misspellings, acronyms."""

import math
import pickle

import numpy as np
import pandas as pd
import pytest

from vbterrier import CandidateIntents
from vbterrier.errors import ParameterError
from vbterrier.linking import ContextLinker, DictionaryLinker, QueryLinker, build_kb, kb_from_file

NAMES = pd.DataFrame(
    [
        ("Amy Klobuchar", "K1"),
        ("Richard Seitz", "S1"),
        ("Emanuel Seitz (jurist)", "S2"),
        ("World Health Organization", "O1"),
        ("University of Puerto Rico", "U1"),
        ("Doak Campbell Stadium", "D1"),
        ("Bill Clinton", "C1"),
    ],
    columns=["alias", "entity_id"],
)


@pytest.fixture(scope="module")
def linker():
    return QueryLinker(NAMES, id_space="people")


def linked(linker, text):
    return linker.link([text]).frame[["mention", "entity_id", "match"]].values.tolist()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Amy Klobuchar bill", [["Amy Klobuchar", "K1", "name"]]),
        ("Senator Klobuchar bill", [["Klobuchar", "K1", "part"]]),
        ("When was General Seitz born?", [["Seitz", "S1", "part"], ["Seitz", "S2", "part"]]),
        ("general seitz", [["seitz", "S1", "part"], ["seitz", "S2", "part"]]),
        ("What sport is Doak associated with?", [["Doak", "D1", "part"]]),
        ("speeches of amy klobuhcar", [["amy klobuhcar", "K1", "similar"]]),
        ("the WHO report", [["WHO", "O1", "acronym"]]),
        ("where is upr", [["upr", "U1", "acronym"]]),
        ("who was it", []),
        ("Senator, the General", []),
        ("", []),
    ],
)
def test_queries_find_names_that_are_not_written_in_full(linker, text, expected):
    assert linked(linker, text) == expected


@pytest.mark.slow
def test_links_are_alike_in_any_company(linker):
    texts = ["Senator Klobuchar bill", "", "general seitz", "the WHO report", "Amy Klobuchar"]
    together = linker.link(texts).frame
    alone = pd.concat([linker.link([text]).frame.assign(text=place) for place, text in enumerate(texts)])
    pd.testing.assert_frame_equal(alone.reset_index(drop=True), together, check_exact=True)
    assert not len(linker.link([]).frame)
    again = pickle.loads(pickle.dumps(linker))
    assert again == linker != QueryLinker(NAMES, id_space="people", limit=1)
    pd.testing.assert_frame_equal(again.link(texts).frame, together)
    assert together.groupby("text")["score"].sum().tolist() == pytest.approx([1, 1, 1, 1])


def test_probabilities_are_those_of_the_formula():
    """'Klara Amy': both words of two names; i² of a word by hand."""
    names = pd.DataFrame(
        {"alias": ["Amy Smith", "Amy Jones", "Klara Jones"], "entity_id": ["a", "b", "c"], "score": [0.5, 1.0, 1.0]}
    )
    linked = QueryLinker(names, id_space="people").link(["Dr. Smith Amy"]).frame
    weight = {word: math.log(4 / n) ** 2 for word, n in {"amy": 2, "smith": 1, "jones": 2, "klara": 1}.items()}
    # Of "Amy Jones" the query has less than .6 of the weight that it has of "Amy Smith".
    assert weight["amy"] < 0.6 * (weight["amy"] + weight["smith"])
    assert linked[["entity_id", "score"]].values.tolist() == [["a", 1.0]]
    linked = QueryLinker(names, id_space="people").link(["Amy"]).frame
    share = {
        "a": 0.5 * weight["amy"] / (weight["amy"] + weight["smith"]),
        "b": weight["amy"] / (weight["amy"] + weight["jones"]),
    }
    expected = {one: value / sum(share.values()) for one, value in share.items()}
    assert dict(zip(linked["entity_id"], linked["score"], strict=True)) == pytest.approx(expected)


def shares(linker, text):
    frame = linker.link([text]).frame
    return dict(zip(frame["entity_id"], frame["score"], strict=True))


SMITHS = [("a", "Ann Smith", 10), ("b", "Bob Smith", 1000)]
CLINICS = [("m", "Mayo Stroke Clinic", 10), ("n", "Madison Sports Clinic", 1000)]


@pytest.mark.parametrize(
    ("people", "text"), [(SMITHS, "smith"), (SMITHS, "smiht"), (CLINICS, "MSC"), (SMITHS, "the smith report")]
)
@pytest.mark.parametrize("form", ["tsv", "records", "counts of aliases", "aliases"])
def test_counts_decide_between_people_of_one_last_name(tmp_path, form, people, text):
    expected = pytest.approx({people[0][0]: 11 / 1012, people[1][0]: 1001 / 1012})
    if form == "aliases":
        frame = pd.DataFrame(people, columns=["entity_id", "alias", "count"])
        assert shares(QueryLinker(frame, id_space="people"), text) == expected
        return
    if form == "tsv":
        rows = "".join(f"{entity}\t{name}\t{count}\n" for entity, name, count in people)
        (tmp_path / "people.tsv").write_text("id\tlabel\tclicks\n" + rows)
        base = kb_from_file(tmp_path / "kb", tmp_path / "people.tsv", id_space="people")
    elif form == "records":
        records = [{"id": entity, "label": name, "clicks": count} for entity, name, count in people]
        base = build_kb(tmp_path / "kb", records, id_space="people")
    else:
        records = [{"id": entity, "aliases": [{"alias": name, "count": count}]} for entity, name, count in people]
        base = build_kb(tmp_path / "kb", records, id_space="people")
    with base:
        assert shares(QueryLinker(base), text) == expected


EXPANDED = [
    ("e1", "Multiple Sclerosis"),
    ("e2", "Mitral Stenosis"),
    ("e3", "Physical Therapist"),
    ("e4", "Right Atrium"),
]
ABBREVIATED = [("e1", "MS"), ("e2", "MS"), ("e3", "PT"), ("e4", "RA")]


@pytest.mark.parametrize("names", [EXPANDED, ABBREVIATED, EXPANDED + ABBREVIATED])
@pytest.mark.parametrize(
    ("text", "mention", "expected"),
    [
        ("M.S.", "M.S.", ["e1", "e2"]),
        ("m.s", "m.s", ["e1", "e2"]),
        ("r.a.", "r.a.", ["e4"]),
        ("PTs", "PTs", ["e3"]),
        ("the PTs said", "PTs", ["e3"]),
        ("pt with MS", "MS", ["e1", "e2"]),
        ("treatment of M.S. today", "M.S.", ["e1", "e2"]),
        ("M.S. Johnson", "", []),
        ("e.g. this", "", []),
    ],
)
def test_acronyms_are_found_as_people_write_them(names, text, mention, expected):
    linker = QueryLinker(pd.DataFrame(names, columns=["entity_id", "alias"]), id_space="x")
    frame = linker.link([text]).frame
    assert frame["entity_id"].tolist() == expected
    assert set(frame["mention"]) == ({mention} if expected else set())
    assert [text[start:end] for start, end in zip(frame["start"], frame["end"], strict=True)] == [mention] * len(
        expected
    )
    without = QueryLinker(pd.DataFrame(EXPANDED, columns=["entity_id", "alias"]), id_space="x", acronyms=False)
    assert not len(without.link([text]).frame)


ACCENTED = pd.DataFrame(
    [
        ("g", "José García", 100),
        ("f", "Jose Fernandez", 5),
        ("s", "Søren Kierkegaard", 1),
        ("z", "Zoë", 1),
        ("y", "Zoe", 1),
    ],
    columns=["entity_id", "alias", "count"],
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("jose garcia", {"g": 1.0}),
        ("José García", {"g": 1.0}),
        ("garcia", {"g": 1.0}),
        ("soren kierkegaard", {"s": 1.0}),
        ("zoe", {"y": 1.0}),
        ("zoë", {"z": 1.0}),
    ],
)
def test_names_with_accents_are_found_without_them(text, expected):
    assert shares(QueryLinker(ACCENTED, id_space="x"), text) == expected
    if text != "garcia":
        assert shares(DictionaryLinker(ACCENTED, id_space="x"), text) == expected
        assert len(shares(DictionaryLinker(ACCENTED, id_space="x", case="exact"), "Jose Garcia")) == 0


def test_counts_decide_between_a_name_with_and_one_without_accents():
    result = shares(QueryLinker(ACCENTED, id_space="x"), "jose")
    jose, garcia = math.log(6 / 1) ** 2, math.log(6 / 1) ** 2
    with_accent, without = 101 * 0.99 * jose / (jose + garcia), 6 * jose / (2 * jose)
    assert result == pytest.approx({"g": with_accent / (with_accent + without), "f": without / (with_accent + without)})


def test_names_of_several_people_weigh_as_many_people():
    """Without counts everybody is as probable, however many have the same full name."""
    names = pd.DataFrame({"alias": ["Ann Smith", "Ann Smith", "Bob Smith"], "entity_id": ["a", "b", "c"]})
    result = shares(QueryLinker(names, id_space="people"), "smith")
    assert list(result.values()) == pytest.approx([1 / 3] * 3)


def test_limits_and_switches():
    one = QueryLinker(NAMES, id_space="people", limit=1, min_similarity=None, acronyms=False)
    assert linked(one, "general seitz") == [["seitz", "S1", "part"]]
    assert not linked(one, "klobuhcar")
    assert not linked(one, "the WHO report")
    with pytest.raises(ParameterError, match=r"min_similarity=2: wanted a number above 0"):
        QueryLinker(NAMES, id_space="people", min_similarity=2)


def test_context_reads_the_words_around_a_part_of_a_name(tmp_path):
    people = [
        {"id": "a", "label": "Richard Seitz", "role": "general"},
        {"id": "b", "label": "Emanuel Seitz", "role": "judge"},
    ]
    with build_kb(tmp_path / "kb", people, id_space="people") as base:
        linker = ContextLinker(QueryLinker(base))
        topics = pd.DataFrame({"qid": ["1", "2"], "query": ["When was General Seitz born?", "judge seitz"]})
        first = CandidateIntents(linker)(topics).drop_duplicates("qid")
        assert first["entity_id"].tolist() == ["a", "b"]
        assert first["prob"].min() > 0.9
        assert not len(DictionaryLinker(base).link(topics["query"]).frame)


@pytest.mark.parametrize("text", ["clinton", "Clinton speech", "the clinton"])
def test_a_full_name_of_one_word_does_not_hide_longer_names(tmp_path, text):
    """Entities are as probable as their counts, times the share of their name that the query has."""
    (tmp_path / "entities.tsv").write_text(
        "id\tlabel\tclicks\ntown\tClinton\t9\nBill\tBill Clinton\t899\nHal\tHal Clinton\t9\nother\tAda Lovelace\t99\n"
    )
    with kb_from_file(tmp_path / "entities.kb", tmp_path / "entities.tsv", id_space="own") as base:
        linker = QueryLinker(base)
        frame = linker.link([text]).frame
        named = linker.link(["Bill Clinton"]).frame
        two = linker.link(["Clinton and Ada Lovelace"]).frame
    assert named["entity_id"].tolist() == ["Bill"]
    assert two["entity_id"].tolist() == ["town", "other"]
    assert frame["entity_id"].tolist()[0] == "Bill"
    assert frame["mention"].str.lower().unique().tolist() == ["clinton"]
    assert dict(zip(frame["entity_id"], frame["match"], strict=True)) == {"Bill": "part", "town": "name", "Hal": "part"}
    # The words clinton, bill and hal are in three, one and one of four names.
    clinton, rare = np.log(5 / 3) ** 2, np.log(5) ** 2
    weight = {"town": 10, "Bill": 900 * clinton / (clinton + rare), "Hal": 10 * clinton / (clinton + rare)}
    score = dict(zip(frame["entity_id"], frame["score"], strict=True))
    assert score == pytest.approx({name: one / sum(weight.values()) for name, one in weight.items()}, rel=0.01)
