"""Linking by similar names."""

import pickle
import sys

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vbterrier.errors import DegenerateWarning, InputError, ParameterError
from vbterrier.frames.names import normal_form
from vbterrier.linking import dictionary
from vbterrier.linking.dictionary import DictionaryLinker, FuzzyLinker
from vbterrier.linking.kb.files import build_kb
from vbterrier.linking.links import COLUMNS, Linker

NAMES = pd.DataFrame(
    {
        "alias": ["John Smith", "John Smith", "Jon Smith", "Joan Smyth", "J. Smith", "Ohio"],
        "entity_id": ["S1", "S2", "S3", "S4", "S1", "OH"],
        "name": ["Smith, John", "", "", "", "", "Ohio"],
    }
)


def linker(names=NAMES, **options):
    return FuzzyLinker(names, id_space="k", **options)


def indel(left, right):
    """Return 1 - insertions and deletions / letters of both, from the longest common subsequence."""
    table = [[0] * (len(right) + 1) for _ in range(len(left) + 1)]
    for i, a in enumerate(left):
        for j, b in enumerate(right):
            table[i + 1][j + 1] = table[i][j] + 1 if a == b else max(table[i][j + 1], table[i + 1][j])
    return 2 * table[-1][-1] / (len(left) + len(right))


def levenshtein(left, right):
    row = list(range(len(right) + 1))
    for i, a in enumerate(left):
        row, above = [i + 1], row
        for j, b in enumerate(right):
            row.append(min(row[j] + 1, above[j + 1] + 1, above[j] + (a != b)))
    return 1 - row[-1] / max(len(left), len(right))


def pairs(frame):
    return list(zip(frame["entity_id"].tolist(), frame["score"].round(6).tolist(), strict=True))


@pytest.mark.parametrize(("similarity", "oracle"), [("indel", indel), ("levenshtein", levenshtein)])
def test_scores_are_those_of_a_textbook_loop(similarity, oracle):
    text = "Jhon  SMITH"
    best = {}
    for alias, entity in zip(NAMES["alias"], NAMES["entity_id"], strict=True):
        best[entity] = max(best.get(entity, 0), oracle("jhon smith", normal_form(alias)))
    expected = sorted(
        ((entity, round(score, 6)) for entity, score in best.items() if score >= 0.5), key=lambda p: (-p[1], p[0])
    )
    assert len(expected) == 4
    links = linker(similarity=similarity, min_similarity=0.5).link([text])
    assert pairs(links.frame) == expected
    assert (links.id_space, links.scale) == ("k", "score")
    assert links.frame[["text", "start", "end", "mention"]].iloc[0].tolist() == [0, 0, 11, text]
    assert dict(zip(links.frame["entity_id"], links.frame["name"], strict=True))["S1"] == "Smith, John"


def test_jaro_winkler_is_the_textbook_example():
    names = pd.DataFrame({"alias": ["MARTHA"], "entity_id": ["m"]})
    links = linker(names, similarity="jaro_winkler").link(["MARHTA"])
    assert links.frame["score"].tolist() == pytest.approx([0.961111], abs=1e-6)


def test_a_similarity_at_the_cutoff_passes():
    names = pd.DataFrame({"alias": ["abcd"], "entity_id": ["x"]})
    assert indel("abce", "abcd") == 0.75
    assert len(linker(names, min_similarity=0.75).link(["abce"]).frame) == 1
    assert len(linker(names, min_similarity=0.7501).link(["abce"]).frame) == 0
    assert len(linker(names, min_similarity=0.75 + 5e-7).link(["abce"]).frame) == 0
    # 0.8 is not a binary fraction; rounding in 1 - 0.2 must not fail the comparison.
    names = pd.DataFrame({"alias": ["joan smyth"], "entity_id": ["x"]})
    assert pairs(linker(names, min_similarity=0.8).link(["john smith"]).frame) == [("x", 0.8)]
    names["alias"] = "abcd"
    assert pairs(linker(names, min_similarity=1).link(["abcd", "abce"]).frame) == [("x", 1.0)]


def test_the_order_of_words_need_not_count():
    assert pairs(linker(min_similarity=1, word_order=False).link(["Smith, John"]).frame) == [("S1", 1.0), ("S2", 1.0)]
    assert len(linker(min_similarity=1).link(["Smith, John"]).frame) == 0


def test_priors_weigh_the_similarity():
    names = pd.DataFrame({"alias": ["abcd", "abcd", "abce"], "entity_id": ["x", "y", "y"], "score": [0.75, 0.25, 0.5]})
    assert pairs(linker(names, min_similarity=0.5).link(["abcd"]).frame) == [("x", 0.75), ("y", 0.75 * 0.5)]


