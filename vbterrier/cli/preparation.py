"""Commands that prepare an evaluation: knowledge bases, candidate intents, tags."""

from __future__ import annotations

import sys
import tempfile
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

import vbterrier
from vbterrier.cli import options as option
from vbterrier.cli.commands import Command, CommandGroup, help_example, with_common_options
from vbterrier.cli.options import Format
from vbterrier.cli.output import agreement_sentence, echo, frame_answer, require_format, show
from vbterrier.errors import InputError, ParameterError, choice, examples, warn

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd

    from vbterrier.linking.kb.knowledge_base import KnowledgeBase


# What a file holds, and the formats in which it is written.
_RATED_FORMATS = ("beir", "quepid", "rank_eval", "workbench")
CONVERSIONS = {
    "run": ("trec", "beir", "quepid"),
    "qrels": ("trec", *_RATED_FORMATS),
    "labels": ("trec", *_RATED_FORMATS),
    "pool": _RATED_FORMATS,
    "links": ("answers", "tags", "mentions", "table"),
}
KINDS = ("file", "rel", "wikimapper", "wikidata")
LINKERS = ("dictionary", "queries", "context", "whole", "fuzzy")

KB = Annotated[Path, Option("--kb", help="A knowledge base, or entities as CSV, TSV or JSON lines.")]
IdSpace = Annotated[str, Option(help="Id space of a file of entities, such as wikidata.")]
Out = Annotated[Path, Option("--output", "-o", help="The file to write; .gz compresses it.")]
Linker = Annotated[
    str,
    Option(
        autocompletion=option.value_completer(LINKERS),
        help="dictionary (names in the text), queries (also parts of names, misspellings and acronyms), context (also "
        "the words around them, as in names and attributes), whole (the text is a name) or fuzzy (similar names).",
    ),
]


def kb(
    source: Annotated[Path, Argument(help="TSV, JSON lines, SQLite or a dump, also .gz.")],
    output: Annotated[Path, Option("--output", "-o", help="The knowledge base to write.")],
    kind: Annotated[str, Option(help=f"Kind of the source: {', '.join(KINDS)}.")] = "file",
    id_space: IdSpace = "own",
    spellings: Annotated[
        Path | None, Option(help="With --kind file: names of codes: attribute, value, name (a table).")
    ] = None,
    popularity: Annotated[
        Path | None, Option(help="Page views, links or clicks, from which priors follow: entity_id, count (a table).")
    ] = None,
) -> None:
    """Build a knowledge base of entities with names, priors and attributes."""
    from vbterrier.frames.files.reading import read_spellings
    from vbterrier.linking import kb as builders
    from vbterrier.linking.kb.files import EntityPriors

    if kind not in KINDS:
        raise ParameterError(f"--kind {kind}: wanted one of {', '.join(KINDS)}")
    if spellings is not None and kind != "file":
        raise ParameterError(f"--spellings applies to --kind file, found --kind {kind}")
    if popularity is not None and kind not in {"file", "wikidata"}:
        raise ParameterError(f"--popularity applies to --kind file and wikidata, found --kind {kind}")
    settings: dict[str, Any] = {"id_space": id_space} if kind == "file" else {}
    if popularity is not None:
        settings["priors"] = EntityPriors(popularity)
    if spellings is not None:
        names: dict[str, dict[str, list[str]]] = {}
        for attribute, value, name in read_spellings(spellings).itertuples(index=False):
            names.setdefault(str(attribute), {}).setdefault(str(value), []).append(str(name))
        settings["spellings"] = names
    with getattr(builders, f"kb_from_{kind}")(output, source, progress=sys.stderr.isatty(), **settings) as built:
        echo(f"{output}: {len(built):,} entities, {built.n_aliases:,} aliases, ids in {built.id_space!r}")


