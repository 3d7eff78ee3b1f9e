"""Options, output formats and verbosity shared by the commands."""

from __future__ import annotations

import gc
import inspect
import io
import json
import logging
import math
import os
import re
import sys
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer
from typer import Argument, Option
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

from vbterrier.errors import FileError, ParameterError, choice, issued, printable
from vbterrier.frames.answer import FAIL, MARKS, PASS, PLAIN_MARKS, UNKNOWN, text_key
from vbterrier.log import NAME
from vbterrier.remedies import Call, Interface, call_in_use, interface
from vbterrier.settings import CORRECTIONS, FAMILIES, INTERVALS, TESTS, TOPICS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from vbterrier.frames.answer import Answer

    StreamHandler = logging.StreamHandler[Any]
else:
    # Not generic at run time in Python 3.10.
    StreamHandler = logging.StreamHandler


RUNS = "Runs: TREC, MS MARCO, CSV, TSV, JSON lines, Parquet or xlsx; text also .gz, .bz2, .xz or .zst."
_QRELS = "Qrels, adhoc or diversity: TREC, CSV, TSV, JSON lines, Parquet, or irds:ID."
Runs = Annotated[list[Path], Argument(help=RUNS)]
Qrels = Annotated[Path, Option("--qrels", "-q", help=_QRELS)]
QrelsIfAny = Annotated[Path | None, Option("--qrels", "-q", help=_QRELS)]


def completed(legal: Iterable[str]) -> Callable[[str], list[str]]:
    """Return a function that completes a value in a shell; legal values are literal, to import nothing for them."""
    return lambda incomplete: [value for value in legal if value.startswith(incomplete)]


def completed_measures(incomplete: str) -> list[str]:
    """Complete the name of a measure, those of this package first."""
    from vbterrier import _registration  # noqa: F401 - registers the measures
    from vbterrier.hosts.ir_measures import MEASURES

    names = sorted(MEASURES, key=lambda name: not MEASURES[name].__module__.startswith("vbterrier"))
    return [name for name in names if name.startswith(incomplete) and name.isascii()]


def fraction(text: str) -> float:
    """Return a number that is written as such, or as a fraction.

    >>> fraction("1/4"), fraction(".5")
    (0.25, 0.5)
    """
    over, slash, under = str(text).partition("/")
    try:
        value = float(over) / float(under) if slash else float(over)
    except (ValueError, ZeroDivisionError):
        value = math.nan
    if not math.isfinite(value):
        raise ParameterError(f"--unit {printable(text)}: wanted a number, such as .25, or a fraction, such as 1/6")
    return value


