"""pt.Experiment over all runs at once: the arguments and tables of PyTerrier, the values of :func:`vbterrier.score`."""

from __future__ import annotations

import builtins
import logging
from collections import Counter
from functools import partial
from itertools import filterfalse
from math import nan
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import ir_measures
import numpy as np
import pandas as pd
import pyarrow as pa
from pandas.api.types import infer_dtype
from pandas.api.types import is_integer_dtype as is_integer

from vbterrier.errors import InputError, ParameterError, agreeing, choice, examples, excerpt, heard, warn, whole
from vbterrier.evaluate.experiment_tables import (
    MEAN_RESPONSE_TIME,
    STYLES,
    BaselineTests,
    ExperimentTable,
    ExperimentValues,
    highlighting_style,
    merge_into,
    system_keys,
)
from vbterrier.evaluate.inputs import evaluation_target, is_path, named_systems
from vbterrier.evaluate.scores import score
from vbterrier.frames.affixes import affix_text
from vbterrier.frames.contracts import is_frame, pandas_frame
from vbterrier.frames.files.parts import is_in_files
from vbterrier.frames.files.writing import require_no_input
from vbterrier.frames.ids import Ids, distinct_blocks, require_same_kind
from vbterrier.frames.linked_pool import LinkedPool
from vbterrier.frames.pipelines import is_pipeline
from vbterrier.frames.queries import require_unweighted
from vbterrier.frames.ranking import system_tables
from vbterrier.frames.systems import ONE
from vbterrier.frames.trectools import is_trectools
from vbterrier.hosts.ir_measures import FROM_IR_MEASURES
from vbterrier.measures.text import measures_from
from vbterrier.measures.unjudged import Estimated
from vbterrier.settings import Data, Inference, with_defaults

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Collection, Mapping, Sequence

    from vbterrier.evaluate.scores import Scores
    from vbterrier.hosts.systems import ResultFiles
    from vbterrier.measures.target import EvaluationTarget


_LOG = logging.getLogger(__name__)
_LOOK = "look for other prefixes or leading zeros"
_SAVED_TABLES = ("aggregated.csv", "perquery.csv")
_INTERVAL_NEED = "an interval over topics needs"


class ExperimentTables(NamedTuple):
    """Means and values of single topics: the result of :func:`Experiment` with ``perquery="both"``."""

    averages: Any
    perquery: Any

    def _repr_html_(self) -> str | None:
        # Both tables have the same answer, which a style of the means does not show.
        has_answer = isinstance(self.averages, ExperimentTable)
        rows = self.perquery.rows_html() if has_answer else self.perquery._repr_html_()
        averages = self.averages._repr_html_()
        return None if rows is None or averages is None else f"{averages}\n{rows}"