def convert(
    source: Annotated[Path, Argument(help="The file to read, in any layout that the commands read.")],
    output: Out,
    kind: Annotated[
        str,
        Option(
            autocompletion=option.value_completer(("run", "qrels", "labels", "pool", "links")),
            help="Its content: run, qrels, labels, pool (documents to rate) or links (linked mentions).",
        ),
    ],
    to: Annotated[
        str,
        Option(
            help="The format: trec, beir or quepid; of ratings also rank_eval or workbench (OpenSearch); of links "
            "answers, tags, mentions or table."
        ),
    ],
    index: Annotated[str, Option(help="With --to rank_eval: the index of the documents.")] = "",
    name: Annotated[str, Option(help="With --kind run: its name.")] = "vbterrier",
    negative: option.Negative = "nonrelevant",
    contradictions: option.Contradictions = "error",
    unit: option.Unit = 1.0,
    system: option.System = None,
    ids: Annotated[
        str | None, Option(help="With --kind links: wikidata, dbpedia, wikipedia_title or wikipedia_id.")
    ] = None,
    mapping: Annotated[Path | None, Option(help="With --ids: entity_id and target of other id spaces.")] = None,
    redirects: Annotated[Path | None, Option(help="With --ids: entity_id and target within the id space.")] = None,
) -> None:
    """Write a run, ratings or linked mentions in the format of another tool."""
    from vbterrier.frames import flatten_qrels, read_labels, write_ranking, write_ratings
    from vbterrier.frames.files.kinds import PAIRS
    from vbterrier.frames.files.loading import load
    from vbterrier.frames.files.reading import run_table
    from vbterrier.frames.systems import split_systems

    choice("--kind", kind, tuple(CONVERSIONS))
    choice("--to", to, CONVERSIONS[kind])
    if kind != "links" and (ids, mapping, redirects) != (None, None, None):
        raise ParameterError("--ids, --mapping and --redirects apply to --kind links")
    if kind != "qrels" and (unit, negative, contradictions) != (1, "nonrelevant", "error"):
        raise ParameterError("--unit, --negative and --contradictions apply to --kind qrels")
    if kind != "run" and system is not None:
        raise ParameterError("--system applies to --kind run")
    if kind == "links":
        frame = _converted_links(source, output, to, {"ids": ids, "mapping": mapping, "redirects": redirects})
    elif kind == "run":
        runs = split_systems("run", run_table(source), system, str(source))
        if len(runs) > 1:
            raise InputError(
                f"{source}: holds {len(runs)} systems ({examples(runs)}), wanted one: keep its rows, or give the file "
                "to the commands, which evaluate its systems one by one"
            )
        (frame,) = runs.values()
        write_ranking(frame, output, to, name=name)
    else:
        if kind == "qrels":
            frame = vbterrier.read_qrels(source, negative=negative, contradictions=contradictions, unit=unit)
            # Other tools have one label a document.
            frame = frame if to == "trec" else flatten_qrels(frame)
        elif kind == "labels":
            frame = read_labels(source)
        else:
            frame = load(source, None, PAIRS).frame[["qid", "docno"]].drop_duplicates()
        write_ratings(frame, output, to, index=index)
    echo(f"{output}: {len(frame):,} rows of {source} as {to}")


def _converted_links(source: Path, output: Path, to: str, options: dict[str, Any]) -> pd.DataFrame:
    from vbterrier.frames.files.entity_links import converted_answers, converted_tags, read_entity_links
    from vbterrier.frames.files.writing import write_table

    if options["ids"] is None and (options["mapping"], options["redirects"]) != (None, None):
        raise ParameterError("--mapping and --redirects apply to ids of one space: wanted --ids, too")
    if to == "tags":
        tags = converted_tags(source, **options)
        if not len(tags):
            raise InputError(f"{source}: has no linked mention in a document; wanted tags")
        vbterrier.frames.write_tags(tags, output)
        return tags
    frame = (converted_answers if to == "answers" else read_entity_links)(source, **options)
    columns = {
        "answers": ("qid", "entity_id"),
        "mentions": ("docno", "mention", "entity_id"),
        "table": ("qid", "docno", "start", "end", "mention", "entity_id"),
    }
    write_table(frame, output, "links", columns[to], ("score",) if to != "mentions" else ())
    return frame


