"""Two verdicts on machines as judges, of the order and of the levels of scores, and the tables that the rules use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.evaluate.judge_scores import CORRECTED, HUMANS
from vbterrier.frames.answer import UNKNOWN
from vbterrier.frames.notebook import count_text
from vbterrier.stats.reversals import order_limits, shift_limits, topics_for_order, topics_for_shift

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vbterrier.annotations import Floats
    from vbterrier.evaluate.judge_topics import JudgedTopics
    from vbterrier.evaluate.judging import LabelQuality

TRUSTED, NOT_TRUSTED = "TRUSTED", "NOT TRUSTED"
# The level of the limits of both verdicts, the share of reversed pairs that a trusted judge may have, the shift that
# its scores may have, in margins, and the fewest complete topics for a verdict on the order.
LEVEL, MOST_REVERSED, _MAX_SHIFT_MARGINS, MIN_TOPICS = 0.95, 0.1, 2.0, 10
# The AUC of labels that separate relevant documents, and the overrating of a family's documents that is named, in
# shares of the highest grade.
_SEPARATES, _UNFAIR = 0.75, 0.05
# Level of the intervals of family bias, all together, and the most reversed pairs that are named.
_SEVERE, _MAX_NAMED = 0.99, 3
COLUMNS = ["judge", "order", "order_reason", "levels", "levels_reason", "findings", "n_complete", "n_topics"]
COLUMNS += ["n_pairs", "n_apart", "reversed", "reversed_low", "reversed_high", "n_order", "shift", "largest_shift"]
COLUMNS += ["half_width", "n_levels", "n", "auc", "auc_low", "n_with", "n_without", "margin", "level"]


def verdicts(
    judged: Mapping[str, JudgedTopics],
    names: list[str],
    bias: pd.DataFrame,
    quality: LabelQuality,
    needed: pd.DataFrame,
    *,
    highest: int,
    margin: float,
    level: float,
    seed: int,
) -> pd.DataFrame:
    """A row per judge with both verdicts, the reasons and their numbers; see :func:`vbterrier.evaluate.audit_judge`.

    ``judged``: the scores of each judge and their corrections; ``bias, quality, needed``: tables of the audit, whose
    intervals have the ``level``; ``highest``: the highest grade.
    """
    with_, without = (needed.set_index("labels").loc[word].to_dict() for word in ("with", "without"))
    about = {"n_with": with_["n"], "n_without": without["n"], "margin": margin, "level": LEVEL}
    rows = []
    for judge in quality.summary.to_dict("records"):
        name = judge["name"]
        of_judge = bias[bias["judge"] == name]
        facts = {"judge": name, "n": judge["n"], "auc": judge["auc"], "auc_low": _auc_low(quality, judge, level)}
        order, reversals = order_verdict(judged[name], names, margin, seed)
        findings = [*reversals, *_label_findings(facts, of_judge, highest, level)]
        facts |= order | levels_verdict(judged[name], names, margin) | {"findings": "; ".join(findings)}
        rows.append({**facts, **about})
    return pd.DataFrame(rows, columns=COLUMNS)


def order_verdict(judged: JudgedTopics, names: list[str], margin: float, seed: int) -> tuple[dict[str, Any], list[str]]:
    """The verdict on the order with its numbers, and the pairs that are shown reversed."""
    n_all, k = len(judged.topics), judged.n_complete
    n_pairs = len(names) * (len(names) - 1) // 2
    row: dict[str, Any] = {"n_complete": k, "n_topics": n_all, "n_pairs": n_pairs, "order": UNKNOWN}
    row |= {"n_apart": np.nan, "reversed": np.nan, "reversed_low": np.nan, "reversed_high": np.nan, "n_order": np.nan}
    judge = judged.scores.mean(axis=1)
    apart = np.abs(judge[:, None] - judge)[np.triu_indices(len(judge), 1)] >= margin
    row["n_apart"] = int(apart.sum())
    if not apart.any():
        row["order_reason"] = f"it separates none of {count_text(n_pairs, 'pair')} of systems by {margin:g}"
        return row, []
    if k < min(MIN_TOPICS, n_all):
        row["n_order"] = float(min(MIN_TOPICS, n_all))
        row["order_reason"] = _too_few(judged, row["n_order"])
        return row, []
    limits = order_limits(judge, judged.corrections, n_all, margin, level=LEVEL, seed=seed)
    row |= {"reversed": limits.share, "reversed_low": limits.low, "reversed_high": limits.high}
    of_pairs = f"of {count_text(row['n_apart'], 'pair')} that it separates by {margin:g} is reversed by more than this"
    seen = f"{limits.share:.1%} by {k} complete topics of {n_all}"
    if limits.low > MOST_REVERSED:
        row |= {"order": NOT_TRUSTED, "order_reason": f"at least {limits.low:.1%} {of_pairs} ({seen})"}
    elif limits.high <= MOST_REVERSED:
        row |= {"order": TRUSTED, "order_reason": f"at most {limits.high:.1%} {of_pairs} ({seen})"}
    else:
        row["n_order"] = float(topics_for_order(judge, judged.corrections, n_all, margin, MOST_REVERSED, level=LEVEL))
        span = f"{limits.low:.1%} to {limits.high:.1%} {of_pairs} ({seen})"
        row["order_reason"] = f"{span}; {_would_decide(row['n_order'], k)}"
    named = [
        f"it reverses {names[limits.pairs[0, pair]]} and {names[limits.pairs[1, pair]]}: {limits.gap[pair]:+.3f} by "
        f"its labels, {limits.corrected[pair]:+.3f} ± {limits.half[pair]:.3f} corrected"
        for pair in limits.reversed_pairs[:_MAX_NAMED].tolist()
    ]
    others = len(limits.reversed_pairs) - len(named)
    return row, [*named, *([f"it reverses {count_text(others, 'more pair')}"] if others else [])]


def levels_verdict(judged: JudgedTopics, names: list[str], margin: float) -> dict[str, Any]:
    """The verdict on the levels with its numbers."""
    n_all, k, most = len(judged.topics), judged.n_complete, _MAX_SHIFT_MARGINS * margin
    row: dict[str, Any] = {"levels": UNKNOWN, "shift": np.nan, "largest_shift": np.nan, "half_width": np.nan}
    if k < min(2, n_all):
        row["n_levels"] = float(min(MIN_TOPICS, n_all))
        return {**row, "levels_reason": _too_few(judged, row["n_levels"])}
    # The judge is too high if humans correct its scores downwards.
    shift, half = -judged.corrections.mean(axis=1), shift_limits(judged.corrections, n_all, level=LEVEL)
    row |= {"shift": shift.mean(), "half_width": half.mean(), "n_levels": np.nan}
    worst = int(np.argmax(np.abs(shift) + half))
    if (np.abs(shift) + half <= most).all():
        row |= {"levels": TRUSTED}
        reason = (
            f"all scores are within ±{most:g} of those by humans; largest shift {_shift(shift, half, names, worst)}"
        )
    elif (np.abs(shift) - half > most).any():
        worst = int(np.argmax(np.abs(shift) - half))
        n = int((np.abs(shift) - half > most).sum())
        row |= {"levels": NOT_TRUSTED}
        shifted = f"{n} of {count_text(len(names), 'score')} {'is' if n == 1 else 'are'} shifted beyond ±{most:g}"
        reason = f"{shifted}, such as {_shift(shift, half, names, worst)}"
    else:
        row["n_levels"] = float(topics_for_shift(judged.corrections, n_all, most, level=LEVEL))
        reason = (
            f"shifts within ±{most:g} are not established: {_shift(shift, half, names, worst)}; "
            f"{_would_decide(row['n_levels'], k)}"
        )
    row["largest_shift"] = shift[int(np.argmax(np.abs(shift)))]
    return {**row, "levels_reason": reason}


def _shift(shift: Floats, half: Floats, names: list[str], place: int) -> str:
    return f"{names[place]} {shift[place]:+.3f} ± {half[place]:.3f}"


def _too_few(judged: JudgedTopics, n: float) -> str:
    k = judged.n_complete
    return (
        f"{k} of {count_text(len(judged.topics), 'topic')} {'is' if k == 1 else 'are'} judged completely; "
        f"a verdict needs {n:.0f}, whose documents vbterrier judge --complete {n:.0f} lists"
    )


def _would_decide(n: float, k: int) -> str:
    return f"a verdict needs about {n:.0f} complete topics ({n - k:.0f} more)"


def _widening(n: int, level: float, simultaneous: float | None = None) -> float:
    """The factor of half-widths of n normal intervals that makes their level simultaneous."""
    from scipy import special

    all_of_them = level if simultaneous is None else simultaneous
    return float(special.ndtri(1 - (1 - all_of_them) / 2 / max(n, 1)) / special.ndtri((1 + level) / 2))


def _auc_low(quality: LabelQuality, judge: Mapping[Any, Any], level: float) -> float:
    """The lower limit of the AUC (Hanley and McNeil, Radiology 143, 1982)."""
    from scipy import special

    cells = quality.confusion[quality.confusion["name"] == judge["name"]]
    auc, n = judge["auc"], int(cells["n"].sum())
    positive = int(cells.loc[cells["grade"] > 0, "n"].sum())
    if np.isnan(auc) or positive in (0, n):
        return float("nan")
    first, second = auc / (2 - auc), 2 * auc**2 / (1 + auc)
    variance = auc * (1 - auc) + (positive - 1) * (first - auc**2) + (n - positive - 1) * (second - auc**2)
    return float(auc - special.ndtri((1 + level) / 2) * np.sqrt(max(variance, 0.0) / (positive * (n - positive))))


def _label_findings(facts: dict[str, Any], bias: pd.DataFrame, highest: int, level: float) -> list[str]:
    """Faults of the labels themselves, on the documents that humans judged."""
    findings = []
    family = bias[bias["by"] == "family"]
    wide = _widening(len(family), level, _SEVERE)
    for row in family.to_dict("records"):
        reach = wide * (row["high"] - row["low"]) / 2
        if abs(row["residual"]) > max(reach, _UNFAIR * highest):
            word = "prefers" if row["residual"] > 0 else "disfavours"
            findings.append(
                f"it {word} family {row['group']}: by {row['residual']:+.2f} grades ({row['low']:+.2f} to "
                f"{row['high']:+.2f}) in {row['n']} documents"
            )
    if not facts["auc_low"] > 0.5:  # noqa: PLR2004 - chance
        n = count_text(facts["n"], "document")
        findings.append(f"its labels do not separate relevant documents: AUC {facts['auc']:.2f} in {n}")
    elif facts["auc_low"] < _SEPARATES:
        findings.append(f"its labels are noisy: AUC {facts['auc']:.2f}, at least {facts['auc_low']:.2f}")
    by_grade = _by_grade(bias)
    return [*findings, by_grade] if by_grade else findings


def _by_grade(bias: pd.DataFrame) -> str:
    """The bias by grade, for labels on the scale of the judgments."""
    rows = bias[(bias["by"] == "grade") & bias["bias"].notna()]
    if not len(rows):
        return ""
    return "mean of its label minus the human grade: " + ", ".join(
        f"{b:+.2f} at grade {g}" for g, b in zip(rows["group"], rows["bias"], strict=True)
    )


def side_by_side(systems: pd.DataFrame) -> pd.DataFrame:
    """A row per system with its corrected score, and the scores by humans alone and by each judge alone.

    Columns: name, corrected, low, high, humans alone, and ``"judge alone: "`` or the estimate with the judge's name,
    with the number of topics where these differ. Without corrected scores, the order is that of the next column.
    """
    several = bool((systems["n_qids"] != systems["n_qids"].iloc[0]).any())
    corrected = systems[systems["estimate"] == CORRECTED].set_index("name")[["value", "low", "high"]]
    table = corrected.rename(columns={"value": CORRECTED})
    for (estimate, judge), part in systems.groupby(["estimate", "judge"], sort=False):
        if estimate != CORRECTED and not (estimate == HUMANS and judge):
            head = f"{estimate}: {judge}" if judge else str(estimate)
            head += f" ({part['n_qids'].iloc[0]} topics)" * several
            table[head] = part.set_index("name")["value"].reindex(table.index)
    by = CORRECTED if table[CORRECTED].notna().any() else table.columns[3]
    return table.sort_values(by, ascending=False, kind="stable").reset_index()