@partial(with_defaults, further=("system", "pool_cutoff"))
def Experiment(
    retr_systems: Sequence[Any] | Mapping[str, Any],
    topics: Any,
    qrels: Any,
    eval_metrics: Sequence[str | ir_measures.Measure],
    names: Sequence[str] | None = None,
    perquery: bool | Literal["both"] = False,
    dataframe: bool = True,
    batch_size: int | None = None,
    filter_by_qrels: bool = False,
    filter_by_topics: bool = True,
    baseline: int | str | None = None,
    test: str | Callable[..., Any] = "t",
    correction: str | None = None,
    correction_alpha: float = 0.05,
    highlight: str | None = None,
    round: int | Mapping[str, int] | None = None,
    verbose: bool | Literal["auto"] = "auto",
    validate: str = "warn",
    save_dir: str | os.PathLike[str] | None = None,
    save_mode: str = "warn",
    save_format: Any = "trec",
    precompute_prefix: bool = False,
    plan: str = "linear",
    **kwargs: Any,
) -> Any:
    """``pt.Experiment`` for measures that need the results of all systems.

    It has the arguments and the result of ``pt.Experiment``, with three differences. Each system is run once, and
    measures are computed after the last one, so that measures of the E family, as ENDCG, fit their model to all
    systems. Topics for which a measure is undefined are left out of its mean, and counted in a warning and in the
    attribute ``attrs["n_undefined"]`` of the table of means. Measures may be text.

    Parameters
    ----------
    retr_systems
        A list, or a mapping of name to system: pipelines, results as frames (qid, docno, score), and paths of runs.
    topics, qrels
        The queries, the input of the pipelines, as a frame with a column qid or a path; the judgments, as a frame (qid,
        docno, label) or a path. For other measures, what :func:`vbterrier.score` takes as qrels.
    eval_metrics
        Measures as objects or text, as ``"nDCG@10"`` and ``"BNDCG@10"``; names of trec_eval, such as ``"map"`` and
        ``"ndcg_cut_10"``, have the meaning that they have in ``pt.Experiment``. ``"mrt"`` is the mean response time.
    names
        Names of the systems of a list; by default their text, and the names of their files.
    perquery, dataframe
        ``True`` returns values of topics (name, qid, measure, value) instead of means, ``"both"`` a pair of both
        tables; ``dataframe=False`` returns dictionaries.
    batch_size
        Number of topics that pipelines receive at a time; it has no effect on values.
    filter_by_qrels, filter_by_topics
        Drop topics that are not in the qrels, and topics of the qrels that are not in ``topics``.
    baseline, test, correction, correction_alpha
        Position or name of the system with which the others are compared: columns with the numbers of topics of higher
        (+) and lower (-) values and the p-value of ``"t"``, ``"wilcoxon"`` or a function; for a correction of
        statsmodels, as ``"holm"``, also whether the hypothesis is rejected, and the corrected p-value.
    highlight
        ``"bold"`` or ``"color"``: return the means as a ``pandas`` style with the best value of each column marked.
    round
        Number of decimal places in tables, or a mapping of the name of a measure to it.
    verbose
        Show a progress bar over systems.
    validate
        ``"warn"``, ``"error"`` or ``"ignore"``: the treatment of pipelines whose columns do not fit.
    save_dir, save_mode, save_format
        A folder for the results of the pipelines, as ``bm25.res.gz``, and for ``aggregated.csv`` and ``perquery.csv``,
        which keep the rows of other systems. Existing results: ``"reuse"``, ``"overwrite"``, ``"warn"`` (and replace
        them) or ``"error"``. The format: ``"trec"``, a module such as ``pickle``, or a pair of functions that read from
        and write to a file.
    precompute_prefix, plan
        ``plan="tree"`` runs stages with which several pipelines begin once. ``precompute_prefix=True`` runs the stages
        once with which all begin.
    kwargs
        ``system``: the column that names the system of a row in frames and files of several systems, which are
        evaluated one by one under its values; and ``pool_cutoff``: the rank to which complete judgments judge the
        systems, for measures of the E family. See :class:`vbterrier.Data`. Any other name is a TypeError.

    Returns
    -------
    pandas.DataFrame
        One row per system with the columns name, a column for each measure in the order of the call,
        mrt, and the columns of tests. With ``highlight``, a pandas style of it; with ``perquery="both"``, the pair
        (averages, perquery). The attribute ``attrs["notes"]`` of means names the models of estimated measures, as the
        caption of a style does; values of topics have their digests in a column model, as :func:`vbterrier.score` has.
        The method ``answer()`` of tables returns the :class:`~vbterrier.frames.answer.Answer`: the verdict on the
        means, or on the tests with ``baseline``, caveats, and the call that compares all pairs. Notebooks show it above
        the table, and ``attrs["answer"]`` has it as a mapping, which copies keep.

    Raises
    ------
    InputError, ParameterError
        Systems, frames or files that cannot be evaluated; a pipeline without results; names that are not unique where
        they identify systems (values of topics, dictionaries, files); files with values by another model; invalid
        options.
    TypeError
        An unknown argument.

    Warns
    -----
    DegenerateWarning
        Topics for which a measure is undefined, and, for values of topics, topics that are not in the qrels. Fully
        judged systems whose estimate differs from the measure of the judgments.

    Notes
    -----
    Values are those of ``score(..., on_topics="all")``. A topic of the qrels without results scores as an empty
    ranking, also if a batch has no results at all. A topic that is not in the qrels has no effect on means; its values
    are NaN. Topics of the qrels that are not in ``topics`` are dropped, or without ``filter_by_topics`` score as empty
    rankings. Documents with equal scores have the order of trec_eval in all measures, and repeated documents are an
    error. Counts, such as NumRet(rel=1), are summed, as ir_measures defines them.

    A test takes the topics for which both systems have a value. An undefined p-value, as of equal values, counts as a
    test in a correction, and is never rejected.

    ``mrt`` is the time of the pipeline in milliseconds, divided by the number of topics of the qrels, and 0 for frames,
    files and reused results; a time of shared stages counts for each pipeline. As in ``pt.Experiment``,
    ``precompute_prefix`` adds the whole time of the shared stages, not its mean over topics (use ``plan="tree"``), and
    there is no ``mrt`` beside values of topics.

    Examples
    --------
    >>> qrels = pd.DataFrame({"qid": ["q1", "q1", "q2"], "docno": ["a", "b", "a"], "label": [1, 0, 1]})
    >>> topics = pd.DataFrame({"qid": ["q1", "q2"], "query": ["Jordan", "Paris"]})
    >>> good = pd.DataFrame({"qid": ["q1", "q2"], "docno": "a", "score": 1.0})
    >>> Experiment({"good": good, "bad": good.assign(docno="b")}, topics, qrels, ["P@1", "map"]).values.tolist()
    [['good', 1.0, 1.0], ['bad', 0.0, 0.0]]
    >>> Experiment({"good": good, "bad": good.assign(docno="b")}, topics, qrels, ["map"]).answer().verdict
    'By AP, good scores 1.000 (95% interval 0.158 to 1.000) and bad 0.000 (0.000 to 0.842) over 2 topics.'
    """
    system, pool_cutoff = kwargs.pop("system", None), kwargs.pop("pool_cutoff", None)
    if kwargs:
        raise TypeError(f"Experiment() got an unexpected keyword argument {next(iter(kwargs))!r}")
    if perquery not in (False, True, "both"):
        raise ParameterError(f"perquery={excerpt(perquery)}: wanted False, True or 'both'")
    if batch_size is not None:
        whole("batch_size", batch_size)
    if highlight is not None:
        choice("highlight", highlight, STYLES)
    sources, shown = _systems(retr_systems, names)
    systems, shown = _each(sources, shown, system)
    by_name = {"perquery": perquery and dataframe, "dataframe=False": not (dataframe or perquery), "save_dir": save_dir}
    _require_unique(shown, [argument for argument, needed in by_name.items() if needed])
    measures, is_timed = _measures(eval_metrics)
    tests = BaselineTests.of(baseline, test, correction, correction_alpha, shown, perquery=bool(perquery))
    places = _decimal_places(round, perquery=bool(perquery))

    # Imports PyTerrier.
    from vbterrier.hosts import systems as host

    choice("plan", plan, host.PLANS)
    every = host.read_pipeline_input(topics)
    remedy = "use vbterrier.compare with data=vbterrier.Data(topics=topics), or leave the column out"
    require_unweighted(every, "Experiment", remedy)
    effect = "; their values are NaN" if perquery else ""
    queries, judged = _common_topics(every, qrels, by_qrels=filter_by_qrels, by_topics=filter_by_topics, effect=effect)
    read = sorted(FROM_IR_MEASURES.get(column, column) for column in ir_measures.run_inputs(list(measures)))
    host.validate(zip(shown, systems, strict=True), queries, read, validate)
    files = None if save_dir is None else host.ResultFiles(save_dir, shown, save_mode, save_format)
    _require_separate(files, systems, sources, topics, qrels)
    plan = "prefix" if precompute_prefix and plan == "linear" else plan
    results, times = host.system_results(
        systems, shown, queries, files, batch_size=batch_size, plan=plan, progress=verbose is True
    )
    n_topics = len(judged.topics)
    milliseconds = [before + elapsed / n_topics for before, elapsed in times] if is_timed else None
    values = _experiment_values(results, shown, judged, measures, queries if perquery else None, pool_cutoff)
    averages, per_query = (
        values.averages(places, tests, milliseconds),
        values.per_query(places) if perquery or save_dir is not None else pd.DataFrame(),
    )
    if save_dir is not None:
        merge_into(Path(save_dir) / _SAVED_TABLES[0], averages, values.models)
        merge_into(Path(save_dir) / _SAVED_TABLES[1], per_query, values.models)
    values.warn(of_means=perquery is not True)
    n_models = len({one["model"] for one in measures if isinstance(one, Estimated)})
    for note in filterfalse(values.reported.__contains__, values.notes[n_models:]):
        warn(note)
    answer = values.answer(averages, tests)
    _LOG.info("%s", answer.verdict)
    if perquery:
        milliseconds, averages = None, averages.drop(columns=MEAN_RESPONSE_TIME, errors="ignore")
    averages, per_query = (ExperimentTable.of(table, answer) for table in (averages, per_query))
    tables: tuple[Any, Any] = averages, per_query
    if not dataframe:
        tables = values.by_name(milliseconds), values.by_place()
    elif highlight is not None:
        tables = highlighting_style(averages, STYLES[highlight]), per_query
    return ExperimentTables(*tables) if perquery == "both" else tables[bool(perquery)]


