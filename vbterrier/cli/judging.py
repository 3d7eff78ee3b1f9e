"""The commands that judge documents, and audit judges."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

import vbterrier
from vbterrier.cli import options as option
from vbterrier.cli.options import Format, Output
from vbterrier.cli.output import agreement_sentence, deliver, frame_answer, require_format, save_page
from vbterrier.cli.output import show as show_answer
from vbterrier.errors import ParameterError, choice, printable
from vbterrier.frames.answer import Answer
from vbterrier.remedies import call_in_use
from vbterrier.settings import Data, Execution, Inference

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pandas as pd


def judge(
    runs: option.Runs,
    qrels: option.Qrels,
    budget: Annotated[
        int | None, Option("--budget", "-n", help="Number of documents to judge.", min=1, metavar="N")
    ] = None,
    complete: Annotated[
        int | None,
        Option(
            help="Instead: number of topics to judge completely, for an audit of the judges of --labels: all documents "
            "that a run retrieves up to the cutoff of the measure, or that a judge labelled.",
            min=1,
            metavar="N",
        ),
    ] = None,
    measure: option.Unjudged = "ENDCG@10",
    difference: Annotated[str | None, Option(help="Two runs, as A,B: reduce the interval of their difference.")] = None,
    labels: option.Labels = None,
    model: option.Model = None,
    pool_cutoff: option.PoolCutoff = None,
    output: option.Listing = None,
    level: Annotated[float, Option(help="Confidence level of the interval.")] = 0.9,
    look: Annotated[
        int | None,
        Option(
            help="Number of this look at the results, from 1: intervals of all looks together have the level.", min=1
        ),
    ] = None,
    on_topics: option.OnTopics = "same",
    duplicates: option.Duplicates = "error",
    seed: Annotated[int, Option(help="With --complete: seed of the sample of topics.", min=0, metavar="N")] = 0,
    system: option.System = None,
    style: Format = "table",
) -> None:
    """List the unjudged documents whose judgments reduce the interval of the mean most, or complete some topics."""
    from vbterrier.evaluate.judging import judge_next
    from vbterrier.report import tables
    from vbterrier.unjudged.judge_next import write_judging

    require_format(style)
    if budget is None and complete is not None:
        if any(value is not None for value in (difference, look, model, pool_cutoff)):
            unused = "--difference, --look, --model and --pool-cutoff"
            raise ParameterError(f"--complete judges whole topics: leave out {unused}")
        read = Data(on_topics=on_topics, duplicates=duplicates)
        _list_topics(runs, qrels, labels, complete, measure, read, seed, output, style)
        return
    if budget is None or complete is not None:
        raise ParameterError("wanted either --budget, a number of documents, or --complete, a number of topics")
    pair = [] if difference is None else difference.split(",")
    if difference is not None and (len(pair) != 2 or not all(pair)):  # noqa: PLR2004 - a pair
        raise ParameterError(f"--difference {difference}: wanted the names of two runs, as A,B")
    plan = judge_next(
        runs,
        qrels,
        measure,
        budget=budget,
        difference=(pair[0], pair[1]) if pair else None,
        look=look,
        data=Data(
            labels=option.label_paths(labels),
            model=model,
            pool_cutoff=pool_cutoff,
            on_topics=on_topics,
            duplicates=duplicates,
            system=system,
        ),
        inference=Inference(level=level),
        execution=Execution(progress=sys.stderr.isatty()),
    )
    answer, body = plan.answer(), f"{output}: {plan.summary()}"
    if output is not None:
        write_judging(plan, output)
        show_answer(replace(answer, evidence=()), body, rows=plan.documents)
        return
    shown = plan.documents[["qid", "docno", "reason"]] if style == "table" else plan.documents
    body = tables.format_table(shown, style, caption=[plan.summary()], label="tab:judge")
    show_answer(answer, body, style, rows=plan.documents, evidence=False)


def _list_topics(
    runs: list[Path],
    qrels: Path,
    labels: list[Path] | None,
    n_topics: int,
    measure: str,
    read: Data,
    seed: int,
    output: Path | None,
    style: str,
) -> None:
    """Write or show the documents that complete a sample of topics."""
    from vbterrier.evaluate.inputs import measure_with_distribution
    from vbterrier.evaluate.judge_topics import topics_to_judge
    from vbterrier.report import tables
    from vbterrier.unjudged.judge_next import write_judging

    named = option.label_paths(labels)
    if not named:
        raise ParameterError("--complete: wanted --labels, those of the judges that will be audited")
    cutoff = measure_with_distribution(measure).cutoff
    if cutoff is None:
        raise ParameterError(f"--measure {measure}: --complete wants a measure with a cutoff, as ENDCG@10")
    plan = topics_to_judge(
        runs, qrels, labels=named, n_topics=n_topics, cutoff=cutoff, data=read, inference=Inference(seed=seed)
    )
    summary = f"Judging {len(plan):,} documents of {plan['qid'].nunique():,} topics makes {n_topics:,} topics complete"
    answer = Answer(f"{summary}.", made_by="" if (call := call_in_use()) is None else call.text())
    if output is not None:
        write_judging(plan, output)
        show_answer(answer, str(output), rows=plan)
        return
    if call is not None:
        answer = replace(answer, next=call.again(output="judge.tsv"))
    shown = plan[["qid", "docno", "reason"]] if style == "table" else plan
    show_answer(answer, tables.format_table(shown, style, caption=[summary], label="tab:judge"), style, rows=plan)


def audit(
    runs: option.Runs,
    qrels: option.Qrels,
    judge: Annotated[
        list[Path],
        Option(
            "--judge",
            "-j",
            help="Labels by a machine (qrels, JSON lines, CSV, Parquet), as PATH or NAME=PATH; repeatable.",
        ),
    ],
    family: Annotated[
        list[str] | None, Option(help="Runs of one family, as run1,run2=NAME, for bias towards a family; repeatable.")
    ] = None,
    documents: Annotated[Path | None, Option(help="Texts of documents (docno, text), for bias by length.")] = None,
    topics: Annotated[
        Path | None, Option(help="Texts of the queries (qid, query), with --documents: bias by shared words.")
    ] = None,
    baseline: option.Baseline = None,
    cutoff: Annotated[int, Option(help="Cutoff of nDCG and ENDCG.", min=1, metavar="N")] = 10,
    margin: Annotated[
        float,
        Option(
            help="Smallest difference that matters; also half the width of intervals that judgments are planned for."
        ),
    ] = 0.02,
    budget: Annotated[
        int, Option("--budget", "-n", help="Largest number of human judgments to plan.", min=1, metavar="N")
    ] = 1000,
    show: Annotated[
        str | None,
        Option(
            autocompletion=option.value_completer(
                (
                    "verdicts",
                    "comparison",
                    "systems",
                    "pairs",
                    "bias",
                    "calibration",
                    "agreement",
                    "without_humans",
                    "kappa",
                    "quality",
                    "mixed",
                    "needed",
                    "plan",
                )
            ),
            help="Show one table: verdicts, comparison, systems, pairs, bias, calibration, agreement, without_humans, "
            "kappa, quality, mixed, needed or plan; without it, verdicts and comparison, or systems with csv and json.",
        ),
    ] = None,
    html: option.Html = None,
    level: option.Level = 0.9,
    pool_cutoff: option.PoolCutoff = None,
    scale: option.Scale = None,
    unit: option.Unit = 1.0,
    on_topics: option.OnTopics = "same",
    duplicates: option.Duplicates = "error",
    system: option.System = None,
    seed: option.SeedOfDraws = 0,
    style: Format = "table",
    output: Output = None,
) -> None:
    """Audit automatic judges: verdicts on the order and levels of scores, corrected scores, and judgments needed."""
    from vbterrier.report.paper import paper_table
    from vbterrier.report.system_tables import verdict_numbers

    style = require_format(style, output)
    pairs = [text.rpartition("=") for text in family or []]
    for pair in pairs:
        if not (pair[0] and pair[2]):
            raise ParameterError(f"--family {''.join(pair)}: wanted runs and their family, as run1,run2=NAME")
    result = vbterrier.evaluate.audit_judge(
        runs,
        qrels,
        labels=option.label_paths(judge, "--judge"),
        baseline=option.only("--baseline", baseline),
        families={run: name for names, _, name in pairs for run in names.split(",")},
        cutoff=cutoff,
        margin=margin,
        budget=budget,
        inference=Inference(level=level, seed=seed),
        data=Data(
            scale=option.parse_scale(scale),
            unit=unit,
            pool_cutoff=pool_cutoff,
            on_topics=on_topics,
            duplicates=duplicates,
            system=system,
            documents=None if documents is None else vbterrier.read_documents(documents),
            topics=None if topics is None else vbterrier.read_topics(topics),
        ),
    )
    save_page(result, html)
    tables = result.tables()
    shown_table = show or ("systems" if output is not None or style in ("csv", "json") else "")
    if shown_table:
        choice("show", shown_table, tuple(tables))
        caption = [repr(result)]
        deliver(tables[shown_table], style, output, answer=result.answer(), caption=caption, label=f"tab:{shown_table}")
        return
    caption = ["Scores of systems; the interval is that of the corrected score."]
    text = paper_table(tables["comparison"], style, caption=caption, label="tab:comparison")
    others = [name for name, table in tables.items() if len(table) and name not in ("verdicts", "comparison")]
    text += f"\n{verdict_numbers(result, style)}" if style == "table" else ""
    details = f"Details: --show {', '.join(others)}; --html writes all."
    show_answer(result.answer(), f"{text}\n{details}", style, rows=result.verdicts)


def agreement(
    labels: Annotated[
        list[Path], Argument(help="Labels by two or more judges, as PATH or NAME=PATH: qrels, JSON lines, CSV.")
    ],
    weights: Annotated[
        str | None,
        Option(
            autocompletion=option.value_completer(("linear", "quadratic")),
            help="Weights of Cohen's kappa: linear or quadratic.",
        ),
    ] = None,
    level: option.Level = 0.95,
    resamples: option.Resamples = 2000,
    seed: option.Seed = 0,
    style: Format = "table",
    output: Output = None,
) -> None:
    """Report the agreement of judges on the documents that all of them labelled: Cohen's and Fleiss' kappa."""
    from vbterrier.unjudged.pool import MachineLabels

    style = require_format(style, output)
    every = MachineLabels(option.label_paths(labels, "LABELS"))
    wide = every.frame().pivot(index=["qid", "docno"], columns="name", values="grade")[every.names].dropna()
    result = vbterrier.stats.judge_agreement(wide, weights=weights, level=level, n_resamples=resamples, seed=seed)
    caption = ["Agreement of judges beyond chance."]
    answer = frame_answer(agreement_sentence(result.iloc[0]))
    deliver(result, style, output, answer=answer, rows=result, caption=caption, label="tab:agreement")


def powered(
    predicted: Annotated[Path, Argument(help="Scores of all queries: name, qid, measure, value.")],
    labelled: Annotated[Path, Argument(help="Labels of a random sample of them: name, qid, measure, value.")],
    predicts: Annotated[
        list[str] | None, Option(help="The labels that a score predicts, as ES@5=success; repeatable.")
    ] = None,
    baseline: option.Baseline = None,
    target: Annotated[
        str,
        Option(
            autocompletion=option.value_completer(("population", "these")),
            help="Queries of the mean: population (from which these are drawn) or these.",
        ),
    ] = "population",
    weight: Annotated[
        float | None, Option(help="Weight of the score in the estimate [the one with the narrowest interval].")
    ] = None,
    level: option.Level = 0.95,
    style: Format = "table",
    output: Output = None,
) -> None:
    """Estimate means from labels of a few queries and a score of all queries (prediction-powered inference)."""
    from vbterrier.frames.files.reading import read_values

    style = require_format(style, output)
    pairs = [text.partition("=") for text in predicts or []]
    for pair in pairs:
        if not pair[2]:
            raise ParameterError(f"--predicts {''.join(pair)}: wanted a score and its label, as ES@5=success")
    result = vbterrier.stats.prediction_powered(
        read_values(predicted),
        read_values(labelled),
        predicts={score: name for score, _, name in pairs} or None,
        baseline=option.only("--baseline", baseline),
        target=target,
        lam=weight,
        level=level,
    )
    deliver(
        result,
        style,
        output,
        answer=frame_answer(*_powered_sentences(result)),
        rows=result,
        caption=["Prediction-powered means."],
        label="tab:powered",
    )


def _powered_sentences(result: pd.DataFrame) -> Iterator[str]:
    """A sentence for each label and the score that predicts it: the highest estimates with their intervals."""
    from vbterrier.evaluate.verdicts import count_range_text, name_list

    for (measure, label), rows in result.groupby(["measure", "label"], sort=False):
        first, *others = rows.sort_values("value", ascending=False, kind="stable").to_dict("records")
        level, verb = f"{100 * first['level']:g}% interval ", "is" if " - " in first["name"] else "scores"
        estimates = [f"{printable(first['name'])} {verb} {_estimate_text(first, level)}"]
        estimates += [f"{printable(row['name'])} {_estimate_text(row)}" for row in others]
        n_labelled, n = (count_range_text(rows[column], "query") for column in ("n_labelled", "n_qids"))
        yield f"By {label}, from labels of {n_labelled} and {measure} of {n}, {name_list(estimates)}."


def _estimate_text(row: Mapping[Any, Any], level: str = "") -> str:
    return f"{row['value']:.3f} ({level}{row['low']:.3f} to {row['high']:.3f})"


COMMANDS = {"Decide": (audit, judge, agreement, powered)}
