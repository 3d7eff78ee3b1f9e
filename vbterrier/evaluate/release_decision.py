"""Decision on a release: pass, fail or unknown, with its guarantee, its evidence and the documents to judge next."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pandas as pd

from vbterrier.errors import printable
from vbterrier.frames.answer import FAIL, PASS, UNKNOWN, Caveat, Finding, sentence
from vbterrier.frames.files.rated_lists import RatedList, write_rated_list
from vbterrier.frames.notebook import Panel, count_text
from vbterrier.frames.pictures import Bar, IntervalPicture, Rule
from vbterrier.frames.results import Shown, measure_text
from vbterrier.remedies import sampling_by_traffic

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from vbterrier.annotations import StrPath
    from vbterrier.frames.results import Figures
    from vbterrier.remedies import Call


EXIT_CODES = {PASS: 0, FAIL: 2, UNKNOWN: 3}
# Queries whose rankings are shown side by side.
N_WORST_QUERIES = 5
_WEIGHTS_CAVEAT = (
    "The weights of unrated queries are unknown: limits extrapolate them from the heaviest rated ones. Add all queries "
    "with their weights to queries, or sample by traffic ({})."
)
# The first words of reasons of exclusions.
_SINGULAR = {"queries": "query", "segments": "segment", "rows": "row"}
_QUERY_COLUMNS = ["baseline", "qid", "segment", "diff"]
RANKING_COLUMNS = ["baseline", "qid", "diff", "rank", "new", "new_label", "old", "old_label"]


@dataclass(frozen=True, eq=False, repr=False)
class ReleaseGate(Shown):
    """Result of :func:`vbterrier.evaluate.release_gate`.

    - ``pairs``: a row per measure and baseline: name, baseline, measure, estimand (the score that a measure of the E
      family estimates, with the depth of its judgments; else empty), role (``"decision"`` or ``"guardrail"``), diff
      (weighted mean of new - baseline), counted (the same with losses cut at worst_loss), low, high (limits of
      one-sided intervals of counted), decision, margin, level, n_qids, unjudged and unjudged_baseline (mean shares of
      unjudged documents up to the cutoff), losses, losses_low, losses_high (the share of queries that lose more than
      large_loss, and its limits), large_loss, max_share (NaN under ``guarantee="any"``), worst_loss (the largest loss
      that counts), withheld (a decision of the limits that may be due to unjudged documents, which the measure treats
      as non-relevant, so that it is UNKNOWN; else empty), misses_heavy (weights are unequal, not those of draws by
      traffic, and unknown for queries without ratings, so that limits extrapolate them from the heaviest sampled
      ones), unseen (the largest share of the weight that may have no sampled query, at the
      level of the limit), low_full (the lower limit if all losses count in full, NaN if ``low`` is that limit),
      n_effective (queries of equal weight that the sample is worth), correlation and low_without (of a covariate: its
      correlation with the differences, and the lower limit without it; NaN without one), n_tests (baselines corrected
      for), method, guarantee, look, n_resamples, seed, and for UNKNOWN: reason (``"more queries"``, ``"ratings"`` or
      ``"too close"``), n_needed (queries such as these that decide with a probability of .8) and advice (the reason in
      words, and the margin and the worst loss with which these queries pass)
    - ``segments``: a row per baseline and segment, with the same columns but reasons, ``segment`` and ``weight`` (its
      share of the traffic); ``n_tests`` counts baselines and segments; p_equal is that of equal mean differences of
      all segments (Welch's test). Segments do not change the decision. Empty without segments
    - ``judge``: if ratings are needed, the documents to judge next: qid, docno, rank, n_runs, worth, reason, ...; see
      :class:`vbterrier.unjudged.judge_next.JudgingPlan`. Empty if the ratings of all unjudged documents would decide
      with a probability below .1
    - ``excluded``: reason, n, examples: all that was left out, or scored as nothing
    - ``ratings``: the ratings and their format
    - ``queries``: a row per query and baseline: baseline, qid, segment, diff; by the measure of the decision, the
      largest losses first
    - ``rankings``: of the five queries that lose most, both rankings side by side: baseline, qid, diff, rank, new,
      new_label, old, old_label (missing if unjudged)
    """

    pairs: pd.DataFrame
    segments: pd.DataFrame
    judge: pd.DataFrame
    excluded: pd.DataFrame
    ratings: RatedList = field(default_factory=lambda: RatedList(pd.DataFrame()))
    queries: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=_QUERY_COLUMNS))
    rankings: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=RANKING_COLUMNS))

    @property
    def decision(self) -> str:
        """FAIL if a baseline has FAIL, PASS if all have PASS, else UNKNOWN."""
        decisions = set(self.pairs["decision"])
        return FAIL if FAIL in decisions else PASS if decisions == {PASS} else UNKNOWN

    @property
    def exit_code(self) -> int:
        """0 for PASS, 2 for FAIL, 3 for UNKNOWN."""
        return EXIT_CODES[self.decision]

    def write_judging(self, path: StrPath) -> None:
        """Write the documents to judge next in the format of the ratings; an existing file is replaced."""
        write_rated_list(self.judge, path, self.ratings)

    def summary(self) -> str:
        """The decision in one line."""
        row = self.pairs.iloc[0]
        unseen = "" if "unseen" not in row["method"] else f" (unseen queries may lose {row['worst_loss']:g})"
        against = ", ".join(
            f"{row['name']} - {one['baseline']} mean {one['counted']:+.4f}, at least {one['low']:+.4f}{unseen}, "
            f"at most {one['high']:+.4f}"
            + (
                ""
                if pd.isna(one["low_full"])
                else f"; mean {one['diff']:+.4f}, at least {one['low_full']:+.4f} if losses count in full"
            )
            for one in self.pairs[self.pairs["role"] == "decision"].to_dict("records")
        )
        text = f"{self.decision}: {_measure(row)}, {against}, margin {row['margin']:g}, {row['n_qids']} queries"
        guards = self.pairs[self.pairs["role"] == "guardrail"].to_dict("records")
        return text + "".join(
            f"; {one['measure']} {one['decision']}, mean {one['diff']:+.4f}, at least {one['low']:+.4f}, margin "
            f"{one['margin']:g}"
            for one in guards
        )

    _line = summary

    def to_frame(self) -> pd.DataFrame:
        """Return ``pairs``: a row per baseline."""
        return self.pairs

    def guarantee(self) -> str:
        """The guarantee of the decision in a sentence."""
        row = self.pairs.iloc[0]
        looks = "" if pd.isna(row["look"]) else ", for all looks together"
        looks = ", for any number of looks" if "sequence" in row["method"] else looks
        mean = f"the mean loss over the population of queries is below {row['margin']:g}"
        if not pd.isna(row["low_full"]):
            mean = mean.replace(" is below", f", where no query counts for more than {row['worst_loss']:g}, is below")
        how = "for any differences"
        if "unseen" in row["method"]:
            how = f"even if some queries outside the sample lose {row['worst_loss']:g}"
        if row["misses_heavy"]:
            how += " (unless they weigh more than the weights of the sample suggest)"
        guards = self.pairs[self.pairs["role"] == "guardrail"].drop_duplicates("measure")
        mean += "".join(f", by {one['measure']} below {one['margin']:g}" for one in guards.to_dict("records"))
        losses = f"; and at most {100 * row['max_share']:g}% of queries lose more than {row['large_loss']:g}"
        criteria = f"{mean}, {how}{'' if pd.isna(row['max_share']) else losses}"
        sure = f"{100 * row['level']:g}% confidence{looks}"
        if self.decision == PASS:
            return f"With {sure}: {criteria}."
        if self.decision == FAIL:
            return f"With {sure}, this does not hold: {criteria}."
        if row["withheld"]:
            holds = "holds" if row["withheld"] == PASS else "does not hold"
            return f"If unjudged documents are non-relevant, this {holds} with {sure}: {criteria}."
        return f"Neither shown nor refuted with {sure}: {criteria}."

    def advice(self) -> list[str]:
        """The reason of each UNKNOWN: more queries, ratings, or a difference too close to the margin."""
        rows = self.pairs[self.pairs["decision"] == UNKNOWN]
        several, guarded = len(set(self.pairs["baseline"])) > 1, len(set(self.pairs["measure"])) > 1
        return [
            f"{row['measure'] + ': ' if guarded else ''}{row['baseline'] + ': ' if several else ''}{row['advice']}"
            for row in rows.to_dict("records")
        ]

    def _decision(self) -> str:
        return self.decision

    def _verdict(self) -> Iterator[str]:
        rows = self.pairs.to_dict("records")
        decisive = [row for row in rows if row["decision"] == self.decision]
        one, others = decisive[0], [row for row in rows if row is not decisive[0]]
        yield f"{self.decision}: {self._headline(one)}."
        for text in self.advice():
            yield sentence(text)
        if others:
            yield sentence("; ".join(f"{row['decision']} {_of(row)}: {_difference(row)}" for row in others))
        yield self.guarantee()

    def _headline(self, row: Mapping[Any, Any]) -> str:
        """The meaning of a decision for one baseline and measure, with the margin."""
        claim = f"at most {row['margin']:g} worse than {printable(row['baseline'])} by {_measure(row)}"
        name, queries = printable(row["name"]), count_text(int(row["n_qids"]), "query")
        how = f"{_difference(row)}, {queries}"
        if row["decision"] == PASS:
            return f"{name} is {claim}: {how}"
        if row["withheld"]:
            return f"unjudged documents leave open whether {name} is {claim}: {how}"
        if row["decision"] == UNKNOWN:
            return f"{queries} do not show whether {name} is {claim}: {_difference(row)}"
        if row["high"] < -row["margin"]:
            return f"{name} is more than {claim.removeprefix('at most ')}: {how}"
        share = (
            f"{row['losses']:.1%} of queries (at least {row['losses_low']:.1%}) lose more than {row['large_loss']:g}"
        )
        comparison = f"{name} against {printable(row['baseline'])} by {_measure(row)}"
        return f"{share}, where {100 * row['max_share']:g}% are accepted: {comparison}, margin {row['margin']:g}, {how}"

    def _caveats(self) -> Iterator[Caveat]:
        for row in self.excluded.to_dict("records"):
            some = f" ({row['examples']})" if row["examples"] else ""
            plural, _, rest = row["reason"].partition(" ")
            reason = f"{count_text(row['n'], _SINGULAR[plural])} {rest}"
            yield Caveat("Left out", f"{reason}{some}.", serious=False)
        if self.pairs["misses_heavy"].any():
            yield Caveat("Weights", _WEIGHTS_CAVEAT.format(sampling_by_traffic()), serious=True)
        for row in self.segments[self.segments["decision"] == FAIL].to_dict("records"):
            yield Caveat("Segment", f"{row['segment']} fails {_of(row)}: {_difference(row)}.", serious=True)

    def _evidence(self) -> Iterator[Finding]:
        several = len(set(self.queries["baseline"])) > 1
        for row in self.queries[self.queries["diff"] < 0].head(N_WORST_QUERIES).to_dict("records"):
            yield Finding(row["qid"], "", f"{row['diff']:+.3f}{' ' + _of(row) if several else ''}")

    def _next(self, call: Call) -> str:
        if self.decision == PASS:
            return ""
        if self.decision == UNKNOWN and len(self.judge):
            if call.options is None:
                return f"{call.text()}.write_judging('judge.txt')"
            return call.again(judging="judge.txt") if "judging" not in call.words else ""
        if call.options is None:
            return f"{call.text()}.save('gate.html')"
        return call.again(html="gate.html") if "html" not in call.words else ""

    def _picture(self) -> IntervalPicture:
        one = self.pairs.iloc[0]
        rows = self.pairs[self.pairs["measure"] == one["measure"]]
        bars = [Bar(f"{row['name']} - {row['baseline']}", *_ends(row)) for row in rows.to_dict("records")]
        segments = self.segments[self.segments["measure"] == one["measure"]].to_dict("records")
        bars += [Bar(f"{row['segment']}, - {row['baseline']}", *_ends(row)) for row in segments]
        rules = (Rule(0.0, "no difference"), Rule(-float(one["margin"]), "margin"))
        return IntervalPicture(f"new - baseline, {one['measure']}", tuple(bars), rules if one["margin"] else rules[:1])

    def _figures(self) -> Figures:
        return {"forest": self._differences}

    def _differences(self) -> dict[str, Any]:
        frame, margin = self.pairs.rename(columns={"counted": "value"}), float(self.pairs["margin"].iloc[0])
        names, measures = frame["name"] + " - " + frame["baseline"], "new - baseline, " + frame["measure"]
        rules = {"no difference": 0.0} | ({"margin": -margin} if margin else {})
        return {"intervals": frame.assign(name=names, measure=measures), "rules": rules}

    def _panels(self) -> Iterator[Panel]:
        rule = -self.pairs["margin"].iloc[0]
        yield Panel("Differences from the baselines", *_shown_rows(self.pairs), rule=rule)
        if len(self.segments):
            yield Panel("Segments", *_shown_rows(self.segments), rule=rule, heads=2)
        if len(self.queries):
            worst = self.queries[self.queries["diff"] < 0]
            yield Panel("Queries that lose most", _with_values(worst), heads=2)
        if len(self.rankings):
            yield Panel("Rankings of the queries that lose most", self.rankings, heads=2, rows=10 * N_WORST_QUERIES)
        if len(self.judge):
            yield Panel("Judge next, in this order", self.judge, heads=2)
        if len(self.excluded):
            yield Panel("Exclusions", self.excluded)


def _measure(row: Mapping[Any, Any] | pd.Series[Any]) -> str:
    """The measure of a row, with the score that it estimates."""
    return measure_text(row["measure"], row["estimand"])


def _of(row: Mapping[Any, Any]) -> str:
    """The baseline, and the measure of a row that has one."""
    by = f" by {row['measure']}" if "measure" in row else ""
    return f"against {printable(row['baseline'])}{by}"


def _ends(row: Mapping[Any, Any]) -> tuple[float, float, float]:
    return row["counted"], row["low"], row["high"]


def _difference(row: Mapping[Any, Any]) -> str:
    limits = f"({row['low']:+.4f} to {row['high']:+.4f})"
    if row["counted"] == row["diff"]:
        return f"mean difference {row['diff']:+.4f} {limits}"
    return (
        f"mean difference {row['diff']:+.4f}, or {row['counted']:+.4f} {limits} where no query counts for more than "
        f"{row['worst_loss']:g}"
    )


def _with_values(frame: pd.DataFrame) -> pd.DataFrame:
    """The columns of a frame that have values."""
    return frame[[name for name in frame.columns if not (frame[name] == "").all()]]


def _shown_rows(frame: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """The columns that readers compare, and the one that limits are of; the verdict has the others in words."""
    unused = [
        "advice",
        "reason",
        "guarantee",
        "withheld",
        "large_loss",
        "max_share",
        "estimand",
        "margin",
        "n_tests",
        "losses_low",
        "losses_high",
    ]
    shares = frame[["losses", "losses_low", "losses_high"]].map("{:.1%}".format)
    losses = shares["losses"] + " (" + shares["losses_low"] + " to " + shares["losses_high"] + ")"
    shown = frame.assign(losses=losses.where(frame["losses"].notna(), ""))
    if "n_needed" in shown.columns:
        shown["n_needed"] = shown["n_needed"].map(lambda n: "" if pd.isna(n) else f"{int(n):,}")
    names = {
        "diff": "new - baseline",
        "losses": "large losses",
        "unjudged_baseline": "unjudged of the baseline",
        "n_needed": "queries needed",
        "low_full": "lower limit with losses in full",
    }
    unused += ["misses_heavy"] * (not frame["misses_heavy"].any())
    unused += ["n_effective"] * bool((frame["n_effective"] == frame["n_qids"]).all())
    shown = shown.drop(columns=unused, errors="ignore").rename(columns=names)
    if (frame["counted"] == frame["diff"]).all():
        return shown.drop(columns="counted"), names["diff"]
    cut = f"losses cut at {frame['worst_loss'].iloc[0]:g}"
    return shown.rename(columns={"counted": cut}), cut
