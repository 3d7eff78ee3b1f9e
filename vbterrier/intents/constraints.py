"""Constraints on entities in text: ``state:OH|PA; born:1840..1860^2``."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain, combinations
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyterrier as pt

from vbterrier.errors import InputError, ParameterError, excerpt, whole
from vbterrier.frames.files.source import quoted_text
from vbterrier.intents.stage import IntentStage

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator


_QUOTED = r'"(?:[^"\\]|\\.)*'
# An unclosed quote extends to the end of the text, so that matching takes linear time.
_TOKEN = re.compile(rf'{_QUOTED}"?|[;|^]|[^;|^"]+', re.DOTALL)
_CLOSED = re.compile(rf'(?:[^"]|{_QUOTED}")*', re.DOTALL)
_NUMBER = r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)"
_RANGE = re.compile(rf"({_NUMBER})?\s*\.\.\s*({_NUMBER})?")
_NAME = re.compile(r'[^\s:;|^"][^:;|^"]*')
_WORD = re.compile(rf'(?:{_QUOTED}"|\S)+', re.DOTALL)
_KEYED = re.compile(r"([^\W\d][\w.-]*):(?!//)(.+)", re.DOTALL)


@dataclass(frozen=True)
class Range:
    """Numbers from ``low`` to ``high``, both included."""

    low: float
    high: float

    def __str__(self) -> str:
        ends = ("" if math.isinf(end) else f"{end:.17g}" for end in (self.low, self.high))
        return "..".join(ends)


@dataclass(frozen=True)
class Constraint:
    """A constraint on an attribute of the entity: one of the values should match."""

    attribute: str
    values: tuple[str | Range, ...]
    weight: float | None = None  # the penalty of a violation

    def __str__(self) -> str:
        weight = "" if self.weight is None else f"^{self.weight:.17g}"
        return f"{self.attribute}:{'|'.join(_quote_value(value) for value in self.values)}{weight}"


def parse_constraints(constraints: Any) -> tuple[Constraint, ...]:
    """Parse constraints from text or from a mapping.

    Parameters
    ----------
    constraints
        Text: clauses ``attribute:value`` separated by ``;``. Alternative values are separated by ``|``;
        ``1840..1860``, ``1840..`` and ``..1860`` are ranges of numbers, ends included; ``^2`` after the values is the
        weight. A value in double quotes is literal; quotes and backslashes in it are escaped with a backslash. Or a
        mapping of attributes to a value or a list of values, without quotes. ``None``, NaN and empty text mean no
        constraints.

    Returns
    -------
    tuple of Constraint
        The constraints, in the order of the text.

    Raises
    ------
    InputError
        Text that cannot be parsed; the message contains the clause.

    Examples
    --------
    >>> [str(constraint) for constraint in parse_constraints('state:OH|PA; name:"Smith; John"; born:1840..1860^2')]
    ['state:OH|PA', 'name:"Smith; John"', 'born:1840..1860^2']
    >>> parse_constraints({"current": False})
    (Constraint(attribute='current', values=('false',), weight=None),)
    """
    if isinstance(constraints, Mapping):
        return tuple(_of_mapping(constraints))
    if _is_missing(constraints):
        return ()
    if not isinstance(constraints, str):
        raise InputError(f"constraints {constraints!r}: wanted text or a mapping, found {type(constraints).__name__}")
    return tuple(
        _clause(tokens, constraints)
        for tokens in _split_tokens(_TOKEN.findall(constraints), ";")
        if "".join(tokens).strip()
    )


def _clause(tokens: list[str], text: str) -> Constraint:
    part = "".join(tokens).strip()
    body, *weights = _split_tokens(tokens, "^")
    attribute, colon, first = body[0].partition(":") if body else ("", "", "")
    if not (colon and _NAME.fullmatch(attribute.strip())) or len(weights) > 1:
        raise InputError(
            f"constraints {quoted_text(text)}: wanted attribute:value in {quoted_text(part)}; quote values with ; | ^ "
            "in them"
        )
    alternatives = tuple(_value(value, part) for value in _split_tokens([first, *body[1:]], "|"))
    return Constraint(attribute.strip(), alternatives, _weight("".join(weights[0]), part) if weights else None)


def _value(tokens: list[str], clause: str) -> str | Range:
    parts = [token for token in tokens if token.strip()]
    if len(parts) != 1 or (parts[0].startswith('"') and not re.fullmatch(f'{_QUOTED}"', parts[0], re.DOTALL)):
        raise InputError(
            f'constraints: an empty or half-quoted value in {quoted_text(clause)}; write attribute:"value"'
        )
    value = parts[0].strip()
    if value.startswith('"'):
        return re.sub(r"\\(.)", r"\1", value[1:-1], flags=re.DOTALL)
    return _range(value) or value


def _range(value: str) -> Range | None:
    match = _RANGE.fullmatch(value)
    if not match or not any(match.groups()):
        return None
    low, high = match.groups()
    made = Range(float(low or "-inf"), float(high or "inf"))
    if made.low > made.high:
        raise InputError(f"constraints: the range {value!r} is empty; put the smaller end first")
    return made


def _weight(text: str, clause: str) -> float:
    try:
        weight = float(text)
    except ValueError:
        weight = math.nan
    if not (math.isfinite(weight) and weight >= 0):
        raise InputError(
            f"constraints: weight {quoted_text(text.strip())} in {quoted_text(clause)}: wanted a number of at least 0"
        )
    return weight


def _of_mapping(constraints: Mapping[Any, Any]) -> Iterator[Constraint]:
    for name, value in constraints.items():
        values = list(value) if isinstance(value, (list, tuple, set, frozenset)) else [value]
        texts = [_text(name, one) for one in values if not _is_missing(one)]
        if not isinstance(name, str) or not _NAME.fullmatch(name.strip()):
            raise InputError(
                f"constraints {constraints!r}: attribute {name!r}: wanted a name without : ; | ^ and quotes"
            )
        # Mappings read from Parquet contain None for attributes of other rows.
        if texts:
            yield Constraint(name.strip(), tuple(_range(text.strip()) or text for text in texts))


def _is_missing(value: Any) -> bool:
    return value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value))


def _text(attribute: Any, value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, (str, int, float)) or hasattr(value, "item"):
        return str(value)
    raise InputError(f"constraints: attribute {attribute!r} is {value!r}; wanted text, a number or a list of them")


def _split_tokens(tokens: list[str], mark: str) -> list[list[str]]:
    """Split tokens at a mark outside quotes."""
    parts: list[list[str]] = [[]]
    for token in tokens:
        if token == mark:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def _quote_value(value: str | Range) -> str:
    if isinstance(value, Range):
        return str(value)
    plain = value and value == value.strip() and not re.search(r'[;|^:"\\]', value) and not _RANGE.fullmatch(value)
    escaped = re.sub(r'(["\\])', r"\\\1", value)
    return value if plain else f'"{escaped}"'


def parse_query(text: str, names: Collection[str] | None = None) -> tuple[str, str]:
    """Split a query into its other words and its constraints, words like ``state:OH``, see :class:`ParseConstraints`.

    >>> parse_query('John Smith state:"New York"|OH')
    ('John Smith', 'state:New York|OH')
    """
    rest, constraints = [], []
    for word in _words(text):
        if clause := _match_constraint(word, names):
            constraints += [str(constraint) for constraint in parse_constraints(clause)]
        else:
            rest.append(word)
    return " ".join(rest), "; ".join(constraints)


def _match_constraint(word: str, names: Collection[str] | None) -> str:
    """Return the constraint that a word is, empty for other words."""
    keyed = _KEYED.fullmatch(word.rstrip(";,"))
    return keyed[0] if keyed and (names is None or keyed[1] in names) else ""


def _words(text: str) -> list[str]:
    """Split text at unquoted white space; an unclosed quote is an ordinary character."""
    unclosed = _CLOSED.sub("", text, count=1)
    closed = text.removesuffix(unclosed)
    words, rest = _WORD.findall(closed), unclosed.split()
    if words and rest and not closed[-1].isspace():
        words[-1] += rest.pop(0)
    return [*words, *rest]


def _attribute_names(names: Iterable[str] | None) -> tuple[str, ...] | None:
    if isinstance(names, str):
        raise ParameterError(f"names={excerpt(names)}: wanted a list of names")
    return None if names is None else tuple(names)


class ParseConstraints(IntentStage):
    """Move words like ``state:OH`` from queries to a column of constraints: Q -> Q.

    Parameters
    ----------
    names
        Names of attributes; other words with a colon remain in the query. By default every word ``name:value`` is a
        constraint unless the value begins with ``//``.

    Raises
    ------
    InputError
        A query without text, a word that looks like a constraint and cannot be parsed.

    Notes
    -----
    Adds ``constraints``, in the syntax of :func:`parse_constraints`, for :class:`RelaxConstraints`; the original query
    is kept as ``query_0``, as with other rewriters. Values with spaces need double quotes.

    Examples
    --------
    >>> import pandas as pd
    >>> topics = pd.DataFrame({"qid": ["q1"], "query": ["John Smith state:OH born:1840..1860^2"]})
    >>> ParseConstraints()(topics)[["query", "constraints"]].values.tolist()
    [['John Smith', 'state:OH; born:1840..1860^2']]
    """

    def __init__(self, *, names: Iterable[str] | None = None) -> None:
        super().__init__()
        self.names = _attribute_names(names)

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Split each query into text and constraints."""
        self.require_columns(inp, "qid", "query", topics=True)
        if "constraints" in inp.columns:
            raise InputError("topics: column 'constraints' exists already; rename or drop it")
        parts = []
        for qid, query in zip(inp["qid"], inp["query"], strict=True):
            if not isinstance(query, str):
                raise InputError(f"topics: query {qid!r} has {query!r} as its text, wanted text")
            try:
                parts.append(parse_query(query, self.names))
            except InputError as error:
                raise InputError(f"query {qid!r}: {error}; pass names= to keep other words in the query") from error
        pushed: pd.DataFrame = pt.model.push_queries(inp)
        split = pd.DataFrame(parts, index=inp.index, columns=["query", "constraints"], dtype="str")
        return pushed.assign(**split)


