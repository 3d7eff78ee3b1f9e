"""The commands that score and rank runs, judge documents, and audit judges."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

import vbterrier
from vbterrier.cli import options as option
from vbterrier.cli.options import Format, Output, deliver, echo, require_format
from vbterrier.errors import ParameterError, choice, nearest
from vbterrier.frames.notebook import shared_caption

# Rows of each table of an audit on the terminal.
_MOST_ROWS = 20
# The perturbations of replicas by their names on the command line.
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
    save: Annotated[Path | None, typer.Option(help="Also write the files of the demo to this folder.")] = None,
    seed: option.Seed = 0,
) -> None:
    """Show how unjudged documents affect a comparison, on a small collection in the package."""
    from vbterrier.report.system_tables import demo_report

    echo(demo_report(save, seed=seed))


def doctor(runs: option.Runs, qrels: option.Qrels, subtopics: option.Subtopics = None, style: Format = "table") -> None:
    """Describe runs and qrels: contents, unjudged documents, and the measures they support."""
    from vbterrier.evaluate.doctor import diagnose
    from vbterrier.report.system_tables import doctor_report

    require_format(style)
    echo(doctor_report(diagnose(runs, qrels, subtopics=subtopics), style))


def score(
    runs: option.Runs,
    measures: Annotated[list[str], typer.Option("--measure", "-m", help="A measure, such as 'BNDCG@10'; repeatable.")],
    qrels: Annotated[
        Path | None,
        typer.Option("--qrels", "-q", help="TREC qrels; for linking measures: qid, entity_id or NIL."),
    ] = None,
    intents: option.Intents = None,
    tags: option.Tags = None,
    labels: option.Labels = None,
    subtopics: option.Subtopics = None,
    pool: Annotated[
        str, typer.Option(help="With --intents: query (means over queries), or collection (joint intents of all).")
    ] = "query",
    parts: Annotated[
        str, typer.Option(help="Intents with a column parts: documents need all ids, or count in part: all, part.")
    ] = "all",
    replicas: Annotated[
        int, typer.Option(help="With --intents: number of replicas under --perturb.", min=0, metavar="N")
    ] = 0,
    perturb: Annotated[
        list[str] | None, typer.Option(help=f"Perturbation of replicas: {', '.join(PERTURBATIONS)}; repeatable.")
    ] = None,
    per_query: option.PerQuery = False,
    style: Format = "table",
    on_topics: option.OnTopics = "same",
    duplicates: option.Duplicates = "error",
    interval: option.Interval = "percentile",
    level: option.Level = 0.95,
    resamples: option.Resamples = 2000,
    seed: option.Seed = 0,
    memory: Annotated[
        str | None, typer.Option(help="Read runs in chunks of at most this size, such as '1 GiB'; a folder is one run.")
    ] = None,
    resume: Annotated[
        str | None, typer.Option(help="Folder of checkpoints, to resume after an interruption; also reads in chunks.")
    ] = None,
    jobs: Annotated[int, typer.Option(help="Number of processes, one per run; -1: one per processor.")] = 1,
    dask: Annotated[str | None, typer.Option(help="Address of a Dask scheduler, such as tcp://host:8786.")] = None,
    output: Output = None,
) -> None:
    """Score runs with intervals, against qrels, against candidate intents and tags, or both.

    Linking measures, such as LinkingF1, take files with qid and entity_id (or NIL) as runs and as --qrels.
    """
    from vbterrier.evaluate.scores import score as score_runs

    style = require_format(style, output)
    if qrels is None and intents is None:
        raise ParameterError("nothing to score against: wanted --qrels, --intents, or both")
    if perturb and not replicas:
        raise ParameterError("--perturb changes replicas: wanted --replicas too, as --replicas 1000")
    shared: dict[str, Any] = {"interval": interval, "level": level, "n_resamples": resamples, "seed": seed}
    shared["progress"] = sys.stderr.isatty()
    scores: Any
    if subtopics is not None and qrels is None:
        raise ParameterError("--subtopics are those of diversity qrels: wanted --qrels")
    if intents is not None and qrels is None:
        if resume is not None or labels is not None:
            option_name = "--resume" if labels is None else "--labels"
            raise ParameterError(f"{option_name}: wanted --qrels; score against intents alone without it")
        shared |= {"memory": memory, "n_jobs": jobs, "client": dask, "n_replicas": replicas}
        shared |= {"pool": pool, "parts": parts}
        scores = _over_intents(runs, intents, tags, measures, on_topics, duplicates, perturb=perturb or [], **shared)
    else:
        if (pool, parts) != ("query", "all"):
            raise ParameterError(
                "--pool and --parts: wanted --intents without --qrels; evaluate them in a separate call"
            )
        if replicas:
            raise ParameterError(
                "--replicas: wanted --intents without --qrels; score against judgments in a separate call"
            )
        shared |= {
            "labels": labels,
            "subtopics": subtopics,
            "memory": memory,
            "resume": resume,
            "n_jobs": jobs,
            "client": dask,
        }
        scores = score_runs(
            runs, qrels, measures, intents=intents, tags=tags, on_topics=on_topics, duplicates=duplicates, **shared
        )
    deliver(scores, style, output, topics=per_query)


def rank(
    runs: option.Runs,
    qrels: option.Qrels,
    measure: option.Bootstrapped = "BNDCG@10",
    over: Annotated[
        str, typer.Option(help="Source of uncertainty: unjudged (documents), topics or both.")
    ] = "unjudged",
    draws: Annotated[int, typer.Option(help="Number of draws of all scores.", min=1, metavar="N")] = 2000,
    level: option.Level = 0.9,
    pairs: Annotated[bool, typer.Option("--pairs", help="Show one row per pair of runs.")] = False,
    baseline: Annotated[list[str] | None, typer.Option(help="With --pairs: show the pairs of this run only.")] = None,
    labels: option.Labels = None,
    style: Format = "table",
    on_topics: option.OnTopics = "same",
    duplicates: option.Duplicates = "error",
    seed: option.SeedOfDraws = 0,
    output: Output = None,
) -> None:
    """Rank runs with uncertain scores: expected ranks, and the probability that a run beats another."""
    from vbterrier.evaluate.ranking import rank_systems

    style = require_format(style, output)
    if baseline and not pairs:
        raise ParameterError("--baseline selects pairs: wanted --pairs too")
    found = rank_systems(
        runs,
        qrels,
        measure,
        uncertainty=over,
        n_draws=draws,
        level=level,
        seed=seed,
        baseline=option.only("--baseline", baseline),
        labels=labels,
        on_topics=on_topics,
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
    """Evaluate without qrels."""
    from vbterrier.evaluate.inputs import intents_and_tags, named_runs
    from vbterrier.evaluate.intents import evaluate_intents
    from vbterrier.frames.contracts import systems_of
    from vbterrier.frames.named import named

    changes = [perturbation_of(text) for text in perturb]
    if changes:
        options["perturb"] = changes
    found, given = intents_and_tags(intents, tags)
    frame = named("intents", found)
    topics = frame[["qid"]].drop_duplicates().assign(query="")
    options |= {"on_topics": on_topics, "duplicates": duplicates}
    systems = dict(systems_of(named_runs(runs)))
    return evaluate_intents(systems, topics, intents=frame, tagger=given, measures=measures, **options)


def perturbation_of(text: str) -> Any:
    """Return a perturbation from ``name`` or ``name=value``.

    Raises
    ------
    ParameterError
        An unknown perturbation, or an invalid value.
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
        raise ParameterError(f"--perturb {text}: wanted a value after =, or {name} alone")
    try:
        return made(float(value))
    except ValueError as error:
        if isinstance(error, ParameterError):
            raise
        return made(value)
    except TypeError as error:
        raise ParameterError(f"--perturb {text}: {name} takes no value") from error


