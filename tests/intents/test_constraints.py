import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vbterrier.errors import InputError, ParameterError
from vbterrier.intents.constraints import (
    Constraint,
    ParseConstraints,
    Range,
    RelaxedQueries,
    _words,
    parse_constraints,
    parse_query,
)


def test_the_grammar_by_example():
    assert parse_constraints('state:OH|PA; born:1840..1860^2; name:"Smith; John"; city:New York') == (
        Constraint("state", ("OH", "PA")),
        Constraint("born", (Range(1840, 1860),), 2.0),
        Constraint("name", ("Smith; John",)),
        Constraint("city", ("New York",)),
    )


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("a:1840..", (Range(1840, np.inf),)),
        ("a:..-18.5", (Range(-np.inf, -18.5),)),
        ("a:5 .. 7", (Range(5, 7),)),
        ('a:"5..7"', ("5..7",)),
        ("a:..", ("..",)),
        ("a:b..c", ("b..c",)),
        ("url:http://x:80/", ("http://x:80/",)),
        (r'a:"say \"hi\" \\ ^;|:"', ('say "hi" \\ ^;|:',)),
        ('a:"x" | y', ("x", "y")),
        (" ; a : x ;; ", ("x",)),
    ],
)
def test_values(text, values):
    (result,) = parse_constraints(text)
    assert result.values == values


@pytest.mark.parametrize("nothing", ["", "  ; ", None, np.nan, pd.NA, {}, {"a": None}, {"a": []}, {"a": [np.nan]}])
def test_nothing_is_no_constraint(nothing):
    assert parse_constraints(nothing) == ()


def test_mappings_need_no_quotes():
    mapping = {"a": "OH; x^2", "b": ["OH", "PA"], "c": 1850, "d": 1850.0, "e": np.int64(1850), "f": "1840..", "g": True}
    values = [("OH; x^2",), ("OH", "PA"), ("1850",), ("1850",), ("1850",), (Range(1840, np.inf),), ("true",)]
    assert parse_constraints(mapping) == tuple(map(Constraint, mapping, values))


NUMBERS = st.floats(-1e9, 1e9).map(lambda x: round(x, 3))
RANGES = st.tuples(NUMBERS, NUMBERS).map(lambda ends: Range(min(ends), max(ends)))
NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_.-]{0,8}", fullmatch=True)
CONSTRAINTS = st.builds(
    Constraint,
    NAMES,
    st.lists(st.one_of(st.text(min_size=1), RANGES), min_size=1, max_size=3).map(tuple),
    st.none() | st.floats(0, 1e6),
)


@given(st.lists(CONSTRAINTS, max_size=3))
def test_constraints_survive_their_own_text(constraints):
    assert parse_constraints("; ".join(map(str, constraints))) == tuple(constraints)


@given(st.text(alphabet='ab:;|^". \\1', max_size=30))
def test_no_text_breaks_the_parser_in_another_way(text):
    try:
        result = parse_constraints(text)
    except InputError:
        return
    assert parse_constraints("; ".join(map(str, result))) == result


def test_long_texts_are_read_or_refused_in_a_short_message():
    assert len(parse_constraints("a:b;" * 20_000)) == 20_000
    for text in ('"' * 20_000, "a:" + '\\"' * 5_000, " " * 50_000 + "x", "a:" + " " * 50_000 + "|"):
        with pytest.raises(InputError, match=r"^constraints") as refused:
            parse_constraints(text)
        assert len(str(refused.value)) < 400


@pytest.mark.parametrize(
    ("query", "text", "constraints"),
    [
        ("John Smith state:OH chamber:sen", "John Smith", "state:OH; chamber:sen"),
        ('state:"New York"|OH; John born:1840..1860^2, Smith', "John Smith", "state:New York|OH; born:1840..1860^2"),
        ("http://a.b/c at 12:30 C++: yes", "http://a.b/c at 12:30 C++: yes", ""),
        ("  many   blanks  ", "many blanks", ""),
        ("state:", "state:", ""),
        ("", "", ""),
        ('say "state:OH" loud', 'say "state:OH" loud', ""),
        ("name:a:b", "", 'name:"a:b"'),
    ],
)
def test_queries_are_parted(query, text, constraints):
    assert parse_query(query) == (text, constraints)


