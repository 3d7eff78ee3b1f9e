"""Inputs of an evaluation: runs, judgments, intents and tags as frames, files, names or pipelines."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd

from vbterrier.errors import InputError, ParameterError, examples, unheard, warn
from vbterrier.execution.distribution import in_threads
from vbterrier.frames.columns import QRELS
from vbterrier.frames.contracts import is_frame, is_nested_table, pandas_frame, require, system_items
from vbterrier.frames.files.parts import is_in_files
from vbterrier.frames.files.rated_lists import SPELLING, odd_rating_message, require_ends, spellings
from vbterrier.frames.files.reading import evaluated_qrels, read_qrels, read_subtopics
from vbterrier.frames.ids import column_ids, require_same_kind
from vbterrier.frames.linked_pool import LinkedPool
from vbterrier.frames.named import named_frame, registered_frame
from vbterrier.frames.pipelines import is_pipeline, pipeline_input, retrieved_runs
from vbterrier.frames.ranking import Run, checked_run, run_places, system_tables
from vbterrier.frames.systems import named_once
from vbterrier.frames.trectools import is_trectools, name_of_trectools
from vbterrier.intents.sources import from_run
from vbterrier.intents.taggers import DOCNO
from vbterrier.measures.target import EvaluationTarget, align_topics, warn_of_few_non_relevant
from vbterrier.measures.text import measures_from
from vbterrier.measures.unjudged import UnjudgedMeasure, evidence_models, require_use
from vbterrier.remedies import SUBTOPICS
from vbterrier.stats.comparisons import system_pairs
from vbterrier.unjudged.pool import machine_labels

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    import ir_measures

    from vbterrier.frames.ids import Ids
    from vbterrier.intents.tagging import TagEntities
    from vbterrier.unjudged.fitted import EvidenceModel
    from vbterrier.unjudged.pool import MachineLabels

# Differences of shares of labelled documents between systems that are reported.
_MAX_SHARE_DIFFERENCE = 0.05
# The columns of a run that TagEntities writes; a list, because pandas treats a tuple as one column.
TAG_COLUMNS = ["entity_id", "weight", "tagger", "tied", "n_abstained"]


def named_systems(systems: Any) -> Any:
    """Pairs or a mapping of name to run or pipeline.

    Unnamed files are named after their paths, unnamed pipelines by their text, as ``pt.Experiment`` does.
    """
    if hasattr(systems, "items") and not hasattr(systems, "columns"):
        # The rows of a single run are dictionaries; named runs may be, too.
        alone = isinstance(next(iter(systems.values()), None), dict) and is_nested_table(systems)
        return [("run", systems)] if alone else systems
    if not is_path(systems) and is_nested_table(systems):
        return [("run", systems)]
    if not isinstance(systems, (list, tuple)):
        return [(_system_name(systems) or "run", systems)]
    unnamed = [system for system in systems if not _system_name(system)]
    if unnamed:
        raise InputError(f"runs: found a {type(unnamed[0]).__name__} in a list; name frames, as {{'mine': frame}}")
    return [(_system_name(system), system) for system in systems]


def named_runs(
    runs: Any, topics: Any = None, system: str | None = None, *, reads: bool = True, extra: bool = True
) -> dict[str, Any]:
    """Frames of runs by name, see :func:`split_runs`; pipelines are run on the topics, and refused without topics."""
    systems = split_runs(runs, system, reads=reads, extra=extra)
    if topics is not None and not any(map(is_pipeline, systems.values())):
        # Refused alike, whether runs need them or not.
        pipeline_input(topics)
    return retrieved_runs(systems, topics)


def split_runs(runs: Any, system: str | None = None, *, reads: bool = True, extra: bool = True) -> dict[str, Any]:
    """Pipelines, frames and checked runs by name, each of one system.

    Tables of several systems are split, see :func:`vbterrier.frames.systems.split_systems`. Without ``reads``, files
    stay paths, and datasets stay as they are, to be read in chunks. ``extra``: as in
    :func:`vbterrier.frames.ranking.system_tables`.
    """

    def tables(item: tuple[str, Any]) -> dict[str, Any]:
        name, source = item
        is_kept = isinstance(source, Run) or is_pipeline(source) or (is_in_files(source) and not reads)
        return {name: source} if is_kept else system_tables(name, source, system, extra=extra)

    every = in_threads(tables, list(system_items(named_systems(runs))))
    return named_once(pair for runs_of_table in every for pair in runs_of_table.items())


def require_baseline(runs: Any, baseline: Any, system: str | None = None) -> None:
    """Refuse a baseline that is no system, before any work; tables are read if none of their names is the baseline."""
    try:
        system_pairs([name for name, _ in system_items(named_systems(runs))], baseline)
    except ParameterError:
        with suppress(InputError):
            system_pairs(list(split_runs(runs, system, extra=False)), baseline)
            return
        raise


def loaded_runs(runs: Any, duplicates: str = "everywhere", system: str | None = None) -> dict[str, Run]:
    """Runs by name, read and checked; those that are checked stay as they are."""
    tables = named_runs(runs, system=system, extra=False)
    return {name: checked_run(name, table, duplicates) for name, table in tables.items()}


class FittedRuns(NamedTuple):
    """Runs on the topics to average over, the judgments of these topics, and the models of unjudged documents."""

    runs: dict[str, Run]
    target: EvaluationTarget
    models: dict[str, EvidenceModel]


def fitted_runs(
    runs: Mapping[str, Run],
    judged: EvaluationTarget,
    measure: ir_measures.Measure,
    on_topics: str,
    *,
    labels: Any = None,
    model: Any = None,
    pool_cutoff: int | None = None,
) -> FittedRuns:
    """Check that runs and judgments fit each other, and fit the model that a measure of unjudged documents needs."""
    require_use([measure], pool_cutoff=pool_cutoff)
    warn_of_few_non_relevant([measure], judged)
    models = evidence_models(
        [measure], runs, judged, labels=machine_labels(labels), model=model, pool_cutoff=pool_cutoff
    )
    target, restricted_runs = align_topics(judged, runs, on_topics)
    return FittedRuns(restricted_runs, target, models)


def _system_name(system: Any) -> str:
    """The name of a file, of a pipeline or of a ``TrecRun``; empty for other systems."""
    if is_trectools(system):
        return name_of_trectools(system)
    if is_path(system):
        return _stem(system)
    return str(system) if is_pipeline(system) else ""


def _stem(path: str | os.PathLike[str]) -> str:
    name = Path(path).name
    for suffix in (".gz", ".bz2", ".xz", ".zst", ".txt", ".run", ".csv", ".tsv", ".jsonl", ".json", ".xlsx"):
        name = name.removesuffix(suffix)
    return name or str(path)


def quietly(call: Any, *arguments: Any, **options: Any) -> Any:
    """Call without warnings of degenerate input."""
    with unheard():
        return call(*arguments, **options)


def is_path(value: Any) -> bool:
    """True for a path or text, which may be one."""
    return isinstance(value, (str, os.PathLike))


def input_table(value: Any, what: str, read: Callable[[Any], pd.DataFrame], columns: tuple[str, ...]) -> pd.DataFrame:
    """A frame, or the table at a path, with these columns."""
    vocabulary = QRELS if read is read_qrels else None
    frame = read(value) if is_path(value) else pandas_frame(value, what, vocabulary)
    require(frame, columns, what)
    return frame


def intents_and_tags(intents: Any, tags: Any = None) -> tuple[Any, Any]:
    """Intents of an :class:`vbterrier.IntentSet` or its folder, and its tags unless others are given."""
    # Path.is_dir would raise for a name that is too long for a file.
    is_folder = is_path(intents) and registered_frame("intents", intents) is None and os.path.isdir(intents)  # noqa: PTH112
    if not is_folder and (intents is None or is_path(intents) or is_frame(intents)):
        return intents, tags
    # Imports PyTerrier, which takes longer than scoring a small collection.
    from vbterrier.measures.artifact import IntentSet

    intent_set = IntentSet(intents) if is_folder else intents
    if not isinstance(intent_set, IntentSet):
        return intents, tags
    return intent_set.intents(), intent_set.tags() if tags is None else tags


def _intents_and_tags(intents: Any, tags: Any) -> tuple[pd.DataFrame | None, pd.DataFrame | None]:
    """Frames of intents and tags, each if it is given."""
    intents, tags = intents_and_tags(intents, tags)
    intents = None if intents is None else named_frame("intents", intents)
    if intents is not None and not len(intents):
        raise InputError("intents: no rows; give at least one candidate (qid, entity_id, prob) of a query")
    return intents, None if tags is None else named_frame("tags", tags)


def evaluation_target(
    qrels: Any,
    intents: Any,
    tags: Any,
    read: Callable[[Any], pd.DataFrame] = evaluated_qrels,
    *,
    subtopics: Any = None,
) -> EvaluationTarget:
    """Judgments (``read`` opens a path) with optional intents, tags and subtopics, or intents alone.

    A target to which nothing is added stays as it is.
    """
    if isinstance(qrels, EvaluationTarget):
        if intents is None and tags is None and subtopics is None:
            return qrels
        qrels = qrels.frame
    if subtopics is not None:
        if qrels is None or intents is not None:
            raise ParameterError(f"{SUBTOPICS.text()}: are those of diversity qrels: give qrels, and leave out intents")
        subtopics = subtopic_frame(subtopics)
    intents, tags = _intents_and_tags(intents, tags)
    if qrels is None:
        if intents is None:
            raise InputError("nothing to evaluate against; give qrels, or intents (qid, entity_id, prob)")
        return EvaluationTarget(intents, tags=tags)
    if isinstance(qrels, LinkedPool):
        # Links are judgments of entity measures.
        frame = qrels.to_frame()
    else:
        frame = read(qrels) if is_path(qrels) else pandas_frame(qrels, "qrels", QRELS)
    pool = qrels if isinstance(qrels, LinkedPool) else None
    target = EvaluationTarget(frame, intents=intents, tags=tags, subtopics=subtopics, pool=pool)
    if subtopics is not None and not target.is_diversity:
        raise InputError("qrels: no column iteration, which names the subtopic; leave subtopics out")
    return target


def require_scale(frame: pd.DataFrame, scale: tuple[int, int] | None, what: str) -> None:
    """Raise InputError for a rating outside of a scale, if one is given."""
    require_ends(scale)
    if scale is not None and (message := odd_rating_message(frame, ~frame["label"].between(*scale), scale)):
        raise InputError(f"{what}: {message}")


def require_spelling(what: str, queries: Iterable[str], names: Iterable[str] = ()) -> None:
    """Raise InputError for a query in two spellings, one of them among the known queries if there are any."""
    names = set(names)
    odd = [qid for qid in queries if qid not in names]
    if odd and (pair := spellings(odd, names)):
        where = " of the ratings" if names else ""
        raise InputError(f"{what}: query {pair[1]!r} and {pair[0]!r}{where} differ only in {SPELLING}")


def require_spellings(
    target: EvaluationTarget, runs: Mapping[str, Run], labels: MachineLabels | None, which: str = ""
) -> None:
    """Raise InputError for a topic of judgments, runs or labels in two spellings."""
    require_spelling(f"qrels{which}", target.topics)
    for name, run in runs.items():
        require_spelling(f"run {name!r}{which}", run.topics, target.topics)
    if labels is not None:
        require_spelling(f"labels{which}", labels.frame()["qid"].unique(), target.topics)


def warn_of_uneven_labels(labels: MachineLabels, runs: Mapping[str, Run], cutoff: int) -> None:
    """Warn of judges that labelled larger shares of some runs' documents than of others'."""
    key = ["qid", "docno"]
    cuts = {name: run.first(cutoff)[key].astype(str) for name, run in runs.items()}
    for judge, part in labels.frame().groupby("name", sort=False):
        shares = {name: len(cut.merge(part[key])) / max(len(cut), 1) for name, cut in cuts.items()}
        warn_if_uneven(f"labels of {judge!r}", shares, "the estimates")


def warn_if_uneven(judge: str, shares: Mapping[str, float], result: str) -> None:
    """Warn if the shares of labelled documents of two systems differ by more than .05."""
    low, high = min(shares, key=shares.__getitem__), max(shares, key=shares.__getitem__)
    if shares[high] - shares[low] > _MAX_SHARE_DIFFERENCE:
        warn(
            f"{judge}: labelled {shares[low]:.0%} of the documents of {low!r}, but {shares[high]:.0%} of those of "
            f"{high!r}: {result} may favour systems that it labelled"
        )


def subtopic_frame(subtopics: Any) -> pd.DataFrame:
    """Subtopics (qid, entity_id[, prob]) from a frame or a path."""
    return read_subtopics(subtopics) if is_path(subtopics) else pandas_frame(subtopics, "subtopics")


def measure_with_distribution(measure: str | ir_measures.Measure) -> UnjudgedMeasure:
    """Parse a measure that has a distribution over the grades of unjudged documents."""
    (checked,) = measures_from(measure)
    if not isinstance(checked, UnjudgedMeasure):
        raise ParameterError(
            f"{checked}: wanted a measure of the B or E family, as 'ENDCG@10', which has a distribution over the "
            "grades of unjudged documents"
        )
    return checked


def _qids(frame: pd.DataFrame, name: str) -> Ids:
    return column_ids(frame["qid"], f"{name} column 'qid'")


def intents_and_queries(intents: Any, topics: pd.DataFrame, undefined: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Candidate intents of the queries, and the queries to evaluate."""
    if hasattr(intents, "link"):
        raise InputError(f"intents: found the linker {intents!r}; wanted a pipeline: CandidateIntents(linker)")
    frame = intents.transform(topics) if is_pipeline(intents) else named_frame("intents", intents)
    if "docno" in frame.columns and "entity_id" not in frame.columns:
        raise InputError(
            "intents: found results of a retriever; if its documents are entities, convert them to candidates: "
            "CandidateIntents(retriever), or retriever >> Calibrate()"
        )
    require(frame, ("qid", "entity_id", "prob"), "intents")
    kinds = _qids(topics, "topics"), _qids(frame, "intents")
    require_same_kind(*kinds, "topics column 'qid'", "intents column 'qid'")
    qids = topics["qid"].astype(str)
    frame = frame[frame["qid"].astype(str).isin(qids.unique())].reset_index(drop=True)
    without = ~qids.isin(frame["qid"].astype(str).unique())
    if without.all():
        raise InputError(f"intents: none of the {len(topics)} queries ({examples(qids)}) has any candidate")
    if without.any():
        problem = f"{int(without.sum())} of {len(topics)} queries have no candidate intents ({examples(qids[without])})"
        if undefined == "raise":
            raise InputError(f"{problem}; add candidates, or ask for undefined='skip' to leave them out")
        if undefined == "skip":
            warn(f"{problem} and are left out")
            topics = topics[~without].reset_index(drop=True)
    return frame, topics


