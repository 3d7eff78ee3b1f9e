"""The normal form of names."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vbterrier.linking.links import normal_form, normal_forms


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


def test_blank_text_alone_has_an_empty_form():
    assert normal_forms(["", " \t\n", "\u00a0\u3000", "-"]) == ["", "", "", "-"]


@given(st.text())
def test_the_form_of_a_form_is_itself(text):
    form = normal_form(text)
    assert normal_form(form) == form


@given(st.text())
def test_case_composition_and_blanks_around_change_nothing(text):
    form = normal_form(text)
    assert normal_form(unicodedata.normalize("NFD", text).casefold()) == form
    assert normal_form(unicodedata.normalize("NFD", text)) == form
    assert normal_form(unicodedata.normalize("NFC", text)) == form
    assert normal_form(f" {text}\u2003") == form
    assert unicodedata.is_normalized("NFC", form)
    assert form == " ".join(form.split())


@given(st.lists(st.text(max_size=10)))
def test_many_texts_are_each_by_itself(texts):
    assert normal_forms(texts) == [normal_form(text) for text in texts]