def _systems(source: Any, names: Sequence[Any] | None) -> tuple[list[Any], list[Any]]:
    """Systems and their names."""
    if hasattr(source, "items") and not is_frame(source):
        systems, shown = list(source.values()), list(source)
    elif isinstance(source, (list, tuple)):
        systems = list(source)
        shown = list(names) if names is not None else [_system_text(system) for system in systems]
    else:
        raise InputError(
            f"retr_systems: found {type(source).__name__}; wanted a list of systems, or a mapping of name to system"
        )
    if not systems:
        raise InputError("retr_systems: none; give at least one pipeline, frame of results or path of a run")
    if len(shown) != len(systems):
        raise ParameterError(f"names: {len(shown)} names of {len(systems)} systems; give each system one name")
    for place, (name, system) in enumerate(zip(shown, systems, strict=True)):
        if is_trectools(system):
            systems[place] = pandas_frame(system, f"run {name!r}")
        elif not (is_frame(system) or is_in_files(system) or is_pipeline(system)):
            raise InputError(
                f"system {name!r}: found {type(system).__name__}; wanted a pipeline, a frame of results (qid, docno, "
                "score), the path of a run or those of its parts"
            )
    return systems, shown


def _require_separate(files: ResultFiles | None, systems: Sequence[Any], *inputs: Any) -> None:
    """Refuse files to write that are inputs; results are written for pipelines whose results are not reused."""
    if files is None:
        return
    results = [path for path, system in zip(files.paths, systems, strict=True) if is_pipeline(system)]
    tables = [files.folder / name for name in _SAVED_TABLES]
    for path in [*(path for path in results if path not in files.reused), *tables]:
        require_no_input(path, systems, *inputs)