def run_of_system(name: str, system: Any, topics: pd.DataFrame, inputs: pd.DataFrame, duplicates: str = "error") -> Run:
    """The run of a pipeline on the queries, or the run in a frame restricted to them.

    Warn of queries of the run that are not in ``inputs``; raise if the run has no other queries.
    """
    if is_pipeline(system):
        system = system.transform(topics)
    run = Run(system, name=f"run {name!r}", duplicates=duplicates)
    if run.topics:
        qid = _qids(inputs, "topics")
        run_places(run, qid.text.to_pylist(), qid, "topics")
    return run.only(set(topics["qid"].astype(str)))


def document_tags(tagger: Any, runs: Mapping[str, Run], cutoff: int | None) -> pd.DataFrame:
    """Tags of the documents up to the cutoff in all systems: one T frame, so that all systems share one tagger."""
    if tagger is None:
        return _tags_of_runs(runs, cutoff)
    stage = tagging_stage(tagger)
    return named_frame("tags", tagger) if stage is None else stage.tags(documents_to_tag(stage, runs, cutoff))


def tagging_stage(tagger: Any) -> TagEntities | None:
    """The stage that tags documents; ``None`` for tags that are given, or those of the runs."""
    if tagger is None or is_frame(tagger) or (is_path(tagger) and tagger != DOCNO):
        return None
    from vbterrier.intents.tagging import TagEntities

    return tagger if isinstance(tagger, TagEntities) else TagEntities(tagger)


