"""Output of commands: answers, tables, and messages that name options."""

from __future__ import annotations

import json
import math
import os
import re
import sys
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import typer

from vbterrier.errors import FileError, ParameterError, encodable, printable
from vbterrier.frames.answer import FAIL, MARKS, PASS, UNKNOWN, Answer, text_key, with_warnings
from vbterrier.remedies import call_in_use

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


# How the answer is shown: empty (with the tables), "quiet" or "json".
DISPLAY_MODE: ContextVar[str] = ContextVar("shown", default="")
# The command that runs, and the texts that its answer has already shown.
COMMAND: ContextVar[Any] = ContextVar("command", default=None)
PRINTED_TEXTS: ContextVar[set[str] | None] = ContextVar("said", default=None)
# Colours of decisions in terminals.
_COLOURS = {PASS: "32", FAIL: "31", UNKNOWN: "33"}

# Parameters whose options have other names.
_OPTIONS = {"client": "dask", "tau": "shrinkage", "n_judge": "budget", "pool_cutoff": "pool", "guardrails": "guardrail"}
# Except those of a measure, as in BNDCG(seed=1,prior='pool')@10.
_PARAMETER = re.compile(r"(?<![\w(,'\"=-])([a-z][a-z_]*)=(?=(\S?))")
_ENDS = frozenset(".,;:)")
# A settings object with one parameter, as in TagOptions(on_ties='drop') or Data(labels=).
_SETTING = re.compile(r"\b(?:Data|Inference|Execution|EntityPriors|[A-Z]\w*Options)\(([a-z_]+)=([^()=,]*)\)")
# A part of a parameter, as in guardrails['RR@10']=2.
_PART = re.compile(r"(?<![\w.])([a-z_]+)\['([^']+)'\]=")


def in_options(message: str, command: Any, arguments: Sequence[str]) -> str:
    """Replace the parameters in a message of the library by the options of the called command of Click, or group."""
    words = iter(arguments)
    while hasattr(command, "commands"):
        commands = command.commands
        called = next((word for word in words if word in commands), None)
        if called is None:
            return message
        command = commands[called]
    options = {each.name: each.opts[0] for each in command.params if each.opts[0].startswith("-")}

    def option_name(name: str) -> str | None:
        return next(
            (options[each] for each in (name, _OPTIONS.get(name), name.removeprefix("n_")) if each in options), None
        )

    def replace_parameter(match: re.Match[str]) -> str:
        option, after = option_name(match[1]), match[2]
        return match[0] if option is None else f"{option}=" if after and after not in _ENDS else option

    def replace_setting(match: re.Match[str]) -> str:
        option, value = option_name(match[1]), match[2]
        return match[0] if option is None else f"{option}={value}" if value else option

    def of_part(match: re.Match[str]) -> str:
        option = option_name(match[1])
        return match[0] if option is None else f"{option} {match[2]}="

    text = _PARAMETER.sub(replace_parameter, _SETTING.sub(replace_setting, _PART.sub(of_part, message)))
    for each in command.params:
        if getattr(each, "is_flag", False):
            text = text.replace(f"{each.opts[0]}=True", each.opts[0])
    return text


def require_format(style: str, output: Path | None = None) -> str:
    """Return the output format, which the name of an output file decides."""
    from vbterrier.report.paper import suffix_format
    from vbterrier.report.tables import FORMATS

    if style not in FORMATS:
        raise ParameterError(f"--format {style}: wanted one of {', '.join(FORMATS)}")
    if output is None:
        return style
    if style not in ("table", suffix_format(output)):
        raise ParameterError(f"--format {style}: {output} asks for {suffix_format(output)}; leave one of them out")
    return suffix_format(output)


def deliver(
    result: Any,
    style: str,
    output: Path | None = None,
    *,
    answer: Answer | None = None,
    evidence: bool = True,
    rows: Any = None,
    **options: Any,
) -> None:
    """Print the answer and the table of a result, or write the table to a file and print the answer alone.

    ``answer``: that of several results or of a frame; by default the one of the result, if it has one. ``evidence``:
    False if the table has the evidence. ``rows``: the frame that JSON has, of a result that is no frame.
    """
    from vbterrier.report.paper import paper_table, save_table

    if answer is None and hasattr(result, "answer"):
        answer = result.answer()
    if output is not None:
        save_table(result, output, answer=answer, **options)
    if answer is None:
        if output is None:
            echo(paper_table(result, style, **options))
        return
    frame = result.to_frame() if hasattr(result, "to_frame") else rows
    if output is not None:
        show(answer, str(output), rows=frame, evidence=False)
        return
    text = "" if DISPLAY_MODE.get() else paper_table(result, style, answer=answer, **options)
    show_report(answer, text, style, rows=frame, evidence=evidence)