def _each(systems: Sequence[Any], shown: Sequence[Any], system: str | None) -> tuple[list[Any], list[Any]]:
    """Systems and their names, with each system of a table of several."""
    every: list[tuple[Any, Any]] = []
    for name, key, source in zip(shown, system_keys(shown), systems, strict=True):
        tables = {name: source} if is_pipeline(source) else system_tables(key, source, system, extra=False)
        if len(tables) > 1:
            every += tables.items()
        else:
            # Frames are validated as they are given.
            every.append((name, next(iter(tables.values())) if is_in_files(source) else source))
    return [source for _, source in every], [name for name, _ in every]


def _system_text(system: Any) -> str:
    return str(named_systems([system])[0][0]) if is_path(system) or is_trectools(system) else str(system)


def _require_unique(names: Sequence[Any], arguments: Sequence[str]) -> None:
    """Refuse equal names if they identify systems in results; rows of means have the order of the systems."""
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice and arguments:
        raise InputError(
            f"names: {names.count(twice[0])} systems are called {str(twice[0])[:80]!r}, and {arguments[0]} identifies "
            "systems by name; give names="
        )


def _measures(requested: Any) -> tuple[dict[ir_measures.Measure, str], bool]:
    """Measures with the names of their columns, and True if the mean response time is requested."""
    items = [requested] if isinstance(requested, (str, ir_measures.Measure)) else list(requested)
    measures: dict[ir_measures.Measure, str] = {}
    for one in items:
        if isinstance(one, ir_measures.Measure):
            measures.setdefault(one, str(one))
        elif not isinstance(one, str):
            raise ParameterError(f"eval_metrics: found {type(one).__name__}; wanted measures, as 'nDCG@10'")
        elif one != MEAN_RESPONSE_TIME:
            parsed = _text_measures(one)
            # A family, such as "official", has the names of its measures.
            measures |= {
                measure: one if len(parsed) == 1 else measures.get(measure, str(measure)) for measure in parsed
            }
    if not measures:
        raise ParameterError("eval_metrics: no measures; name at least one, as 'nDCG@10'")
    return measures, MEAN_RESPONSE_TIME in [one for one in items if isinstance(one, str)]


