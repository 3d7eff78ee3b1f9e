"""The command that says what to judge next."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from vbterrier.cli import option
from vbterrier.cli.output import Format, echo, require_format
from vbterrier.errors import ParameterError

Out = Annotated[Path | None, typer.Option("--output", "-o", help="A TSV to write; .gz packs it.", show_default=False)]


def judge(
    runs: option.Runs,
    qrels: option.Qrels,
    budget: Annotated[int, typer.Option("--budget", "-n", help="How many documents can be judged.", min=1)],
    measure: option.Bootstrapped = "BNDCG@10",
    difference: Annotated[
        str | None, typer.Option(help="Two runs, as A,B: narrow the interval of their difference.")
    ] = None,
    output: Out = None,
    level: Annotated[float, typer.Option(help="Level of the interval.")] = 0.9,
    topics: option.OnTopics = "same",
    duplicates: option.Duplicates = "error",
    style: Format = "table",
) -> None:
    """Say which unjudged documents to judge so that the interval of the mean shrinks most."""
    from vbterrier.evaluate.judging import judge_next
    from vbterrier.judgments.judge_next import write_judging
    from vbterrier.report import tables

    require_format(style)
    plan = judge_next(
        runs,
        qrels,
        budget,
        measure,
        difference=None if difference is None else _pair(difference),
        level=level,
        topics=topics,
        duplicates=duplicates,
        progress=sys.stderr.isatty(),
    )
    if output is not None:
        write_judging(plan, output)
    elif style == "table":
        echo(tables.rendered(plan.frame[["qid", "docno", "reason"]], style))
    else:
        echo(tables.rendered(plan.frame, style, caption=[plan.summary()], label="tab:judge"))
    if output is not None or style == "table":
        echo(plan.summary() if output is None else f"{output}: {plan.summary()}")


def _pair(text: str) -> tuple[str, str]:
    names = text.split(",")
    if len(names) != 2 or not all(names):  # noqa: PLR2004 - a pair
        raise ParameterError(f"--difference {text}: wanted the names of two runs, as A,B")
    return names[0], names[1]


COMMANDS = (judge,)