Unit = Annotated[
    float,
    Option(
        help="Step of the labels in --qrels, for ratings with fractions, such as .25 or 1/6.",
        parser=fraction,
        metavar="FLOAT",
    ),
]
Negative = Annotated[
    str,
    Option(
        autocompletion=completed(("nonrelevant", "unjudged")),
        help="Labels below 0 in --qrels: nonrelevant, or unjudged (dropped).",
    ),
]
Contradictions = Annotated[
    str,
    Option(
        autocompletion=completed(("error", "first", "last", "max")),
        help="The label of a document with several in --qrels: error (refuse them), first, last or max.",
    ),
]
Intents = Annotated[Path | None, Option(help="Candidate intents (qid, entity_id, prob), or an IntentSet's folder.")]
Tags = Annotated[Path | None, Option(help="Tags of documents: docno, entity_id[, weight, qid].")]
Labels = Annotated[
    list[Path] | None,
    Option(
        help="Labels by a machine, as evidence for measures such as ENDCG: PATH or NAME=PATH (qrels, JSON lines, "
        "Parquet); repeatable."
    ),
]
Model = Annotated[
    Path | None, Option(help="Folder of a saved model for measures such as ENDCG; fitted to the runs by default.")
]
PoolCutoff = Annotated[
    int | None,
    Option(
        help="Rank to which complete judgments judge the runs, for measures such as ENDCG [as judgments show].",
        min=1,
        metavar="N",
    ),
]
Subtopics = Annotated[
    Path | None, Option(help="All subtopics of diversity qrels: a TREC Web topic file (XML), or qid, entity_id.")
]
MeasuresIfAny = Annotated[
    list[str] | None,
    Option("--measure", "-m", autocompletion=completed_measures, help="A measure, such as 'nDCG@10'; repeatable."),
]
Unjudged = Annotated[
    str,
    Option(
        "--measure",
        "-m",
        autocompletion=completed_measures,
        help="A measure over the grades of unjudged documents, such as ENDCG or BNDCG.",
    ),
]
OnTopics = Annotated[
    str,
    Option(
        autocompletion=completed(TOPICS),
        help="Topics to evaluate: same (refuse runs with different topics), all or common.",
    ),
]
Duplicates = Annotated[
    str,
    Option(
        autocompletion=completed(("error", "first", "everywhere")),
        help="Duplicate documents: error (up to the rank that measures need), everywhere (an error at any rank), or "
        "first (keep the best rank).",
    ),
]
System = Annotated[
    str | None,
    Option(
        help="Column that names the system of a row, in files of several [name, system, model, tag, run_id]; none for "
        "files of one."
    ),
]
Baselines = Annotated[
    list[str] | None, Option(help="The run to compare all other runs with; repeated, they are one family of tests.")
]
Baseline = Annotated[list[str] | None, Option(help="The run to compare all other runs with.")]
Test = Annotated[
    str,
    Option(
        autocompletion=completed(TESTS),
        help="Significance test: moderated (t), t, randomisation, wilcoxon or bootstrap.",
    ),
]
Correction = Annotated[
    str,
    Option(
        autocompletion=completed(CORRECTIONS),
        help="Correction for multiple tests: bonferroni, holm, bh, max-t, none; auto is max-t if the test resamples.",
    ),
]
Family = Annotated[
    str,
    Option(
        autocompletion=completed(FAMILIES),
        help="Tests that are corrected together: those of one measure, or of all: measure, all.",
    ),
]
Interval = Annotated[
    str,
    Option(
        autocompletion=completed(INTERVALS),
        help="Interval over topics: unseen, percentile, bca, studentised, poisson, normal or bounded.",
    ),
]
Level = Annotated[float, Option(help="Confidence level of the intervals.")]
LevelOfTests = Annotated[float, Option(help="Level of intervals and tests: p <= 1 - level is significant.")]
Resamples = Annotated[int, Option(help="Number of resamples of the topics.", min=2, metavar="N")]
ResamplesOfTests = Annotated[int, Option(help="Number of resamples for intervals and tests.", min=2, metavar="N")]
Seed = Annotated[int, Option(help="Seed of the resamples.", min=0, metavar="N")]
SeedOfDraws = Annotated[int, Option(help="Seed of the draws.", min=0, metavar="N")]
Memory = Annotated[
    str | None, Option(help="Read runs in chunks of at most this size, such as '1 GiB'; a folder is one run.")
]
Queries = Annotated[Path | None, Option(help="A table of the queries: query, and any of weight, cluster, segment.")]
PerQuery = Annotated[bool, Option("--per-query", help="Show one row per topic.")]
Format = Annotated[
    str,
    Option(
        "--format",
        "-f",
        autocompletion=completed(("table", "csv", "json", "latex", "markdown")),
        help="table (as wide as the terminal), csv or json (all columns), latex or markdown.",
    ),
]
Output = Annotated[
    Path | None,
    Option("--output", "-o", help="Write to this file: .tex, .md, .csv (its caption in a second file), .json or .txt."),
]
Listing = Annotated[Path | None, Option("--output", "-o", help="The TSV file to write; .gz compresses it.")]
Scale = Annotated[str | None, Option(help="The smallest and the largest rating, as 0,3.")]
Html = Annotated[Path | None, Option(help="Also write all tables to this HTML page.")]
VERBOSE = "Report progress; -vv reports details."
Verbose = Annotated[int, Option("--verbose", "-v", count=True, help=VERBOSE, show_default=False)]
MaxBytes = Annotated[
    str | None, Option(help="Maximal size of an input file that is read whole, unpacked, such as '1 GiB' [64 GiB].")
]
Digits = Annotated[int | None, Option(help="Decimals in tables; csv and json have all digits.", min=0, max=15)]
Quiet = Annotated[bool, Option("--quiet", help="Print the verdict alone.")]
Json = Annotated[bool, Option("--json", help="Print the answer as JSON: verdict, caveats, next step and rows.")]
LEVELS = (logging.INFO, logging.DEBUG)
_LONGEST_SUMMARY = 1000
# Options that decide how a result is shown, which its next step does not repeat.
_OF_OUTPUT = ("verbose", "quiet", "as_json", "digits", "style")
# How the answer is shown: empty (with the tables), "quiet" or "json".
_SHOWN: ContextVar[str] = ContextVar("shown", default="")
# The command that runs, and the texts that its answer has already shown.
_COMMAND: ContextVar[Any] = ContextVar("command", default=None)
SAID: ContextVar[set[str] | None] = ContextVar("said", default=None)
# Colours of decisions in terminals.
_COLOURS = {PASS: "32", FAIL: "31", UNKNOWN: "33"}