def test_only_named_attributes_are_taken():
    assert parse_query("Star Wars:A state:OH", ["state"]) == ("Star Wars:A", "state:OH")


def test_the_stage_keeps_the_query_as_it_was_and_other_columns():
    topics = pd.DataFrame({"qid": ["1", "2"], "query": ["Smith state:OH", "Jordan"], "year": [1, 2]}, index=[7, 3])
    made = ParseConstraints()(topics)
    assert made[["query", "query_0", "constraints", "year"]].values.tolist() == [
        ["Smith", "Smith state:OH", "state:OH", 1],
        ["Jordan", "Jordan", "", 2],
    ]


# As the package did it before: every unclosed quote searched for its end again.
WORD = re.compile(r'(?:"(?:[^"\\]|\\.)*"|\S)+', re.DOTALL)
TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[;|^"]|[^;|^"]+', re.DOTALL)


@given(st.text('"\\a: ;|^', max_size=14))
def test_quotes_are_closed_as_a_slow_search_for_each_has_it(text):
    assert _words(text) == WORD.findall(text)
    if '"' in TOKEN.findall(text):
        with pytest.raises(InputError):
            parse_constraints(text)


def test_texts_full_of_quotes_cost_what_their_length_does():
    # Hours, where each quote looks for its end.
    text = '"' + '\\"' * 1_000_000
    assert parse_query(text) == (text, "")
    with pytest.raises(InputError, match="half-quoted"):
        parse_constraints(f"a:{text}")


@pytest.mark.parametrize(
    ("topics", "options", "expected"),
    [
        ({"query": ["doe at:MIT year:1990..", "none"]}, {}, [("q1", "doe year:1990.."), ("q1", "doe at:MIT")]),
        ({"query": ["doe at:MIT", "y:1 z:2"]}, {"most": 2}, [("q1", "doe"), ("q2", "z:2"), ("q2", "y:1")]),
        ({"query": ["re: at:MIT", "at:MIT"]}, {"names": ["at"]}, [("q1", "re:")]),
    ],
)  # fmt: skip
def test_relaxed_wordings_of_the_text(topics, options, expected):
    result = RelaxedQueries(**options)(pd.DataFrame({"qid": ["q1", "q2"], **topics}))
    assert list(result[["qid", "query"]].itertuples(index=False, name=None)) == expected


def test_relaxed_constraints_of_a_column():
    topics = pd.DataFrame({"qid": ["q1", "q2"], "query": "doe", "constraints": ["at:MIT; born:..1950^2", None]})
    result = RelaxedQueries(most=2)(topics)
    assert result["constraints"].tolist() == ["born:..1950^2", "at:MIT", ""]
    assert set(result["query"]) == {"doe"}
    assert RelaxedQueries()(topics[1:]).to_numpy().tolist() == []
    assert list(RelaxedQueries()(topics[:0])) == ["qid", "query", "constraints"]
    with pytest.raises(InputError, match="query 'q1': constraints 'x': wanted attribute:value"):
        RelaxedQueries()(topics.assign(constraints="x"))
    many = topics.assign(constraints="; ".join(f"a{n}:1" for n in range(60)))
    with pytest.raises(InputError, match="60 constraints have more than 1,000 relaxations with most=2; lower it"):
        RelaxedQueries(most=2)(many)
    assert len(RelaxedQueries()(many)) == 120
    for stage, bad in (
        (RelaxedQueries, {"most": 0}),
        *((of, {"names": "at"}) for of in (RelaxedQueries, ParseConstraints)),
    ):
        with pytest.raises(ParameterError, match=r"most=0|names='at': wanted a list of names"):
            stage(**bad)
