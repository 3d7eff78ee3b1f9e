"""Data of the topic explorer: all values by topic, in columns, small enough to be part of the page."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from vbterrier.errors import printable
from vbterrier.report.page.evaluated import wide_of

if TYPE_CHECKING:
    from vbterrier.annotations import Floats
    from vbterrier.report.page.evaluated import ReportNumbers
    from vbterrier.unjudged.distribution import BootstrapDistribution


# Maximal length of an id (shortened in the middle) and of a query (at the end).
ID, QUERY = 80, 300
DIGITS = 5
# Number of bars of a distribution over 0 to 1, digits of their heights, and the level of the interval below them.
BARS, LEVEL = 40, 0.9
STEPS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
# Maximal numbers of unjudged documents and intents listed for a topic, and of characters of all listed documents.
MOST_DOCUMENTS, MOST_INTENTS, MOST_SIGNS = 200, 30, 900_000


def page_data(found: ReportNumbers, queries: dict[str, str]) -> dict[str, Any]:
    """All data of the explorer, ready for JSON; topics, systems and measures are referred to by position."""
    topics, names = found.topics, found.names
    known = [queries.get(topic, "") for topic in topics]
    data: dict[str, Any] = {
        "topics": [cut(topic) for topic in topics],
        "queries": [printable(query)[:QUERY] for query in known] if any(known) else None,
        "systems": [cut(name) for name in names],
        "measures": [measure for measure in found.measures if measure in set(found.scores.values["measure"])],
        "cutoff": found.cutoff,
    }
    wides = [wide_of(found, measure) for measure in data["measures"]]
    data["values"] = [[_numbers(wide[name].to_numpy(dtype=np.float64)) for name in wide.columns] for wide in wides]
    if found.tops:
        data["unjudged"] = _unjudged(found)
    if found.distributions:
        data["distributions"] = _distributions(found)
    if found.covered:
        data["intents"] = _intents(found)
    return data


def _numbers(values: Floats) -> list[float | None]:
    return [None if np.isnan(value) else _short(value) for value in values.tolist()]


def _short(value: float) -> float:
    rounded = round(value, DIGITS)
    return int(rounded) if rounded == int(rounded) else rounded


def _unjudged(found: ReportNumbers) -> dict[str, Any]:
    """Unjudged documents of each topic with the rank at which each system retrieves them, best ranks first."""
    ranks: list[dict[str, dict[int, int]]] = [{} for _ in found.topics]
    counts: list[list[int]] = []
    for system, top in enumerate(found.tops.values()):
        at = _positions(found, top.judgments.topics)
        counts.append([int(top.n_unjudged[place]) if place >= 0 else 0 for place in at])
        page = {place: topic for topic, place in enumerate(at)}
        where, rank = np.nonzero(top.unjudged)
        texts = top.run.docno.take(top.rows[where, rank]).text.to_pylist()
        for topic, place, docno in zip(where.tolist(), rank.tolist(), texts, strict=True):
            if topic in page:
                ranks[page[topic]].setdefault(docno, {})[system] = place + 1
    share = MOST_SIGNS // max(len(found.topics), 1)
    listed = [_listed(documents, share) for documents in ranks]
    return {
        "cutoff": found.cutoff,
        "counts": counts,
        "documents": [documents for documents, _ in listed],
        "ranks": [at for _, at in listed],
        "more": [len(documents) - len(shown) for documents, (shown, _) in zip(ranks, listed, strict=True)],
    }


def _positions(found: ReportNumbers, topics: list[str]) -> list[int]:
    """Positions of the page's topics in a list; -1 if missing."""
    place = {topic: at for at, topic in enumerate(topics)}
    return [place.get(topic, -1) for topic in found.topics]


def _listed(documents: dict[str, dict[int, int]], space: int) -> tuple[list[str], list[list[int]]]:
    """Documents and, for each, alternating systems and ranks, as many as fit the space."""
    order = sorted(documents, key=lambda docno: (min(documents[docno].values()), -len(documents[docno]), docno))
    shown: list[str] = []
    at: list[list[int]] = []
    for docno in order[:MOST_DOCUMENTS]:
        shown.append(cut(docno))
        at.append([number for pair in sorted(documents[docno].items()) for number in pair])
        space -= len(shown[-1]) + 5 * len(documents[docno])
        if space < 0:
            break
    return shown, at


def _distributions(found: ReportNumbers) -> dict[str, Any]:
    shapes: list[list[str]] = []
    lows: list[list[float | None]] = []
    highs: list[list[float | None]] = []
    for distribution in found.distributions.values():
        at = _positions(found, distribution.topics)
        low, high = distribution.interval(LEVEL)
        shapes.append([_shape(distribution, place) if place >= 0 else "" for place in at])
        # Without unjudged documents there is no interval.
        open_ = np.where(distribution.n_unjudged > 0, 1.0, np.nan)
        for ends, column in ((low, lows), (high, highs)):
            column.append(_numbers(np.array([(ends * open_)[place] if place >= 0 else np.nan for place in at])))
    return {"measure": found.bootstrapped, "level": LEVEL, "bars": BARS, "shapes": shapes, "low": lows, "high": highs}


def _shape(distribution: BootstrapDistribution, topic: int) -> str:
    """Heights of the bars of a distribution, one character each; empty without unjudged documents."""
    if not distribution.n_unjudged[topic]:
        return ""
    below = [distribution.distributions[topic].cdf(edge) for edge in np.arange(1, BARS) / BARS]
    share = np.diff(np.array([0.0, *below, 1.0]))
    # Every possible score is visible.
    steps = np.where(share > 1e-9, np.ceil((len(STEPS) - 1) * share / share.max() - 1e-9), 0)  # noqa: PLR2004
    return "".join(STEPS[int(step)] for step in steps)


def _intents(found: ReportNumbers) -> dict[str, Any]:
    """Intents of each topic, most probable first, and the ranks at which each system covers them."""
    first = next(iter(found.covered.values())).intents
    rows: dict[str, list[int]] = {}
    for row, qid in enumerate(first["qid"].astype(str)):
        rows.setdefault(qid, []).append(row)
    prob, names = first["prob"].to_numpy(), first["entity_id"].tolist()
    by_topic: list[dict[str, Any]] = []
    for topic in found.topics:
        order = sorted(rows.get(topic, []), key=lambda row: -prob[row])
        shown = order[:MOST_INTENTS]
        left = order[MOST_INTENTS:]
        by_topic.append(
            {
                "names": [cut(names[row]) for row in shown],
                "prob": [_short(prob[row]) for row in shown],
                "ranks": [
                    ";".join(",".join(map(str, covered.ranks[row])) for row in shown)
                    for covered in found.covered.values()
                ],
                **({"more": len(left), "left": _short(float(prob[left].sum()))} if left else {}),
            }
        )
    return {"cutoff": found.cutoff, "topics": by_topic}


def script(data: dict[str, Any]) -> str:
    r"""Encode data as JSON that every HTML parser reads as text.

    >>> print(script({"id": "</script>"}))
    {"id":"\u003c/script\u003e"}
    """
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    signs = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
    for sign, spelt in signs.items():
        text = text.replace(sign, spelt)
    return text


def cut(text: object, most: int = ID) -> str:
    """Text as it is shown, shortened in the middle."""
    shown = printable(text)
    return shown if len(shown) <= most else f"{shown[: most // 2]}…{shown[1 - most // 2 :]}"