def scale_of(text: str | None) -> tuple[int, int] | None:
    """Return the smallest and the largest rating of ``--scale``."""
    if text is None:
        return None
    ends = re.fullmatch(r"\s*(-?[0-9]{1,9})\s*,\s*(-?[0-9]{1,9})\s*", text)
    if ends is None:
        raise ParameterError(f"--scale {printable(text)}: wanted the smallest and the largest rating, as 0,3")
    return int(ends[1]), int(ends[2])


def named_paths(flag: str, texts: list[str]) -> dict[str, str]:
    """Return paths by name, from texts such as ``dl19=qrels.txt``."""
    pairs = [text.partition("=") for text in texts]
    for text, (name, _, path) in zip(texts, pairs, strict=True):
        if not name or not path:
            raise ParameterError(f"{flag} {text}: wanted NAME=PATH, as {flag} mine={path or name}")
    named = {name: path for name, _, path in pairs}
    if len(named) < len(texts):
        raise ParameterError(f"{flag}: a name is repeated; found {', '.join(name for name, _, _ in pairs)}")
    return named


def renamed(names: Sequence[str] | None) -> dict[str, str]:
    """Return the names of systems that are shown, by those of their runs, from texts such as ``lexical=BM25``."""
    unnamed = [name for name in names or () if "=" not in name]
    if unnamed:
        raise ParameterError(f"--name {unnamed[0]}: wanted the name of a run and its name on the page, as lexical=BM25")
    return dict(name.split("=", 1) for name in names or ())


def judgments_of(
    qrels: Path | None, negative: str, unit: float = 1.0, measures: Sequence[str] = (), contradictions: str = "error"
) -> Any:
    """Qrels as a path, or as a frame if labels below 0 mean that documents are unjudged, or labels are fractions."""
    from vbterrier.frames.contracts import CONTRADICTIONS, NEGATIVE
    from vbterrier.frames.files.reading import evaluated_qrels
    from vbterrier.measures.text import require_proportional

    choice("--negative", negative, NEGATIVE)
    choice("--contradictions", contradictions, CONTRADICTIONS)
    if qrels is None or (negative == NEGATIVE[0] and unit == 1 and contradictions == CONTRADICTIONS[0]):
        return qrels
    if unit != 1:
        require_proportional(measures)
    return evaluated_qrels(qrels, negative=negative, contradictions=contradictions, unit=unit)


def labels_of(texts: list[Path] | None, flag: str = "--labels") -> list[Path] | dict[str, str] | None:
    """Return paths of labels, by name if one is given as NAME=PATH; a file's name may contain ``=``."""
    from vbterrier.frames.files.source import is_there

    if any("=" in str(path) and not is_there(path) for path in texts or []):
        return named_paths(flag, [str(path) for path in texts or []])
    return texts


def named_files(paths: list[Path], flag: str = "") -> dict[str, str]:
    """Return paths by name: that of NAME=PATH, or the file's; a file's name may contain ``=``."""
    from vbterrier.evaluate.inputs import named_systems
    from vbterrier.frames.files.source import is_there

    is_named = ["=" in str(path) and not is_there(path) for path in paths]
    pairs = [
        next(iter(named_paths(flag.strip() or "NEW", [str(path)]).items())) if named else named_systems([path])[0]
        for path, named in zip(paths, is_named, strict=True)
    ]
    names = [name for name, _ in pairs]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        last = [path for name, path in pairs if name == twice][-1]
        raise ParameterError(f"two files are called {twice!r}; name one, as {flag}mine={last}")
    return {name: str(path) for name, path in pairs}


def only(option: str, values: Sequence[str] | None) -> str | None:
    """Return the value of an option that is given at most once; of repeated options, Click would keep the last."""
    if values and len(values) > 1:
        raise ParameterError(f"{option} is given {len(values)} times; wanted one")
    return values[0] if values else None


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


def _worded(parameters: Sequence[Any]) -> list[Any]:
    """Parameters of Typer whose help names no type of Python, as releases from 0.29 do."""
    for each in parameters:
        if isinstance(each, TyperOption) and each.metavar is None and hasattr(each, "type_descriptor"):
            of = each.type_descriptor.annotation
            each.metavar = "" if each.is_flag or each.count else _KINDS.get(next(iter(get_args(of)), of), "TEXT")
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
        if name is None or getattr(ctx.get_parameter_source(name), "name", "") != "COMMANDLINE" or name in _OF_OUTPUT:
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
    "queries profile": "vbterrier queries profile mentions.tsv",
    "queries power": "vbterrier queries power values.csv --delta .02",
}