def _text_measures(text: str) -> list[ir_measures.Measure]:
    """The measures of a text: those of trec_eval first, as in ``pt.Experiment``."""
    try:
        measures: list[ir_measures.Measure] = ir_measures.parse_trec_measure(text)
    except ValueError:
        return measures_from(text)
    return measures


def _decimal_places(digits: Any, *, perquery: bool) -> Callable[[str, float], float]:
    """The function that rounds a value of a measure."""
    if digits is None:
        return lambda _, value: value
    if not hasattr(digits, "items"):
        n_places = whole("round", digits, low=0)
        return lambda _, value: builtins.round(value, n_places)
    if perquery:
        raise ParameterError("round: places by measure are for means; give one number with perquery")
    by_measure = {str(name): whole(f"round[{str(name)!r}]", value, low=0) for name, value in digits.items()}
    return lambda name, value: builtins.round(value, by_measure[name]) if name in by_measure else value


def _common_topics(
    queries: pd.DataFrame, qrels: Any, *, by_qrels: bool, by_topics: bool, effect: str
) -> tuple[pd.DataFrame, EvaluationTarget]:
    """Topics and qrels, restricted to each other as asked; ``effect`` ends the warning of topics without judgments."""
    if isinstance(qrels, LinkedPool):
        qrels = qrels.to_frame()
    judged = evaluation_target(qrels, None, None)
    qids = queries["qid"].astype(str)
    ids = Ids(pa.array(qids, pa.large_string()), integers=infer_dtype(queries["qid"]) == "integer")
    require_same_kind(ids, judged.qid, "topics column 'qid'", "qrels column 'qid'")
    judged_qids = set(judged.topics)
    has_judgments = np.array([qid in judged_qids for qid in qids], dtype=bool)
    if (by_qrels or by_topics) and not has_judgments.any():
        raise InputError(
            f"no topic in common: topics have {examples(qids.unique())}; qrels have {examples(judged.topics)}; "
            + (affix_text([(list(qids), judged.topics)], "topics", "qrels") or _LOOK)
            + ", or ask for filter_by_topics=False and filter_by_qrels=False"
        )
    unjudged = qids[~has_judgments]
    if has_judgments.any() and len(unjudged):
        affix = affix_text([(list(unjudged), sorted(set(judged.topics).difference(qids)))], "topics", "qrels")
        if affix or not by_qrels:
            left_out = agreeing(len(unjudged), "topics are not in qrels and are left out of means")
            warn(f"topics: {left_out} ({examples(unjudged)}){effect}{f'; {affix}' if affix else ''}")
    queries = queries[has_judgments].reset_index(drop=True) if by_qrels else queries
    return queries, judged.only(set(qids)) if by_topics else judged


