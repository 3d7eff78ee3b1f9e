"""What the explorer of topics reads: all per-topic numbers, in columns, small enough to travel inside the page."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from vbterrier.errors import printable
from vbterrier.report.page.evaluated import wide_of

if TYPE_CHECKING:
    import pandas as pd

    from vbterrier.annotations import Floats
    from vbterrier.report.page.evaluated import ReportNumbers
    from vbterrier.unjudged.distribution import BootstrapDistribution


# Signs of an id, of a query: what is longer is cut in its middle, at its end.
ID, QUERY = 80, 300
DIGITS = 5
# Bars of a distribution over 0 to 1, their heights in so many steps, and the level of the interval below them.
BARS, LEVEL = 40, 0.9
STEPS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
# Unjudged documents and intents that a topic lists, and signs of all listed documents together.
MOST_DOCUMENTS, MOST_INTENTS, MOST_SIGNS = 200, 30, 900_000


def page_data(found: ReportNumbers, queries: dict[str, str]) -> dict[str, Any]:
    """All that the explorer shows, as JSON has it; a topic, a system and a measure are known by their places."""
    topics, names = found.topics, found.names
    known = [queries.get(topic, "") for topic in topics]
    data: dict[str, Any] = {
        "topics": [cut(topic) for topic in topics],
        "queries": [printable(query)[:QUERY] for query in known] if any(known) else None,
        "systems": [cut(name) for name in names],
        "measures": [measure for measure in found.measures if measure in set(found.scores.values["measure"])],
        "depth": found.depth,
    }
    data["values"] = [_columns(wide_of(found, measure)) for measure in data["measures"]]
    if found.tops:
        data["unjudged"] = _unjudged(found)
    if found.laws:
        data["laws"] = _laws(found)
    if found.covered:
        data["intents"] = _intents(found)
    return data


def script(data: dict[str, Any]) -> str:
    r"""JSON that no HTML parser takes for more than text.

    >>> print(script({"id": "</script>"}))
    {"id":"\u003c/script\u003e"}
    """
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    signs = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
    for sign, spelt in signs.items():
        text = text.replace(sign, spelt)
    return text


def cut(text: object, most: int = ID) -> str:
    """Text as it can be shown, its middle left out where it is long."""
    shown = printable(text)
    return shown if len(shown) <= most else f"{shown[: most // 2]}…{shown[1 - most // 2 :]}"


def _columns(wide: pd.DataFrame) -> list[list[float | None]]:
    return [_numbers(wide[name].to_numpy(dtype=np.float64)) for name in wide.columns]


def _numbers(values: Floats) -> list[float | None]:
    return [None if np.isnan(value) else _short(value) for value in values.tolist()]


def _short(value: float) -> float:
    rounded = round(value, DIGITS)
    return int(rounded) if rounded == int(rounded) else rounded


def _places(found: ReportNumbers, topics: list[str]) -> list[int]:
    """Where the topics of the page stand among others; -1 where they do not."""
    place = {topic: at for at, topic in enumerate(topics)}
    return [place.get(topic, -1) for topic in found.topics]


def _unjudged(found: ReportNumbers) -> dict[str, Any]:
    """By topic, unjudged documents and the rank at which each system has them: those of the best ranks first."""
    ranks: list[dict[str, dict[int, int]]] = [{} for _ in found.topics]
    counts: list[list[int]] = []
    for system, top in enumerate(found.tops.values()):
        at = _places(found, top.judgments.topics)
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
        "depth": found.depth,
        "counts": counts,
        "documents": [documents for documents, _ in listed],
        "ranks": [at for _, at in listed],
        "more": [len(documents) - len(shown) for documents, (shown, _) in zip(ranks, listed, strict=True)],
    }


def _listed(documents: dict[str, dict[int, int]], room: int) -> tuple[list[str], list[list[int]]]:
    """Documents and, for each, systems and ranks in turn, as many as there is room for."""
    order = sorted(documents, key=lambda docno: (min(documents[docno].values()), -len(documents[docno]), docno))
    shown: list[str] = []
    at: list[list[int]] = []
    for docno in order[:MOST_DOCUMENTS]:
        shown.append(cut(docno))
        at.append([number for pair in sorted(documents[docno].items()) for number in pair])
        room -= len(shown[-1]) + 5 * len(documents[docno])
        if room < 0:
            break
    return shown, at


def _laws(found: ReportNumbers) -> dict[str, Any]:
    shapes: list[list[str]] = []
    lows: list[list[float | None]] = []
    highs: list[list[float | None]] = []
    for law in found.laws.values():
        at = _places(found, law.topics)
        low, high = law.interval(LEVEL)
        shapes.append([_shape(law, place) if place >= 0 else "" for place in at])
        # Where nothing is unjudged there is no interval.
        open_ = np.where(law.n_unjudged > 0, 1.0, np.nan)
        for ends, column in ((low, lows), (high, highs)):
            column.append(_numbers(np.array([(ends * open_)[place] if place >= 0 else np.nan for place in at])))
    return {"measure": found.law, "level": LEVEL, "bars": BARS, "shapes": shapes, "low": lows, "high": highs}


def _shape(law: BootstrapDistribution, topic: int) -> str:
    """The heights of the bars of a distribution, a sign each; empty where nothing is unjudged."""
    if not law.n_unjudged[topic]:
        return ""
    below = [law.laws[topic].cdf(edge) for edge in np.arange(1, BARS) / BARS]
    share = np.diff(np.array([0.0, *below, 1.0]))
    # What is possible is seen.
    steps = np.where(share > 1e-9, np.ceil((len(STEPS) - 1) * share / share.max() - 1e-9), 0)  # noqa: PLR2004
    return "".join(STEPS[int(step)] for step in steps)


def _intents(found: ReportNumbers) -> dict[str, Any]:
    """By topic, the intents, the most probable first, and the ranks at which each system covers them."""
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
    return {"depth": found.depth, "topics": by_topic}
