"""The interface of linkers, and the normal form of names."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vbterrier.frames.names import normal_form, normal_forms
from vbterrier.linking.links import COLUMNS, Links, links_frame

ROW = (0, 5, 9, "York", "Q42462", 0.75, "York")


def test_rows_become_columns_of_the_right_kinds_even_without_any():
    for rows in ([], [ROW]):
        frame = links_frame(rows)
        assert tuple(frame.columns) == COLUMNS
        assert [frame[name].dtype.kind for name in ("text", "start", "end", "score")] == ["i", "i", "i", "f"]
        assert len(frame) == len(rows)
    assert links_frame([ROW]).loc[0].tolist() == list(ROW)
    links = Links(links_frame([ROW]), "wikidata", "probability")
    assert (links.id_space, links.scale) == ("wikidata", "probability")
    assert Links(links_frame([(*ROW[:5], -3.5, "")]), "own").scale == "score"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("JOHN SMITH", "john smith"),
        ("Smith,  John\t", "smith john"),
        ("Stra\u00dfe", "STRASSE"),
        ("\u1e9e", "ss"),
        ("Zoe\u0308", "ZO\u00cb"),
        ("\u03a3\u03af\u03c3\u03c5\u03c6\u03bf\u03c2", "\u03c3\u03af\u03c3\u03c5\u03c6\u03bf\u03c3"),
        ("\u00abFox\u00bb \u2014 the\u00a0band\u3002", "fox the band"),
        ("Fox_Broadcasting_Company", "fox broadcasting company"),
        ("a\u2028b\x00c", "a b c"),
        # Case folding splits the iota of a Greek letter, which changes the order of its marks.
        ("\u1f80", "\u03b1\u0345\u0313"),
    ],
)
def test_spellings_of_one_name_have_one_form(one, other):
    assert normal_form(one) == normal_form(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [("C++", "C"), ("A$AP", "A AP"), ("Zo\u00eb", "Zoe"), ("!!!", "???"), ("!!!", ""), ("fox 1", "fox1")],
)
def test_different_names_have_different_forms(one, other):
    assert normal_form(one) != normal_form(other)


def test_only_blank_text_has_an_empty_form():
    assert normal_forms(["", " \t\n", "\u00a0\u3000", "-"]) == ["", "", "", "-"]


@given(st.text())
def test_case_composition_and_blanks_around_change_nothing(text):
    form = normal_form(text)
    assert normal_form(form) == form
    assert normal_form(unicodedata.normalize("NFD", text).casefold()) == form
    assert normal_form(unicodedata.normalize("NFD", text)) == form
    assert normal_form(unicodedata.normalize("NFC", text)) == form
    assert normal_form(f" {text}\u2003") == form
    assert unicodedata.is_normalized("NFC", form)
    assert form == " ".join(form.split())
