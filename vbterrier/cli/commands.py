"""Commands: their help, the words with which they were called, options that all have, and their log."""

from __future__ import annotations

import gc
import inspect
import logging
import re
import sys
from contextlib import contextmanager
from contextvars import copy_context
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

from vbterrier.cli.options import Digits, Json, MaxBytes, Quiet, Verbose
from vbterrier.cli.output import COMMAND, DISPLAY_MODE
from vbterrier.errors import ParameterError, collect_warnings, printable
from vbterrier.log import NAME
from vbterrier.remedies import Call, Interface, interface

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    StreamHandler = logging.StreamHandler[Any]
else:
    # Not generic at run time in Python 3.10.
    StreamHandler = logging.StreamHandler


LEVELS = (logging.INFO, logging.DEBUG)
_LONGEST_SUMMARY = 1000
# Options that decide how a result is shown, which its next step does not repeat.
_DISPLAY_OPTIONS = ("verbose", "quiet", "as_json", "digits", "style")


class _Lines(StreamHandler):
    """Write lines to standard error without breaking progress bars."""

    def emit(self, record: logging.LogRecord) -> None:
        if "tqdm" in sys.modules:
            from tqdm import tqdm

            with tqdm.external_write_mode(file=self.stream):
                super().emit(record)
        else:
            super().emit(record)


# Words for the types of values in the help.
_KINDS = {Path: "FILE", int: "N", float: "X", str: "TEXT"}


def _with_metavars(parameters: Sequence[Any]) -> list[Any]:
    """Parameters of Typer whose help names no type of Python, as releases from 0.29 do."""
    for each in parameters:
        if isinstance(each, TyperOption) and each.metavar is None and hasattr(each, "type_descriptor"):
            annotation = each.type_descriptor.annotation
            each.metavar = (
                "" if each.is_flag or each.count else _KINDS.get(next(iter(get_args(annotation)), annotation), "TEXT")
            )
    return [_Argument.of(each) if isinstance(each, TyperArgument) else each for each in parameters]


class _Argument(TyperArgument):
    """An argument whose help has its name and no type."""

    @classmethod
    def of(cls, argument: TyperArgument) -> _Argument:
        made = cls.__new__(cls)
        vars(made).update(vars(argument))
        return made

    def display_type_rich(self, ctx: Any) -> str:  # noqa: ARG002 - of Typer
        return ""


def _words(ctx: Any, parameters: Sequence[Any]) -> dict[str, tuple[str, ...]]:
    """The words of a command by parameter: those that were given, in a form that the shell reads again."""
    words: dict[str, tuple[str, ...]] = {}
    for each in parameters:
        name = each.name
        if (
            name is None
            or getattr(ctx.get_parameter_source(name), "name", "") != "COMMANDLINE"
            or name in _DISPLAY_OPTIONS
        ):
            continue
        value, flag = ctx.params.get(name), max(each.opts, key=len)
        values = value if isinstance(value, (list, tuple)) else [value]
        if not flag.startswith("-"):
            words[name] = tuple(map(str, values))
        elif value is True:
            words[name] = (flag,)
        else:
            words[name] = tuple(word for one in values for word in (flag, str(one)))
    return words


def _path(ctx: Any) -> list[str]:
    """The words that name a command, without those of the program: ``["queries", "power"]``."""
    return [] if ctx.parent is None else [*_path(ctx.parent), ctx.info_name]


# An example of each command, for its help.
EXAMPLES = {
    "demo": "vbterrier demo --save demo",
    "doctor": "vbterrier doctor a.run b.run -q qrels.txt",
    "score": "vbterrier score a.run b.run -q qrels.txt -m ENDCG@10 -m nDCG@10",
    "rank": "vbterrier rank a.run b.run -q qrels.txt",
    "compare": "vbterrier compare a.run b.run -q qrels.txt --baseline a",
    "table": "vbterrier table a.run b.run -q qrels.txt -o table.tex",
    "report": "vbterrier report a.run b.run -q qrels.txt -o report.html",
    "track": "vbterrier track runs/*.run -q qrels.txt -n 20 --html track.html",
    "gate": "vbterrier gate new.run -b old.run -q qrels.txt --margin .02 -o gate.xml",
    "audit": "vbterrier audit a.run b.run -q human.txt --judge llm=labels.txt",
    "judge": "vbterrier judge a.run b.run -q qrels.txt -n 20 -o judge.tsv",
    "coverage": "vbterrier coverage entities.run --pool pool.run --tags tags.tsv -q qrels.txt",
    "link": "vbterrier link a.tsv b.tsv --gold gold.tsv --pairs",
    "convert": "vbterrier convert a.csv --kind run --to trec -o a.run",
    "agreement": "vbterrier agreement ann.qrels bob.qrels",
    "powered": "vbterrier powered predicted.tsv labelled.tsv",
    "kb": "vbterrier kb entities.csv -o entities.kb",
    "intents": "vbterrier intents topics.tsv --kb entities.kb -o intents.tsv",
    "tag": "vbterrier tag documents.tsv --kb entities.kb -o tags.tsv",
    "annotate write": "vbterrier annotate write --topics topics.tsv --intents intents.tsv -o sheet.csv",
    "annotate check": "vbterrier annotate check ann.csv bob.csv --topics topics.tsv --intents intents.tsv",
    "annotate pack": (
        "vbterrier annotate pack ann.csv bob.csv --topics topics.tsv --intents intents.tsv --date 2026-01-31 "
        "--source queries='our log' -o set"
    ),
    "annotate documents": (
        "vbterrier annotate documents a.run b.run --topics topics.tsv --intents intents.tsv -n 200 -o sheet.csv"
    ),
    "queries sample": "vbterrier queries sample mentions.tsv -n 500 -o sample.tsv",
    "queries traffic": "vbterrier queries traffic traffic.tsv -n 300 -o sample.csv",
    "queries profile": "vbterrier queries profile mentions.tsv",
    "queries power": "vbterrier queries power values.csv --delta .02",
}