Out = Annotated[
    Path | None, typer.Option("--output", "-o", help="The TSV file to write; .gz compresses it.", show_default=False)
]


def judge(
    runs: option.Runs,
    qrels: option.Qrels,
    budget: Annotated[int, typer.Option("--budget", "-n", help="Number of documents to judge.", min=1, metavar="N")],
    measure: option.Bootstrapped = "BNDCG@10",
    difference: Annotated[
        str | None, typer.Option(help="Two runs, as A,B: reduce the interval of their difference.")
    ] = None,
    labels: option.Labels = None,
    output: Out = None,
    level: Annotated[float, typer.Option(help="Confidence level of the interval.")] = 0.9,
    look: Annotated[
        int | None,
        typer.Option(
            help="Number of this inspection, from 1: the intervals of all looks together have the level.", min=1
        ),
    ] = None,
    on_topics: option.OnTopics = "same",
    duplicates: option.Duplicates = "error",
    style: Format = "table",
) -> None:
    """List the unjudged documents whose judgments reduce the interval of the mean most."""
    from vbterrier.evaluate.judging import judge_next
    from vbterrier.report import tables
    from vbterrier.unjudged.judge_next import write_judging

    require_format(style)
    pair = [] if difference is None else difference.split(",")
    if difference is not None and (len(pair) != 2 or not all(pair)):  # noqa: PLR2004 - a pair
        raise ParameterError(f"--difference {difference}: wanted the names of two runs, as A,B")
    plan = judge_next(
        runs,
        qrels,
        budget,
        measure,
        difference=(pair[0], pair[1]) if pair else None,
        level=level,
        look=look,
        labels=labels,
        on_topics=on_topics,
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


def audit(
    runs: option.Runs,
    qrels: option.Qrels,
    judge: Annotated[
        list[Path],
        typer.Option(
            "--judge",
            "-j",
            help="Labels by a machine (qrels, JSON lines, CSV, Parquet); repeatable.",
            show_default=False,
        ),
    ],
    family: Annotated[
        list[str] | None, typer.Option(help="Family of runs, as run1,run2=NAME; repeatable.", show_default=False)
    ] = None,
    documents: Annotated[
        Path | None, typer.Option(help="Texts of documents (docno, text), for bias by length.")
    ] = None,
    baseline: option.Baseline = None,
    cutoff: Annotated[int, typer.Option(help="The cutoff k of nDCG@k.", min=1, metavar="N")] = 10,
    margin: Annotated[float, typer.Option(help="Half the width of the interval to reach.")] = 0.02,
    budget: Annotated[int, typer.Option(help="Most human judgments to plan.", min=1, metavar="N")] = 1000,
    show: Annotated[
        str | None,
        typer.Option(
            help="One table: systems, pairs, quality, kappa, bias, calibration, agreement, mixed, needed or plan; "
            "without it, all of them, or systems with csv and json.",
            show_default=False,
        ),
    ] = None,
    level: Annotated[float, typer.Option(help="Confidence level of the intervals.")] = 0.9,
    topics: option.OnTopics = "same",
    duplicates: option.Duplicates = "error",
    seed: option.SeedOfDraws = 0,
    style: Format = "table",
    output: Output = None,
) -> None:
    """Audit machines as judges: nDCG by judge, humans and both, bias by family, and the human labels needed."""
    style = require_format(style, output)
    pairs = [text.rpartition("=") for text in family or []]
    for names, _, name in pairs:
        if not (names and name):
            raise ParameterError(f"--family {name}: wanted runs and their family, as run1,run2=NAME")
    found = vbterrier.evaluate.audit_judge(
        runs,
        qrels,
        judge,
        cutoff=cutoff,
        margin=margin,
        budget=budget,
        baseline=baseline,
        families={run: name for names, _, name in pairs for run in names.split(",")},
        documents=None if documents is None else vbterrier.read_documents(documents),
        level=level,
        seed=seed,
        on_topics=topics,
        duplicates=duplicates,
    )
    tables = found.tables()
    wanted = show or ("systems" if output is not None or style in ("csv", "json") else "")
    if wanted:
        choice("show", wanted, tuple(tables))
        deliver(tables[wanted], style, output, caption=[repr(found)], label=f"tab:{wanted}")
        return
    for name, table in tables.items():
        if len(table):
            shared, rest = shared_caption(table)
            deliver(
                rest.head(_MOST_ROWS), style, caption=[f"{name}: {shared}" if shared else name], label=f"tab:{name}"
            )
    echo(repr(found))


def agreement(
    labels: Annotated[
        list[Path], typer.Argument(help="Labels by two or more judges: qrels, JSON lines, CSV.", show_default=False)
    ],
    weights: Annotated[str | None, typer.Option(help="Weights of Cohen's kappa: linear or quadratic.")] = None,
    level: option.Level = 0.95,
    resamples: option.Resamples = 2000,
    seed: option.Seed = 0,
    style: Format = "table",
    output: Output = None,
) -> None:
    """Agreement of judges on the documents that all of them labelled: Cohen's and Fleiss' kappa."""
    from vbterrier.unjudged.labels import MachineLabels

    style = require_format(style, output)
    every = MachineLabels(labels)
    wide = every.frame().pivot(index=["qid", "docno"], columns="name", values="grade")[every.names].dropna()
    found = vbterrier.stats.judge_agreement(wide, weights=weights, level=level, n_resamples=resamples, seed=seed)
    deliver(found, style, output, caption=["Agreement of judges beyond chance."], label="tab:agreement")


def powered(
    predicted: Annotated[Path, typer.Argument(help="Scores of all queries: name, qid, measure, value.")],
    labelled: Annotated[Path, typer.Argument(help="Labels of a random sample of them: name, qid, measure, value.")],
    predicts: Annotated[
        list[str] | None, typer.Option(help="The labels that a score predicts, as ES@5=success; repeatable.")
    ] = None,
    baseline: option.Baseline = None,
    target: Annotated[
        str, typer.Option(help="Mean to estimate: of the population, or of these queries.")
    ] = "population",
    weight: Annotated[float | None, typer.Option(help="Weight of the score; tuned by default.")] = None,
    level: option.Level = 0.95,
    style: Format = "table",
    output: Output = None,
) -> None:
    """Prediction-powered means: labels of a few queries combined with a score of all queries."""
    from vbterrier.frames.files.reading import read_values

    style = require_format(style, output)
    pairs = [text.partition("=") for text in predicts or []]
    if any(not name for _, _, name in pairs):
        raise ParameterError(f"--predicts {pairs[0][0]}: wanted a score and its label, as ES@5=success")
    found = vbterrier.stats.prediction_powered(
        read_values(predicted),
        read_values(labelled),
        predicts={score: name for score, _, name in pairs} or None,
        baseline=baseline,
        target=target,
        lam=weight,
        level=level,
    )
    deliver(found, style, output, caption=["Prediction-powered means."], label="tab:powered")


COMMANDS = (demo, doctor, score, rank, judge, audit, agreement, powered)
