"""The commands ``doctor``, ``demo``, ``score``, ``rank``, ``intents`` and ``judge``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

import vbterrier
from vbterrier.cli import options as option
from vbterrier.cli.options import Format, Output, deliver, echo, require_format
from vbterrier.errors import ParameterError, nearest

# What replicas may change, and the class behind each name.
PERTURBATIONS = {
    "dirichlet": "Dirichlet",
    "temperature": "TemperatureJitter",
    "noise": "ScoreNoise",
    "drop-constraints": "DropConstraints",
    "drop-candidates": "DropCandidates",
    "intents": "IntentBootstrap",
    "confusion": "TagConfusion",
    "tag-dropout": "TagDropout",
}


def demo(
    save: Annotated[Path | None, typer.Option(help="Also write the demo's files to this folder.")] = None,
    seed: option.Seed = 0,
) -> None:
    """Show what unjudged documents do to a comparison, on a small collection that comes with the package."""
    from vbterrier.report.doctor import demo_report

    echo(demo_report(save, seed=seed))


def doctor(runs: option.Runs, qrels: option.Qrels, style: Format = "table") -> None:
    """Say what the files hold, what is unjudged, and which measures they support."""
    from vbterrier.evaluate.doctor import diagnose
    from vbterrier.evaluate.inputs import named_runs
    from vbterrier.frames.contracts import systems_of
    from vbterrier.report.doctor import doctor_report

    require_format(style)
    loaded = {name: vbterrier.read_run(path) for name, path in systems_of(named_runs(runs))}
    echo(doctor_report(diagnose(loaded, vbterrier.read_qrels(qrels)), style))


def score(
    runs: option.Runs,
    measures: Annotated[list[str], typer.Option("--measure", "-m", help="As 'BNDCG@10'; may be given again.")],
    qrels: Annotated[
        Path | None,
        typer.Option("--qrels", "-q", help="TREC qrels; for LinkingF1 and its parts: qid, entity_id or NIL."),
    ] = None,
    intents: option.Intents = None,
    tags: option.Tags = None,
    replicas: Annotated[int, typer.Option(help="With --intents: replicas under --perturb.", min=0)] = 0,
    perturb: Annotated[list[str] | None, typer.Option(help=f"{', '.join(PERTURBATIONS)}; may be given again.")] = None,
    per_query: option.PerQuery = False,
    style: Format = "table",
    topics: option.OnTopics = "same",
    duplicates: option.Duplicates = "error",
    interval: option.Interval = "percentile",
    level: option.Level = 0.95,
    resamples: option.Resamples = 2000,
    seed: option.Seed = 0,
    memory: Annotated[
        str | None, typer.Option(help="Read runs in chunks of at most this, as '1 GiB'; a folder is then one run.")
    ] = None,
    resume: Annotated[
        Path | None, typer.Option(help="Folder to go on from after an interruption; reads in chunks, too.")
    ] = None,
    jobs: Annotated[int, typer.Option(help="Processes, a run each; -1: as many as processors.")] = 1,
    dask: Annotated[str | None, typer.Option(help="Scheduler whose workers score, as tcp://host:8786.")] = None,
    output: Output = None,
) -> None:
    """Score runs, with intervals: against judgments, against candidate intents and tags, or both.

    Entity linkers too: -m LinkingF1 takes files of answers (qid, entity_id or NIL) as runs and as --qrels.
    """
    from vbterrier.evaluate.scores import score as score_runs

    style = require_format(style, output)
    if qrels is None and intents is None:
        raise ParameterError("nothing to score against: wanted --qrels, --intents, or both")
    if perturb and not replicas:
        raise ParameterError("--perturb says what replicas change: wanted --replicas too, as --replicas 1000")
    shared: dict[str, Any] = {"interval": interval, "level": level, "n_resamples": resamples, "seed": seed}
    shared["progress"] = sys.stderr.isatty()
    scores: Any
    if intents is not None and qrels is None:
        if memory is not None or resume is not None or jobs != 1 or dask is not None:
            raise ParameterError(
                "--memory, --resume, --jobs and --dask: wanted --qrels; score against intents alone without them"
            )
        scores = _over_intents(
            runs, intents, tags, measures, topics, duplicates, n_replicas=replicas, perturb=perturb or [], **shared
        )
    else:
        if replicas:
            raise ParameterError(
                "--replicas: wanted --intents without --qrels; score against judgments in its own call"
            )
        shared |= {"memory": memory, "resume": resume, "n_jobs": jobs, "client": dask}
        scores = score_runs(
            runs, qrels, measures, intents=intents, tags=tags, on_topics=topics, duplicates=duplicates, **shared
        )
    deliver(scores, style, output, topics=per_query)


def rank(
    runs: option.Runs,
    qrels: option.Qrels,
    measure: option.Bootstrapped = "BNDCG@10",
    over: Annotated[str, typer.Option(help="What is uncertain: unjudged (documents), topics, or both.")] = "unjudged",
    draws: Annotated[int, typer.Option(help="Draws of all scores.", min=1)] = 2000,
    level: option.Level = 0.9,
    pairs: Annotated[bool, typer.Option("--pairs", help="A row for each two systems.")] = False,
    baseline: Annotated[str | None, typer.Option(help="With --pairs: the run that all others are paired with.")] = None,
    style: Format = "table",
    topics: option.OnTopics = "same",
    duplicates: option.Duplicates = "error",
    seed: option.SeedOfDraws = 0,
    output: Output = None,
) -> None:
    """Rank runs whose scores are uncertain: expected ranks with intervals, and who is likely to beat whom."""
    from vbterrier.evaluate.ranking import rank_systems

    style = require_format(style, output)
    if baseline is not None and not pairs:
        raise ParameterError("--baseline says what runs are paired with: wanted --pairs too")
    found = rank_systems(
        runs,
        qrels,
        measure,
        uncertainty=over,
        n_draws=draws,
        level=level,
        seed=seed,
        baseline=baseline,
        on_topics=topics,
        duplicates=duplicates,
        progress=sys.stderr.isatty(),
    )
    deliver(found, style, output, pairs=pairs)


def _over_intents(
    runs: list[Path],
    intents: Path,
    tags: Path | None,
    measures: list[str],
    on_topics: str,
    duplicates: str,
    *,
    perturb: list[str],
    **options: Any,
) -> Any:
    """Evaluate against intents alone."""
    from vbterrier.evaluate.inputs import named_runs
    from vbterrier.evaluate.intents import evaluate_intents
    from vbterrier.frames.contracts import systems_of
    from vbterrier.frames.runs import loaded_run

    changes = [perturbation_of(text) for text in perturb]
    if changes:
        options["perturb"] = changes
    frame = vbterrier.read_intents(intents)
    topics = frame[["qid"]].drop_duplicates().assign(query="")
    loaded = {name: loaded_run(name, path, duplicates).frame for name, path in systems_of(named_runs(runs))}
    return evaluate_intents(
        loaded, topics, intents=frame, tagger=tags, measures=measures, on_topics=on_topics, **options
    )


def perturbation_of(text: str) -> Any:
    """A perturbation from ``name`` or ``name=value``.

    Raises
    ------
    ParameterError
        No such perturbation, or a value that it does not take.
    """
    name, given, value = text.partition("=")
    if name not in PERTURBATIONS:
        wanted = ", ".join(PERTURBATIONS)
        raise ParameterError(
            f"--perturb {text}: wanted one of {wanted}, as dirichlet=20.{nearest(name, PERTURBATIONS)}"
        )
    made = getattr(vbterrier.stats, PERTURBATIONS[name])
    if not given:
        return made()
    if not value:
        raise ParameterError(f"--perturb {text}: wanted a value behind =, or {name} alone")
    try:
        return made(float(value))
    except ValueError as error:
        if isinstance(error, ParameterError):
            raise
        return made(value)
    except TypeError as error:
        raise ParameterError(f"--perturb {text}: {name} takes no value") from error


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
    from vbterrier.report import tables
    from vbterrier.unjudged.judge_next import write_judging

    require_format(style)
    plan = judge_next(
        runs,
        qrels,
        budget,
        measure,
        difference=None if difference is None else _pair(difference),
        level=level,
        on_topics=topics,
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


COMMANDS = (demo, doctor, score, rank, judge)
