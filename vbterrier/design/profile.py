"""Profiles of query sets: links and NIL, frequency and ambiguity of mentions, compared with a corpus."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.design.sampling import QuerySample
from vbterrier.design.strata import MentionCorpus
from vbterrier.errors import InputError, number, warn
from vbterrier.frames.entity_answers import checked_nil, plain_entities
from vbterrier.frames.ids import column_ids, column_integers
from vbterrier.kernels.floats import with_usual_errors
from vbterrier.kernels.tolerances import ROUNDING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from vbterrier.annotations import Floats, Ints


COLUMNS = ("part", "item", "n", "value", "low", "high", "level", "uniform", "random_document", "random_mention")
# The largest frequency of each bin.
EDGES = (1, 2, 5, 10, 100, 1000)
QUANTILES = (0.25, 0.5, 0.75, 0.9)
_FREQUENCY_LABELS = ("1", "2", "3-5", "6-10", "11-100", "101-1000", "over 1000")


@with_usual_errors
def query_profile(
    queries: Any, mentions: Any = None, *, nil: str | Sequence[str] = "NIL", level: float = 0.95
) -> pd.DataFrame:
    """Profile of a sample of queries, or of a corpus of mentions.

    Parameters
    ----------
    queries, mentions
        A :class:`QuerySample`, or a frame (or its path) with docno, mention and optionally entity_id, whose column
        n_draws weights queries that were drawn several times; and the corpus, for the values expected by each method.
    nil
        One or several entity_id of mentions without an entity in the knowledge base; ``"NIL"`` includes numbered
        clusters of TAC such as NIL0042.
    level
        Nominal coverage of the intervals, between 0 and 1.

    Returns
    -------
    pandas.DataFrame
        Columns part, item, n, value, low, high, level, and uniform, random_document, random_mention: the expected
        value of draws from ``mentions`` by each method of :func:`sample_queries` (NaN without ``mentions``; counts of
        the corpus are in ``uniform``). Parts:

        - ``count``: draws, distinct queries, documents, mentions and (with entity_id) entities without NIL;
        - ``entity`` (with entity_id): shares of links and NIL;
        - ``frequency``: shares of draws whose mention is in 1, 2, 3-5, 6-10, 11-100, 101-1000, more documents;
        - ``frequency quantile``: quartiles, ninth decile, maximum and mean of the numbers of documents;
        - ``ambiguity`` (with entity_id): shares of draws whose mention has 0, 1, more entities without NIL.

        n counts draws; low and high are the Wilson interval of a share.

    Raises
    ------
    InputError, ParameterError
        A missing column or value, no rows, a mention outside the corpus; an invalid level or ``nil``.

    Warns
    -----
    DegenerateWarning
        No entity_id is NIL, neither in the corpus: all queries count as links. An entity_id that only resembles NIL.

    Notes
    -----
    Frequencies come from the corpus if given, else from the column n_documents of samples, else from the queries.
    Ambiguity comes from the corpus if it has entity_id, else from the queries.

    Shares describe the draws of the design: for a stratified or weighted sample they do not estimate those of the
    corpus, see :func:`horvitz_thompson`. Intervals treat draws as independent. Source: that of :func:`sample_queries`,
    section 2 and Table 1.

    Examples
    --------
    >>> rows = [("d1", "Paris", "Q90"), ("d2", "Paris", "Q830149"), ("d2", "M. Dupont", "NIL"), ("d3", "Paris", "Q90")]
    >>> corpus = pd.DataFrame(rows, columns=["docno", "mention", "entity_id"])
    >>> result = query_profile(corpus, corpus).round(2)
    >>> result.loc[result["part"] == "entity", ["item", "n", "low", "uniform", "random_mention"]].values.tolist()
    [['link', 3, 0.3, 0.75, 0.5], ['NIL', 1, 0.05, 0.25, 0.5]]
    """
    number("level", level, low=0, high=1, open_low=True, open_high=True)
    nil = [checked_nil(word) for word in ([nil] if isinstance(nil, str) else nil)]
    query_mentions = MentionCorpus(queries.queries if isinstance(queries, QuerySample) else queries, "queries")
    corpus = None if mentions is None else MentionCorpus(mentions)
    place = np.arange(len(query_mentions)) if corpus is None else _places(query_mentions, corpus)
    frequency = _whole(query_mentions, "n_documents") if corpus is None else corpus.frequency[place]
    entity = _Entities.of(query_mentions, nil)
    reference = entity if corpus is None else _Entities.of(corpus, nil)
    if entity is not None and not any(
        reference_mentions.is_nil.any() for reference_mentions in (entity, reference) if reference_mentions is not None
    ):
        warn(
            f"queries: no entity_id is {' or '.join(map(repr, nil))}, so that all count as links; set nil= to the "
            "spelling of NIL"
        )
    n_draws = _whole(query_mentions, "n_draws")
    weights = np.ones(len(query_mentions)) if n_draws is None else n_draws.astype(np.float64)
    rows = _counts(query_mentions, entity, weights)
    per_mention = None if entity is None else entity.per_mention if reference is None else reference.per_mention[place]
    rows += _shares(query_mentions.frequency if frequency is None else frequency, entity, per_mention, weights)
    expected = []
    if corpus is not None:
        # Expected values by sampling method; the first includes counts of the corpus.
        drawn = [np.ones(len(corpus))]
        drawn += [1 / np.bincount(unit)[unit] for unit in (corpus.document, corpus.mention)]
        reference_mentions = None if reference is None else reference.per_mention
        parts = [_shares(corpus.frequency, reference, reference_mentions, weight) for weight in drawn]
        parts[0] += [row for row in _counts(corpus, reference, drawn[0]) if row[1] != "draws"]
        expected = [{(part, item): value for part, item, value in part_rows} for part_rows in parts]
    return _profile_frame(rows, expected, level, float(weights.sum()))


@dataclass(frozen=True, eq=False)
class _Entities:
    """NIL queries, number of entities of the mention of each query, and number of entities."""

    is_nil: NDArray[np.bool_]
    per_mention: Ints
    n_entities: int

    @classmethod
    def of(cls, mentions: MentionCorpus, nil: Sequence[str]) -> _Entities | None:
        if "entity_id" not in mentions.frame.columns:
            return None
        mentions.warn_of_conflicts(["entity_id"])
        ids = column_ids(mentions.column("entity_id"), f"{mentions.name} column 'entity_id'")
        plain = plain_entities(ids, nil, mentions.name)
        is_nil, (names, code) = plain.is_nil, plain.ids.codes()
        pairs = np.unique((mentions.mention * len(names) + code)[~is_nil])
        per_mention = np.bincount(pairs // len(names), minlength=mentions.n_mentions)
        return cls(is_nil, per_mention[mentions.mention], len(np.unique(code[~is_nil])))


def _whole(mentions: MentionCorpus, column: str) -> Ints | None:
    if column not in mentions.frame.columns:
        return None
    numbers = column_integers(mentions.column(column), f"{mentions.name} column {column!r}")
    if (numbers < 1).any():
        row = int(mentions.rows[numbers < 1].min())
        raise InputError(f"{mentions.name} column {column!r}: row {row} is below 1; correct it, or drop the column")
    return numbers


def _places(query_mentions: MentionCorpus, corpus: MentionCorpus) -> Ints:
    """A query of the corpus with the same mention, for each query."""
    _, first = np.unique(corpus.mention, return_index=True)
    mentions = column_ids(corpus.column("mention").iloc[first], "mentions column 'mention'").text.to_pylist()
    texts = column_ids(query_mentions.column("mention"), "queries column 'mention'").text.to_pylist()
    place = pd.Index(mentions).get_indexer(texts)
    if (place < 0).any():
        unknown = texts[int(np.argmax(place < 0))]
        raise InputError(
            f"queries: mention {unknown!r} is not in mentions ({int((place < 0).sum())} of {len(texts)} are missing); "
            "use the corpus that queries were drawn from"
        )
    places: Ints = first[place]
    return places


def _counts(mentions: MentionCorpus, entity: _Entities | None, weights: Floats) -> list[tuple[str, str, float]]:
    counts = {"draws": weights.sum(), "queries": len(mentions)}
    counts |= {"documents": mentions.n_documents, "mentions": mentions.n_mentions}
    if entity is not None:
        counts["entities"] = entity.n_entities
    return [("count", item, float(count)) for item, count in counts.items()]


def _shares(
    frequency: Ints, entity: _Entities | None, per_mention: Ints | None, weights: Floats
) -> list[tuple[str, str, float]]:
    """Part, item and value of weighted draws."""

    def shares(part: str, items: Sequence[str], code: Ints) -> list[tuple[str, str, float]]:
        fractions = np.bincount(code, weights, minlength=len(items)) / weights.sum()
        return [(part, item, float(share)) for item, share in zip(items, fractions, strict=True)]

    rows = [] if entity is None else shares("entity", ("link", "NIL"), entity.is_nil.astype(np.int64))
    rows += shares("frequency", _FREQUENCY_LABELS, np.searchsorted(EDGES, frequency))
    order = np.argsort(frequency, kind="stable")
    reached = np.cumsum(weights[order])
    # Tolerance for rounding errors of cumulative weights.
    last = np.searchsorted(reached, np.array([*QUANTILES, 1.0]) * reached[-1] * (1 - ROUNDING))
    items = [*(f"{level:g}" for level in QUANTILES), "max"]
    values = frequency[order][last].astype(np.float64).tolist()
    rows += [("frequency quantile", item, value) for item, value in zip(items, values, strict=True)]
    rows.append(("frequency quantile", "mean", float(weights @ frequency / weights.sum())))
    if per_mention is not None:
        rows += shares("ambiguity", ("0", "1", "2+"), np.minimum(per_mention, 2))
    return rows


def _profile_frame(
    rows: list[tuple[str, str, float]], expected: list[dict[tuple[str, str], float]], level: float, n_draws: float
) -> pd.DataFrame:
    from statsmodels.stats.proportion import proportion_confint

    frame = pd.DataFrame(rows, columns=["part", "item", "value"])
    is_share = frame["part"].isin(["entity", "frequency", "ambiguity"]).to_numpy()
    value = frame["value"].to_numpy()
    n = np.where(is_share, np.rint(value * n_draws), np.where(frame["part"] == "count", value, n_draws))
    low, high = proportion_confint(np.where(is_share, n, 0), n_draws, alpha=1 - level, method="wilson")
    # Exact ends for n = 0 and n = n_draws, which rounding may miss.
    low, high = np.where(n == 0, 0.0, low), np.where(n == n_draws, 1.0, high)
    ends = {"low": np.where(is_share, low, np.nan), "high": np.where(is_share, high, np.nan)}
    frame = frame.assign(n=n.astype(np.int64), level=level, **ends)
    for place, name in enumerate(COLUMNS[-3:]):
        expectation = expected[place] if expected else {}
        frame[name] = [expectation.get(row[:2], np.nan) for row in rows]
    return frame[list(COLUMNS)]