def help_example(command: str) -> str:
    """The last line of the help of a command, such as ``"score"`` or ``"queries power"``."""
    return f"Example: {EXAMPLES[command]}"


# Groups of the help and their options, by parameter; others are those of the command itself.
_GROUPS = {
    "Data": (
        *(
            "qrels",
            "negative",
            "contradictions",
            "unit",
            "scale",
            "subtopics",
            "intents",
            "candidates",
            "tags",
            "topics",
            "labels",
        ),
        *("model", "pool_cutoff", "queries", "on_topics", "duplicates", "system", "id_space"),
    ),
    "Statistics": (
        *("interval", "level", "resamples", "draws", "simulations", "seed", "test", "correction", "family"),
    ),
    "Computation": ("memory", "resume", "jobs", "dask", "max_bytes"),
    "Output": (
        *("output", "html", "judging", "style", "digits", "per_query", "quiet", "as_json", "title", "names"),
        *("verbose", "help"),
    ),
}
_OPTION_GROUP = {name: group for group, names in _GROUPS.items() for name in names}


class Command(TyperCommand):
    """A command whose help names no types of Python, with its options in groups."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments, the options of the command itself, and those that others have too, by group."""
        parts: dict[str, list[tuple[str, str]]] = {name: [] for name in ("Arguments", "Options", *_GROUPS)}
        for each in self.get_params(ctx):
            record = each.get_help_record(ctx)
            if record is not None:
                is_argument = each.param_type_name == "argument"
                parts["Arguments" if is_argument else _OPTION_GROUP.get(each.name, "Options")].append(record)
        for part, rows in parts.items():
            if rows:
                with formatter.section(part):
                    formatter.write_dl(rows)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - of Click
        """Write the example; folded, it would not run as printed."""
        if self.epilog:
            formatter.write(f"\n{self.epilog}\n")

    def invoke(self, ctx: Any) -> Any:
        """Run the command; remedies name its options, and results know its words."""
        options = {each.name: each.opts[0] for each in self.params if each.name and each.opts[0].startswith("-")}
        token = COMMAND.set(self)
        try:
            with collect_warnings() as messages:
                call = Call(" ".join(["vbterrier", *_path(ctx)]), _words(ctx, self.params), options, messages)
                with interface(Interface({}, options, call)):
                    return super().invoke(ctx)
        finally:
            COMMAND.reset(token)

    def get_params(self, ctx: Any) -> list[Any]:  # noqa: D102 - of Typer
        return _with_metavars(super().get_params(ctx))


class CommandGroup(TyperGroup):
    """A group of commands whose help shows whole summaries, by parts, and names no types of Python.

    Plain text, since importing rich takes as long as the rest of the help; Click would cut the summaries at one line.
    """

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        """Write the commands and their summaries."""
        parts: dict[str, list[tuple[str, str]]] = {}
        for name, command in self.commands.items():
            part = getattr(command, "rich_help_panel", None)
            summary = command.get_short_help_str(limit=_LONGEST_SUMMARY)
            parts.setdefault(part if isinstance(part, str) else "Commands", []).append((name, summary))
        for part, rows in parts.items():
            with formatter.section(part):
                formatter.write_dl(rows)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - of Click
        """Write the example; folded, it would not run as printed."""
        if self.epilog:
            formatter.write(f"\n{self.epilog}\n")

    def get_params(self, ctx: Any) -> list[Any]:  # noqa: D102 - of Typer
        return _with_metavars(super().get_params(ctx))