def intents(
    topics: Annotated[Path, Argument(help="Queries: qid, query; TSV, CSV or JSON lines.")],
    knowledge: KB,
    output: Out,
    id_space: IdSpace = "own",
    linker: Linker = "queries",
    prob: Annotated[
        str,
        Option(
            autocompletion=option.value_completer(("auto", "prior", "softmax", "uniform")),
            help="Source of probabilities: auto, prior, softmax or uniform.",
        ),
    ] = "auto",
    temperature: Annotated[float | None, Option(help="Temperature of a softmax of the scores.")] = None,
    constraints: Annotated[str | None, Option(help="Column of constraints, such as 'state:OH; born:1850'.")] = None,
    parse: Annotated[bool, Option("--parse", help="Move key:value constraints out of the queries.")] = False,
    unknown: Annotated[str, Option(help="Missing attributes: satisfied, violated, or 0 to 1.")] = "satisfied",
    dedup: Annotated[bool, Option(help="Merge candidates with equal names or redirects.")] = True,
    join: Annotated[
        list[Path] | None, Option(help="Join the candidates of this file (qid, entity_id, prob); repeatable.")
    ] = None,
    join_method: Annotated[
        str,
        Option(
            autocompletion=option.value_completer(("mean", "max", "append")),
            help="With --join: mean or max of the probabilities, or append (those of files come last).",
        ),
    ] = "mean",
    threshold: Annotated[float | None, Option(help="Keep candidates of at least this probability.")] = None,
    cutoff: Annotated[int | None, Option(help="Keep this many candidates.")] = None,
    mass: Annotated[float | None, Option(help="Keep the fewest candidates with this much probability.")] = None,
) -> None:
    """Write the candidate intents of queries, with probabilities."""
    from vbterrier.frames.id_spaces import NIL
    from vbterrier.frames.pipelines import topics_frame
    from vbterrier.intents.taggers import source_name

    if parse and constraints:
        raise ParameterError(
            "--parse takes constraints from the queries, --constraints from a column: give one of them"
        )
    queries = topics_frame(topics)
    if constraints and constraints not in queries.columns:
        columns = ", ".join(queries.columns)
        raise InputError(f"{topics}: no column {constraints!r}, found {columns}; correct --constraints")
    _require_join(join, join_method)
    if unknown != "satisfied" and not (constraints or parse):
        raise ParameterError("--unknown applies to constraints: wanted --constraints or --parse too")
    with _knowledge_base(knowledge, id_space) as base:
        found_by = _linker(linker, base, are_queries=True)
        stages: list[Any] = [vbterrier.intents.ParseConstraints()] if parse else []
        stages.append(vbterrier.CandidateIntents(found_by, prob=prob))
        if temperature is not None:
            stages.append(vbterrier.Calibrate(temperature=temperature))
        if constraints or parse:
            options: dict[str, Any] = {"constraints": constraints or "constraints", "unknown": _number_or_word(unknown)}
            stages.append(vbterrier.RelaxConstraints(base, **options))
        if dedup:
            stages.append(vbterrier.Dedup(kb=base))
        rows: pd.DataFrame = queries
        for stage in stages:
            rows = stage.transform(rows)
        # The path of a temporary knowledge base would make equal calls differ.
        sources = rows["source"].str.replace(source_name(found_by), f"{linker}, {knowledge}", regex=False)
    rows = rows.assign(source=sources)
    rows = _with_others(rows, join or [], join_method)
    if (threshold, cutoff, mass) != (None, None, None):
        rows = vbterrier.Truncate(threshold=threshold, cutoff=cutoff, mass=mass).transform(rows)
    candidates = rows[rows["entity_id"] != NIL]
    if not len(candidates):
        raise InputError(f"none of the {len(queries)} queries has a candidate in {knowledge}; nothing is written")
    vbterrier.frames.write_intents(rows, output)
    per_query = candidates.groupby("qid", sort=False).size()
    echo(
        f"{output}: {len(candidates):,} candidate intents of {len(per_query):,} of {len(queries):,} queries, "
        f"{per_query.min()} to {per_query.max()} each (mean {per_query.mean():.1f})"
    )


