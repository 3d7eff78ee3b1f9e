"""Linking by dictionary names: offsets, overlaps, case, ambiguity."""

import gzip
import json
import pickle
import warnings

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vbterrier.errors import DegenerateWarning
from vbterrier.linking import words as words_module
from vbterrier.linking.dictionary import DictionaryLinker
from vbterrier.linking.kb.files import build_kb
from vbterrier.linking.lexicon import STOP_ALIASES
from vbterrier.linking.links import COLUMNS, Linker
from vbterrier.linking.words import Words, strip_accents

PLAIN = {"min_length": 1, "numeric": True, "stop_aliases": None, "case": "ignore"}


def frame(*rows):
    return pd.DataFrame(rows, columns=["alias", "entity_id", "score", "name"][: len(rows[0]) if rows else 2])


def linker(*aliases, **options):
    """Return a linker whose names are their ids."""
    return DictionaryLinker(frame(*[(alias, alias) for alias in aliases]), id_space="k", **options)


def mentions(dictionary, text):
    links = dictionary.link([text]).frame
    mentions = [text[start:end] for start, end in zip(links["start"], links["end"], strict=True)]
    assert mentions == links["mention"].tolist()
    return list(zip(links["start"].tolist(), mentions, links["entity_id"].tolist(), strict=True))


def word_form(text):
    return Words.of([text]).forms()[0]


@pytest.mark.parametrize(
    ("alias", "text", "start", "mention"),
    [
        ("Straße", "in der STRASSE, ja", 7, "STRASSE"),
        ("İzmir", "ŉŉ i\u0307ZMIR!", 3, "i\u0307ZMIR"),
        ("Zoë", "É Zoe\u0308 x", 2, "Zoe\u0308"),
        ("St. Louis", "(St  -- louis)", 1, "St  -- louis"),
        ("Obama", "Obama's Obamas", 0, "Obama"),
        ("Barack Obama", "see Ba\u00adrack_Obama", 4, "Ba\u00adrack_Obama"),
        ("東京", "新東京都へ", 1, "東京"),
        ("C++", "C or c++?", 5, "c++"),
        ("हिन्दी", "वह हिन्दी है", 3, "हिन्दी"),
        ("Ο Οδυσσεύς", "ῼ ο ΟΔΥΣΣΕΎΣ", 2, "ο ΟΔΥΣΣΕΎΣ"),
    ],
)
def test_places_are_those_of_the_text_as_given(alias, text, start, mention):
    assert mentions(linker(alias), text) == [(start, mention, alias)]


WITHIN = {"Paris": "Parisian Comparis paris2 2paris pari\u015b e\u0301paris paris\u0301", "AC": "AÇ AC\u0327"}
WITHIN |= {"New York": "newyork new yorkers renew york", "C+": "C++, c+−1", "กน": "กินข้าว กิน", "서울": "서울에서"}


@pytest.mark.parametrize("alias", WITHIN)
def test_names_never_match_parts_of_words(alias):
    assert mentions(linker(alias), WITHIN[alias]) == []


def test_every_text_gets_its_place_and_nothing_found_the_same_columns():
    links = linker("Paris", "Lyon").link(["", "Lyon", "no", "Paris and Lyon, Paris"])
    assert isinstance(linker("Paris"), Linker)
    assert (links.id_space, links.scale) == ("k", "probability")
    assert links.frame["text"].tolist() == [1, 3, 3, 3]
    assert links.frame["start"].tolist() == [0, 0, 10, 16]
    for texts in ([], [""], ["nothing here", "…"]):
        empty = linker("Paris").link(texts).frame
        assert tuple(empty.columns) == COLUMNS
        assert empty.dtypes.tolist() == links.frame.dtypes.tolist()
        assert len(empty) == 0


def test_the_leftmost_name_counts_and_of_those_the_longest():
    names = linker("New York", "York", "New York City", "City Hall", "Hall", "York City")
    texts = ["New York City Hall, York City, Hall", "old york city hall", "New York Cities, New Yorkers' Hall"]
    expected = [["New York City", "Hall", "York City", "Hall"], ["York City", "Hall"], ["New York", "Hall"]]
    assert [[row[2] for row in mentions(names, text)] for text in texts] == expected
    names = linker("New York", "York", "York City", longest=False)
    assert [row[:2] for row in mentions(names, "New York City")] == [(0, "New York"), (4, "York City"), (4, "York")]


