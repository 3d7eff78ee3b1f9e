"""The commands ``compare``, ``gate``, ``report``, ``coverage`` and ``link``."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option

import vbterrier
from vbterrier.cli import options as option
from vbterrier.cli.options import Format, Output
from vbterrier.cli.output import deliver, require_format, save_page, show, show_report
from vbterrier.errors import ParameterError, examples, nearest
from vbterrier.settings import Data, Execution, Inference


def compare(
    runs: Annotated[list[Path] | None, Argument(help=option.RUNS)] = None,
    measures: option.MeasuresIfAny = None,
    qrels: option.QrelsIfAny = None,
    negative: option.Negative = "nonrelevant",
    contradictions: option.Contradictions = "error",
    unit: option.Unit = 1.0,
    intents: option.Intents = None,
    tags: option.Tags = None,
    labels: option.Labels = None,
    pool_cutoff: option.PoolCutoff = None,
    subtopics: option.Subtopics = None,
    values: Annotated[Path | None, Option(help="File of scores instead of runs: name, qid, measure, value.")] = None,
    queries: option.Queries = None,
    baseline: option.Baselines = None,
    test: option.Test = "moderated",
    correction: option.Correction = "auto",
    family: option.Family = "measure",
    margin: Annotated[
        float | None, Option(help="Also test whether runs are equivalent: differ by less than this margin.")
    ] = None,
    systems: Annotated[bool, Option("--systems", help="With csv: one row per run instead of per pair.")] = False,
    style: Format = "table",
    on_topics: option.OnTopics = "same",
    duplicates: option.Duplicates = "error",
    system: option.System = None,
    interval: option.Interval = "unseen",
    level: option.LevelOfTests = 0.95,
    resamples: option.ResamplesOfTests = 2000,
    seed: option.Seed = 0,
    output: Output = None,
) -> None:
    """Compare runs by topic: differences of means, intervals and significance tests."""
    from vbterrier.evaluate.comparison import compare as compare_systems

    style = require_format(style, output)
    judged = option.qrels_input(qrels, negative, unit, measures or (), contradictions)
    data: dict[str, Any] = {"qrels": judged, "intents": intents, "tags": tags, "subtopics": subtopics}
    data |= {"labels": option.label_paths(labels), "pool_cutoff": pool_cutoff}
    if values is not None and (runs or any(value is not None for value in data.values())):
        raise ParameterError(
            "--values has scores already: leave out runs, --qrels, --intents, --tags, --labels, --pool-cutoff and "
            "--subtopics"
        )
    if values is None and not runs:
        raise ParameterError("nothing to compare: wanted two runs and --qrels, or --values")
    if values is None and qrels is None and intents is None:
        raise ParameterError("nothing to score against: wanted --qrels, --intents, or both")
    if systems and style != "csv":
        raise ParameterError("--systems selects the rows of csv; other formats show systems and pairs")
    result = compare_systems(
        runs if values is None else values,
        judged,
        measures,
        intents=intents,
        tags=tags,
        baseline=baseline[0] if baseline and len(baseline) == 1 else baseline or None,
        data=Data(
            labels=data["labels"],
            pool_cutoff=pool_cutoff,
            subtopics=subtopics,
            queries=queries,
            on_topics=on_topics,
            duplicates=duplicates,
            system=system,
        ),
        inference=Inference(
            interval=interval,
            level=level,
            n_resamples=resamples,
            seed=seed,
            test=test,
            correction=correction,
            family=family,
            margin=margin,
        ),
        execution=Execution(progress=sys.stderr.isatty()),
    )
    deliver(result, style, output, systems=systems)


def table(
    runs: option.Runs,
    measures: Annotated[
        list[str] | None,
        Option(
            "--measure",
            "-m",
            autocompletion=option.completed_measures,
            help="A measure [ENDCG@10, nDCG@10 and Unjudged@10; the last has no test]; repeatable.",
        ),
    ] = None,
    qrels: option.QrelsIfAny = None,
    negative: option.Negative = "nonrelevant",
    contradictions: option.Contradictions = "error",
    unit: option.Unit = 1.0,
    intents: option.Intents = None,
    tags: option.Tags = None,
    labels: option.Labels = None,
    pool_cutoff: option.PoolCutoff = None,
    subtopics: option.Subtopics = None,
    names: Annotated[
        list[str] | None,
        Option("--name", help="Name of a run in the table, as lexical=BM25; --baseline takes either; repeatable."),
    ] = None,
    baseline: option.Baselines = None,
    test: option.Test = "moderated",
    correction: option.Correction = "auto",
    family: option.Family = "measure",
    style: Format = "table",
    on_topics: option.OnTopics = "same",
    duplicates: option.Duplicates = "error",
    system: option.System = None,
    level: option.LevelOfTests = 0.95,
    resamples: option.ResamplesOfTests = 2000,
    seed: option.Seed = 0,
    output: Output = None,
) -> None:
    """Write one compact table for a paper: a row per run, a column per measure, means with significance letters."""
    from vbterrier.evaluate.comparison import compare as compare_systems
    from vbterrier.evaluate.inputs import named_systems, split_runs
    from vbterrier.evaluate.scores import score
    from vbterrier.evaluate.verdicts import better
    from vbterrier.frames.contracts import system_items
    from vbterrier.frames.systems import ONE
    from vbterrier.measures.linking import LinkingMeasure
    from vbterrier.measures.text import measures_from

    style = require_format(style, output)
    if qrels is None and intents is None:
        raise ParameterError("nothing to score against: wanted --qrels, --intents, or both")
    if measures is None:
        measures = ["ENDCG@10", "nDCG@10", "Unjudged@10"] if intents is None else ["ES@10", "VB@10"]
    unordered = [measure for measure in measures if better(measure) is None]
    tested = [measure for measure in measures if measure not in unordered]
    if not tested:
        raise ParameterError(f"--measure: wanted one by which runs are better or worse, beside {', '.join(unordered)}")
    judged = option.qrels_input(qrels, negative, unit, measures, contradictions)
    data = Data(
        labels=option.label_paths(labels),
        pool_cutoff=pool_cutoff,
        subtopics=subtopics,
        on_topics=on_topics,
        duplicates=duplicates,
        system=system,
    )
    options: dict[str, Any] = {"intents": intents, "tags": tags, "data": data}
    options |= {"execution": Execution(progress=sys.stderr.isatty())}
    of_means = Inference(level=level, n_resamples=resamples, seed=seed)
    tests = replace(of_means, test=test, correction=correction, family=family)
    shown = option.shown_names(names)
    # Answers of linkers have their own reader.
    is_linking = all(isinstance(measure, LinkingMeasure) for measure in measures_from(*measures))
    systems = dict(system_items(named_systems(runs))) if is_linking else split_runs(runs, system, extra=False)
    if odd := [name for name in shown if name not in systems]:
        raise ParameterError(
            f"--name: no system {odd[0]!r}, found {examples(list(systems))}.{nearest(odd[0], systems)}"
        )
    if len(systems) == 1 and baseline:
        raise ParameterError("--baseline: wanted another run to compare it with")
    renamed = {shown.get(name, name): run for name, run in systems.items()}
    # Each is one system now.
    options["data"] = replace(data, system=ONE)
    if len(systems) == 1:
        deliver(score(renamed, judged, measures, inference=of_means, **options), style, output)
        return
    against = [shown.get(name, name) for name in baseline or ()]
    one = against[0] if len(against) == 1 else against or None
    result = compare_systems(renamed, judged, tested, baseline=one, inference=tests, **options)
    beside = score(renamed, judged, unordered, inference=of_means, **options) if unordered else None
    deliver(result, style, output, compact=True, beside=beside, order=list(renamed))


def gate(
    new: Annotated[
        Path,
        Argument(
            help="The new run, as PATH or NAME=PATH: TREC, _rank_eval response, or query, docid, position.",
            metavar="NEW",
        ),
    ],
    baseline: Annotated[
        list[Path],
        Option("--baseline", "-b", help="A run to compare with, as PATH or NAME=PATH; repeatable: all must pass."),
    ],
    qrels: Annotated[
        Path, Option("--qrels", "-q", help="TREC qrels, _rank_eval request, or query, docid, rating (Quepid).")
    ],
    margin: Annotated[float, Option(help="The largest acceptable loss, as .01.")],
    measure: Annotated[
        str, Option("--measure", "-m", autocompletion=option.completed_measures, help="A measure.")
    ] = "ENDCG@10",
    queries: Annotated[
        Path | None, Option(help="Table of the queries: query, and any of weight, cluster, segment, drawn, covariate.")
    ] = None,
    guarantee: Annotated[
        str,
        Option(
            autocompletion=option.value_completer(("mean+losses", "any")),
            help="Criteria of PASS: mean+losses (the mean, and the share of large losses) or any (the mean alone, with "
            "limits for any distribution of differences).",
        ),
    ] = "mean+losses",
    worst_loss: Annotated[
        float | None,
        Option(help="Largest loss that a query counts for [the range of the measure]; .5 needs fewer queries."),
    ] = None,
    large_loss: Annotated[float, Option(help="A query has a large loss if it loses more than this.")] = 0.5,
    max_share: Annotated[
        float, Option(help="Acceptable share of queries with a large loss; 1 leaves this criterion out.")
    ] = 0.05,
    covariate: Annotated[
        str | None,
        Option(
            autocompletion=option.value_completer(("labels", "earlier")),
            help="Covariate that narrows limits: labels (differences by --labels) or earlier (column of --queries).",
        ),
    ] = None,
    guardrail: Annotated[
        list[str] | None,
        Option(help="A further measure that must pass, with its margin, as RR@10=.05; repeatable."),
    ] = None,
    level: Annotated[float, Option(help="Confidence level of each one-sided limit.")] = 0.95,
    look: Annotated[
        int | None, Option(help="Number of this look at the results, from 1, if there are several.", min=1)
    ] = None,
    daily: Annotated[
        bool, Option("--daily", help="Limits that are valid for any number of looks, as queries are appended.")
    ] = False,
    scale: option.Scale = None,
    unit: option.Unit = 1.0,
    budget: Annotated[int, Option("--budget", "-n", help="Number of documents to judge next.", min=0)] = 20,
    judging: Annotated[
        Path | None,
        Option("--judge", help="Write the documents to judge next, if any, to this file, in the format of --qrels."),
    ] = None,
    labels: option.Labels = None,
    pool_cutoff: option.PoolCutoff = None,
    duplicates: option.Duplicates = "error",
    system: option.System = None,
    html: option.Html = None,
    style: Annotated[
        str,
        Option(
            "--format",
            "-f",
            autocompletion=option.value_completer(("table", "markdown", "json", "junit")),
            help="table, markdown, json or junit.",
        ),
    ] = "table",
    resamples: Annotated[int, Option(help="Number of draws of bounded limits.", min=2, metavar="N")] = 10_000,
    seed: option.Seed = 0,
    output: Annotated[
        Path | None, Option("--output", "-o", help="Write to this file: .xml (JUnit), .md, .json or .txt.")
    ] = None,
) -> None:
    """Decide if a new run is at most a margin worse than the baseline.

    Exit codes: 0 PASS, 2 FAIL, 3 UNKNOWN, 1 any error.
    """
    from vbterrier.evaluate.releases import GateOptions, release_gate
    from vbterrier.frames.files.writing import replace_files
    from vbterrier.report.comparison import GATE_FORMATS, gate_report
    from vbterrier.report.tables import WIDTH, width

    if style not in GATE_FORMATS:
        raise ParameterError(f"--format {style}: wanted one of {', '.join(GATE_FORMATS)}")
    if output is not None:
        if output.suffix not in _GATE_SUFFIXES:
            raise ParameterError(f"{output}: wanted a name that ends in {', '.join(_GATE_SUFFIXES)}")
        style = _GATE_SUFFIXES[output.suffix]
    limits: dict[str, Any] = {"inference": Inference(level=level, n_resamples=resamples, seed=seed)}
    limits["options"] = GateOptions(
        guarantee=guarantee,
        worst_loss=worst_loss,
        large_loss=large_loss,
        max_share=max_share,
        look=look,
        daily=daily,
        covariate=covariate,
        guardrails=option.parse_guardrails(guardrail),
    )
    settings: dict[str, Any] = {"budget": budget}
    rated: dict[str, Any] = {"scale": option.parse_scale(scale), "unit": unit}
    settings["data"] = Data(
        labels=option.label_paths(labels),
        pool_cutoff=pool_cutoff,
        queries=queries,
        duplicates=duplicates,
        system=system,
        **rated,
    )
    run, others = option.named_files([new]), option.named_files(baseline, "--baseline ")
    for name in set(run).intersection(others):
        raise ParameterError(f"two systems are called {name!r}; name one, as new={new}")
    result = release_gate(run, qrels, measure, baseline=others, margin=margin, **settings, **limits)
    save_page(result, html)
    with width(None if output is not None or style != "table" else WIDTH.get()):
        text = gate_report(result, style)
    if output is None:
        picture = result.picture_text(WIDTH.get())
        show_report(result.answer(), text, style, picture=picture, rows=result.pairs, evidence=False)
    else:
        replace_files({output: f"{text}\n"})
        show(replace(result.answer(), reason="", caveats=(), next="", evidence=()), "")
    if judging is not None:
        result.write_judging(judging)
    raise typer.Exit(result.exit_code)


_GATE_SUFFIXES = {".xml": "junit", ".md": "markdown", ".json": "json", ".txt": "table"}


def coverage(
    runs: Annotated[list[Path], Argument(help="Entity runs: TREC runs with entities as documents.")],
    pool: Annotated[Path | None, Option(help="The candidate pool, a TREC run.")] = None,
    tags: option.Tags = None,
    links: Annotated[Path | None, Option(help="A linked pool (Parquet) instead of --pool and --tags.")] = None,
    qrels: Annotated[Path | None, Option("--qrels", "-q", help="TREC qrels.")] = None,
    cutoff: Annotated[list[int] | None, Option(help="Number of entities per topic [20]; repeatable.")] = None,
    depth: Annotated[int | None, Option(help="Depth of the pool: documents per topic.", min=1, metavar="N")] = None,
    rel: Annotated[int, Option(help="Smallest label of relevant documents.", min=1, metavar="N")] = 1,
    alpha: Annotated[float, Option(help="Pseudo-count of OER.")] = 0.5,
    shrinkage: Annotated[float, Option(help="Number of documents at which the support of OER is 63%.")] = 5.0,
    per_query: option.PerQuery = False,
    style: Format = "table",
    level: option.Level = 0.95,
    resamples: option.Resamples = 2000,
    seed: option.Seed = 0,
    output: Output = None,
) -> None:
    """Report the coverage of a pool by entity runs, and how well their entities discriminate."""
    import pandas as pd

    from vbterrier.evaluate.coverage import CoverageOptions, coverage_report

    style = require_format(style, output)
    options: dict[str, Any] = {"inference": Inference(level=level, n_resamples=resamples, seed=seed)}
    linked = _linked_pool(pool, tags, links, qrels, depth)
    options["options"] = CoverageOptions(rel=rel, alpha=alpha, shrinkage=shrinkage)
    reports = [coverage_report(runs, linked, cutoff=one, **options) for one in sorted(set(cutoff or [20]))]
    answers = [one.answer() for one in reports]
    # The verdicts by the further numbers of entities are reasons.
    answer = replace(answers[0], reason="\n".join(one.verdict for one in answers[1:]))
    rows = pd.concat([one.to_frame() for one in reports], ignore_index=True)
    deliver(reports, style, output, answer=answer, rows=rows, per_query=per_query)


def _linked_pool(
    pool: Path | None, tags: Path | None, links: Path | None, qrels: Path | None, depth: int | None
) -> Any:
    """Return the linked pool, from its file or from a pool, tags and qrels."""
    judged = None if qrels is None else vbterrier.read_qrels(qrels)
    if links is None:
        if pool is None or tags is None or judged is None:
            raise ParameterError("wanted --pool, --tags and --qrels, or --links instead of the first two")
        return vbterrier.entities.link_pool(vbterrier.read_run(pool), vbterrier.read_tags(tags), judged, cutoff=depth)
    if pool is not None or tags is not None:
        raise ParameterError("--links holds a pool and its entities: leave out --pool and --tags")
    links_read = vbterrier.entities.read_links(links)
    if judged is None and depth is None:
        return links_read
    frame = links_read.to_frame()
    documents = frame.drop_duplicates(["qid", "docno"])
    if judged is None:
        judged = documents.loc[documents["label"] >= 0, ["qid", "docno", "label"]]
    linked = frame.loc[frame["entity_id"].notna(), ["qid", "docno", "entity_id", "weight"]]
    return vbterrier.entities.link_pool(documents.assign(score=-documents["rank"]), linked, judged, cutoff=depth)


def report(
    runs: option.Runs,
    output: Annotated[Path, Option("--output", "-o", help="The HTML file to write.")],
    qrels: option.QrelsIfAny = None,
    intents: option.Intents = None,
    tags: option.Tags = None,
    labels: option.Labels = None,
    pool_cutoff: option.PoolCutoff = None,
    subtopics: option.Subtopics = None,
    links: Annotated[Path | None, Option(help="A linked pool (Parquet), if the runs are entity runs.")] = None,
    measures: option.MeasuresIfAny = None,
    topics: Annotated[Path | None, Option(help="Texts of the queries: qid, query.")] = None,
    documents: Annotated[Path | None, Option(help="Texts of the documents: docno, text.")] = None,
    names: Annotated[
        list[str] | None, Option("--name", help="Name of a run on the page, as lexical=BM25; repeatable.")
    ] = None,
    title: Annotated[str, Option(help="Title of the page.")] = "",
    baseline: option.Baseline = None,
    test: option.Test = "moderated",
    correction: option.Correction = "auto",
    family: option.Family = "measure",
    on_topics: option.OnTopics = "same",
    duplicates: option.Duplicates = "error",
    system: option.System = None,
    interval: option.Interval = "unseen",
    level: option.LevelOfTests = 0.95,
    resamples: option.ResamplesOfTests = 2000,
    seed: option.Seed = 0,
    memory: option.Memory = None,
) -> None:
    """Write an HTML page with the verdict, means, pairs, and the rankings of each topic."""
    from vbterrier.report.page.build import write_report
    from vbterrier.report.page.evaluated import ReportContent

    command = ["vbterrier", *sys.argv[1:]]
    page = write_report(
        runs,
        qrels,
        measures,
        path=output,
        content=ReportContent(
            intents=intents, tags=tags, links=links, names=option.shown_names(names), title=title, command=command
        ),
        baseline=option.only("--baseline", baseline),
        data=Data(
            labels=option.label_paths(labels),
            pool_cutoff=pool_cutoff,
            subtopics=subtopics,
            topics=topics,
            documents=documents,
            on_topics=on_topics,
            duplicates=duplicates,
            system=system,
        ),
        inference=Inference(
            interval=interval,
            level=level,
            n_resamples=resamples,
            seed=seed,
            test=test,
            correction=correction,
            family=family,
        ),
        execution=Execution(memory=memory, progress=sys.stderr.isatty()),
    )
    show(page.answer, "\n".join([*page.verdict[1:], f"{page.path}: {page.n_bytes / 1e6:.2f} MB"]))


def link(
    answers: Annotated[list[Path], Argument(help="Answers of systems: qid, entity_id (or NIL); or TREC runs.")],
    gold: Annotated[Path, Option("--gold", "-g", help="The correct answers: qid, entity_id or NIL.")],
    nil: Annotated[str, Option(help="The text that means no entity.")] = "NIL",
    unanswered: Annotated[
        str,
        Option(
            autocompletion=option.value_completer(("nothing", "nil")),
            help="Queries without an answer: nothing (neither link nor NIL) or nil.",
        ),
    ] = "nothing",
    multiple: Annotated[
        str,
        Option(
            "--multiple-answers",
            autocompletion=option.value_completer(("raise", "any")),
            help="Queries with several correct entities: raise or any.",
        ),
    ] = "raise",
    ids: Annotated[
        str | None,
        Option(
            autocompletion=option.value_completer(("wikidata", "dbpedia", "wikipedia_title", "wikipedia_id")),
            help="The id space of all entities: wikidata, dbpedia, wikipedia_title or wikipedia_id.",
        ),
    ] = None,
    match: Annotated[
        str | None,
        Option(
            autocompletion=option.value_completer(("strong", "weak")),
            help="Evaluate mentions that systems find themselves, spans and entities: strong (equal) or weak.",
        ),
    ] = None,
    n_best: Annotated[
        int, Option(help="With --match: the candidates of a mention, best first, any of which may be right.")
    ] = 1,
    pairs: Annotated[bool, Option("--pairs", help="Show differences between systems, with tests.")] = False,
    style: Format = "table",
    level: option.Level = 0.95,
    resamples: option.Resamples = 2000,
    seed: option.Seed = 0,
    output: Output = None,
) -> None:
    """Report precision, recall and F1 of entity linking with NIL, and compare systems by swapped answers."""
    from vbterrier.evaluate.inputs import named_systems
    from vbterrier.frames import read_answers, read_entity_links
    from vbterrier.frames.contracts import system_items
    from vbterrier.frames.files.entity_links import linked_mentions

    style = require_format(style, output)
    options: dict[str, Any] = {"nil": nil, "inference": Inference(level=level, n_resamples=resamples, seed=seed)}
    read = read_answers if match is None else read_entity_links
    systems = {name: read(path, ids=ids) for name, path in system_items(named_systems(answers))}
    if n_best != 1 and match is None:
        raise ParameterError("--n-best applies to --match")
    # Words of a mention with different links mean another mention in gold standards than in answers.
    correct = read(gold, ids=ids) if match is None else linked_mentions(gold, is_gold=True, ids=ids)
    if match is not None:
        if pairs or unanswered != "nothing" or multiple != "raise":
            raise ParameterError(
                "--match: leave out --pairs, --unanswered and --multiple-answers, which apply to queries"
            )
        deliver(
            vbterrier.linking.mention_report(systems, correct, match=match, n_best=n_best, **options), style, output
        )
        return
    options |= {"unanswered": unanswered, "multiple_answers": multiple}
    result = vbterrier.linking.linking_report(systems, correct, **options)
    if pairs and not len(result.pairs):
        raise ParameterError("--pairs: wanted at least two systems, found one")
    deliver(result, style, output, pairs=pairs)


COMMANDS = {"Evaluate": (compare, table, report), "Decide": (gate,), "Entities": (coverage, link)}