def _experiment_values(
    results: Sequence[pd.DataFrame],
    names: list[Any],
    judged: EvaluationTarget,
    measures: Mapping[ir_measures.Measure, str],
    queries: pd.DataFrame | None,
    pool_cutoff: int | None,
) -> ExperimentValues:
    """Evaluate the results of all systems at once; topics are those of the judgments and, if given, the queries."""
    judged_qids = judged.topics
    keys = system_keys(names)
    id_columns = judged.columns & {"qid", "docno"}
    text_columns = {column for column in id_columns if not is_integer(judged.frame[column])}
    among = set(judged_qids)
    runs = {key: _of_judged(frame, among, text_columns, key) for key, frame in zip(keys, results, strict=True)}
    options: dict[str, Any] = {"pool_cutoff": pool_cutoff, "interval": "unseen"}
    scores, messages = heard(lambda: scores_on_all_topics(runs, judged, list(measures), **options))
    for message in messages:
        warn(message)
    means, rows = scores.means().loc[keys], scores.values
    topics = judged_qids if queries is None else list(dict.fromkeys([*judged_qids, *queries["qid"].astype(str)]))
    values = np.full((*means.shape, len(topics)), nan)
    axes: dict[str, Any] = {"name": keys, "measure": means.columns, "qid": topics}
    place_by_label = {column: {label: place for place, label in enumerate(labels)} for column, labels in axes.items()}
    values[tuple([place_by_label[column][label] for label in rows[column]] for column in axes)] = rows["value"]
    models = [""] * len(measures)
    if "model" in rows.columns:
        models = rows.drop_duplicates("measure").set_index("measure")["model"].reindex(means.columns).tolist()
    columns = list(measures.values())
    table, n_judged = means.to_numpy(), len(judged_qids)
    reported = frozenset(messages)
    return ExperimentValues(names, columns, topics, n_judged, values, table, models, scores.notes, reported, scores)


def scores_on_all_topics(
    runs: Mapping[str, Any],
    qrels: Any,
    measures: Sequence[ir_measures.Measure],
    *,
    intents: Any = None,
    tags: Any = None,
    model: Any = None,
    pool_cutoff: int | None = None,
    interval: str = "normal",
) -> Scores:
    """Scores on all topics of the qrels, without warnings about intervals, for hosts whose tables do not show them."""
    data = Data(on_topics="all", model=model, pool_cutoff=pool_cutoff, system=ONE)
    inference = Inference(interval=interval)
    scores, messages = heard(
        lambda: score(runs, qrels, measures, intents=intents, tags=tags, data=data, inference=inference)
    )
    for message in messages:
        if _INTERVAL_NEED not in message:
            warn(message)
    return scores


def _of_judged(results: Any, judged_qids: set[str], text_columns: Collection[str], key: str) -> pd.DataFrame:
    """The results for judged topics, if there are any, with ids as text where those of the judgments are text."""
    frame = pandas_frame(results, f"run {key!r}")
    for column in text_columns:
        if column in frame and is_integer(frame[column]):
            frame = frame.assign(**{column: frame[column].astype(str)})
    if "qid" in frame:
        blocks = distinct_blocks(frame["qid"], f"run {key!r} column 'qid'")
        judged = np.array([qid in judged_qids for qid in blocks.ids.text.to_pylist()], dtype=bool)
        # Without a common topic, the evaluation says what is wrong with the ids.
        if judged.any() and not judged.all():
            _, number = blocks.distinct(len(frame))
            frame = frame[judged[number]].reset_index(drop=True)
    return frame