SIGNS = "ab ,ßsİi\u0307\u0301é東京+A9\u00ad"


def oracle(aliases, text, *, longest):
    """Compare every run of words of the text with every name, as written and without accents."""
    plain = {plain_form(alias): alias for alias in aliases}
    names = {tuple(form.split()): alias for form, alias in plain.items() if form not in STOP_ALIASES}
    names |= {tuple(word_form(alias).split()): alias for alias in aliases}
    words = Words.of([text])
    spans = list(zip(words.start.tolist(), words.end.tolist(), strict=True))
    words = [word_form(text[start:end]) for start, end in spans]
    hits, first = [], 0
    while first < len(words):
        ends = [end for end in range(len(words), first, -1) if tuple(words[first:end]) in names]
        start = spans[first][0]
        chosen = ends[:1] if longest else ends
        hits.extend((start, text[start : spans[end - 1][1]], names[tuple(words[first:end])]) for end in chosen)
        first = ends[0] if ends and longest else first + 1
    return hits


def plain_form(alias):
    return strip_accents(word_form(alias))


@given(st.data(), st.booleans())
def test_what_is_found_is_what_a_textbook_loop_finds(data, longest):
    some = st.text(alphabet=SIGNS, min_size=1, max_size=5)
    aliases = data.draw(st.lists(some.filter(word_form), min_size=1, max_size=6, unique_by=plain_form))
    pieces = data.draw(st.lists(st.one_of(some, st.sampled_from(aliases)), max_size=8))
    text = "".join(pieces)
    assert mentions(linker(*aliases, longest=longest, **PLAIN), text) == oracle(aliases, text, longest=longest)


def test_candidates_come_with_their_priors_the_most_probable_first():
    rows = [("Jordan", "Q810", 0.3, "Jordan"), ("Jordan", "Q41421", 0.5, "Michael"), ("jordan", "Q0", 0.2, "")]
    links = DictionaryLinker(frame(*rows), id_space="wikidata").link(["Jordan JORDAN"]).frame
    # Two spellings with different distributions give their mean.
    once = [("Q41421", 0.25, "Michael"), ("Q810", 0.15, "Jordan"), ("Q0", 0.1, "")]
    assert list(zip(links["entity_id"], links["score"], links["name"], strict=True)) == once * 2
    assert links["start"].tolist() == [0] * 3 + [7] * 3


def test_without_priors_the_candidates_of_a_name_share_it():
    dictionary = DictionaryLinker(frame(("x y", "B"), ("X.Y", "A"), ("x-y", "A"), ("z w", "C")), id_space="k")
    links = dictionary.link(["x y z w"]).frame
    assert links[["entity_id", "score"]].values.tolist() == [["A", 0.5], ["B", 0.5], ["C", 1.0]]


def test_priors_of_more_than_one_are_normalised_with_one_warning():
    with pytest.warns(DegenerateWarning, match=r"scores of 1 alias sum to more than 1 \('ab'\); they are divided by"):
        dictionary = DictionaryLinker(frame(("ab", "A", 1.0), ("ab", "B", 1.0)), id_space="k")
    assert dictionary.link(["ab"]).frame["score"].tolist() == [0.5, 0.5]
    # A rounding error is no excess.
    DictionaryLinker(frame(("ab", "A", 0.5), ("ab", "B", 0.5 + 1e-9)), id_space="k")


def test_ids_stay_text():
    for rows, ids in (([("bond", "007"), ("void", "NA"), ("seven", "7")], ["007", "NA", "7"]), ([("bond", 7)], ["7"])):
        links = DictionaryLinker(frame(*rows), id_space="k").link(["bond void seven"])
        assert links.frame["entity_id"].tolist() == ids