def frame_answer(verdict: str, *reasons: str) -> Answer:
    """The answer of a command whose result is a frame; warnings are its caveats."""
    call = call_in_use()
    caveats = with_warnings((), [] if call is None else call.warnings)
    made_by = "" if call is None else call.text()
    return Answer(verdict, " ".join(filter(None, reasons)), caveats=caveats, made_by=made_by)


def agreement_sentence(row: Any, noun: str = "document") -> str:
    """The verdict on judges: a statistic of their agreement on items, of which ``noun`` is one, with its interval."""
    from vbterrier.frames.notebook import count_text

    ends = f" ({100 * row['level']:g}% interval {row['low']:.3f} to {row['high']:.3f})"
    verdict = f"{row['statistic']} of {printable(row['judges'])} is {row['value']:.3f}"
    return f"{verdict}{'' if math.isnan(row['low']) else ends} over {count_text(int(row['n_items']), noun)}."


def show(
    answer: Answer,
    body: str,
    style: str = "table",
    *,
    picture: str = "",
    rows: Any = None,
    evidence: bool = True,
) -> None:
    """Print an answer around a text; in LaTeX and Markdown, the answer becomes a part of the text.

    Parameters are those of :func:`show_report`.
    """
    from vbterrier.report.tables import with_answer

    show_report(answer, with_answer(body, answer, style), style, picture=picture, rows=rows, evidence=evidence)


def show_report(
    answer: Answer,
    body: str,
    style: str = "table",
    *,
    picture: str = "",
    rows: Any = None,
    evidence: bool = True,
) -> None:
    """Print an answer around a report, alone, or as JSON; formats other than tables have the report alone.

    ``rows``: the frame that JSON has under this name. ``evidence``: False if the text has the evidence.
    """
    from vbterrier.report.tables import WIDTH, format_table, prose

    if DISPLAY_MODE.get() == "json":
        more = {} if rows is None else {"rows": json.loads(format_table(rows, "json"))}
        echo(json.dumps({**answer.record(), **more}, indent=2, ensure_ascii=False), folds=False)
        return
    if DISPLAY_MODE.get() != "quiet" and style != "table":
        echo(body)
        return

    def fold_prose(text: str) -> str:
        return prose(in_options(text, COMMAND.get(), ()) if COMMAND.get() is not None else text, WIDTH.get())

    head = answer.verdict if DISPLAY_MODE.get() else answer.head()
    # The mark counts in the width of the first line.
    head = (
        _colour_mark(fold_prose(f"{MARKS[answer.decision]} {head}"), answer.decision)
        if answer.decision
        else fold_prose(head)
    )
    if DISPLAY_MODE.get():
        echo(head, folds=False)
        return
    # A command that is folded would not run as printed.
    lines = answer.foot(evidence=evidence).split("\n")
    below = "\n".join(line if line.startswith("Next: ") else fold_prose(line) for line in lines)
    parts = [head, picture, prose(body, WIDTH.get()).strip("\n"), below]
    echo("\n\n".join(filter(None, parts)), folds=False)
    call = call_in_use()
    if (printed := PRINTED_TEXTS.get()) is not None and call is not None:
        command = COMMAND.get()
        printed |= {text_key(in_options(printable(text), command, ()) if command else text) for text in call.warnings}


def _colour_mark(text: str, decision: str) -> str:
    """A text that begins with a mark and a decision, both in colour on a terminal that has colours."""
    if sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb":
        marked = f"{MARKS[decision]} {decision}"
        return f"\x1b[1;{_COLOURS[decision]}m{marked}\x1b[0m{text.removeprefix(marked)}"
    return text


def save_page(result: Any, path: Path | None) -> None:
    """Write the HTML page of a result, if a path is given."""
    from vbterrier.frames.files.writing import replace_files

    if path is not None:
        replace_files({path: result.page()})


def echo(text: str, *, folds: bool = True) -> None:
    """Print the result of a command, its sentences folded to the width of the terminal if it ``folds``."""
    from vbterrier.report.tables import WIDTH, prose

    try:
        # Folded first: an escape has more signs than the character it stands for.
        typer.echo(encodable(prose(text, WIDTH.get()) if folds else text, sys.stdout.encoding))
    except BrokenPipeError:
        # The reader closed the pipe, as `head` does.
        _discard_stdout()
    except OSError as error:
        _discard_stdout()
        raise FileError("standard output", f"cannot be written: {error.strerror or error}") from error


def _discard_stdout() -> None:
    """Discard the rest of the buffer, which Python would flush at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