def example_of(command: str) -> str:
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
_GROUP_OF = {name: group for group, names in _GROUPS.items() for name in names}


class Command(TyperCommand):
    """A command whose help names no types of Python, with its options in groups."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments, the options of the command itself, and those that others have too, by group."""
        parts: dict[str, list[tuple[str, str]]] = {name: [] for name in ("Arguments", "Options", *_GROUPS)}
        for each in self.get_params(ctx):
            record = each.get_help_record(ctx)
            if record is not None:
                is_argument = each.param_type_name == "argument"
                parts["Arguments" if is_argument else _GROUP_OF.get(each.name, "Options")].append(record)
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
        token = _COMMAND.set(self)
        try:
            with issued() as messages:
                name = f"vbterrier {ctx.command_path.partition(' ')[2]}"
                call = Call(name, _words(ctx, self.params), options, messages)
                with interface(Interface({}, options, call)):
                    return super().invoke(ctx)
        finally:
            _COMMAND.reset(token)

    def get_params(self, ctx: Any) -> list[Any]:  # noqa: D102 - of Typer
        return _worded(super().get_params(ctx))


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

    def get_params(self, ctx: Any) -> list[Any]:  # noqa: D102 - of Typer
        return _worded(super().get_params(ctx))


def shared(function: Callable[..., None], *, answers: bool = False) -> Callable[..., None]:
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
            from vbterrier.frames.files.source import LIMIT
            from vbterrier.report.latex import DIGITS
            from vbterrier.report.tables import WIDTH, terminal_columns

        _require_separate(options)
        show_log(verbose)
        context = copy_context()
        context.run(LIMIT.set, None if max_bytes is None else amount("max_bytes", max_bytes, 1))
        context.run(DIGITS.set, digits)
        if quiet and as_json:
            raise ParameterError("--quiet and --json: wanted one of them")
        context.run(_SHOWN.set, "json" if as_json else "quiet" if quiet else "")
        if options.get("style", "table") == "table":
            context.run(WIDTH.set, terminal_columns())
        context.run(function, *arguments, **options)

    # Typer reads parameters from the signature, and types from the annotations.
    own = inspect.signature(function, eval_str=True)
    added: list[tuple[str, Any, Any]] = [("verbose", 0, Verbose), ("max_bytes", None, MaxBytes)]
    added += [("digits", None, Digits)] * ("style" in own.parameters)
    added += [("quiet", False, Quiet), ("as_json", False, Json)] * answers
    kind = inspect.Parameter.KEYWORD_ONLY
    more = [inspect.Parameter(name, kind, default=value, annotation=of) for name, value, of in added]
    parameters = [*own.parameters.values(), *more]
    command.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return command


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
    """Show log messages of level INFO, or DEBUG if asked for twice, before or after the name of the command."""
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


# Parameters whose options have other names.
_OPTIONS = {"client": "dask", "tau": "shrinkage", "n_judge": "budget", "pool_cutoff": "pool"}
# Except those of a measure, as in BNDCG(seed=1,prior='pool')@10.
_PARAMETER = re.compile(r"(?<![\w(,'\"=-])([a-z][a-z_]*)=(?=(\S?))")
_ENDS = frozenset(".,;:)")
# A settings object with one parameter, as in TagOptions(on_ties='drop') or Data(labels=).
_SETTING = re.compile(r"\b(?:Data|Inference|Execution|EntityPriors|[A-Z]\w*Options)\(([a-z_]+)=([^()=,]*)\)")


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

    def option_of(name: str) -> str | None:
        return next(
            (options[each] for each in (name, _OPTIONS.get(name), name.removeprefix("n_")) if each in options), None
        )

    def worded(match: re.Match[str]) -> str:
        option, after = option_of(match[1]), match[2]
        return match[0] if option is None else f"{option}=" if after and after not in _ENDS else option

    def unwrapped(match: re.Match[str]) -> str:
        option, value = option_of(match[1]), match[2]
        return match[0] if option is None else f"{option}={value}" if value else option

    return _PARAMETER.sub(worded, _SETTING.sub(unwrapped, message))


def require_format(style: str, output: Path | None = None) -> str:
    """Return the output format, which the name of an output file decides."""
    from vbterrier.report.paper import style_of
    from vbterrier.report.tables import FORMATS

    if style not in FORMATS:
        raise ParameterError(f"--format {style}: wanted one of {', '.join(FORMATS)}")
    if output is None:
        return style
    if style not in ("table", style_of(output)):
        raise ParameterError(f"--format {style}: {output} asks for {style_of(output)}; leave one of them out")
    return style_of(output)