def documents_to_tag(stage: TagEntities, runs: Mapping[str, Run], cutoff: int | None) -> pd.DataFrame:
    """The distinct documents up to the cutoff in all systems, with the columns that a stage reads."""
    import pyterrier as pt

    read = pt.inspect.transformer_inputs(stage)[0]
    for name, run in runs.items():
        missing = [column for column in read if column not in run.frame.columns]
        if missing and len(run):
            raise InputError(
                f"run {name!r}: no column {missing[0]!r}, which {stage!r} reads; add pt.text.get_text(...) after the "
                "retriever, name other fields=, or give tags as a frame (docno, entity_id)"
            )
    documents = pd.concat([_first(run, cutoff) for run in runs.values() if len(run)] or [pd.DataFrame(columns=read)])
    return documents.drop_duplicates(read, ignore_index=True)


def _first(run: Run, cutoff: int | None) -> pd.DataFrame:
    rows = run.top(cutoff).rows
    return run.frame.iloc[rows[rows >= 0]]


def _tags_of_runs(runs: Mapping[str, Run], cutoff: int | None) -> pd.DataFrame:
    without = [name for name, run in runs.items() if len(run) and "entity_id" not in run.frame.columns]
    if without:
        raise InputError(
            f"no tags: run {without[0]!r} has no column entity_id; give a tagger, or tags as a frame (docno, entity_id)"
        )
    first = [_first(run, cutoff) for run in runs.values() if len(run)]
    if not first:
        return pd.DataFrame({"docno": [], "entity_id": []}, dtype=str)
    of_runs = [from_run(Run(frame)) for frame in first]
    weighted = [tags if "weight" in tags.columns else tags.assign(weight=1.0) for tags in of_runs]
    # Columns that some runs lack, such as those about ties, are unknown.
    shared = [name for name in weighted[0].columns if all(name in tags.columns for tags in weighted)]
    tags = pd.concat([tags[shared].drop_duplicates() for tags in weighted], ignore_index=True)
    document, tag = ["qid", "docno"], ["qid", "docno", "entity_id", "weight"]
    n_systems = pd.concat([frame[document] for frame in first]).groupby(document, sort=False).size().rename("shown")
    n_tagging = tags.groupby(tag, sort=False).size().rename("tagged").reset_index()
    odd = n_tagging.join(n_systems, on=document).query("shown != tagged")
    if len(odd):
        one = odd.iloc[0]
        raise InputError(
            f"document {one['docno']!r} of query {one['qid']!r} has entity {one['entity_id']!r} with weight "
            f"{one['weight']:g} in {one['tagged']} of the {one['shown']} systems that retrieve it (systems: "
            f"{', '.join(runs)}): wanted one tagger for all systems; tag all runs with the same tagger"
        )
    return tags.drop_duplicates(ignore_index=True)
