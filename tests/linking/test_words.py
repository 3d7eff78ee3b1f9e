"""Tokenization into words, with offsets and folded forms."""

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vbterrier.errors import InputError
from vbterrier.frames.names import normal_form
from vbterrier.linking import words as words_module
from vbterrier.linking.words import Words, _kind, batches, check_texts


def spans(text):
    """Find words with a regular expression over the kinds of characters."""
    kinds = "".join("? wusmf"[_kind(ord(sign))] for sign in text)
    return [match.span() for match in re.finditer(r"w(?:[wmf]*[wm])?|u(?:[mf]*m)?|s(?:[smf]*[sm])?", kinds)]


def word_form(text, *, case=False):
    return Words.of([text]).forms(case=case)[0]


def words(text):
    result = Words.of([text])
    return [text[start:end] for start, end in zip(result.start, result.end, strict=True)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" \t\n…—?!", []),
        ("Obama's U.S. visit", ["Obama", "s", "U", "S", "visit"]),
        ("snake_case/path-like", ["snake", "case", "path", "like"]),
        ("C++ and A$AP, 3M x²", ["C", "++", "and", "A", "$", "AP", "3M", "x²"]),
        ("e\u0301te\u0301 na\u00efve", ["e\u0301te\u0301", "na\u00efve"]),
        ("\u0301stray", ["stray"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("서울에서 봤다", ["서울에서", "봤다"]),
        ("NHK東京タワー", ["NHK", "東", "京", "タ", "ワ", "ー"]),
        ("人々々ーー〇〇", ["人", "々", "々", "ー", "ー", "〇", "〇"]),
        ("กินข้าว", ["กิ", "น", "ข้", "า", "ว"]),
        ("Ba\u00adrack\u200e \ufeffObama", ["Ba\u00adrack", "Obama"]),
        ("zero\u200bwidth\u00a0no-break", ["zero", "width", "no", "break"]),
        ("👩\u200d💻 ❤\ufe0f", ["👩\u200d💻", "❤\ufe0f"]),
        ("lone \ud800 surrogate\x00", ["lone", "surrogate"]),
    ],
)
def test_words_are_runs_of_letters_digits_and_marks(text, expected):
    assert words(text) == expected


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("Straße", "STRASSE"),
        ("İ", "i\u0307"),
        ("e\u0301", "\u00c9"),
        ("ΟΔΟΣ", "οδος"),
        ("ﬁn", "FIN"),
        ("\u01f0", "J\u030c"),
        ("Ba\u00adrack", "barack"),
        ("\u212b", "å"),
        ("St. Louis", "st  louis"),
        ("ﾊﾟ", "ﾊﾟ"),
    ],
)
def test_words_that_differ_in_case_composition_or_punctuation_are_the_same(left, right):
    assert word_form(left) == word_form(right) != ""


@pytest.mark.parametrize(
    ("left", "right"), [("C++", "C"), ("C#", "D#"), ("İ", "i"), ("resume", "résumé"), ("a b", "ab")]
)
def test_words_that_differ_in_anything_else_are_not(left, right):
    assert word_form(left) != word_form(right)


@pytest.mark.parametrize("case", [False, True])
@pytest.mark.slow
def test_folding_any_sign_keeps_the_number_of_words(case):
    signs = [chr(code) for code in range(0x110000) if unicodedata.category(chr(code)) not in {"Cn", "Co", "Cs"}]
    result = Words.of([".".join(signs)])
    # Every letter, digit and symbol is a word between full stops.
    assert len(result.text) > 140_000
    (form,) = result.forms(case=case)
    assert form.count(" ") == len(result.text) - 1
    assert unicodedata.is_normalized("NFC", form)
    assert Words.of(form.split(" ")).forms(case=case) == form.split(" "), "folded is folded"


SIGNS = "aB ßİ.'\u0301\u00ad\u200b\u0345東กิ+9Σﬁ\u0390Å\n"


@given(st.lists(st.text(alphabet=SIGNS, max_size=12), max_size=5))
def test_words_of_texts_are_those_of_each_text(texts):
    result = Words.of(texts)
    expected = [(place, *span) for place, text in enumerate(texts) for span in spans(text)]
    assert list(zip(result.text.tolist(), result.start.tolist(), result.end.tolist(), strict=True)) == expected
    forms = result.forms()
    assert forms == [word_form(text) for text in texts]
    for text, form in zip(texts, forms, strict=True):
        assert [word_form(text[start:end]) for start, end in spans(text)] == form.split()
    stream = result.folded_words()
    assert [piece[1:-1] for piece in stream.split("\n")[1:]] == [form for form in forms if form]
    assert stream == " " + "".join(f"\n {form} " for form in forms if form)


# Without invisible characters, and without the mark that folds to a letter.
@given(st.text(alphabet=sorted(set(SIGNS) - set("\u00ad\u200b\u0345")), max_size=12))
def test_forms_are_equal_where_normal_forms_of_names_are(text):
    if word_form(text):
        assert word_form(normal_form(text)) == word_form(text)
        assert normal_form(word_form(text)) == word_form(text)


def test_batches_hold_whole_texts_in_order(monkeypatch):
    monkeypatch.setattr(words_module, "_BLOCK_CODE_POINTS", 5)
    texts = ["aaaa", "", "b", "cccccccccc", "", "", "dd", "dd"]
    expected = [(0, ["aaaa"]), (1, ["", "b"]), (3, ["cccccccccc"]), (4, ["", "", "dd"]), (7, ["dd"])]
    assert list(batches(texts)) == expected
    assert list(batches([])) == []


def test_texts_are_checked():
    assert check_texts(iter(["a", ""])) == ["a", ""]
    with pytest.raises(InputError, match="wanted a list of texts, found one text; pass \\[text\\]"):
        check_texts("Jordan")
    with pytest.raises(InputError, match="wanted text, found NoneType in place 1; pass '' for none"):
        check_texts(["a", None])
