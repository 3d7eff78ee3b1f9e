"""Hypothesis strategies for whole runs, judgments, intents and tags: good ones, and bad ones made of them.

Reached through the fixture ``strategies``, because test modules do not import each other.
"""

import math
from typing import NamedTuple

import pandas as pd
from hypothesis import strategies as st

STORAGES = (object, "str", "string", "category")
# What stands where something else was wanted.
ODD = (None, math.nan, math.inf, -math.inf, -1, 1e308, 0.5, 2**63, True, "", "x", "1", " q1", b"x", [], {"a": 1})


class Case(NamedTuple):
    """Frames over the same queries, documents and entities."""

    run: pd.DataFrame
    qrels: pd.DataFrame
    intents: pd.DataFrame
    tags: pd.DataFrame


def ids(most=8):
    """Distinct ids: of the usual form, or any text that UTF-8 can say."""
    usual = st.integers(1, most).map(lambda n: [f"d{place}" for place in range(n)])
    any_text = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6)
    return st.one_of(usual, st.lists(any_text, min_size=1, max_size=most, unique=True))


def scores():
    """Scores with ties, infinities and neighbours that 32 bits cannot tell apart."""
    few = st.sampled_from([0.0, 1.0, 1.0 + 1e-9, -1.0, 2.5, math.inf, -math.inf])
    return st.one_of(few, st.floats(allow_nan=False))


@st.composite
def runs(draw, topics, documents):
    """Some documents of some topics, each once, rows in any order."""
    pairs = [(qid, docno) for qid in topics for docno in documents]
    kept = draw(st.lists(st.sampled_from(pairs), min_size=1, unique=True))
    return frame(draw, kept, ("qid", "docno"), score=[draw(scores()) for _ in kept])


@st.composite
def qrels(draw, topics, documents):
    """Every topic with at least one relevant document."""
    pairs = [(qid, docno) for qid in topics for docno in draw(some(documents))]
    labels = [draw(st.integers(-1, 3)) for _ in pairs]
    first = {qid: place for place, (qid, _) in reversed(list(enumerate(pairs)))}
    labels = [max(label, 1) if first[pairs[place][0]] == place else label for place, label in enumerate(labels)]
    return frame(draw, pairs, ("qid", "docno"), label=labels)


@st.composite
def intents(draw, topics, entities):
    """Every topic with candidates whose probabilities sum to 1, some of them 0 or tiny."""
    pairs, prob = [], []
    for qid in topics:
        kept = draw(some(entities))
        weights = [draw(st.sampled_from([0.0, 1e-300, 1e-9, 0.5, 1.0, 7.0])) for _ in kept]
        total = math.fsum(weights)
        pairs += [(qid, entity) for entity in kept]
        prob += [weight / total if total else 1 / len(kept) for weight in weights]
    return frame(draw, pairs, ("qid", "entity_id"), prob=prob)


@st.composite
def tags(draw, documents, entities):
    """Entities of documents with weights, a pair more than once too."""
    pairs = draw(st.lists(st.tuples(st.sampled_from(documents), st.sampled_from(entities)), min_size=1, max_size=12))
    return frame(draw, pairs, ("docno", "entity_id"), weight=[draw(st.floats(0, 1)) for _ in pairs])


@st.composite
def cases(draw):
    """Frames that can be evaluated with each other."""
    topics, documents, entities = draw(ids(3)), draw(ids()), draw(ids(4))
    return Case(
        draw(runs(topics, documents)),
        draw(qrels(topics, documents)),
        draw(intents(topics, entities)),
        draw(tags(documents, entities)),
    )


@st.composite
def broken(draw):
    """Frames of which some are broken: a column gone, called otherwise or of another type, cells and rows that are
    odd, doubled or missing.
    """
    case = draw(cases())
    for name in draw(st.lists(st.sampled_from(Case._fields), min_size=1, max_size=3)):
        case = case._replace(**{name: _broken(draw, getattr(case, name))})
    return case


def some(values):
    return st.lists(st.sampled_from(values), min_size=1, unique=True)


def frame(draw, pairs, names, **numbers):
    """Ids in any storage, rows in any order, with columns that nobody asked for."""
    made = pd.DataFrame(pairs, columns=list(names)).assign(**numbers)
    made = made.iloc[draw(st.permutations(range(len(made))))]
    if draw(st.booleans()):
        made = made.reset_index(drop=True)
    if draw(st.booleans()):
        made = made.assign(note="x")
    return made.astype(dict.fromkeys(names, draw(st.sampled_from(STORAGES))))


def _broken(draw, data):
    how = draw(st.sampled_from(["drop", "rename", "cell", "column", "double", "none", "numbers", "twice"]))
    if how == "none" or not len(data) or not len(data.columns):
        return data.iloc[:0]
    place, row = draw(st.integers(0, len(data.columns) - 1)), draw(st.integers(0, len(data) - 1))
    column, others = data.iloc[:, [place]], [other for other in range(len(data.columns)) if other != place]
    makers = {
        "drop": lambda: data.iloc[:, others],
        "rename": lambda: pd.concat([data.iloc[:, others], column.set_axis([draw(_names(column))], axis=1)], axis=1),
        "double": lambda: pd.concat([data, data.iloc[[row]]]),
        "twice": lambda: pd.concat([data, column], axis=1),
        "numbers": lambda: _with(data, place, list(range(len(data)))),
        "column": lambda: _with(data, place, [draw(st.sampled_from(ODD))] * len(data)),
        "cell": lambda: _with(data, place, _replaced(column, row, draw(st.sampled_from(ODD)))),
    }
    return makers[how]()


def _names(column):
    return st.sampled_from([f"{column.columns[0]}s", "", 0, None])


def _replaced(column, row, value):
    return [value if place == row else cell for place, cell in enumerate(column.iloc[:, 0])]


def _with(data, place, cells):
    """A frame with other cells in one of its columns."""
    made = pd.Series(cells, index=data.index, dtype=object)
    columns = [made if other == place else data.iloc[:, other] for other in range(len(data.columns))]
    return pd.concat(columns, axis=1).set_axis(data.columns, axis=1)