def _require_join(join: list[Path] | None, method: str) -> None:
    if method != "mean" and not join:
        raise ParameterError("--join-method applies to --join: wanted a file of candidates to join")


def _with_others(rows: pd.DataFrame, paths: list[Path], method: str) -> pd.DataFrame:
    """Candidates joined with those of files, of the same queries."""
    if not paths:
        return rows
    qids = rows["qid"].astype(str)
    others = [vbterrier.read_intents(path).assign(source=str(path)) for path in paths]
    others = [frame[frame["qid"].isin(qids)].reset_index(drop=True) for frame in others]
    joined: pd.DataFrame = vbterrier.intents.join_intents(rows.assign(qid=qids), *others, method=method)
    return joined.assign(source=joined["source"] + f"; joined, {method}")


def tag(
    documents: Annotated[Path, Argument(help="docno and text; TSV, CSV or JSON lines.")],
    knowledge: KB,
    output: Out,
    id_space: IdSpace = "own",
    linker: Linker = "dictionary",
    field: Annotated[list[str] | None, Option(help="Column with text, 'text' by default; repeatable.")] = None,
    run: Annotated[list[Path] | None, Option(help="Tag only the documents of this run; repeatable.")] = None,
    depth: Annotated[
        int | None, Option(help="With --run: tag this many documents per query; all by default.", min=1, metavar="N")
    ] = None,
    system: option.System = None,
    candidates: Annotated[
        Path | None, Option("--intents", help="Keep only tags that are candidate intents of some query.")
    ] = None,
    weights: Annotated[
        str,
        Option(
            autocompletion=option.value_completer(("binary", "score")),
            help="Weights of tags: binary, or score for the score of the linker.",
        ),
    ] = "binary",
    cutoff: Annotated[int | None, Option(help="Keep this many tags per document.", min=1, metavar="N")] = None,
    on_ties: Annotated[
        str,
        Option(
            autocompletion=option.value_completer(("smallest", "drop")),
            help="Mentions with tied candidates: smallest (tag with the smallest id, a guess) or drop.",
        ),
    ] = "smallest",
    min_margin: Annotated[
        float, Option(help="The best two candidates of a mention are tied if their scores differ by less.")
    ] = 0.0,
    descriptions: Annotated[
        Path | None,
        Option(help="With --linker context: texts on entities (entity_id, text)."),
    ] = None,
) -> None:
    """Write the entities of documents."""
    if descriptions is not None and linker != "context":
        raise ParameterError(f"--descriptions applies to --linker context, found --linker {linker}")
    if depth is not None and not run:
        raise ParameterError("--depth applies to runs: wanted --run too")
    if system is not None and not run:
        raise ParameterError("--system applies to runs: wanted --run too")
    texts, fields = vbterrier.read_documents(documents), tuple(field or ["text"])
    columns = ", ".join(texts.columns)
    for name in fields:
        if name not in texts.columns:
            raise InputError(f"{documents}: no column {name!r}, found {columns}; name the text with --field")
    if run:
        texts = _retrieved_documents(texts, run, depth, documents, system)
    with _knowledge_base(knowledge, id_space) as base:
        options = vbterrier.intents.TagOptions(cutoff, on_ties=on_ties, min_margin=min_margin, weights=weights)
        stage = vbterrier.TagEntities(_linker(linker, base, descriptions), fields=fields, options=options)
        rows = stage.tags(texts)
    if candidates is not None:
        from vbterrier.intents.tagging import among_candidates

        rows = among_candidates(rows, vbterrier.read_intents(candidates)["entity_id"])
    vbterrier.frames.write_tags(rows, output)
    # Rows of weight 0 count the abstentions in documents without tags.
    tags = rows[rows["weight"] > 0]
    n_tagged = tags["docno"].nunique()
    share = n_tagged / max(len(texts), 1)
    line = f"{output}: {len(tags):,} tags of {n_tagged:,} of {len(texts):,} documents ({share:.1%})"
    if "tied" in tags.columns and tags["tied"].any():
        line += f"; {tags['tied'].sum():,} tags ({tags['tied'].mean():.1%}) are decided by a tie and are guesses"
    if "n_abstained" in rows.columns and rows["n_abstained"].any():
        n_abstained = rows.drop_duplicates("docno")["n_abstained"].sum()
        line += f"; {n_abstained:,} mentions have no tag because of a tie or none fits"
    echo(line)


