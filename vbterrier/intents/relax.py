"""Candidates that violate constraints made less probable instead of impossible."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyterrier as pt

from vbterrier.errors import InputError, ParameterError
from vbterrier.frames.parameters import number, numbers
from vbterrier.intents.constraints import Constraint, parse_constraints
from vbterrier.intents.frame import Candidates, warn_of
from vbterrier.intents.stage import Stage, knowledge_base
from vbterrier.intents.violations import violations
from vbterrier.kernels import candidates as kernels
from vbterrier.kernels.probability import normalised

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from vbterrier.intents.violations import Attributes

UNKNOWN = {"satisfied": 0.0, "violated": 1.0}
_ADDED = ("delta", "violations")


class RelaxConstraints(Stage):
    """Weigh candidates by the constraints that they violate: I -> I (Ding 2025, section 3.2).

    ``Δ(E) = Σ_j w_j v_j(E)`` and ``π(E) ∝ p(E) exp(-Δ(E))``, where v is 1 for a violated constraint, else 0, and p is
    the probability so far. Where p is the softmax of scores, this is ``π ∝ exp(s/T - Δ)``: evidence of the linker and
    violations add in log space, which the paper leaves open. With p uniform it is the paper's ``exp(-Δ)``.

    Parameters
    ----------
    kb
        A knowledge base (:mod:`vbterrier.linking.kb`), or anything with its methods ``attributes`` and
        ``attribute_names``.
    constraints
        The column with the constraints of the query, the same in all its rows: text or mappings, as
        :func:`vbterrier.intents.constraints.parse_constraints` reads them.
    parser
        Instead of a column: from the text of the query to (text, constraints), such as
        :func:`vbterrier.intents.constraints.parse_query`; the text is not used.
    weights
        Weight ``w >= 0`` of constraints by attribute, 1 for others; ``^2`` in a constraint's text comes first.
    unknown
        When the entity does not have the attribute: ``"satisfied"`` (recall first), ``"violated"``, or what part of
        a violation it is, in [0, 1].
    strict
        Drop the candidates with ``Δ > 0`` instead. A query that has none left is absent from the result, with a
        warning: that is what filters do.

    Raises
    ------
    ParameterError
        An illegal value.
    InputError
        Constraints that do not parse or differ within a query; an attribute that no entity of the knowledge base has;
        probabilities that do not sum to 1.

    Notes
    -----
    Adds ``delta`` and ``violations``, what each constraint of the query costs the candidate, in their order. An
    attribute with several values satisfies a constraint when any of them does. Texts are compared in their normal form,
    ranges with numbers and with the year of dates. The NIL intent keeps its mass.

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
        strict: bool = False,
    ) -> None:
        super().__init__()
        if parser is not None and not callable(parser):
            raise ParameterError(f"parser={parser!r}: wanted a callable")
        self.kb = knowledge_base(kb, "attributes", "attribute_names")
        self.constraints, self.parser = constraints, parser
        self.weights = numbers("weights", weights, low=0)
        self.unknown = unknown
        if not isinstance(unknown, str):
            self.unknown = number("unknown", unknown, low=0, high=1)
        elif unknown not in UNKNOWN:
            raise ParameterError(f"unknown={unknown!r}: wanted 'satisfied', 'violated' or a number from 0 to 1")
        self.strict = bool(strict)

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Set the probabilities anew, rows as they stand."""
        column = "query" if self.parser else self.constraints
        pt.validate.columns(inp, includes=["qid", "entity_id", "prob", column])
        taken = [name for name in _ADDED if name in inp.columns]
        if taken:
            raise InputError(f"intents: column {taken[0]!r} is one of the result; give all constraints at once")
        candidates = Candidates(inp)
        unknown = UNKNOWN[self.unknown] if isinstance(self.unknown, str) else self.unknown
        found = violations(
            candidates, self._of_topics(candidates, column), self.kb, weights=self.weights or {}, unknown=unknown
        )
        made = inp.assign(
            prob=self._prob(candidates, found.delta),
            delta=found.delta,
            violations=pd.Series(found.lists(), index=inp.index, dtype=object),
        )
        return self._without_violators(made, candidates) if self.strict else made

    def _prob(self, candidates: Candidates, delta: Any) -> Any:
        rows = candidates.entities
        prob, topic, delta = candidates.among_entities, candidates.topic[rows], delta[rows]
        if self.strict:
            return candidates.beside_nil(normalised(np.where(delta > 0, 0.0, prob), topic, candidates.n))
        return candidates.beside_nil(kernels.relaxed(prob, delta, topic, candidates.n))

    @staticmethod
    def _without_violators(made: pd.DataFrame, candidates: Candidates) -> pd.DataFrame:
        left = (made["delta"] == 0).to_numpy()
        gone = np.setdiff1d(np.arange(candidates.n), candidates.topic[left])
        warn_of(
            [candidates.topics[place] for place in gone.tolist()],
            "without a candidate that satisfies all constraints: left out; strict=False makes violators less probable",
        )
        return made[left].reset_index(drop=True)

    def _of_topics(self, candidates: Candidates, column: str) -> Sequence[tuple[Constraint, ...]]:
        """The constraints of each topic, equal texts parsed once."""
        given = candidates.frame[column]
        code = pd.factorize(given.map(_key))[0]
        _, first = np.unique(candidates.topic, return_index=True)
        differs = code != code[first][candidates.topic]
        if differs.any():
            row = int(np.argmax(differs))
            raise InputError(
                f"intents: row {row} ({candidates.owner(row)}) has other {column} than row "
                f"{first[candidates.topic[row]]} of the same query; give all rows of a query the same"
            )
        parsed: dict[int, tuple[Constraint, ...]] = {}
        for topic, row in enumerate(first.tolist()):
            if code[row] not in parsed:
                parsed[code[row]] = self._parsed(given.iloc[row], candidates.topics[topic])
        return [parsed[code[row]] for row in first.tolist()]

    def _parsed(self, given: Any, qid: str) -> tuple[Constraint, ...]:
        try:
            return parse_constraints(self.parser(given)[1] if self.parser else given)
        except InputError as error:
            raise InputError(f"query {qid!r}: {error}") from error


def _key(given: Any) -> str:
    return given if isinstance(given, str) else repr(given)