def with_common_options(function: Callable[..., None], *, answers: bool = False) -> Callable[..., None]:
    """Add the options of all commands: ``--verbose``, ``--max-bytes``, and ``--digits`` if the command has a format.

    ``answers``: also ``--quiet`` and ``--json``, for commands whose results have an answer.
    """

    @wraps(function)
    def command(
        *arguments: Any,
        verbose: int = 0,
        max_bytes: str | None = None,
        digits: int | None = None,
        quiet: bool = False,
        as_json: bool = False,
        **options: Any,
    ) -> None:
        with _no_collections():
            from vbterrier import _registration  # noqa: F401 - measures, figures and pages
            from vbterrier.frames.files.blocks import amount
            from vbterrier.frames.files.source import BYTE_LIMIT
            from vbterrier.report.latex import TABLE_DIGITS
            from vbterrier.report.tables import WIDTH, terminal_columns

        _require_separate(options)
        _require_files(options.get("runs") or ())
        show_log(verbose)
        context = copy_context()
        context.run(BYTE_LIMIT.set, None if max_bytes is None else amount("max_bytes", max_bytes, 1))
        context.run(TABLE_DIGITS.set, digits)
        if quiet and as_json:
            raise ParameterError("--quiet and --json: wanted one of them")
        context.run(DISPLAY_MODE.set, "json" if as_json else "quiet" if quiet else "")
        if options.get("style", "table") == "table":
            context.run(WIDTH.set, terminal_columns())
        context.run(function, *arguments, **options)

    # Typer reads parameters from the signature, and types from the annotations.
    signature = inspect.signature(function, eval_str=True)
    added: list[tuple[str, Any, Any]] = [("verbose", 0, Verbose), ("max_bytes", None, MaxBytes)]
    added += [("digits", None, Digits)] * ("style" in signature.parameters)
    added += [("quiet", False, Quiet), ("as_json", False, Json)] * answers
    kind = inspect.Parameter.KEYWORD_ONLY
    more = [inspect.Parameter(name, kind, default=value, annotation=annotation) for name, value, annotation in added]
    parameters = [*signature.parameters.values(), *more]
    command.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return command


_MEASURE = re.compile(r"(\w+)(\(.*\))?(@\d+)?")


def _require_files(runs: Sequence[Path]) -> None:
    """Refuse runs that are no files but measures, as AP in ``-m nDCG@10 AP``: the option takes one."""
    for run in runs:
        name = _MEASURE.fullmatch(str(run))
        if name is not None and not run.exists():
            from vbterrier.hosts.ir_measures import MEASURES

            if name[1] in MEASURES:
                raise ParameterError(f"{run} is a measure, and no file: -m takes one measure; add it as -m {run}")


# Parameters that name the files that a command writes.
_OUTPUTS = ("output", "html", "judging")


def _require_separate(options: dict[str, Any]) -> None:
    """Refuse outputs that are inputs of the command: its other paths, also in texts such as ``NAME=PATH``."""
    from vbterrier.frames.files.writing import require_no_input, require_page_name

    outputs = [options[name] for name in _OUTPUTS if options.get(name) is not None]
    inputs = [value for name, value in options.items() if name not in _OUTPUTS]
    texts = [str(each) for value in inputs for each in (value if isinstance(value, (list, tuple)) else [value])]
    # Paths stand in NAME=PATH, and in parameters of measures.
    parts = [*texts, *(part for text in texts for part in {text.partition("=")[2], *re.split(r"[=(),'\"]", text)})]
    if options.get("html") is not None:
        require_page_name(options["html"])
    for place, output in enumerate(outputs):
        # The caption of a table.
        for written in (output, output.with_suffix(".caption.txt")):
            require_no_input(written, list(filter(None, parts)))
        if output.absolute() in [other.absolute() for other in outputs[:place]]:
            raise ParameterError(f"{printable(output)} is named for two outputs; write each to its own file")


@contextmanager
def _no_collections() -> Iterator[None]:
    """Collect no garbage: imports make many objects that stay, and collections look at all of them time and again."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def show_log(times: int) -> None:
    """Show log messages of level INFO, or DEBUG if given twice, before or after the name of the command."""
    log = logging.getLogger(NAME)
    if not times:
        return
    level = LEVELS[min(times, len(LEVELS)) - 1]
    if not any(isinstance(handler, _Lines) for handler in log.handlers):
        handler = _Lines(sys.stderr)
        handler.setFormatter(logging.Formatter("vbterrier: %(message)s"))
        log.addHandler(handler)
        log.setLevel(level)
    log.setLevel(min(level, log.level))


@contextmanager
def restored_logging() -> Iterator[None]:
    """Restore logging after a command: callers from Python have handlers of their own."""
    log = logging.getLogger(NAME)
    before = log.level
    try:
        yield
    finally:
        log.setLevel(before)
        for handler in [one for one in log.handlers if isinstance(one, _Lines)]:
            log.removeHandler(handler)