COMMANDS = {"Start": (convert,), "Entities": (kb, intents, tag)}


Queries = Annotated[Path, Option("--topics", help="Queries: qid, query.")]
Candidates = Annotated[Path, Option("--intents", help="Candidates: qid, entity_id, prob.")]
Sheets = Annotated[list[Path], Argument(help="Sheets, each named after its annotator.")]


def write(
    topics: Queries,
    candidates: Candidates,
    output: Annotated[Path, Option("--output", "-o", help="The sheet to write: .csv, .tsv or .jsonl.")],
    blind: Annotated[bool, Option("--blind", help="Hide probabilities, and shuffle candidates.")] = False,
    seed: Annotated[int, Option(help="Seed of the order with --blind.", min=0, metavar="N")] = 0,
) -> None:
    """Write a sheet of queries and candidates for an annotator, and the instructions."""
    task = vbterrier.evaluate.annotate(topics, candidates, blind=blind, seed=seed)
    about = task.write(output)
    echo(f"{output}: {len(task.items):,} rows of {len(task.topics):,} queries; {about}: the instructions")


def check(
    sheets: Sheets,
    topics: Queries,
    candidates: Candidates,
    style: Format = "table",
    level: option.Level = 0.95,
    resamples: option.Resamples = 2000,
    seed: option.Seed = 0,
) -> None:
    """Report agreement of annotators, calibration of the candidates, and unanswered queries."""
    from vbterrier.frames.notebook import count_text
    from vbterrier.report.tables import format_table

    require_format(style)
    result = _collect_sheets(sheets, topics, candidates, level=level, n_resamples=resamples, seed=seed)
    frames = (result.annotators, result.agreement, result.unanswered) if style == "table" else (result.agreement,)
    caption = [] if style == "table" else [repr(result)]
    tables = [format_table(frame, style, caption=caption, label="tab:agreement") for frame in frames if len(frame)]
    n, n_lost = len(result.task.topics), len(result.unanswered)
    lost = f"{n_lost} of {count_text(n, 'query')} {'is' if n_lost == 1 else 'are'} not answered by all annotators."
    sentences = [agreement_sentence(result.agreement.iloc[0], "candidate")] if len(result.agreement) else []
    sentences += [lost] * bool(n_lost)
    sentences.append(
        f"The probabilities of the candidates have an expected calibration error of {result.calibration.ece:.3f} and a "
        f"Brier score of {result.calibration.brier:.3f}, over {count_text(result.calibration.n_queries, 'query')}."
    )
    show(frame_answer(*sentences), "\n".join(tables), style, rows=result.agreement)


def pack(
    sheets: Sheets,
    topics: Queries,
    candidates: Candidates,
    output: Annotated[Path, Option("--output", "-o", help="The folder to write.")],
    date: Annotated[str, Option(help="Date of the labels, as 2026-01-31.")],
    source: Annotated[list[str], Option(help="Origin of a part, as queries='my log'; repeatable.")],
    title: Annotated[str, Option(help="Title of the datasheet.")] = "Benchmark of ambiguous queries",
    tags: option.Tags = None,
    min_votes: Annotated[float, Option(help="Smallest share of annotators who label an intent 1.")] = 0.5,
    probs: Annotated[
        str,
        Option(
            autocompletion=option.value_completer(("votes", "candidates")),
            help="Probabilities: votes, or candidates as given.",
        ),
    ] = "votes",
) -> None:
    """Save queries, intents, labels and a datasheet as a set of intents."""
    pairs = [text.partition("=") for text in source]
    for name, _, value in pairs:
        if not (name and value):
            raise ParameterError(f"--source {name or '=' + value}: wanted the origin of a part, as queries='my log'")
    options: dict[str, Any] = {"date": date, "title": title, "min_votes": min_votes, "probs": probs}
    options["sources"] = {name: value for name, _, value in pairs}
    options["tags"] = None if tags is None else vbterrier.read_tags(tags)
    made = _collect_sheets(sheets, topics, candidates).pack(output, **options)
    frame = made.intents()
    echo(f"{output}: {len(frame):,} intents of {frame['qid'].nunique():,} queries, SHA-256 {made.digest}")


