"""Relaxation of constraints to penalties of candidates."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import pandas as pd

from vbterrier.errors import InputError, ParameterError, examples, excerpt, nearest, number, numbers, warn
from vbterrier.frames.names import normal_forms
from vbterrier.intents.constraints import Constraint, Range, parse_constraints
from vbterrier.intents.stage import Candidates, IntentStage, knowledge_base, warn_of_queries
from vbterrier.kernels.candidates import normalise_weights, relaxed_prob

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from vbterrier.annotations import Floats, Ints


_NUMERIC = re.compile(r"[\d\s.,+-]*")
# A number, or the year of a date.
_LEADING_NUMBER = r"^\s*([+-]?\d+(?:\.\d+)?)\s*(?:-\d\d-\d\d.*)?$"


class Attributes(Protocol):
    """Protocol of a knowledge base with attributes of entities."""

    def attributes(self, ids: Sequence[str]) -> pd.DataFrame:
        """Return one row per value: entity_id (as given, redirects followed), attribute, value (text)."""

    def attribute_names(self) -> list[str]:
        """Return the names of all attributes."""


class Violations(NamedTuple):
    """Penalties of candidates for the constraints of their queries, in the order of candidates and constraints."""

    row: Ints  # the candidate of each pair of a candidate and a constraint of its query, shape (n_pairs,)
    penalty: Floats  # weight times violation of each pair, shape (n_pairs,)
    n: int  # the number of candidates

    @property
    def delta(self) -> Floats:
        """The sum ``Δ = Σ_j w_j v_j`` of each candidate, shape (n,)."""
        return np.bincount(self.row, weights=self.penalty, minlength=self.n).astype(np.float64)

    def lists(self) -> list[list[float]]:
        """Return the penalties of each candidate, one per constraint."""
        ends = np.cumsum(np.bincount(self.row, minlength=self.n))[:-1]
        return [part.tolist() for part in np.split(self.penalty, ends)] if self.n else []


def violations(
    candidates: Candidates,
    constraints: Sequence[Sequence[Constraint]],
    kb: Attributes,
    *,
    weights: Mapping[str, float],
    unknown: float,
    spellings: Mapping[str, Mapping[str, Sequence[str]]] | None = None,
) -> Violations:
    """Compare candidates with the constraints of their queries; parameters as in :class:`RelaxConstraints`."""
    # One row per constraint: its topic, its index, attribute, values and weight.
    rows_of_constraints = [
        (topic, one.attribute, one.values, weights.get(one.attribute, 1.0) if one.weight is None else one.weight)
        for topic, of_topic in enumerate(constraints)
        for one in of_topic
    ]
    table = pd.DataFrame(rows_of_constraints, columns=["topic", "attribute", "values", "weight"], dtype=object)
    table = table.astype({"topic": "int64", "weight": "float64"}).assign(place=np.arange(len(table)))
    entities = candidates.entity.text.to_pylist()
    facts = _facts(kb, entities, table) if len(table) else _NO_FACTS
    _require_attributes(table, facts, kb, candidates.topics)
    # The dtype of an empty column would prevent the merge.
    ids = pd.Series(entities, dtype=object)
    rows = pd.DataFrame({"row": np.arange(len(entities)), "topic": candidates.topic, "entity_id": ids})
    pairs = rows.merge(table[["topic", "place", "attribute", "weight"]], on="topic")
    pairs = pairs.sort_values(["row", "place"], ignore_index=True)
    pairs["pair"] = np.arange(len(pairs))
    matches = pairs[["pair", "entity_id", "attribute", "place"]].merge(facts, on=["entity_id", "attribute"])
    violated = np.full(len(pairs), unknown)
    violated[matches["pair"]] = 1.0
    satisfied = np.concatenate([_satisfied_pairs(matches, table), _respelt_pairs(matches, table, kb, spellings or {})])
    violated[satisfied] = 0.0
    _warn_of_unknown_values(matches, table, satisfied, kb, candidates.topics)
    # NIL is not an entity and violates no constraint.
    violated[candidates.nil[pairs["row"]]] = 0.0
    return Violations(pairs["row"].to_numpy(), pairs["weight"].to_numpy() * violated, len(entities))


_NO_FACTS = pd.DataFrame({"entity_id": [], "attribute": [], "value": [], "form": [], "number": []}, dtype=object)


def _facts(kb: Attributes, entities: Sequence[str], constraints: pd.DataFrame) -> pd.DataFrame:
    """Return the values of the wanted attributes, as normal forms and as numbers."""
    facts = kb.attributes(list(dict.fromkeys(entities)))
    if not len(facts):
        warn(f"{kb!r} has no attribute of any candidate ({examples(entities)}); check that the ids belong to it")
    facts = facts[facts["attribute"].isin(constraints["attribute"].unique())].astype(object)
    number = pd.to_numeric(facts["value"].astype("str").str.extract(_LEADING_NUMBER, expand=False))
    return facts.assign(form=_normal_forms(facts["value"]), number=number.astype("float64"))[list(_NO_FACTS)]


def _require_attributes(constraints: pd.DataFrame, facts: pd.DataFrame, kb: Attributes, topics: Sequence[str]) -> None:
    """Refuse unknown attributes: every entity would satisfy a misspelt one."""
    unknown = constraints[~constraints["attribute"].isin(facts["attribute"].unique())]
    legal = kb.attribute_names() if len(unknown) else []
    unknown = unknown[~unknown["attribute"].isin(legal)]
    if len(unknown):
        first = unknown.iloc[0]
        raise InputError(
            f"query {topics[first['topic']]!r}: no entity of {kb!r} has the attribute {first['attribute']!r}; it has "
            f"{examples(sorted(legal), 9) or 'none'}.{nearest(first['attribute'], legal)}"
        )


def _satisfied_pairs(facts: pd.DataFrame, constraints: pd.DataFrame) -> Ints:
    """Return the pairs with one of the wanted values."""
    each = constraints[["place", "values"]].explode("values")
    is_range = each["values"].map(lambda value: isinstance(value, Range)).to_numpy(dtype=bool)
    texts, ranges = each[~is_range], each[is_range]
    forms = texts.assign(form=_normal_forms(texts["values"]))
    by_text = facts.merge(forms[["place", "form"]], on=["place", "form"])["pair"]
    ends = ranges.assign(low=[value.low for value in ranges["values"]], high=[value.high for value in ranges["values"]])
    inside = facts.merge(ends[["place", "low", "high"]], on="place")
    inside = inside[(inside["number"] >= inside["low"]) & (inside["number"] <= inside["high"])]
    return np.concatenate([by_text.to_numpy(dtype=np.int64), inside["pair"].to_numpy(dtype=np.int64)])


def _respelt_pairs(
    facts: pd.DataFrame, constraints: pd.DataFrame, kb: Any, spellings: Mapping[str, Mapping[str, Sequence[str]]]
) -> Ints:
    """Return the pairs with another spelling of a wanted value: one that is given, or a name of the same entity."""
    each = constraints[["place", "attribute", "values"]].explode("values").rename(columns={"values": "value"})
    each = each[each["value"].map(lambda value: isinstance(value, str)).to_numpy(dtype=bool)]
    if not len(each) or not len(facts):
        return np.empty(0, np.int64)
    known_to_kb = kb.spellings() if callable(getattr(kb, "spellings", None)) else {}
    rows = [
        (attribute, text, f"value {value}")
        for attribute, values in (*known_to_kb.items(), *spellings.items())
        for value, others in values.items()
        for text in (value, *others)
    ]
    sense = pd.DataFrame(rows, columns=["attribute", "text", "sense"], dtype=object)
    if callable(getattr(kb, "lookup", None)):
        texts = list(dict.fromkeys([*each["value"], *facts["value"]]))
        named = kb.lookup(texts).rename(columns={"mention": "text", "text": "nth", "entity_id": "sense"})
        attribute_values = pd.concat([each[["attribute", "value"]], facts[["attribute", "value"]]]).drop_duplicates()
        named = attribute_values.rename(columns={"value": "text"}).merge(
            named[["text", "sense"]].astype(object), on="text"
        )
        sense = pd.concat([sense, named.assign(sense="entity " + named["sense"].astype(object))])
    sense = sense.assign(form=_normal_forms(sense["text"]))[["attribute", "form", "sense"]].drop_duplicates()
    each = each.assign(form=_normal_forms(each["value"]))
    constraint_senses = each[["place", "attribute", "form"]].merge(sense, on=["attribute", "form"])
    senses = facts[["pair", "place", "attribute", "form"]].merge(sense, on=["attribute", "form"])
    both = senses.merge(constraint_senses[["place", "sense"]], on=["place", "sense"])
    return both["pair"].to_numpy(dtype=np.int64)


def _warn_of_unknown_values(
    facts: pd.DataFrame, constraints: pd.DataFrame, satisfied: Ints, kb: Any, topics: Sequence[str]
) -> None:
    """Warn of constraints that no candidate satisfies, with values that no entity has: they may be spelt otherwise."""
    is_met = pd.Series(np.isin(facts["pair"].to_numpy(dtype=np.int64), satisfied)).groupby(facts["place"].to_numpy())
    unmet = constraints[constraints["place"].isin(is_met.any().loc[lambda met: ~met].index)]
    forms: dict[str, set[str]] = {}
    odd: list[Any] = []
    rows: Any = unmet.itertuples()
    for row in rows:
        # Numbers and booleans have one spelling.
        texts = [value for value in row.values if isinstance(value, str) and value not in {"true", "false"}]
        texts = [value for value in texts if not _NUMERIC.fullmatch(value)]
        if row.attribute not in forms and texts and hasattr(kb, "attribute_values"):
            forms[row.attribute] = set(normal_forms(list(map(str, kb.attribute_values(row.attribute)))))
        if len(texts) == len(row.values) and forms.get(row.attribute, set()).isdisjoint(normal_forms(texts)):
            odd.append(row)
    if odd:
        values = facts["value"][facts["place"] == odd[0].place].drop_duplicates()
        queries = dict.fromkeys(topics[row.topic] for row in odd)
        warn(
            f"{len(queries)} {'query has' if len(queries) == 1 else 'queries have'} a constraint whose value no entity "
            f"has ({examples(queries)}), such as {Constraint(odd[0].attribute, odd[0].values)}, where candidates have "
            f"{examples(values)}; if these are spellings of one value, pass spellings="
        )


def _normal_forms(values: pd.Series[Any]) -> pd.Series[Any]:
    return pd.Series(normal_forms([str(value) for value in values]), index=values.index, dtype=object)


UNKNOWN = {"satisfied": 0.0, "violated": 1.0}
_ADDED_COLUMNS = ("delta", "violations")


class RelaxConstraints(IntentStage):
    """Reduce the probabilities of candidates that violate constraints: I -> I (Ding 2025, section 3.2).

    ``Δ(E) = Σ_j w_j v_j(E)`` and ``π(E) ∝ p(E) exp(-Δ(E))``, where v is 1 for a violated constraint and 0 otherwise,
    and p is the input probability. If p is the softmax of scores, this is ``π ∝ exp(s/T - Δ)``: linker scores and
    penalties add in log space, which the paper does not specify. With uniform p it is the paper's ``exp(-Δ)``.

    Parameters
    ----------
    kb
        A knowledge base (:mod:`vbterrier.linking.kb`), or any object with its methods ``attributes`` and
        ``attribute_names``.
    constraints
        The column with the constraints of the query, equal in all its rows: text or mappings, see
        :func:`vbterrier.intents.parse_constraints`.
    parser
        Instead of a column, a function from the query text to (text, constraints), such as
        :func:`vbterrier.intents.constraints.parse_query`; the returned text is ignored.
    weights
        Weights ``w >= 0`` of constraints by attribute, by default 1; ``^2`` in the text of a constraint has precedence.
    unknown
        The violation if the entity does not have the attribute: ``"satisfied"`` (favours recall), ``"violated"``, or a
        number in [0, 1].
    spellings
        Further spellings of values by attribute and value, as ``{"state": {"OH": ["Ohio"]}}``, beside those of the
        knowledge base.
    strict
        Drop the candidates with ``Δ > 0`` instead, as a filter. A query without a remaining candidate is absent from
        the result, with a warning.

    Raises
    ------
    ParameterError, InputError
        An illegal value; constraints that do not parse or differ within a query; an attribute that no entity of the
        knowledge base has; probabilities that do not sum to 1.

    Notes
    -----
    Adds ``delta`` and ``violations``, the penalties of the query's constraints in order. One of several values of an
    attribute is enough. Texts are compared in normal form, ranges with numbers and with the year of dates. Two texts
    are also equal if they are given as ``spellings``, or names of one entity of the knowledge base, such as "OH" and
    "Ohio". A warning names constraints with values that no entity has. The NIL intent keeps its mass.

    Examples
    --------
    >>> import pandas as pd
    >>> import tempfile
    >>> from vbterrier.linking.kb import build_kb
    >>> people = [{"id": "A", "attributes": {"state": "OH"}}, {"id": "B", "attributes": {"state": "PA"}}]
    >>> kb = build_kb(f"{tempfile.mkdtemp()}/people.kb", people, id_space="people")
    >>> intents = pd.DataFrame({"qid": "q1", "entity_id": ["A", "B"], "prob": [0.5, 0.5], "constraints": "state:OH"})
    >>> RelaxConstraints(kb)(intents)[["entity_id", "prob", "delta"]].round(3).values.tolist()
    [['A', 0.731, 0.0], ['B', 0.269, 1.0]]
    """

    def __init__(
        self,
        kb: Attributes,
        *,
        constraints: str = "constraints",
        parser: Callable[[str], tuple[str, Any]] | None = None,
        weights: Mapping[str, float] | None = None,
        unknown: str | float = "satisfied",
        spellings: Mapping[str, Mapping[str, Sequence[str]]] | None = None,
        strict: bool = False,
    ) -> None:
        super().__init__()
        if parser is not None and not callable(parser):
            raise ParameterError(f"parser={excerpt(parser)}: wanted a callable")
        self.kb = knowledge_base(kb, "attributes", "attribute_names")
        self.constraints, self.parser = constraints, parser
        self.weights = numbers("weights", weights, low=0)
        self.unknown = unknown
        if not isinstance(unknown, str):
            self.unknown = number("unknown", unknown, low=0, high=1)
        elif unknown not in UNKNOWN:
            raise ParameterError(f"unknown={excerpt(unknown)}: wanted 'satisfied', 'violated' or a number from 0 to 1")
        self.spellings = spellings
        if spellings is not None and not (
            isinstance(spellings, Mapping)
            and all(isinstance(values, Mapping) for values in spellings.values())
            and not any(isinstance(others, str) for values in spellings.values() for others in values.values())
        ):
            raise ParameterError(
                f"spellings={excerpt(spellings)}: wanted lists of spellings by attribute and value, "
                "as {'state': {'OH': ['Ohio']}}"
            )
        self.strict = bool(strict)

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Replace the probabilities, rows in the same order."""
        column = "query" if self.parser else self.constraints
        self.require_columns(inp, "qid", "entity_id", "prob", column)
        if taken := [name for name in _ADDED_COLUMNS if name in inp.columns]:
            raise InputError(f"intents: column {taken[0]!r} is an output column; pass all constraints at once")
        candidates = Candidates(inp)
        unknown = UNKNOWN[self.unknown] if isinstance(self.unknown, str) else self.unknown
        options: dict[str, Any] = {"weights": self.weights or {}, "unknown": unknown, "spellings": self.spellings}
        violated = violations(candidates, self._topic_constraints(candidates, column), self.kb, **options)
        lists = pd.Series(violated.lists(), index=inp.index, dtype=object)
        made = inp.assign(prob=self._relaxed_prob(candidates, violated.delta), delta=violated.delta, violations=lists)
        if not self.strict:
            return made
        left = (made["delta"] == 0).to_numpy()
        gone = np.setdiff1d(np.arange(candidates.n), candidates.topic[left])
        warn_of_queries(
            [candidates.topics[place] for place in gone.tolist()],
            "without a candidate that satisfies all constraints, left out; use strict=False to keep violators",
        )
        return made[left].reset_index(drop=True)

    def _relaxed_prob(self, candidates: Candidates, delta: Any) -> Any:
        rows = candidates.entities
        prob, topic, delta = candidates.among_entities, candidates.topic[rows], delta[rows]
        if self.strict:
            return candidates.beside_nil(normalise_weights(np.where(delta > 0, 0.0, prob), topic, candidates.n))
        return candidates.beside_nil(relaxed_prob(prob, delta, topic, candidates.n))

    def _topic_constraints(self, candidates: Candidates, column: str) -> Sequence[tuple[Constraint, ...]]:
        """Return the constraints of each topic, equal texts parsed once."""
        constraints = candidates.frame[column]
        code = pd.factorize(constraints.map(lambda one: one if isinstance(one, str) else repr(one)))[0]
        _, first = np.unique(candidates.topic, return_index=True)
        differs = code != code[first][candidates.topic]
        if differs.any():
            row = int(np.argmax(differs))
            raise InputError(
                f"intents: row {row} ({candidates.owner(row)}) and row {first[candidates.topic[row]]} of the query "
                f"differ in {column}; give all rows of a query the same {column}"
            )
        parsed: dict[int, tuple[Constraint, ...]] = {}
        for topic, row in enumerate(first.tolist()):
            if code[row] not in parsed:
                one = constraints.iloc[row]
                try:
                    parsed[code[row]] = parse_constraints(self._query_constraints(one) if self.parser else one)
                except InputError as error:
                    raise InputError(f"query {candidates.topics[topic]!r}: {error}") from error
        return [parsed[code[row]] for row in first.tolist()]

    def _query_constraints(self, query: str) -> Any:
        """The query without its constraints, and the constraints, as the parser returns them."""
        parsed = self.parser(query) if self.parser else None
        if not isinstance(parsed, (tuple, list)) or len(parsed) != 2:  # noqa: PLR2004 - a pair
            raise InputError(f"parser: returned {parsed!r:.80}; wanted a query and its constraints")
        return parsed[1]
