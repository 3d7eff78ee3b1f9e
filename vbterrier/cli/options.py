"""Options of the commands, and what their values mean."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from vbterrier.errors import ParameterError, choice, printable
from vbterrier.settings import CORRECTIONS, FAMILIES, INTERVALS, TESTS, TOPICS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


RUNS = "Runs: TREC, MS MARCO, CSV, TSV, JSON lines, Parquet or xlsx; text also .gz, .bz2, .xz or .zst."
_QRELS = "Qrels, adhoc or diversity: TREC, CSV, TSV, JSON lines, Parquet, or irds:ID."
Runs = Annotated[list[Path], Argument(help=RUNS)]
Qrels = Annotated[Path, Option("--qrels", "-q", help=_QRELS)]
QrelsIfAny = Annotated[Path | None, Option("--qrels", "-q", help=_QRELS)]


def value_completer(legal: Iterable[str]) -> Callable[[str], list[str]]:
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
        autocompletion=value_completer(("nonrelevant", "unjudged")),
        help="Meaning of labels below 0 in --qrels: nonrelevant, or unjudged (dropped).",
    ),
]
Contradictions = Annotated[
    str,
    Option(
        autocompletion=value_completer(("error", "first", "last", "max")),
        help="Documents with several labels in --qrels: error (refuse them), or their first, last or max label.",
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
    Path | None,
    Option(help="Saved model for measures such as ENDCG; fitted to the runs by default.", metavar="FOLDER"),
]
PoolCutoff = Annotated[
    int | None,
    Option(
        help="Depth of the judgments that measures such as ENDCG estimate: a rank [estimated from the judgments].",
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
        autocompletion=value_completer(TOPICS),
        help="Topics to evaluate: same (refuse runs with different topics), all (missing topics score 0) or common.",
    ),
]
Duplicates = Annotated[
    str,
    Option(
        autocompletion=value_completer(("error", "first", "everywhere")),
        help="Duplicate documents of a topic: error (refused up to the rank that measures need), everywhere (refused "
        "at any rank), or first (keep the best rank).",
    ),
]
System = Annotated[
    str | None,
    Option(
        help="Column that names the system of a row, in files of several systems [name, system, model, tag or run_id]; "
        "none: the file has one system."
    ),
]
Baselines = Annotated[
    list[str] | None,
    Option(help="Name of the run to compare all other runs with; repeatable, with all tests in one family."),
]
Baseline = Annotated[list[str] | None, Option(help="Name of the run to compare all other runs with.")]
Test = Annotated[
    str,
    Option(
        autocompletion=value_completer(TESTS),
        help="Significance test: moderated (t), t, randomisation, wilcoxon or bootstrap.",
    ),
]
Correction = Annotated[
    str,
    Option(
        autocompletion=value_completer(CORRECTIONS),
        help="Correction for multiple tests: bonferroni, holm, bh, max-t, none; auto is max-t if the test resamples.",
    ),
]
Family = Annotated[
    str,
    Option(
        autocompletion=value_completer(FAMILIES),
        help="Tests that are corrected together: measure (those of one measure) or all (those of all measures).",
    ),
]
Interval = Annotated[
    str,
    Option(
        autocompletion=value_completer(INTERVALS),
        help="Intervals of means over topics: unseen, percentile, bca, studentised, poisson, normal or bounded.",
    ),
]
Level = Annotated[float, Option(help="Confidence level of the intervals.")]
LevelOfTests = Annotated[float, Option(help="Confidence level of intervals; p <= 1 - level is significant.")]
Resamples = Annotated[int, Option(help="Number of resamples of the topics.", min=2, metavar="N")]
ResamplesOfTests = Annotated[int, Option(help="Number of resamples for intervals and tests.", min=2, metavar="N")]
Seed = Annotated[int, Option(help="Seed of the resamples.", min=0, metavar="N")]
SeedOfDraws = Annotated[int, Option(help="Seed of the draws.", min=0, metavar="N")]
Memory = Annotated[
    str | None, Option(help="Read runs in chunks of at most this size, such as '1 GiB'; a folder of files is one run.")
]
Queries = Annotated[Path | None, Option(help="Table of the queries: query, and any of weight, cluster, segment.")]
PerQuery = Annotated[bool, Option("--per-query", help="Show one row per topic.")]
Format = Annotated[
    str,
    Option(
        "--format",
        "-f",
        autocompletion=value_completer(("table", "csv", "json", "latex", "markdown")),
        help="table (as wide as the terminal), csv or json (all columns), latex or markdown.",
    ),
]
Output = Annotated[
    Path | None,
    Option("--output", "-o", help="Write to this file: .tex, .md, .csv (its caption in a second file), .json or .txt."),
]
Listing = Annotated[Path | None, Option("--output", "-o", help="The TSV file to write; .gz compresses it.")]
Scale = Annotated[str | None, Option(help="Smallest and largest possible rating, as 0,3.")]
Html = Annotated[Path | None, Option(help="Also write all tables to this HTML page.")]
VERBOSE = "Report progress; -vv reports details."
Verbose = Annotated[int, Option("--verbose", "-v", count=True, help=VERBOSE, show_default=False)]
MaxBytes = Annotated[
    str | None, Option(help="Largest size, unpacked, of an input file that is read whole, such as '1 GiB' [64 GiB].")
]
Digits = Annotated[int | None, Option(help="Decimals in tables; csv and json have all digits.", min=0, max=15)]
Quiet = Annotated[bool, Option("--quiet", help="Print the verdict alone.")]
Json = Annotated[bool, Option("--json", help="Print the answer as JSON: verdict, caveats, next step and rows.")]


def parse_scale(text: str | None) -> tuple[int, int] | None:
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


def shown_names(names: Sequence[str] | None) -> dict[str, str]:
    """Return the names of systems that are shown, by those of their runs, from texts such as ``lexical=BM25``."""
    unnamed = [name for name in names or () if "=" not in name]
    if unnamed:
        raise ParameterError(f"--name {unnamed[0]}: wanted the name of a run and its name on the page, as lexical=BM25")
    return dict(name.split("=", 1) for name in names or ())


def qrels_input(
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


def label_paths(texts: list[Path] | None, flag: str = "--labels") -> list[Path] | dict[str, str] | None:
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


def parse_guardrails(values: list[str] | None) -> dict[str, float] | None:
    """Measures and margins of --guardrail MEASURE=MARGIN."""
    if not values:
        return None
    margins: dict[str, float] = {}
    for one in values:
        measure, sign, margin = one.rpartition("=")
        try:
            margins[measure] = float(margin)
        except ValueError:
            sign = ""
        if not sign or not measure:
            raise ParameterError(f"--guardrail {one}: wanted a measure and its margin, as RR@10=.05")
    return margins
