"""The commands ``demo``, ``doctor``, ``score``, ``rank`` and ``track``."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from typer import Option

import vbterrier
from vbterrier.cli import options as option
from vbterrier.cli.options import Format, Output
from vbterrier.cli.output import deliver, require_format, save_page, show, show_report
from vbterrier.errors import ParameterError, nearest
from vbterrier.settings import Data, Execution, Inference

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
    save: Annotated[
        Path | None, Option(help="Also write the files of the demo to this folder.", metavar="FOLDER")
    ] = None,
) -> None:
    """Show how unjudged documents affect a comparison, on a small collection in the package."""
    from vbterrier.report.system_tables import demo_report
    from vbterrier.report.tables import WIDTH

    answer, picture, text = demo_report(save)
    show(answer, text, picture=picture.text(WIDTH.get()))


def doctor(
    runs: option.Runs,
    qrels: option.Qrels,
    subtopics: option.Subtopics = None,
    intents: option.Intents = None,
    tags: option.Tags = None,
    system: option.System = None,
    unit: option.Unit = 1.0,
    html: option.Html = None,
    style: Format = "table",
) -> None:
    """Describe runs, qrels and intents: contents, unjudged documents, and the measures they support."""
    from vbterrier.evaluate.doctor import diagnose
    from vbterrier.report.system_tables import doctor_report

    require_format(style)
    diagnosis = diagnose(runs, qrels, subtopics=subtopics, intents=intents, tags=tags, system=system, unit=unit)
    save_page(diagnosis, html)
    show_report(diagnosis.answer(), doctor_report(diagnosis, style), style, rows=diagnosis.runs)


def score(
    runs: option.Runs,
    measures: Annotated[
        list[str] | None,
        Option(
            "--measure",
            "-m",
            autocompletion=option.completed_measures,
            help="A measure, such as 'nDCG@10' [ENDCG@10, nDCG@10 and Unjudged@10; with --intents, ES, VB and "
            "TopIntent at 1, 3, 5 and 10]; repeatable.",
        ),
    ] = None,
    qrels: Annotated[
        Path | None, Option("--qrels", "-q", help="TREC qrels; for linking measures: qid, entity_id or NIL.")
    ] = None,
    negative: option.Negative = "nonrelevant",
    contradictions: option.Contradictions = "error",
    unit: option.Unit = 1.0,
    intents: option.Intents = None,
    tags: option.Tags = None,
    labels: option.Labels = None,
    model: option.Model = None,
    pool_cutoff: option.PoolCutoff = None,
    subtopics: option.Subtopics = None,
    pool: Annotated[
        str,
        Option(
            autocompletion=option.value_completer(("query", "collection")),
            help="With --intents: query (means over queries), or collection (joint intents of all).",
        ),
    ] = "query",
    parts: Annotated[
        str | None,
        Option(
            help="Intents with a column parts: one document with all ids (all, the default) or a share of them (part), "
            "or the documents up to the cutoff: each id for itself (split), all of them together (together).",
        ),
    ] = None,
    replicas: Annotated[
        int, Option(help="With --intents: number of replicas under --perturb.", min=0, metavar="N")
    ] = 0,
    perturb: Annotated[
        list[str] | None,
        Option(
            autocompletion=option.value_completer(PERTURBATIONS),
            help=f"Perturbation of replicas: {', '.join(PERTURBATIONS)}; repeatable.",
        ),
    ] = None,
    queries: option.Queries = None,
    per_query: option.PerQuery = False,
    style: Format = "table",
    on_topics: option.OnTopics = "same",
    duplicates: option.Duplicates = "error",
    system: option.System = None,
    interval: option.Interval = "unseen",
    level: option.Level = 0.95,
    resamples: option.Resamples = 2000,
    seed: option.Seed = 0,
    memory: option.Memory = None,
    resume: Annotated[
        str | None, Option(help="Folder of checkpoints, to resume after an interruption; also reads in chunks.")
    ] = None,
    jobs: Annotated[int, Option(help="Number of processes, one per run; -1: one per processor.")] = 1,
    dask: Annotated[str | None, Option(help="Address of a Dask scheduler, such as tcp://host:8786.")] = None,
    output: Output = None,
) -> None:
    """Score runs with intervals, against qrels, against candidate intents and tags, or both.

    Linking measures, such as LinkingF1, take files with qid and entity_id (or NIL) as runs and as --qrels.
    """
    from vbterrier.evaluate.inputs import intents_and_tags, named_systems
    from vbterrier.evaluate.intents import MEASURES, IntentOptions, evaluate_intents
    from vbterrier.evaluate.scores import score as score_runs
    from vbterrier.frames.contracts import system_items
    from vbterrier.frames.named import named_frame

    style = require_format(style, output)
    if qrels is None and intents is None:
        raise ParameterError("nothing to score against: wanted --qrels, --intents, or both")
    if perturb and not replicas:
        raise ParameterError("--perturb changes replicas: wanted --replicas too, as --replicas 1000")
    inference = Inference(interval=interval, level=level, n_resamples=resamples, seed=seed)
    execution = Execution(memory=memory, n_jobs=jobs, client=dask, resume=resume, progress=sys.stderr.isatty())
    scores: Any
    if subtopics is not None and qrels is None:
        raise ParameterError("--subtopics are those of diversity qrels: wanted --qrels")
    if intents is not None and qrels is None:
        of_judgments = {"--labels": labels, "--model": model, "--pool-cutoff": pool_cutoff, "--resume": resume}
        of_judgments["--queries"] = queries
        for name, value in of_judgments.items():
            if value is not None:
                raise ParameterError(f"{name}: wanted --qrels; score against intents alone without it")
        options = IntentOptions(n_replicas=replicas, pool=pool, parts=parts)
        if perturb:
            options = replace(options, perturb=[parse_perturbation(text) for text in perturb])
        data = Data(on_topics=on_topics, duplicates=duplicates, system=system)
        settings: dict[str, Any] = {"data": data, "inference": inference, "execution": execution}
        intent_source, tag_source = intents_and_tags(intents, tags)
        frame = named_frame("intents", intent_source)
        topics = frame[["qid"]].drop_duplicates().assign(query="")
        scores = evaluate_intents(
            dict(system_items(named_systems(runs))),
            topics,
            intents=frame,
            tagger=tag_source,
            measures=MEASURES if measures is None else measures,
            options=options,
            **settings,
        )
    else:
        remedy = "wanted --intents without --qrels"
        if (pool, parts) != ("query", None):
            raise ParameterError(f"--pool and --parts: {remedy}; evaluate them in a separate call")
        if replicas:
            raise ParameterError(f"--replicas: {remedy}; score against judgments in a separate call")
        data = Data(
            labels=option.label_paths(labels),
            model=model,
            pool_cutoff=pool_cutoff,
            subtopics=subtopics,
            queries=queries,
            on_topics=on_topics,
            duplicates=duplicates,
            system=system,
        )
        judged = option.qrels_input(qrels, negative, unit, measures or (), contradictions)
        settings = {"data": data, "inference": inference, "execution": execution}
        scores = score_runs(runs, judged, measures or (), intents=intents, tags=tags, **settings)
    deliver(scores, style, output, topics=per_query)


def rank(
    runs: option.Runs,
    qrels: option.Qrels,
    measure: option.Unjudged = "ENDCG@10",
    uncertainty: Annotated[
        str,
        Option(
            autocompletion=option.value_completer(("unjudged", "topics", "both")),
            help="Source of uncertainty: unjudged (documents), topics or both.",
        ),
    ] = "unjudged",
    draws: Annotated[int, Option(help="Number of draws of all scores.", min=1, metavar="N")] = 2000,
    level: option.Level = 0.9,
    pairs: Annotated[bool, Option("--pairs", help="Show one row per pair of runs.")] = False,
    baseline: Annotated[list[str] | None, Option(help="With --pairs: show the pairs of this run only.")] = None,
    labels: option.Labels = None,
    model: option.Model = None,
    pool_cutoff: option.PoolCutoff = None,
    queries: Annotated[Path | None, Option(help="Table of the queries: query, and any of weight, cluster.")] = None,
    style: Format = "table",
    on_topics: option.OnTopics = "same",
    duplicates: option.Duplicates = "error",
    system: option.System = None,
    seed: option.SeedOfDraws = 0,
    output: Output = None,
) -> None:
    """Rank runs with uncertain scores: expected ranks, and the probability that a run beats another."""
    from vbterrier.evaluate.ranking import rank_systems

    style = require_format(style, output)
    if baseline and not pairs:
        raise ParameterError("--baseline selects pairs: wanted --pairs too")
    ranking = rank_systems(
        runs,
        qrels,
        measure,
        uncertainty=uncertainty,
        baseline=option.only("--baseline", baseline),
        data=Data(
            labels=option.label_paths(labels),
            model=model,
            pool_cutoff=pool_cutoff,
            queries=queries,
            on_topics=on_topics,
            duplicates=duplicates,
            system=system,
        ),
        inference=Inference(n_draws=draws, level=level, seed=seed),
        execution=Execution(progress=sys.stderr.isatty()),
    )
    deliver(ranking, style, output, pairs=pairs)


def parse_perturbation(text: str) -> Any:
    """Return a perturbation from ``name`` or ``name=value``."""
    name, equals, value = text.partition("=")
    if name not in PERTURBATIONS:
        legal, similar = ", ".join(PERTURBATIONS), nearest(name, PERTURBATIONS)
        raise ParameterError(f"--perturb {text}: wanted one of {legal}, as dirichlet=20.{similar}")
    made = getattr(vbterrier.stats, PERTURBATIONS[name])
    if not equals:
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


def track(
    runs: option.Runs,
    qrels: Annotated[
        list[str],
        Option(
            "--qrels",
            "-q",
            help="TREC qrels; of several collections as NAME=PATH, with runs in folders of these names.",
        ),
    ],
    measure: Annotated[
        str, Option("--measure", "-m", autocompletion=option.completed_measures, help="A measure.")
    ] = "ENDCG@10",
    groups: Annotated[
        Path | None,
        Option(
            help="Groups of runs (name, group): also rank each group without the judgments that it alone contributed."
        ),
    ] = None,
    automatic: Annotated[
        list[str] | None, Option(help="Labels of an automatic judge, as NAME=PATH; repeatable.")
    ] = None,
    budget: Annotated[
        int, Option("--budget", "-n", help="Number of documents to judge next; with --costs, their total cost.")
    ] = 0,
    quota: Annotated[
        int | None, Option(help="Largest number of documents of a topic to judge next.", min=0, metavar="N")
    ] = None,
    costs: Annotated[Path | None, Option(help="Cost of a judgment by topic: qid, cost.")] = None,
    pool: Annotated[
        int | None,
        Option(
            "--pool-cutoff",
            help="With --groups: rank up to which runs were judged [cutoff of the measure].",
            metavar="N",
        ),
    ] = None,
    uncertainty: Annotated[
        str,
        Option(
            autocompletion=option.value_completer(("unjudged", "topics", "both", "collections")),
            help="Source of uncertainty: unjudged, topics, both or collections.",
        ),
    ] = "both",
    draws: Annotated[int, Option(help="Number of draws of all scores.", min=2, metavar="N")] = 2000,
    level: option.Level = 0.9,
    labels: option.Labels = None,
    scale: option.Scale = None,
    part: Annotated[
        str,
        Option(
            "--show",
            autocompletion=option.value_completer(
                ("systems", "ranks", "collections", "reusability", "judges", "batch")
            ),
            help="Show one table: systems, ranks, collections, reusability, judges or batch.",
        ),
    ] = "",
    html: option.Html = None,
    style: Format = "table",
    on_topics: option.OnTopics = "same",
    duplicates: option.Duplicates = "error",
    system: option.System = None,
    seed: option.SeedOfDraws = 0,
    output: Output = None,
) -> None:
    """Rank the runs of a track with rank intervals and letters, and examine reusability and automatic judges."""
    from vbterrier.evaluate.inputs import named_systems
    from vbterrier.evaluate.judging import JudgingBudget
    from vbterrier.evaluate.track import leaderboard
    from vbterrier.frames.files.reading import read_costs

    style = require_format(style, output)
    systems: Any = runs
    judged: Any = qrels[0]
    if len(qrels) > 1:
        collections = option.named_paths("--qrels", qrels)
        stray = next((run for run in runs if run.parent.name not in collections), None)
        if stray is not None:
            raise ParameterError(f"{stray}: its folder is no collection; wanted one of {', '.join(collections)}")
        for name, value in (("--automatic", automatic), ("--labels", labels), ("--costs", costs)):
            if value:
                raise ParameterError(f"{name}: wanted one collection; call vbterrier.evaluate.leaderboard for several")
        parts = {name: [run for run in runs if run.parent.name == name] for name in collections}
        systems, judged = {name: dict(named_systems(part)) for name, part in parts.items()}, collections
    price = None if costs is None else dict(read_costs(costs)[["qid", "cost"]].itertuples(index=False, name=None))
    board = leaderboard(
        systems,
        judged,
        measure,
        groups=groups,
        automatic=option.named_paths("--automatic", automatic or []),
        budget=JudgingBudget(budget, quota, price),
        uncertainty=uncertainty,
        data=Data(
            labels=option.label_paths(labels),
            on_topics=on_topics,
            duplicates=duplicates,
            system=system,
            scale=option.parse_scale(scale),
            pool_cutoff=pool,
        ),
        inference=Inference(n_draws=draws, level=level, seed=seed),
        execution=Execution(progress=sys.stderr.isatty()),
    )
    save_page(board, html)
    deliver(board, style, output, part=part, evidence=False)


COMMANDS = {"Start": (demo, doctor), "Evaluate": (score, rank), "Decide": (track,)}