def test_guards_say_once_what_they_leave_out():
    with pytest.warns(DegenerateWarning, match="dictionary") as record:
        dictionary = linker("it", "A", "x", "1984", "50-50", "!!!", "Paris", "the who", stop_aliases=["PARIS"])
    assert len(record) == 1
    assert record[0].filename == __file__
    counts = "1 empty ('!!!'), 2 numeric ('1984', '50-50'), 1 short ('x'), 3 stop ('it', 'A', 'Paris')"
    assert f"some of the 8 aliases are left out or truncated: {counts}" in str(record[0].message)
    assert dictionary.skipped["alias"].tolist() == ["it", "A", "x", "1984", "50-50", "!!!", "Paris"]
    assert dictionary.skipped["reason"].tolist() == ["stop", "stop", "short", *["numeric"] * 2, "empty", "stop"]
    assert mentions(dictionary, "it is A x 1984 50 50 !!! in Paris: The Who") == [(35, "The Who", "the who")]


def test_guards_can_be_lifted():
    names = ("it", "x", "1984", "七")
    text = "x and it in 1984, 七"
    assert [row[2] for row in mentions(linker(*names, **PLAIN), text)] == ["x", "it", "1984", "七"]
    with pytest.warns(DegenerateWarning, match="1 stop"):
        assert [row[2] for row in mentions(linker(*names, min_length=1, numeric=True), text)] == ["x", "1984", "七"]
    with pytest.warns(DegenerateWarning, match=r"2 short \('x', '七'\)"):
        assert [row[2] for row in mentions(linker(*names, numeric=True, stop_aliases=None), text)] == ["it", "1984"]
    with pytest.warns(DegenerateWarning, match=r"1 numeric \('1984'\)"):
        assert [row[2] for row in mentions(linker(*names, min_length=1, stop_aliases=None), text)] == ["x", "it", "七"]


AMBIGUOUS = frame(
    ("Smith", "S3", 0.2), ("Smith", "S1", 0.2), ("Smith", "S2", 0.6), ("John Smith", "S1", 1.0)
)  # fmt: skip


def test_names_that_are_too_ambiguous_are_skipped_or_cut_to_the_most_probable_entities():
    message = r"left out or truncated: 1 ambiguous \('Smith'\)"
    with pytest.warns(DegenerateWarning, match=message):
        skipping = DictionaryLinker(AMBIGUOUS, id_space="k", max_candidates=2)
    assert skipping.skipped.values.tolist() == [["Smith", "ambiguous"]]
    links = skipping.link(["Smith and John Smith"]).frame
    assert links[["start", "entity_id"]].values.tolist() == [[10, "S1"]]
    with pytest.warns(DegenerateWarning, match=message):
        cutting = DictionaryLinker(AMBIGUOUS, id_space="k", max_candidates=2, ambiguous="truncate")
    links = cutting.link(["Smith"]).frame
    assert links[["entity_id", "score"]].values.tolist() == [["S2", 0.6], ["S1", 0.2]], "ties by id, same priors"
    assert len(DictionaryLinker(AMBIGUOUS, id_space="k", max_candidates=3).skipped) == 0
    # A skipped name hides no shorter one.
    rows = frame(("New York", "a"), ("New York", "b"), ("York", "c"))
    with pytest.warns(DegenerateWarning, match="1 ambiguous"):
        assert mentions(DictionaryLinker(rows, id_space="k", max_candidates=1), "New York") == [(4, "York", "c")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Send it to the US for us, says the WHO.", ["US", "WHO"]),
        # "us" is a function word, which a text in one case does not distinguish.
        ("the us senate and who", ["Senate"]),
        ("THE US SENATE", ["Senate"]),
        ("Us, the Senate, and who", ["Senate"]),
        ("ibm", ["IBM"]),
        ("Ibm", []),
        ("IBM and ibm", ["IBM"]),
        ("LONDON London london", ["LONDON"] * 3),
    ],
)
def test_acronyms_are_found_in_capitals_unless_the_text_has_one_case(text, expected):
    names = linker("US", "WHO", "IBM", "Senate", "LONDON")
    assert len(names.skipped) == 0
    assert [row[2] for row in mentions(names, text)] == expected


def test_case_can_be_ignored_or_count():
    with pytest.warns(DegenerateWarning, match=r"1 stop \('US'\)"):
        ignoring = linker("US", "IBM", "ibm", case="ignore")
    assert [row[2] for row in mentions(ignoring, "US Ibm")] == ["IBM", "ibm"]
    exact = linker("US", "IBM", "ibm", "İO", case="exact")
    assert [row[2] for row in mentions(exact, "US us Ibm IBM i\u0307o I\u0307O")] == ["US", "IBM", "İO"]


