"""Verdicts on machines as judges, by stated rules, and the tables that the rules use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.frames.notebook import counted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vbterrier.evaluate.judging import LabelQuality

TRUSTED, CALIBRATE, NOT_TRUSTED = "TRUSTED", "CALIBRATE FIRST", "NOT TRUSTED"
HUMANS, CORRECTED, ALONE = "humans alone", "corrected", "judge alone"
# Limits of the rules: the AUC of labels that separate relevant documents, the overrating of a family's documents in
# shares of the highest grade, and half-widths of intervals that show a difference, in margins.
SEPARATES, _UNFAIR, _SETTLED = 0.75, 0.05, 2.0
# Level of the intervals of family bias and of reversed pairs, all together.
_SEVERE = 0.99
COLUMNS = ["judge", "verdict", "reasons", "n", "auc", "auc_low", "shift", "largest_shift", "n_pairs", "n_reversed"]
COLUMNS += ["half_width", "n_more", "n_with", "n_without", "margin", "level"]


def verdicts(
    systems: pd.DataFrame,
    pairs: pd.DataFrame,
    bias: pd.DataFrame,
    quality: LabelQuality,
    needed: pd.DataFrame,
    *,
    n_human: int,
    highest: int,
    margin: float,
    level: float,
) -> pd.DataFrame:
    """A row per judge with its verdict, the reasons and their numbers; see :func:`vbterrier.evaluate.audit_judge`.

    ``systems, pairs, bias, quality, needed``: tables of the audit. ``n_human, highest``: the number of human judgments
    and the highest grade.
    """
    with_, without = (needed.set_index("labels").loc[word].to_dict() for word in ("with", "without"))
    about = {"n_with": with_["n"], "n_without": without["n"], "margin": margin, "level": level}
    rows = []
    for judge in quality.summary.to_dict("records"):
        name = judge["name"]
        own = bias[bias["judge"] == name]
        facts = {"judge": name, "n": judge["n"], "auc": judge["auc"], "auc_low": _auc_low(quality, judge, level)}
        scale = _scores(systems, pairs, name, margin, level)
        facts |= scale
        facts["n_more"] = max(np.ceil(n_human * ((scale["half_width"] / (_SETTLED * margin)) ** 2 - 1)), 0.0)
        against, caveats = _against(facts, own, highest, level), _caveats(facts, margin)
        verdict = NOT_TRUSTED if against else CALIBRATE if caveats else TRUSTED
        reasons = against + caveats if verdict != TRUSTED else _favourable(facts, own, margin)
        if (by_grade := _by_grade(own)) and verdict != TRUSTED:
            reasons.append(by_grade)
        rows.append({**facts, **about, "verdict": verdict, "reasons": "; ".join(reasons)})
    return pd.DataFrame(rows, columns=COLUMNS)


def _scores(systems: pd.DataFrame, pairs: pd.DataFrame, judge: str, margin: float, level: float) -> dict[str, Any]:
    """The distance of the judge's scores and differences from those with human judgments, and reversed pairs.

    A judge of some topics is compared with humans alone on these. Scores and differences of these topics by the labels
    alone have no error, so that those beyond the margin and outside of the interval with human judgments are shifted.
    Intervals are widened to the level of all systems or pairs together (Bonferroni), and to that of severe faults for
    reversed pairs.
    """

    def both(frame: pd.DataFrame, key: list[str]) -> tuple[pd.DataFrame, pd.DataFrame]:
        own = frame[frame["judge"] == judge]
        reference = own[own["estimate"] == HUMANS]
        reference = reference if len(reference) else frame[frame["estimate"] == CORRECTED]
        alone = own[own["estimate"] == ALONE].set_index(key)
        return alone, reference.set_index(key).loc[alone.index]

    alone, true = both(systems, ["name"])
    shift = alone["value"] - true["value"]
    half = (true["high"] - true["low"]) / 2
    shifted = shift.abs() > np.maximum(half * _widening(len(shift), level), margin)
    facts = {"shift": shift.mean(), "largest_shift": shift.iloc[shift.abs().argmax()], "half_width": half.mean()}
    facts |= {"n_shifted": int(shifted.sum()), "n_systems": len(shift)}
    alone, true = both(pairs, ["name_a", "name_b"])
    wide = _widening(len(true), level)
    severe = _widening(len(true), level, _SEVERE)
    half, half_alone = ((each["high"] - each["low"]) / 2 for each in (true, alone))
    reversed_ = true["diff"] * alone["diff"] < 0
    reversed_ &= (true["diff"].abs() > severe * half) & (alone["diff"].abs() > severe * half_alone)
    moved = (alone["diff"] - true["diff"]).abs() > np.maximum(wide * half, margin)
    worst = alone.index[int((alone["diff"] - true["diff"]).abs().argmax())] if len(alone) else ("", "")
    facts |= {"n_pairs": len(true), "n_reversed": int(reversed_.sum()), "n_moved": int(moved.sum())}
    return {**facts, "reversed": list(true.index[reversed_]), "worst": worst}


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


def _against(facts: dict[str, Any], bias: pd.DataFrame, highest: int, level: float) -> list[str]:
    """Reasons not to trust a judge at all."""
    reasons = []
    if not facts["auc_low"] > 0.5:  # noqa: PLR2004 - chance
        n = counted(facts["n"], "document")
        reasons.append(f"its labels do not separate relevant documents: AUC {facts['auc']:.2f} in {n}")
    family = bias[bias["by"] == "family"]
    wide = _widening(len(family), level, _SEVERE)
    for row in family.to_dict("records"):
        reach = wide * (row["high"] - row["low"]) / 2
        if abs(row["residual"]) > max(reach, _UNFAIR * highest):
            word = "prefers" if row["residual"] > 0 else "disfavours"
            reasons.append(
                f"it {word} family {row['group']}: by {row['residual']:+.2f} grades ({row['low']:+.2f} to "
                f"{row['high']:+.2f}) in {row['n']} documents"
            )
    if facts["n_reversed"]:
        a, b = facts["reversed"][0]
        reasons.append(
            f"it reverses {facts['n_reversed']} of {counted(facts['n_pairs'], 'pair')} of systems, such as {a} and {b}"
        )
    return reasons


def _caveats(facts: dict[str, Any], margin: float) -> list[str]:
    """Reasons to correct the judge's labels before use."""
    reasons = []
    if 0.5 < facts["auc_low"] < SEPARATES:  # noqa: PLR2004 - chance
        reasons.append(f"its labels are noisy: AUC {facts['auc']:.2f}, at least {facts['auc_low']:.2f}")
    if facts["n_shifted"]:
        reasons.append(
            f"scores by its labels are {facts['shift']:+.3f} from the corrected ones on average (largest "
            f"{facts['largest_shift']:+.3f}, {facts['n_shifted']} of {counted(facts['n_systems'], 'system')} too far)"
        )
    if facts["n_moved"]:
        a, b = facts["worst"]
        reasons.append(f"it changes {counted(facts['n_moved'], 'difference')} of systems, most that of {a} and {b}")
    if facts["half_width"] > _SETTLED * margin:
        precision = f"corrected scores are known to ±{facts['half_width']:.3f}"
        more = f"{facts['n_more']:,.0f} more human judgments reach ±{_SETTLED * margin:g}"
        reasons.append(f"not settled: {precision}, and about {more}")
    return reasons