def deliver(
    result: Any,
    style: str,
    output: Path | None = None,
    *,
    answer: Answer | None = None,
    evidence: bool = True,
    **options: Any,
) -> None:
    """Print the answer and the table of a result, or write the table to a file.

    ``answer``: that of several results or of a frame; by default the one of the result, if it has one. ``evidence``:
    False if the table has the evidence.
    """
    from vbterrier.report.paper import paper_table, save_table

    if answer is None and hasattr(result, "answer"):
        answer = result.answer()
    if output is not None:
        save_table(result, output, **options)
    if answer is None:
        if output is None:
            echo(paper_table(result, style, **options))
        return
    frame = result.to_frame() if hasattr(result, "to_frame") else None
    if output is None or _SHOWN.get():
        show(
            answer, "" if _SHOWN.get() else paper_table(result, style, **options), style, rows=frame, evidence=evidence
        )


def show(
    answer: Answer, body: str, style: str = "table", *, picture: str = "", rows: Any = None, evidence: bool = True
) -> None:
    """Print an answer around a text, alone, or as JSON; formats other than tables have the text alone.

    ``rows``: the frame that JSON has under this name. ``evidence``: False if the text has the evidence.
    """
    from vbterrier.report.tables import WIDTH, prose, rendered

    if _SHOWN.get() == "json":
        more = {} if rows is None else {"rows": json.loads(rendered(rows, "json"))}
        echo(json.dumps({**answer.record(), **more}, indent=2, ensure_ascii=False), folds=False)
        return
    if _SHOWN.get() != "quiet" and style != "table":
        echo(body)
        return

    def folded(text: str) -> str:
        return prose(in_options(text, _COMMAND.get(), ()) if _COMMAND.get() is not None else text, WIDTH.get())

    head = folded(answer.verdict if _SHOWN.get() else answer.head())
    if answer.decision:
        head = _marked(head, answer.decision)
    if _SHOWN.get():
        echo(head, folds=False)
        return
    # A command that is folded would not run as printed.
    lines = answer.foot(evidence=evidence).split("\n")
    below = "\n".join(line if line.startswith("Next: ") else folded(line) for line in lines)
    parts = [head, picture, prose(body, WIDTH.get()).strip("\n"), below]
    echo("\n\n".join(filter(None, parts)), folds=False)
    call = call_in_use()
    if (said := SAID.get()) is not None and call is not None:
        command = _COMMAND.get()
        said |= {text_key(in_options(printable(text), command, ()) if command else text) for text in call.warnings}


def _marked(text: str, decision: str) -> str:
    """A text with the mark of a decision before it, and the decision in colour on a terminal that has colours."""
    mark = MARKS[decision]
    try:
        mark.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        mark = PLAIN_MARKS[decision]
    if sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb":
        return f"\x1b[1;{_COLOURS[decision]}m{mark} {decision}\x1b[0m{text.removeprefix(decision)}"
    return f"{mark} {text}"


def save_page(result: Any, path: Path | None) -> None:
    """Write the HTML page of a result, if a path is given."""
    from vbterrier.frames.files.writing import replace_files

    if path is not None:
        replace_files({path: result.page()})


def echo(text: str, *, folds: bool = True) -> None:
    """Print the result of a command, its sentences folded to the width of the terminal if it ``folds``."""
    from vbterrier.report.tables import WIDTH, prose

    if isinstance(sys.stdout, io.TextIOWrapper):
        # Characters that the encoding of the terminal lacks are replaced.
        sys.stdout.reconfigure(errors="replace")
    try:
        typer.echo(prose(text, WIDTH.get()) if folds else text)
    except BrokenPipeError:
        # The reader closed the pipe, as `head` does.
        _discard_stdout()
    except OSError as error:
        _discard_stdout()
        raise FileError("standard output", f"cannot be written: {error.strerror or error}") from error


def _discard_stdout() -> None:
    """Discard the rest of the buffer, which Python would flush at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def guardrails_of(given: list[str] | None) -> dict[str, float] | None:
    """Measures and margins of --guardrail MEASURE=MARGIN."""
    if not given:
        return None
    margins: dict[str, float] = {}
    for one in given:
        measure, sign, margin = one.rpartition("=")
        try:
            margins[measure] = float(margin)
        except ValueError:
            sign = ""
        if not sign or not measure:
            raise ParameterError(f"--guardrail {one}: wanted a measure and its margin, as RR@10=.05")
    return margins