def test_the_case_of_a_mention_chooses_its_meaning():
    names = frame(("US", "country"), ("Us", "film"), ("us", "pronoun"))
    dictionary = DictionaryLinker(names, id_space="k", stop_aliases=None)
    meant = dictionary.link(["The US and us", "us", "US"]).frame
    senses = meant.groupby(["text", "mention"])["entity_id"].agg(list).to_dict()
    both = ["film", "pronoun"]
    assert senses == {(0, "US"): ["country", *both], (0, "us"): both, (1, "us"): both, (2, "US"): both}


def test_stop_aliases_of_the_user_hold_for_capitals_too():
    with pytest.warns(DegenerateWarning, match=r"2 stop \('US', 'IBM'\)"):
        assert mentions(linker("US", "IBM", stop_aliases=["us", "Ibm"]), "The US and IBM") == []


def test_linkers_are_equal_if_their_kind_and_parameters_are():
    class Other(DictionaryLinker):
        pass

    first, rows = linker("Paris", "Lyon"), frame(("Paris", "Paris"))
    assert first == linker("Paris", "Lyon")
    assert hash(first) == hash(linker("Paris", "Lyon"))
    others = linker("Paris"), linker("Paris", "Lyon", longest=False), linker("Paris", "Lyon", case="exact")
    assert len({first, *others}) == 4
    assert Other(rows, id_space="k") == Other(rows, id_space="k") != DictionaryLinker(rows, id_space="k")
    assert repr(first) == "DictionaryLinker(2 aliases of 'k')"
    changed = linker("Paris", longest=False, stop_aliases=("x",), case="exact")
    assert repr(changed) == "DictionaryLinker(1 aliases of 'k', longest=False, stop_aliases=('x',), case='exact')"


def test_a_pickle_holds_parameters_alone_and_says_nothing_again():
    with pytest.warns(DegenerateWarning):
        dictionary = linker("US", "it", "Paris", stop_aliases=("Lyon",))
    packed = pickle.dumps(dictionary)
    assert b"lexicon" not in packed
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = pickle.loads(packed)
        assert again == dictionary
        assert hash(again) == hash(dictionary)
        pd.testing.assert_frame_equal(again.link(["The US, Paris"]).frame, dictionary.link(["The US, Paris"]).frame)


def test_the_order_of_aliases_and_batches_change_nothing(monkeypatch):
    rows = frame(*[(f"name {i % 7}", f"e{i}") for i in range(40)])
    # Texts with letters beyond ASCII are read separately.
    texts = [f"{'über' if i % 3 == 1 else 'about'} name {i} and Name {i + 1}" for i in range(6)]
    expected = DictionaryLinker(rows, id_space="k").link(texts).frame
    shuffled = DictionaryLinker(rows.sample(frac=1, random_state=2), id_space="k").link(texts).frame
    pd.testing.assert_frame_equal(shuffled, expected)
    single = pd.concat(
        DictionaryLinker(rows, id_space="k").link([text]).frame.assign(text=place) for place, text in enumerate(texts)
    )
    pd.testing.assert_frame_equal(single.reset_index(drop=True), expected)
    monkeypatch.setattr(words_module, "_BLOCK_CODE_POINTS", 30)
    pd.testing.assert_frame_equal(DictionaryLinker(rows, id_space="k").link(texts).frame, expected)


@pytest.fixture(scope="module")
def congress(shared_data):
    path, columns = shared_data / "kb_us_congress" / "alias.tsv.gz", ["alias", "entity_id"]
    names = pd.read_csv(path, sep="\t", names=columns, dtype=str, na_filter=False)
    with pytest.warns(DegenerateWarning, match=r"3 stop \('few', 'may', 'new'\)"):
        return names, DictionaryLinker(names, id_space="bioguide")