def _favourable(facts: dict[str, Any], bias: pd.DataFrame, margin: float) -> list[str]:
    """Reasons to trust a judge."""
    reasons = [f"its labels separate relevant documents (AUC {facts['auc']:.2f})"]
    reasons.append(
        f"scores are {facts['shift']:+.3f} from the corrected ones on average, within their intervals ±{margin:g}"
    )
    if facts["n_pairs"]:
        reasons.append(f"the order of systems is kept in all {counted(facts['n_pairs'], 'pair')}")
    if (bias["by"] == "family").any():
        reasons.append("no family is preferred")
    return reasons


def _by_grade(bias: pd.DataFrame) -> str:
    """The bias by grade, for labels on the scale of the judgments."""
    rows = bias[(bias["by"] == "grade") & bias["bias"].notna()]
    if not len(rows):
        return ""
    return "label minus grade: " + ", ".join(
        f"{b:+.2f} at {g}" for g, b in zip(rows["group"], rows["bias"], strict=True)
    )


def side_by_side(systems: pd.DataFrame) -> pd.DataFrame:
    """A row per system with its corrected score, and the scores by humans alone and by each judge alone.

    Columns: name, corrected, low, high, humans alone, and ``"judge alone: "`` or the estimate with the judge's name.
    """
    corrected = systems[systems["estimate"] == CORRECTED].set_index("name")[["value", "low", "high"]]
    table = corrected.rename(columns={"value": CORRECTED})
    for (estimate, judge), part in systems.groupby(["estimate", "judge"], sort=False):
        if estimate != CORRECTED and not (estimate == HUMANS and judge):
            head = f"{estimate}: {judge}" if judge else str(estimate)
            table[head] = part.set_index("name")["value"].reindex(table.index)
    return table.sort_values(CORRECTED, ascending=False, kind="stable").reset_index()