def documents(
    runs: option.Runs,
    topics: Queries,
    candidates: Candidates,
    texts: Annotated[Path | None, Option("--documents", help="Texts of documents: docno, text.")] = None,
    tags: option.Tags = None,
    annotations: Annotated[
        list[Path] | None, Option(help="Annotated sheets: report scores from them, or with -n, draw more; repeatable.")
    ] = None,
    n: Annotated[
        int | None, Option("--budget", "-n", help="Draw this many documents to annotate.", min=1, metavar="N")
    ] = None,
    output: Annotated[
        Path | None, Option("--output", "-o", help="With -n: the sheet to write: .csv, .tsv or .jsonl.")
    ] = None,
    cutoff: Annotated[list[int] | None, Option(help="Cutoff of ES and VB; repeatable [3, 5].", min=1)] = None,
    design: Annotated[
        str,
        Option(
            autocompletion=option.value_completer(("topics", "documents", "auto")),
            help="With -n: topics (whole topics), documents (single ones) or auto (topics if small).",
        ),
    ] = "auto",
    save_tags: Annotated[
        Path | None,
        Option("--save-tags", help="Without -n: the tags file to write, of all documents with the model's."),
    ] = None,
    half_width: Annotated[
        float | None, Option(help="Without -n: count the documents to annotate for intervals of this half-width.")
    ] = None,
    style: Format = "table",
    level: option.Level = 0.95,
    seed: option.SeedOfDraws = 0,
) -> None:
    """Draw a few documents of ambiguous queries to annotate, and report ES and VB under gold tags from them.

    With -n, write a sheet of documents that are drawn at random among the first ones of the runs. Without it, read
    annotated sheets and report scores with intervals, and the pairs of runs that they order.
    """
    from vbterrier.report.tables import format_table

    require_format(style)
    cutoffs = cutoff or (3, 5)
    inputs: dict[str, Any] = {"intents": candidates, "documents": texts, "tags": tags, "cutoff": cutoffs, "seed": seed}
    if n is not None:
        if output is None or texts is None:
            raise ParameterError("-n: wanted --documents, the texts to annotate, and --output, the sheet to write")
        if save_tags is not None or half_width is not None:
            raise ParameterError("--save-tags and --half-width report scores of annotated documents: leave out -n")
        task = vbterrier.evaluate.annotate_documents(
            runs, topics, n=n, annotations=annotations, design=design, **inputs
        )
        about = task.write(output)
        echo(f"{output}: {task!r}; {about}: the instructions")
        return
    if output is not None or design != "auto":
        raise ParameterError("--output and --design apply to a draw: give -n, the number of documents to annotate")
    scores = vbterrier.evaluate.annotated_scores(runs, topics, annotations=annotations, level=level, **inputs)
    if save_tags is not None:
        vbterrier.frames.write_tags(scores.tags, save_tags)
    answer = scores.answer()
    if half_width is not None:
        more = f"Intervals of ±{half_width:g} take {scores.more(half_width):,} more documents."
        answer = replace(answer, reason=" ".join(filter(None, [answer.reason, more])))
    caption = [] if style == "table" else [repr(scores)]
    text = format_table(scores.intervals, style, caption=caption, label="tab:annotated")
    if style == "table" and not scores.reason:
        text += f"\n{format_table(scores.comparisons, style)}"
    show(answer, text, style, rows=scores.intervals)