def test_no_more_candidates_than_asked_ties_by_id():
    names = pd.DataFrame({"alias": "same", "entity_id": [f"e{i}" for i in (3, 1, 4, 0, 2)]})
    links = linker(names, limit=3, min_similarity=0.5).link(["same", "sane"])
    assert links.frame["entity_id"].tolist() == ["e0", "e1", "e2"] * 2


def test_the_most_similar_parts_that_do_not_overlap_are_linked():
    text = "senator Jon  Smyth of ohoi, Ohio"
    links = linker(max_words=3, min_similarity=0.7).link([text]).frame
    mentions = links.drop_duplicates("start")
    assert mentions["mention"].tolist() == ["Jon  Smyth", "ohoi", "Ohio"]
    assert [text[s:e] for s, e in zip(mentions["start"], mentions["end"], strict=True)] == mentions["mention"].tolist()
    assert links[links["mention"] == "Jon  Smyth"]["entity_id"].tolist()[0] == "S4"


@pytest.mark.parametrize(
    ("aliases", "text", "expected"),
    [
        (["aaa bbb", "bbb ccc ddd"], "aaa bbb ccc ddd", ["bbb ccc ddd"]),
        (["aaa bbb", "bbb ccc"], "aaa bbb ccc", ["aaa bbb"]),
        (["aaa bbb ccc ddd", "ddd"], "aaa bbb ccc ddd", ["ddd"]),
        (["東京都", "大阪府"], "東京都大阪府", ["東京都", "大阪府"]),
        (["new york", "york", "york new"], "new york new york", ["new york", "new york"]),
    ],
)
def test_of_exact_parts_the_longest_is_taken_within_the_number_of_words(aliases, text, expected):
    names = pd.DataFrame({"alias": aliases, "entity_id": aliases})
    assert linker(names, max_words=3, min_similarity=1).link([text]).frame["mention"].tolist() == expected


def test_short_parts_and_function_words_are_not_tried():
    names = pd.DataFrame({"alias": ["of the", "oh", "who", "of ohio"], "entity_id": list("abcd")})
    for options, ids in (({}, ["d"]), ({"min_length": 2}, ["b", "d"])):
        links = linker(names, max_words=2, **options).link(["who of the oh of ohio"]).frame
        assert links["entity_id"].tolist() == ids
    # A whole text is always compared.
    assert linker(names).link(["who", "oh"]).frame["entity_id"].tolist() == ["c", "b"]


@pytest.mark.slow
@settings(max_examples=30)
@given(st.lists(st.sampled_from(["new", "york", "city", "of", "hall", "newt", "ß", "東京"]), max_size=7))
def test_exact_parts_are_those_of_a_dictionary_where_nothing_overlaps(words):
    names = pd.DataFrame({"alias": ["new york", "city hall", "ss", "東京", "!"], "entity_id": list("abcde")})
    text = " ".join(words)
    one = linker(names, min_similarity=1, max_words=3, min_length=2).link([text]).frame
    other = DictionaryLinker(names.iloc[:4], id_space="k").link([text]).frame
    pd.testing.assert_frame_equal(one, other)


def test_nothing_similar_is_an_empty_frame_of_the_same_kind():
    full = linker().link(["ohio"]).frame
    for options in ({}, {"max_words": 2}):
        for texts in ([], ["", "…"], ["quite another"]):
            empty = linker(**options).link(texts).frame
            assert tuple(empty.columns) == COLUMNS
            assert empty.dtypes.tolist() == full.dtypes.tolist()
            assert len(empty) == 0


def test_batches_and_chunks_change_nothing(monkeypatch):
    texts = ["jon smith", "ohio", "", "John Smyth", "jon smith", "oho"] * 3
    for options in ({"min_similarity": 0.7}, {"min_similarity": 0.7, "max_words": 2}):
        expected = linker(**options).link(texts).frame
        single = pd.concat(linker(**options).link([text]).frame.assign(text=i) for i, text in enumerate(texts))
        pd.testing.assert_frame_equal(single.reset_index(drop=True), expected)
        monkeypatch.setattr(dictionary, "BLOCK_CELLS", 7)
        pd.testing.assert_frame_equal(linker(**options).link(texts).frame, expected)
        monkeypatch.undo()
    assert expected["text"].is_monotonic_increasing


