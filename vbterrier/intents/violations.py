"""Which constraints each candidate violates, by the attributes that a knowledge base has of it."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import pandas as pd

from vbterrier.errors import DegenerateWarning, InputError, examples, nearest
from vbterrier.intents.constraints import Range
from vbterrier.linking.normal import normal_forms

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from vbterrier.intents.constraints import Constraint
    from vbterrier.intents.frame import Candidates

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

# A number, or the year of a date.
_LEADING_NUMBER = r"^\s*([+-]?\d+(?:\.\d+)?)\s*(?:-\d\d-\d\d.*)?$"


class Attributes(Protocol):
    """What a knowledge base says of entities."""

    def attributes(self, ids: Sequence[str]) -> pd.DataFrame:
        """Columns entity_id (as given, redirects followed), attribute, value (text), a row for each value."""

    def attribute_names(self) -> list[str]:
        """The names of all attributes that any entity has."""


class Violations(NamedTuple):
    """What each candidate pays for the constraints of its query.

    Parameters
    ----------
    row
        The candidate of every pair of a candidate and a constraint of its query, rising; shape (n_pairs,).
    paid
        Weight times violation of every pair, the constraints of a query in their order; shape (n_pairs,).
    n
        How many candidates there are.
    """

    row: Ints
    paid: Floats
    n: int

    @property
    def delta(self) -> Floats:
        """``Δ = Σ_j w_j v_j`` of each candidate, shape (n,)."""
        return np.bincount(self.row, weights=self.paid, minlength=self.n).astype(np.float64)

    def lists(self) -> list[list[float]]:
        """What each candidate pays for each constraint."""
        ends = np.cumsum(np.bincount(self.row, minlength=self.n))[:-1]
        return [part.tolist() for part in np.split(self.paid, ends)] if self.n else []


def violations(
    candidates: Candidates,
    constraints: Sequence[Sequence[Constraint]],
    kb: Attributes,
    *,
    weights: Mapping[str, float],
    unknown: float,
) -> Violations:
    """Compare candidates with the constraints of their queries.

    Parameters
    ----------
    constraints
        Those of each topic.
    kb
        Where attributes come from.
    weights
        Weight of the constraints on an attribute, where the constraint has none of its own; 1 for others.
    unknown
        What it counts as when the entity does not have the attribute, from 0 (satisfied) to 1 (violated).

    Raises
    ------
    InputError
        An attribute that no entity of the knowledge base has.
    """
    wanted = _wanted(constraints, weights)
    entities = candidates.entity.text.to_pylist()
    known = _known(kb, entities, wanted) if len(wanted) else _NO_FACTS
    _require_attributes(wanted, known, kb, candidates.topics)
    # Columns without rows have a type of their own, which would not merge.
    ids = pd.Series(entities, dtype=object)
    rows = pd.DataFrame({"row": np.arange(len(entities)), "topic": candidates.topic, "entity_id": ids})
    pairs = rows.merge(wanted[["topic", "place", "attribute", "weight"]], on="topic")
    pairs = pairs.sort_values(["row", "place"], ignore_index=True)
    pairs["pair"] = np.arange(len(pairs))
    held = pairs[["pair", "entity_id", "attribute", "place"]].merge(known, on=["entity_id", "attribute"])
    violated = np.full(len(pairs), unknown)
    violated[held["pair"]] = 1.0
    violated[_met(held, wanted)] = 0.0
    # NIL is nobody, and violates nothing.
    violated[candidates.nil[pairs["row"]]] = 0.0
    return Violations(pairs["row"].to_numpy(), pairs["weight"].to_numpy() * violated, len(entities))


_NO_FACTS = pd.DataFrame({"entity_id": [], "attribute": [], "form": [], "number": []}, dtype=object)


def _wanted(constraints: Sequence[Sequence[Constraint]], weights: Mapping[str, float]) -> pd.DataFrame:
    """A row a constraint: its topic, its number over all, attribute, values and weight."""
    rows = [(topic, constraint) for topic, several in enumerate(constraints) for constraint in several]
    return pd.DataFrame(
        {
            "topic": np.array([topic for topic, _ in rows], dtype=np.int64),
            "place": np.arange(len(rows)),
            "attribute": pd.Series([one.attribute for _, one in rows], dtype=object),
            "values": pd.Series([one.values for _, one in rows], dtype=object),
            "weight": np.array([_weight(one, weights) for _, one in rows], dtype=np.float64),
        }
    )


def _weight(constraint: Constraint, weights: Mapping[str, float]) -> float:
    return weights.get(constraint.attribute, 1.0) if constraint.weight is None else constraint.weight


def _known(kb: Attributes, entities: Sequence[str], wanted: pd.DataFrame) -> pd.DataFrame:
    """The values of the attributes that are asked for: their normal form, and the number that they are."""
    facts = kb.attributes(list(dict.fromkeys(entities)))
    if not len(facts):
        warnings.warn(
            f"{kb!r} has no attribute of any candidate ({examples(entities)}): are these ids its own?",
            DegenerateWarning,
            stacklevel=4,
        )
    facts = facts[facts["attribute"].isin(wanted["attribute"].unique())].astype(object)
    number = pd.to_numeric(facts["value"].astype("str").str.extract(_LEADING_NUMBER, expand=False))
    return pd.DataFrame(
        {
            "entity_id": facts["entity_id"],
            "attribute": facts["attribute"],
            "form": pd.Series(_forms(facts["value"].tolist()), index=facts.index, dtype=object),
            "number": number.astype("float64"),
        }
    )


def _require_attributes(wanted: pd.DataFrame, known: pd.DataFrame, kb: Attributes, topics: Sequence[str]) -> None:
    """Refuse a name that nobody in the knowledge base has: a misspelt one would be satisfied by all."""
    strange = wanted[~wanted["attribute"].isin(known["attribute"].unique())]
    if not len(strange):
        return
    legal = kb.attribute_names()
    strange = strange[~strange["attribute"].isin(legal)]
    if len(strange):
        first = strange.iloc[0]
        raise InputError(
            f"query {topics[first['topic']]!r}: no entity of {kb!r} has the attribute {first['attribute']!r}; it knows "
            f"{examples(sorted(legal), 9) or 'none'}.{nearest(first['attribute'], legal)}"
        )


def _met(held: pd.DataFrame, wanted: pd.DataFrame) -> Ints:
    """The pairs that have one of the values wanted."""
    each = wanted[["place", "values"]].explode("values")
    is_range = each["values"].map(lambda value: isinstance(value, Range)).to_numpy(dtype=bool)
    texts = each[~is_range]
    forms = texts.assign(form=pd.Series(_forms(texts["values"].tolist()), index=texts.index, dtype=object))
    by_text = held.merge(forms[["place", "form"]], on=["place", "form"])["pair"]
    ranges = each[is_range]
    ends = ranges.assign(low=[value.low for value in ranges["values"]], high=[value.high for value in ranges["values"]])
    inside = held.merge(ends[["place", "low", "high"]], on="place")
    inside = inside[(inside["number"] >= inside["low"]) & (inside["number"] <= inside["high"])]
    return np.concatenate([by_text.to_numpy(dtype=np.int64), inside["pair"].to_numpy(dtype=np.int64)])


def _forms(values: list[Any]) -> list[str]:
    return normal_forms([str(value) for value in values])