# Limit of the wordings of one query.
_MOST_WORDINGS = 1000


class RelaxedQueries(IntentStage):
    """Wordings of queries without some of their constraints: Q -> Q, one row for each wording.

    With :class:`vbterrier.evaluate.Paraphrases`, candidates are generated and systems are run for each relaxation of a
    query (Ding 2025, Algorithm 1). The constraints are those of a column if the topics have it, otherwise words of the
    query such as ``state:OH``.

    Parameters
    ----------
    most
        The largest number of constraints that a wording lacks, at least 1.
    constraints
        The column of constraints, in the syntax of :func:`parse_constraints`.
    names
        Names of attributes, as for :class:`ParseConstraints`.

    Raises
    ------
    ParameterError, InputError
        An illegal ``most``; constraints that cannot be parsed; more than 1,000 wordings of a query.

    Notes
    -----
    A query without constraints has no row, nor has a wording without any word. The number of wordings of a query with n
    constraints is ``Σ_{r = 1..most} n! / (r! (n - r)!)``.

    Examples
    --------
    >>> import pandas as pd
    >>> topics = pd.DataFrame({"qid": ["q1"], "query": ["John Smith state:OH born:1840..1860"]})
    >>> RelaxedQueries()(topics)["query"].tolist()
    ['John Smith born:1840..1860', 'John Smith state:OH']
    """

    def __init__(self, *, most: int = 1, constraints: str = "constraints", names: Iterable[str] | None = None) -> None:
        super().__init__()
        self.most, self.constraints, self.names = whole("most", most), constraints, _attribute_names(names)

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Return the wordings, queries in the same order."""
        self.require_columns(inp, "qid", "query", topics=True)
        in_column = self.constraints in inp.columns
        column = self.constraints if in_column else "query"
        wordings = []
        for qid, value in zip(inp["qid"], inp[column], strict=True):
            try:
                parts = [str(one) for one in parse_constraints(value)] if in_column else _words(str(value))
            except InputError as error:
                raise InputError(f"query {qid!r}: {error}") from error
            places = [at for at, part in enumerate(parts) if in_column or _match_constraint(part, self.names)]
            sizes = range(1, min(self.most, len(places)) + 1)
            if sum(math.comb(len(places), size) for size in sizes) > _MOST_WORDINGS:
                raise InputError(
                    f"query {qid!r}: {len(places)} constraints have more than {_MOST_WORDINGS:,} relaxations with "
                    f"most={self.most}; lower it"
                )
            # Wordings that lack one constraint come first; a query of constraints alone has no words left.
            dropped = chain.from_iterable(combinations(places, size) for size in sizes)
            kept = [[part for at, part in enumerate(parts) if at not in lost] for lost in dropped]
            between = "; " if in_column else " "
            wordings.append([between.join(part) for part in kept if part or in_column])
        relaxed = inp.assign(**{column: pd.Series(wordings, index=inp.index, dtype=object)})
        some = pd.Series([bool(texts) for texts in wordings], index=inp.index, dtype=bool)
        rows: pd.DataFrame = relaxed[some].explode(column, ignore_index=True)
        return rows
