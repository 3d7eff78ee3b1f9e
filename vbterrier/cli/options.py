"""Options, output formats and verbosity shared by the commands."""

from __future__ import annotations

import inspect
import io
import logging
import os
import re
import sys
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vbterrier.errors import FileError, ParameterError
from vbterrier.log import NAME

if TYPE_CHECKING:
    from collections.abc import Sequence


Runs = Annotated[list[Path], typer.Argument(help="TREC runs; .gz and Parquet too.", show_default=False)]
Qrels = Annotated[Path, typer.Option("--qrels", "-q", help="TREC qrels, adhoc or diversity.", show_default=False)]
QrelsIfAny = Annotated[Path | None, typer.Option("--qrels", "-q", help="TREC qrels, adhoc or diversity.")]
Intents = Annotated[Path | None, typer.Option(help="Candidate intents: qid, entity_id, prob.")]
Tags = Annotated[Path | None, typer.Option(help="Tags of documents: docno, entity_id[, weight, qid].")]
MeasuresIfAny = Annotated[list[str] | None, typer.Option("--measure", "-m", help="As 'nDCG@10'; may be given again.")]
Bootstrapped = Annotated[str, typer.Option("--measure", "-m", help="A bootstrapped one.")]
OnTopics = Annotated[str, typer.Option(help="same (refuse runs whose topics differ), all, or common.")]
Duplicates = Annotated[str, typer.Option(help="error, or first: keep a repeated document's best rank.")]
Baseline = Annotated[str | None, typer.Option(help="The run that all others are compared with.")]
Test = Annotated[str, typer.Option(help="randomisation, t, wilcoxon or bootstrap.")]
Correction = Annotated[
    str, typer.Option(help="Over pairs: holm, bh, max-t or none; auto: holm, or max-t where pairs are many.")
]
Interval = Annotated[str, typer.Option(help="Over topics: percentile, bca, studentised, poisson or normal.")]
Level = Annotated[float, typer.Option(help="Level of the intervals.")]
LevelOfTests = Annotated[float, typer.Option(help="Of intervals and tests: significant is p up to 1 - level.")]
Resamples = Annotated[int, typer.Option(help="Resamples of the topics.", min=2)]
ResamplesOfTests = Annotated[int, typer.Option(help="Resamples of the topics and of the test.", min=2)]
Seed = Annotated[int, typer.Option(help="Decides the resamples of topics.", min=0)]
SeedOfTests = Annotated[int, typer.Option(help="Decides the resamples.", min=0)]
SeedOfDraws = Annotated[int, typer.Option(help="Decides the draws.", min=0)]
PerQuery = Annotated[bool, typer.Option("--per-query", help="A row for each topic.")]


if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    ToStream = logging.StreamHandler[Any]
else:
    # Python 3.10 knows no types of streams.
    ToStream = logging.StreamHandler

SAID = "Say what is being done; twice: in detail."
Verbose = Annotated[int, typer.Option("--verbose", "-v", count=True, help=SAID)]
LEVELS = (logging.INFO, logging.DEBUG)


class _Lines(ToStream):
    """Lines on standard error that leave bars of progress whole."""

    def emit(self, record: logging.LogRecord) -> None:
        if "tqdm" in sys.modules:
            from tqdm import tqdm

            with tqdm.external_write_mode(file=self.stream):
                super().emit(record)
        else:
            super().emit(record)


def verbose(function: Callable[..., None]) -> Callable[..., None]:
    """A command with ``--verbose``."""

    @wraps(function)
    def command(*arguments: Any, verbose: int = 0, **options: Any) -> None:
        listen(verbose)
        function(*arguments, **options)

    # Typer reads the parameters off the signature, and types off the annotations.
    own = inspect.signature(function, eval_str=True)
    option = inspect.Parameter("verbose", inspect.Parameter.KEYWORD_ONLY, default=0, annotation=Verbose)
    parameters = [*own.parameters.values(), option]
    command.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return command


def listen(times: int) -> None:
    """Show messages from INFO on, asked for twice from DEBUG; what stands before and behind a command counts alike."""
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
def quiet_again() -> Iterator[None]:
    """What a command listens with goes with it: whoever calls it from Python has handlers of his own."""
    log = logging.getLogger(NAME)
    before = log.level
    try:
        yield
    finally:
        log.setLevel(before)
        for handler in [one for one in log.handlers if isinstance(one, _Lines)]:
            log.removeHandler(handler)


# Parameters whose options have other names.
_OPTIONS = {"client": ("dask",), "on_topics": ("topics",), "uncertainty": ("over",), "cutoff": ("k", "top")}
# Not those of a measure, as in BNDCG(seed=1,prior='pool')@10.
_PARAMETER = re.compile(r"(?<![\w(,'\"=-])([a-z][a-z_]*)=(?=(\S?))")
_ENDS = frozenset(".,;:)")


def in_options(message: str, command: Any, arguments: Sequence[str]) -> str:
    """A message whose parameters are named as the options of the command that was called.

    Parameters
    ----------
    message
        What the library says.
    command
        Click's command, or the group of those that may have been called.
    arguments
        What stood behind its name.
    """
    words = iter(arguments)
    while hasattr(command, "commands"):
        known = command.commands
        called = next((word for word in words if word in known), None)
        if called is None:
            return message
        command = known[called]
    options = {each.name: each.opts[0] for each in command.params if each.opts[0].startswith("-")}

    def worded(found: re.Match[str]) -> str:
        name, after = found[1], found[2]
        names = (name, *_OPTIONS.get(name, ()), name.removeprefix("n_"))
        option = next((options[each] for each in names if each in options), None)
        if option is None:
            return found[0]
        return f"{option}=" if after and after not in _ENDS else option

    return _PARAMETER.sub(worded, message)


Format = Annotated[str, typer.Option("--format", "-f", help="table, csv, json, latex or markdown.")]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        help="A file in place of the screen: .tex, .md, .csv (its caption in a file beside it), .json or .txt.",
        show_default=False,
    ),
]


def require_format(style: str, output: Path | None = None) -> str:
    """The format to write, before any work: that of a file is what its name says.

    Raises
    ------
    ParameterError
        No such format, or two of them.
    """
    from vbterrier.report.paper import style_of
    from vbterrier.report.tables import FORMATS

    if style not in FORMATS:
        raise ParameterError(f"--format {style}: wanted one of {', '.join(FORMATS)}")
    if output is None:
        return style
    if style not in ("table", style_of(output)):
        raise ParameterError(f"--format {style}: {output} asks for {style_of(output)}; leave one of them out")
    return style_of(output)


def deliver(found: Any, style: str, output: Path | None = None, **options: Any) -> None:
    """Print a table, or write it to a file in the format that its name says."""
    from vbterrier.report.paper import paper_table, save_table

    if output is None:
        echo(paper_table(found, style, **options))
    else:
        save_table(found, output, **options)


def echo(text: str) -> None:
    """Print what a command found."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Rules and ids that the terminal's encoding does not have are no reason to fail.
        sys.stdout.reconfigure(errors="replace")
    try:
        typer.echo(text)
    except BrokenPipeError:
        # The reader went away, as `head` does; nothing is left to flush to.
        _leave_stdout()
    except OSError as error:
        _leave_stdout()
        raise FileError("standard output", f"cannot be written: {error.strerror or error}") from error


def _leave_stdout() -> None:
    """Let what is left in its buffer go nowhere when Python ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