@pytest.mark.slow
def test_names_of_legislators_are_found_where_they_were_put(congress):
    names, dictionary = congress
    some = names["alias"].drop_duplicates().sample(2000, random_state=1)
    some = some[some.str.count(" ") > 0].str.title().tolist()
    texts = [f"Straße №{place}: «{name}» (D–OH) met İlker & {name}’s aide." for place, name in enumerate(some)]
    links = dictionary.link(texts).frame
    mentions = links.drop_duplicates(["text", "start"])
    assert [texts[t][s:e] for t, s, e in mentions[["text", "start", "end"]].values] == mentions["mention"].tolist()
    # A full stop after the last word ("Jr.") is not part of the mention.
    whole = mentions["mention"] == pd.Series(some).str.rstrip(".").take(mentions["text"]).to_numpy()
    assert whole.sum() == 2 * len(some), "each name twice"
    expected = names.groupby("alias")["entity_id"].agg(set)
    is_first = links["start"] == links.groupby("text")["start"].transform("min")
    meant = links[is_first].groupby("text")["entity_id"].agg(set)
    for place, name in enumerate(some):
        assert expected[name.lower()] <= meant[place]
    sums = links.groupby(["text", "start"])["score"].sum()
    assert sums.between(1 - 1e-9, 1 + 1e-9).all()


@pytest.mark.nightly
def test_whole_names_mean_what_the_knowledge_base_says(shared_data, tmp_path):
    with gzip.open(shared_data / "kb_us_congress" / "entities.jsonl.gz", "rt", encoding="utf-8") as file:
        people = [json.loads(line) for line in file]
    people = [{name: person[name] for name in ("id", "label", "aliases")} for person in people]
    base = build_kb(tmp_path / "congress.kb", people, id_space="bioguide")
    dictionary = DictionaryLinker(base, **PLAIN)
    assert dictionary.id_space == "bioguide"
    names = base.alias_table()["alias"].drop_duplicates().tolist()
    assert len(names) > 30_000
    columns = ["text", "entity_id", "score", "name"]
    tables = (
        linker.link(names).frame[columns].sort_values(columns[:2], ignore_index=True) for linker in (dictionary, base)
    )
    pd.testing.assert_frame_equal(*tables, rtol=1e-12)
    again = pickle.loads(pickle.dumps(dictionary))
    assert again == dictionary
    assert len(pickle.dumps(dictionary)) < 1000, "a knowledge base goes by its path"
    assert len(again.link(["Abraham Lincoln"]).frame) > 0


def test_queries_are_linked_with_names_seen_in_other_sessions(shared_data):
    rows = pd.read_csv(shared_data / "y_erd_elq" / "Y-ERD.tsv", sep="\t", dtype=str, na_filter=False, quoting=3)
    rows = rows.apply(lambda column: column.str.strip())
    session = rows["qid"].str.rsplit("_", n=1).str[0]
    number = session.drop_duplicates().reset_index(drop=True)
    train = session.isin(number[number.index % 2 == 0])
    seen = rows[train & (rows["mention"] != "")].groupby(["mention", "entity"]).size().rename("score").reset_index()
    seen["score"] /= seen.groupby("mention")["score"].transform("sum")
    with pytest.warns(DegenerateWarning, match="aliases are left out or truncated"):
        dictionary = DictionaryLinker(
            seen.rename(columns={"mention": "alias", "entity": "entity_id"}), id_space="dbpedia", numeric=True
        )
    queries = rows[~train].drop_duplicates("qid").reset_index(drop=True)
    texts = queries["query"].tolist()
    links = dictionary.link(texts).frame
    assert [texts[t][s:e] for t, s, e in links[["text", "start", "end"]].values] == links["mention"].tolist()
    names = set(seen["mention"])
    assert set(map(word_form, links["mention"])) <= set(map(word_form, names))
    gold = rows[~train & (rows["mention"] != "")]
    pairs = set(zip(queries["qid"].take(links["text"]), links["entity_id"], strict=True))
    right = pairs & set(zip(gold["qid"], gold["entity"], strict=True))
    precision, recall = len(right) / len(pairs), len(right) / len(gold.drop_duplicates(["qid", "entity"]))
    print(f"\nY-ERD, names of other sessions: precision {precision:.3f}, recall {recall:.3f}, {len(texts)} queries")
    assert precision > 0.5, "half of what is linked is right, with no context at all"