def _collect_sheets(sheets: list[Path], topics: Path, candidates: Path, **options: Any) -> Any:
    names = [path.name.removesuffix(path.suffix) for path in sheets]
    if len(set(names)) < len(names):
        raise ParameterError("two sheets have one name, that of their annotator: rename a file")
    task = vbterrier.evaluate.annotate(topics, candidates)
    return task.collect(dict(zip(names, sheets, strict=True)), **options)


app = typer.Typer(
    name="annotate",
    cls=CommandGroup,
    rich_markup_mode=None,
    help="Let people label candidate intents or documents; make benchmarks and scores from their labels.",
    epilog=help_example("annotate write"),
    no_args_is_help=True,
    add_completion=False,
)
for command in (write, check, pack, documents):
    made = with_common_options(command, answers=command in (check, documents))
    app.command(cls=Command, epilog=help_example(f"annotate {command.__name__}"))(made)


@contextmanager
def _knowledge_base(path: Path, id_space: str) -> Iterator[KnowledgeBase]:
    """Open a knowledge base, or build a temporary one from a file of entities."""
    from vbterrier.linking.kb.files import kb_from_file
    from vbterrier.linking.kb.knowledge_base import KnowledgeBase
    from vbterrier.linking.kb.sqlite import SQLITE_MAGIC

    with tempfile.TemporaryDirectory() as folder:
        try:
            with path.open("rb") as file:
                is_sqlite = file.read(len(SQLITE_MAGIC)) == SQLITE_MAGIC
        except OSError:
            # kb_from_file raises the error.
            is_sqlite = False
        if is_sqlite:
            base = KnowledgeBase(path)
        else:
            base = kb_from_file(Path(folder) / "entities.kb", path, id_space=id_space, progress=sys.stderr.isatty())
        with base:
            yield base


def _linker(name: str, base: KnowledgeBase, descriptions: Path | None = None, *, are_queries: bool = False) -> Any:
    from vbterrier.linking.context import ContextLinker
    from vbterrier.linking.dictionary import DictionaryLinker, FuzzyLinker
    from vbterrier.linking.queries import QueryLinker

    if name not in LINKERS:
        raise ParameterError(f"--linker {name}: wanted one of {', '.join(LINKERS)}")
    if name == "whole":
        return base
    if name == "fuzzy":
        return FuzzyLinker(base)
    if name == "dictionary":
        return DictionaryLinker(base)
    # Misspellings need an extra, which the other ways to find names do not.
    spelt: dict[str, Any] = {} if find_spec("rapidfuzz") else {"min_similarity": None}
    if name == "queries":
        return QueryLinker(base, **spelt)
    return ContextLinker(QueryLinker(base, **spelt) if are_queries else DictionaryLinker(base), descriptions)


def _number_or_word(text: str) -> str | float:
    try:
        return float(text)
    except ValueError:
        return text


def _retrieved_documents(
    texts: pd.DataFrame, runs: list[Path], depth: int | None, where: Path, system: str | None
) -> pd.DataFrame:
    """Keep the documents that runs retrieve, each system of a file to this depth."""
    import pandas as pd

    from vbterrier.frames.ranking import Run, system_tables

    retrieved = []
    for path in runs:
        for name, table in system_tables(str(path), path, system, extra=False).items():
            ranking = Run(table, name=f"run {name!r}")
            rows = ranking.top(depth).rows
            retrieved.append(ranking.frame["docno"].iloc[rows[rows >= 0]])
    docnos = pd.concat(retrieved).drop_duplicates()
    missing = ~docnos.isin(texts["docno"].unique())
    if missing.all():
        raise InputError(f"{where}: has none of the {len(docnos)} retrieved documents; check their ids")
    if missing.any():
        warn(
            f"{where}: {int(missing.sum())} of {len(docnos)} retrieved documents are missing and get no tags "
            f"({examples(docnos[missing])})"
        )
    return texts[texts["docno"].isin(docnos)].reset_index(drop=True)