INVALID = {
    "wanted a number above 0 and at most 1": [("min_similarity", value) for value in (0, 85, float("nan"))],
    "wanted a whole number, 1 or more": [(name, 0) for name in ("max_words", "limit", "min_length")],
    "wanted one of 'indel', 'levenshtein', 'jaro_winkler'": [("similarity", "ratio")],
}


@pytest.mark.parametrize(
    ("name", "value", "message"), [(*one, message) for message, some in INVALID.items() for one in some]
)
def test_parameters_without_a_legal_value_are_refused(name, value, message):
    with pytest.raises(ParameterError, match=f"{name}={value!r}: {message}"):
        linker(**{name: value})


def test_aliases_and_texts_are_checked():
    with pytest.raises(ParameterError, match="id_space: wanted the name"):
        FuzzyLinker(NAMES)
    with pytest.raises(InputError, match="aliases: no rows"):
        linker(NAMES.iloc[:0])
    with pytest.raises(InputError, match="aliases: none has a letter or digit"):
        linker(pd.DataFrame({"alias": ["!!!"], "entity_id": ["x"]}))
    with pytest.raises(InputError, match="found one text"):
        linker().link("Ohio")
    with pytest.warns(DegenerateWarning, match="scores of 1 alias sum to more than 1"):
        linker(pd.DataFrame({"alias": "a b", "entity_id": ["x", "y"], "score": 1.0}))


def test_linkers_are_what_their_parameters_are():
    first = linker()
    assert isinstance(first, Linker)
    assert first == linker() == pickle.loads(pickle.dumps(first))
    others = linker(min_similarity=0.5), linker(max_words=2), linker(NAMES.iloc[:2]), linker(word_order=False)
    assert len({first, linker(), *others}) == 5
    assert repr(others[0]) == "FuzzyLinker(6 aliases of 'k', min_similarity=0.5)"
    again = pickle.loads(pickle.dumps(first))
    pd.testing.assert_frame_equal(again.link(["ohio"]).frame, first.link(["ohio"]).frame)


def test_a_missing_extra_is_named(monkeypatch):
    names = linker()
    monkeypatch.setitem(sys.modules, "rapidfuzz.process", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'vbterrier\[linkers\]'"):
        names.link(["ohio"])


def test_scores_are_those_of_a_fuzzy_look_up(tmp_path):
    people = [
        {"id": "S1", "label": "John Smith", "aliases": ["J. Smith", "Smith"]},
        {"id": "S2", "label": "John Smith (Ohio)", "aliases": ["John Smith"]},
        {"id": "S3", "label": "Joan Smyth", "aliases": ["Smyth"]},
    ]
    base = build_kb(tmp_path / "k.kb", people, id_space="people")
    texts = ["jon smith", "smyths", "Joan  Smith", "nobody like that"]
    links = FuzzyLinker(base, min_similarity=0.6).link(texts)
    candidates = base.lookup(texts, how="fuzzy", min_similarity=0.6)
    assert links.id_space == "people"
    assert links.frame["text"].nunique() == 3
    columns = ["text", "mention", "entity_id", "score", "name"]
    pd.testing.assert_frame_equal(links.frame[columns], candidates[columns])


def test_misspelt_mentions_find_their_entities(shared_data):
    """Link the 30 mentions with corrected spelling to the names of all entities."""
    folder, key = shared_data / "y_erd_elq", ["qid", "mention", "entity"]
    misspelt, fixed = (
        pd.read_csv(folder / name, sep="\t", dtype=str, na_filter=False, quoting=3)[key]
        for name in ("Y-ERD.tsv", "Y-ERD_spell-corrected.tsv")
    )
    both = fixed.merge(misspelt, how="left", on=key, indicator=True)
    odd = both[(both["_merge"] == "left_only") & (both["mention"] != "")]
    assert len(odd) == 30
    titles = fixed["entity"][fixed["entity"] != ""].drop_duplicates()
    plain = titles.str.slice(len("<dbpedia:"), -1).str.replace(r"_\(.*\)", "", regex=True).str.replace("_", " ")
    names = pd.DataFrame({"alias": plain, "entity_id": titles})
    links = linker(names, min_similarity=0.6).link(odd["mention"].tolist()).frame
    first = links.drop_duplicates("text").set_index("text")["entity_id"]
    right = sum(first.get(place) == entity for place, entity in enumerate(odd["entity"]))
    print(f"\nmisspelt mentions of Y-ERD: {right} of {len(odd)} first")
    assert right >= 20
    assert first[odd["mention"].tolist().index("firfox")] == "<dbpedia:Firefox>"
