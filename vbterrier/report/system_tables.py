"""Tables of entity linking, rankings of systems, entity runs and diagnoses."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from vbterrier.demo import copy_demo, demo_folder
from vbterrier.errors import choice, printable, unheard
from vbterrier.evaluate.doctor import RUN_TITLES
from vbterrier.evaluate.judging import judge_next
from vbterrier.evaluate.scores import score
from vbterrier.evaluate.track import joined_ranks
from vbterrier.evaluate.verdicts import count_range_text
from vbterrier.frames.answer import Answer
from vbterrier.frames.files.reading import read_qrels, read_run
from vbterrier.frames.notebook import shared_caption
from vbterrier.frames.pictures import Bar, IntervalPicture, Rule
from vbterrier.report.captions import best_rows, interval_methods, measures_sentence
from vbterrier.report.latex import fixed_number
from vbterrier.report.tables import (
    LAST,
    footing,
    format_table,
    interval_texts,
    joined_ends,
    one_column_each,
    summary,
    with_answer,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vbterrier.evaluate.audit import JudgeAudit
    from vbterrier.evaluate.coverage import CoverageReport
    from vbterrier.evaluate.doctor import Diagnosis
    from vbterrier.evaluate.ranking import SystemRanking
    from vbterrier.evaluate.scores import Scores
    from vbterrier.evaluate.track import Leaderboard
    from vbterrier.linking.quality import LinkingReport


_UNCERTAIN = {
    "unjudged": "grades of unjudged documents of these topics under the model",
    "topics": "other topics from the same population, with expected scores",
    "unjudged and topics": "other topics from the same population, and unjudged documents under the model",
}
_EVIDENCE = ("OER", "SignalRate", "BaitRate", "TopBait", "OERCorr", "ObsCov", "OracleCov")
_LABEL = "tab:coverage"
# Columns of runs; those of the pool, which do not depend on a run, are last.
# Columns that a narrow terminal leaves out first.
_LAST = ("OracleCov", "ObsCov", "topics", "OERCorr", "TopBait", "BaitRate", "SignalRate")
_COLUMNS = ("RelCov", "NonRelCov", "DiscRatio", *_EVIDENCE)


def linking_table(report: LinkingReport, style: str, *, pairs: bool = False) -> str:
    """Table of entity linking: one row for each system (or pair) and measure; csv and json hold the frame."""
    frame = report.pairs if pairs else report.intervals
    if style in ("csv", "json"):
        return format_table(frame, style)
    bold = set[tuple[int, str]]()
    if pairs:
        counts = frame[["wins", "losses", "ties"]].astype(str)
        table = frame[["name_a", "name_b", "measure", "diff"]].set_axis(["a", "b", "measure", "a - b"], axis=1)
        table[f"{_level(frame)} of a - b"] = interval_texts(frame)
        table["p"], table["p, delta method"] = frame["p_value"], frame["p_delta"]
        table["won/lost/tied"] = counts["wins"] + "/" + counts["losses"] + "/" + counts["ties"]
    else:
        table = frame[["name", "measure", "value"]].rename(columns={"name": "run"})
        table[f"{_level(frame)} of value"] = interval_texts(frame)
        bold = {(row, "value") for row, best in enumerate(best_rows(frame)) if best}
    caption, label = linking_caption(report, pairs=pairs), "tab:linking-pairs" if pairs else "tab:linking"
    drop = ("p, delta method", "won/lost/tied")
    text = format_table(table, style, caption=caption, label=label, bold=bold, drop=drop)
    return "\n".join([text, *caption]) if style == "table" else text


def linking_caption(report: LinkingReport, *, pairs: bool = False) -> list[str]:
    """Caption: number of queries, and the method of intervals and tests."""
    if pairs:
        n_pairs = len(report.pairs.drop_duplicates(["name_a", "name_b"]))
        n_drawn = int(report.pairs["n_resamples"].max()) if n_pairs else 0
        swaps = f"at most {n_drawn} draws" if n_drawn else "all"
        corrected = f"not corrected for {n_pairs} {'pair' if n_pairs == 1 else 'pairs'}"
        return [
            f"Differences of entity linking systems over {count_range_text(report.intervals['n_qids'], 'query')}.",
            f"p: swaps of answers ({swaps}); intervals by the delta method; {corrected}.",
            "won/lost/tied: queries that a alone, b alone, or both or neither answer correctly.",
        ]
    one, n_resamples = report.intervals.iloc[0], report.intervals["n_resamples"].max()
    methods = interval_methods(report.intervals)
    sentences = [
        f"Entity linking over {count_range_text(one['n_qids'], 'query')}.",
        f"Intervals, {100 * one['level']:g}%: {methods}, {n_resamples} resamples, seed {one['seed']}.",
    ]
    return sentences + ["The best value of a measure is bold."] * int(best_rows(report.intervals).any())


def ranking_report(ranking: SystemRanking, style: str, *, pairs: bool = False) -> str:
    """Table of systems by expected rank, or of pairs of systems; csv and json hold the frame."""
    frame = ranking.pairs if pairs else ranking.systems
    if style in ("csv", "json"):
        return format_table(frame, style)
    level, label = _level(frame), "tab:beats" if pairs else "tab:ranks"
    if pairs:
        columns = {
            "a": frame["name_a"],
            "b": frame["name_b"],
            "a - b": frame["diff"],
            f"{level} of a - b": interval_texts(frame, 3),
            "a beats b, these topics": frame["p_a_beats_b_unjudged"],
            "other topics": frame["p_a_beats_b_both"],
        }
    else:
        columns = {
            "run": frame["name"],
            "mean": frame["mean"],
            f"{level} of means": interval_texts(frame, 3),
            "rank": frame["expected_rank"],
            f"{level} of ranks": interval_texts(frame, None, "rank_low", "rank_high"),
            "best: these": frame["p_best_unjudged"],
            "best: all": frame["p_best_both"],
            "unjudged": frame["n_unjudged_share"],
        }
    table = pd.DataFrame(columns)
    text = format_table(table, style, digits=3, caption=ranking_caption(ranking, pairs=pairs), label=label)
    if style != "table":
        return text
    one = ranking.systems.iloc[0]
    drawn = f"{one['method']}: {one['n_draws']} draws, seed {one['seed']}"
    notes = f"{one['measure']}, {count_range_text(one['n_qids'], 'topic')}; {drawn}: {_uncertain(ranking)}"
    return "\n".join([text, notes, ranking_caption(ranking, pairs=pairs)[-1].removesuffix(".")])


def _level(frame: pd.DataFrame) -> str:
    return f"{100 * frame['level'].max():g}%" if len(frame) else "interval"


def _uncertain(ranking: SystemRanking) -> str:
    source, _, _ = ranking.systems["method"].iloc[0].partition(" (")
    return _UNCERTAIN[source]


def ranking_caption(ranking: SystemRanking, *, pairs: bool = False) -> list[str]:
    """Caption: measure, topics, method, draws and seed."""
    one = ranking.systems.iloc[0]
    what = "Pairwise preferences of systems" if pairs else "Expected ranks"
    return [
        *measures_sentence(f"{what} over {count_range_text(one['n_qids'], 'topic')}", [one["measure"]]),
        f"Intervals, {100 * one['level']:g}%: {one['method']}, {one['n_draws']} draws, seed {one['seed']}.",
        f"Uncertain: {_uncertain(ranking)}.",
        "a beats b: ties count half."
        if pairs
        else (
            "rank: expected; best: probability of the best mean, over the unjudged documents of these topics, and "
            "over other topics as well; unjudged: mean share of the documents up to the cutoff."
        ),
    ]


PARTS = {
    "systems": ("Leaderboard", "tab:leaderboard"),
    "ranks": ("Intervals of ranks by source of uncertainty", "tab:rank-intervals"),
    "collections": ("Collections", "tab:collections"),
    "reusability": ("Ranks without the judgments of a group", "tab:reusability"),
    "judges": ("Rank correlations of automatic judges", "tab:judges"),
    "batch": ("Documents to judge next", "tab:batch"),
}


# Columns of parts that a narrow terminal leaves out first.
_DROPPED_PART_COLUMNS = {
    "systems": ("beats next", "unjudged"),
    "batch": ("width_before", "width_after", "worth", "n_runs", "rank"),
}


def leaderboard_report(board: Leaderboard, style: str, *, part: str = "") -> str:
    """Tables of a leaderboard; csv has one part, json an object of all parts.

    ``part``: a part of :data:`PARTS`; empty for all that are not empty (csv: systems).
    """
    frames = {name: getattr(board, name) for name in PARTS}
    choice("part", part, ("", *PARTS))
    if style == "csv":
        return format_table(frames[part or "systems"], style)
    if style == "json":
        return json.dumps({name: json.loads(format_table(each, style)) for name, each in frames.items()}, indent=2)
    shown = _shown_parts(board, frames, part, style)
    level, pages = _level(board.systems), []
    for name, frame in shown.items():
        if not len(frame):
            continue
        title, label = PARTS[name]
        if name == "systems":
            columns = {
                "rank": frame["rank"],
                "run": frame["name"],
                "letters": frame["letters"],
                "mean": frame["mean"],
                f"{level} of means": interval_texts(frame, 3),
                f"{level} of ranks": joined_ranks(frame, "rank_low", "rank_high", "ranks")["ranks"],
                "beats next": frame["p_beats_next"],
                "unjudged": frame["n_unjudged_share"],
            }
            table = pd.DataFrame(columns)
        elif name == "ranks":
            title, table = f"{title}, {level}", board.ranks_by_source().rename(columns={"name": "run"})
        else:
            table = _with_range(shared_caption(frame)[1], level)
            if name == "judges" and (frame["n_qids"] < board.systems["n_qids"].iloc[0]).any():
                # Also if all judges labelled the same topics.
                table = table.assign(n_qids=frame["n_qids"])
        caption = [f"{title}.", *(leaderboard_caption(board) if name == "systems" else [])]
        drop = _DROPPED_PART_COLUMNS.get(name, ())
        pages.append(format_table(table, style, digits=3, title=title, caption=caption, label=label, drop=drop))
    if style == "table":
        more = ["Ranks by source of uncertainty: --show ranks; --html writes all tables."] * (not part)
        pages.append("\n".join([*leaderboard_caption(board), *more]))
    return "\n\n".join(pages)


def _shown_parts(board: Leaderboard, frames: dict[str, pd.DataFrame], part: str, style: str) -> dict[str, pd.DataFrame]:
    """The tables that are shown: one part, or all that say more than the main table."""
    if part:
        return {part: frames[part]}
    left_out = set() if board.collections["name"].duplicated().any() else {"collections"}
    # On a terminal, the main table has the ranks of its source.
    left_out |= {"ranks"} if style == "table" else set()
    return {name: frame for name, frame in frames.items() if name not in left_out}


def _with_range(frame: pd.DataFrame, level: str) -> pd.DataFrame:
    """Join the ends of intervals, and drop a column with the empty name of a single collection."""
    ranks = "rank_without" in frame.columns
    frame = joined_ranks(frame, "low", "high", level) if ranks else joined_ends(frame, 3, level)
    return frame.drop(columns="dataset") if "dataset" in frame.columns and (frame["dataset"] == "").all() else frame


def leaderboard_caption(board: Leaderboard, *, part: str = "") -> list[str]:
    """Caption: measure, topics, method, draws and seed, and the definition of letters."""
    one = board.systems.iloc[0]
    return [
        *([f"{PARTS[part][0]}."] if part else []),
        f"{one['measure']} over {count_range_text(one['n_qids'], 'topic')}.",
        f"Intervals, {100 * one['level']:g}%: {one['method']}, {one['n_draws']} draws, seed {one['seed']}.",
        "Systems that share a letter do not differ significantly; all others do, simultaneously for all pairs.",
    ]


def coverage_table(reports: Sequence[CoverageReport], style: str, *, per_query: bool = False) -> str:
    """Table of entity runs, by number of entities or by topic; csv and json hold frames.

    ``reports``: reports of the same runs and the same pool for different k. ``per_query``: one row for each topic;
    undefined values are omitted.
    """
    if per_query:
        values = _values(reports)
        table = values if style in ("csv", "json") else one_column_each(values)
        caption = coverage_caption(reports, per_query=True)
        return format_table(table, style, caption=caption, label=_LABEL)
    intervals = _intervals(reports)
    if style in ("csv", "json"):
        return format_table(intervals, style)
    table, caption = _summary(intervals), coverage_caption(reports)
    if style == "latex":
        # Too many columns for a page: a table of coverage, and one of evidence.
        sentence = (
            "Evidence of entities about relevance, and of the pool: means over topics of the first k entities, "
            f"k = {_cuts(reports)}."
        )
        parts = [
            (table.drop(columns=[*_EVIDENCE]), caption, _LABEL),
            (table[["run", "k", *_EVIDENCE]], [sentence, "Pool and settings as for coverage."], "tab:evidence"),
        ]
        return "\n\n".join(
            format_table(part, style, digits=3, caption=title, label=label) for part, title, label in parts
        )
    text = format_table(table, style, digits=3, caption=caption, label=_LABEL, turns=True, drop=_LAST)
    return f"{text}\n{_footing(reports[0], intervals)}" if style == "table" else text


def _values(reports: Sequence[CoverageReport]) -> pd.DataFrame:
    """The V frame of all reports."""
    frames = []
    for report in reports:
        offered = report.topics.melt("qid", list(report.offers), "measure").dropna()
        frames.append(report.values)
        frames += [offered.assign(name=name)[report.values.columns] for name in report.missing["name"]]
    return pd.concat(frames, ignore_index=True).drop_duplicates(["name", "qid", "measure"], ignore_index=True)


def _intervals(reports: Sequence[CoverageReport]) -> pd.DataFrame:
    """The C frame of all reports, with counts and shares of the pool."""
    parts = []
    for report in reports:
        offers = [
            (name, measure, report.pool[measure].iloc[0], report.topics[measure].count())
            for name in report.missing["name"]
            for measure in report.offers
        ]
        offered = pd.DataFrame(offers, columns=["name", "measure", "value", "n_qids"]).assign(
            low=float("nan"), high=float("nan"), level=report.settings["level"], method="none", n_resamples=0, seed=0
        )
        parts.append(pd.concat([report.entities, offered[report.entities.columns]], ignore_index=True))
    frame = pd.concat(parts, ignore_index=True).drop_duplicates(["name", "measure"], ignore_index=True)
    # The pool is the same for all k.
    about = reports[0].pool.iloc[0]
    shared: dict[str, Any] = {name: int(about[name]) for name in ("n_without_relevant", "n_without_other")}
    shared |= {name: float(about[name]) for name in ("share_unjudged", "share_without_entities")}
    return frame.merge(reports[0].missing[["name", "n_missing"]], on="name").assign(**shared)


def _summary(intervals: pd.DataFrame) -> pd.DataFrame:
    """One row for each run and number of entities; measures without a cutoff are repeated."""
    read = intervals["measure"].str.extract(r"^(?P<column>\w+)(?:[^\w@][^@]*)?(?:@(?P<k>\d+))?$")
    frame = intervals.assign(column=read["column"], k=pd.to_numeric(read["k"]))
    level = f"{100 * frame['level'].max():g}% of DiscRatio"
    rows = []
    for name in frame["name"].unique():
        of_run = frame[frame["name"] == name]
        for k in of_run["k"].dropna().unique():
            here = of_run[(of_run["k"] == k) | of_run["k"].isna()].set_index("column")
            cells: dict[str, Any] = {"run": name, "k": int(k)}
            for column in _COLUMNS:
                # A measure that is undefined for all topics, such as a correlation of one entity, has no row.
                cells[column] = here["value"].get(column, float("nan"))
                if column == "DiscRatio":
                    low, high = (float(here[end].get(column, float("nan"))) for end in ("low", "high"))
                    cells[level] = f"{fixed_number(low, 3)} to {fixed_number(high, 3)}" if low <= high else ""
            rows.append(cells | {"topics": int(here.loc["RelCov", "n_qids"])})
    return pd.DataFrame(rows)


def _cuts(reports: Sequence[CoverageReport]) -> str:
    return " and ".join(f"{report.settings['cutoff']:g}" for report in reports)


def _footing(report: CoverageReport, intervals: pd.DataFrame) -> str:
    """Pool, topics left out, method of intervals, and runs with missing topics."""
    pool = report.pool.iloc[0]
    ratio = intervals[intervals["measure"].str.startswith("DiscRatio")].iloc[0]
    settings = report.settings
    of_pool = (
        f"pool: {pool['n_qids']:.0f} topics, {pool['n_documents']:.0f} documents, {pool['n_relevant']:.0f} relevant "
        f"(label {settings['rel']:g} and above), {pool['share_unjudged']:.1%} unjudged (treated as non-relevant), "
        f"{pool['share_without_entities']:.1%} without entities"
    )
    left_out = (
        f"left out if measures are undefined: {count_range_text(int(pool['n_without_relevant']), 'topic')} without "
        f"relevant documents in the pool, {pool['n_without_other']:.0f} without non-relevant ones"
    )
    measured = (
        f"DiscRatio: ratio of mean RelCov to mean NonRelCov over the {ratio['n_qids']} topics that have both; "
        f"{ratio['method']}: {ratio['n_resamples']} resamples, seed {ratio['seed']}; OER: alpha "
        f"{settings['alpha']:g}, shrinkage {settings['shrinkage']:g}; ObsCov, OracleCov: of the pool, the same for all "
        "runs"
    )
    late = report.missing[report.missing["n_missing"] > 0]
    rows = zip(late["name"], late["n_missing"], strict=True)
    missing = [
        f"{printable(name)}: no entities for {count_range_text(n, 'topic')}, scored as empty lists" for name, n in rows
    ]
    return "\n".join([of_pool, left_out, measured, *missing])


def coverage_caption(reports: Sequence[CoverageReport], *, per_query: bool = False) -> list[str]:
    """Caption: number of entities, the pool, topics left out, and the method of intervals."""
    if per_query:
        return measures_sentence("Coverage of entity runs in each topic", _values(reports)["measure"].unique())
    footing = _footing(reports[0], _intervals(reports))
    return [
        f"Coverage of entity runs: means over topics of the first k entities, k = {_cuts(reports)}.",
        *(f"{line}." for line in footing.splitlines()),
    ]


NAIVE, CONDENSED, UNJUDGED = "nDCG@10", "nDCG(judged_only=True)@10", "Unjudged@10"
BOOTSTRAPPED, ESTIMATED = "BNDCG@10", "ENDCG@10"
SYSTEMS = ("lexical", "dense")
# Documents that the demo judges beside its pool: one per topic.
N_RATED = 12


def doctor_report(diagnosis: Diagnosis, style: str) -> str:
    """Report all findings; csv has the table of runs only, json an object of all parts."""
    rows = [(item.measures, "yes" if item.possible else "no", item.reason) for item in diagnosis.support]
    support = pd.DataFrame(rows, columns=["measures", "possible", "why"])
    if style == "csv":
        return format_table(diagnosis.runs, style)
    if style == "json":
        parts = {"qrels": diagnosis.qrels, "runs": diagnosis.runs, "support": support}
        parts |= {"intents": diagnosis.intents} if len(diagnosis.intents) else {}
        objects = {name: json.loads(format_table(frame, style)) for name, frame in parts.items()}
        return json.dumps({**objects, "notes": list(diagnosis.notes)}, indent=2, ensure_ascii=False)
    runs = diagnosis.runs.rename(columns=RUN_TITLES)
    sheets = [("Measures", support), ("Judgments", diagnosis.qrels), ("Runs", runs)]
    if len(diagnosis.intents):
        sheets.insert(2, ("Intents", diagnosis.intents))
    sheet_texts = [format_table(frame, style, title=title, digits=3, turns=title == "Runs") for title, frame in sheets]
    text = "\n\n".join(sheet_texts)
    # The answer that the command prints around tables has the notes.
    return with_answer(text, diagnosis.answer(), style)


def verdict_numbers(audit: JudgeAudit, style: str) -> str:
    """Table of the numbers of both verdicts on each judge."""
    frame, percent = audit.verdicts, "{:.1%}".format
    shares = frame[["reversed", "reversed_low", "reversed_high"]].map(lambda n: "" if pd.isna(n) else percent(n))
    table = pd.DataFrame(
        {
            "judge": frame["judge"],
            "order": frame["order"],
            "pairs reversed": shares["reversed"],
            "limits": (shares["reversed_low"] + " to " + shares["reversed_high"]).where(shares["reversed"] != "", ""),
            "levels": frame["levels"],
            "largest shift": frame["largest_shift"],
            "± half width": frame["half_width"],
            "complete topics": frame["n_complete"].astype(str) + " of " + frame["n_topics"].astype(str),
        }
    )
    return format_table(table, style, digits=3)


def demo_report(save: Path | None = None) -> tuple[Answer, IntervalPicture, str]:
    """The lesson of the demo, its picture and its tables; writes its files to ``save`` if given."""
    folder = demo_folder()
    systems = {name: read_run(folder / f"{name}.run") for name in SYSTEMS}
    with unheard():
        measures = [UNJUDGED, NAIVE, CONDENSED, BOOTSTRAPPED, ESTIMATED]
        qrels = read_qrels(folder / "qrels.txt")
        scores = score(systems, qrels, measures)
        complete = read_qrels(folder / "complete.txt")
        truth = score(systems, complete, [NAIVE])
        rated = score(systems, _judgments_and_labels(systems, qrels, complete), [ESTIMATED])
    parts = [
        _verdicts(scores, rated, truth),
        format_table(summary(scores, "table"), "table", drop=LAST),
        "\n".join([footing(scores), *scores.notes]),
    ]
    files = Path("demo") if save is None else save
    runs = shlex.join(str(files / f"{name}.run") for name in SYSTEMS)
    arguments = f"{runs} --qrels {shlex.quote(str(files / 'qrels.txt'))}"
    if save is not None:
        written = copy_demo(save)
        parts.append(f"{len(written)} files in {save}.")
    following = "vbterrier demo --save demo" if save is None else f"vbterrier doctor {arguments}"
    return _lesson(scores, rated, truth, following), _means_picture(scores, rated, truth), "\n\n".join(parts)


def _differences(scores: Scores, measure: str) -> float:
    """The difference of the second and the first system of the demo."""
    means = scores.means()[measure]
    return float(means[SYSTEMS[1]] - means[SYSTEMS[0]])


def _lesson(scores: Scores, rated: Scores, truth: Scores, following: str) -> Answer:
    """The lesson of the demo, in three sentences."""
    naive, complete = _differences(scores, NAIVE), _differences(truth, NAIVE)
    first, second = SYSTEMS

    def preferred_system(difference: float) -> str:
        return second if difference > 0 else first

    share = scores.means()[UNJUDGED][second]
    n_topics = int(scores.intervals["n_qids"].iloc[0])
    verdict = (
        f"{NAIVE} prefers {preferred_system(naive)} ({second} - {first}: {naive:+.3f}) over {n_topics} topics, and "
        f"complete judgments prefer {preferred_system(complete)} ({complete:+.3f}): {share:.0%} of the first 10 "
        f"documents of {second} are unjudged, and count as non-relevant."
    )
    bootstrapped, estimated, after = (
        _differences(scores, BOOTSTRAPPED),
        _differences(scores, ESTIMATED),
        _differences(rated, ESTIMATED),
    )
    reason = (
        f"{BOOTSTRAPPED} draws their grades ({bootstrapped:+.3f}), and {ESTIMATED} estimates the scores of complete "
        f"judgments ({estimated:+.3f}).\nJudging the {N_RATED} documents that `vbterrier judge` lists makes "
        f"{ESTIMATED} prefer {preferred_system(after)} ({after:+.3f})."
    )
    return Answer(verdict, reason, following, made_by="vbterrier demo")


def _means_picture(scores: Scores, rated: Scores, truth: Scores) -> IntervalPicture:
    """Differences of the two systems by each measure."""
    nan = float("nan")
    lines = [(NAIVE, scores, NAIVE), (BOOTSTRAPPED, scores, BOOTSTRAPPED), (ESTIMATED, scores, ESTIMATED)]
    lines += [(f"{ESTIMATED}, {N_RATED} judged", rated, ESTIMATED), (f"{NAIVE}, all judged", truth, NAIVE)]
    bars = [Bar(label, _differences(pool_scores, measure), nan, nan) for label, pool_scores, measure in lines]
    axis = f"{SYSTEMS[1]} - {SYSTEMS[0]}, difference of means"
    return IntervalPicture(axis, tuple(bars), (Rule(0.0, "equal"),))


def _judgments_and_labels(
    systems: dict[str, pd.DataFrame], qrels: pd.DataFrame, complete: pd.DataFrame
) -> pd.DataFrame:
    """Judgments and the complete labels of the documents to judge next."""
    chosen = judge_next(systems, qrels, budget=N_RATED).documents[["qid", "docno"]]
    return pd.concat([qrels, chosen.merge(complete, on=["qid", "docno"])], ignore_index=True)


def _verdicts(scores: Scores, rated: Scores, truth: Scores) -> str:
    """Means of the systems by each measure, and their differences from those with complete judgments."""
    means, complete = scores.means(), truth.means()[NAIVE]
    lines = [
        (NAIVE, "non-relevant", means[NAIVE]),
        (CONDENSED, "dropped", means[CONDENSED]),
        (BOOTSTRAPPED, "drawn", means[BOOTSTRAPPED]),
        (ESTIMATED, "estimated", means[ESTIMATED]),
        (f"{ESTIMATED}, {N_RATED} judged", "estimated", rated.means()[ESTIMATED]),
    ]
    rows = [
        {"measure": measure, "unjudged documents": meaning}
        | {name: f"{values[name]:.3f} ({values[name] - complete[name]:+.3f})" for name in SYSTEMS}
        for measure, meaning, values in lines
    ]
    rows.append({"measure": NAIVE, "unjudged documents": "none"})
    rows[-1] |= {name: f"{complete[name]:.3f}" for name in SYSTEMS}
    table = pd.DataFrame(rows)
    text = (
        "BNDCG draws the grades of a system's unjudged documents from the judgments of the topic and keeps the ideal "
        "ranking of the pool: report it beside published nDCG. ENDCG estimates the nDCG of complete judgments from all "
        "systems, whose unjudged documents may belong to the ideal ranking: it has the smallest errors on most "
        "collections. Where a system was not pooled, as `dense` here, judge a few of its documents first: with the "
        f"{N_RATED} that `vbterrier judge --budget {N_RATED}` lists, ENDCG has the order of complete judgments."
    )
    above = "Means over topics, and in brackets their differences from the means with complete judgments (last row):"
    return "\n".join([above, format_table(table, "table"), text])
