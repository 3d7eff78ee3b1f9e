"""Grids of unsupervised entity rankers over one linked pool."""

from __future__ import annotations

import hashlib
import inspect
import os
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier._version import __version__
from vbterrier.entities.cross_validation import cross_validated, is_trained
from vbterrier.entities.rankers.consensus import ConsensusEntities, PersonalisedPageRank, RandomEntities
from vbterrier.entities.rankers.hybrid import HybridEntities
from vbterrier.entities.rankers.similarity import EntitySimilarity, entity_texts, table
from vbterrier.entities.stage import pool_of_links
from vbterrier.errors import (
    InputError,
    ParameterError,
    agreeing,
    choice,
    examples,
    excerpt,
    float_array,
    nearest,
    number,
    warn,
    whole,
)
from vbterrier.evaluate.grids import GridOptions, GridResult, grid_items, grid_results, rankings_fingerprint
from vbterrier.execution.checkpoint import Journal, rows_fingerprint
from vbterrier.frames.columns import QRELS, TOPICS
from vbterrier.frames.contracts import pandas_frame, require
from vbterrier.frames.files.reading import read_qrels, read_topics
from vbterrier.frames.pipelines import is_pipeline
from vbterrier.frames.ranges import score_bounds
from vbterrier.frames.ranking import Run, loaded_run, ranked
from vbterrier.frames.score_table import refuse_ratios
from vbterrier.measures.base import Measure, evaluate
from vbterrier.measures.target import EvaluationTarget
from vbterrier.measures.text import distinct_measures
from vbterrier.settings import Execution, Inference, with_defaults
from vbterrier.stats.frontier import Frontier, pareto_frontier
from vbterrier.stats.topic_intervals import N_RESAMPLES, method_within, topics_interval

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import ir_measures
    import pyterrier as pt

    from vbterrier.annotations import Floats
    from vbterrier.frames.linked_pool import LinkedPool
    from vbterrier.frames.results import Figures


_CUTOFFS = [20, 50, 100, None]
_SIMILARITY: dict[str, list[Any]] = {
    "idf": [False, True],
    "support": ["none", "rank", "rho", "rho+rank"],
    "pool_cutoff": _CUTOFFS,
}
# 187 configurations, as many as the paper's, of the families that its section 2.6.8 names and chance.
ENTITY_GRID: dict[str, dict[str, list[Any]]] = {
    "chance": {"seed": [0]},
    "consensus": {"support": ["rank", "rho", "rho+rank"], "min_documents": [1, 2, 3], "pool_cutoff": _CUTOFFS},
    "pagerank": {
        "damping": [0.5, 0.7, 0.85, 0.95],
        "restart": ["rank", "rho", "rho+rank", "uniform"],
        "pool_cutoff": [50, None],
    },
    "vectors": _SIMILARITY,
    "texts": _SIMILARITY,
    "hybrid": {
        "rankers": list(combinations(("consensus", "pagerank", "vectors", "texts"), 2)),
        "fusion": [("rrf", 10), ("rrf", 60), ("linear", None)],
        "weight": [0.25, 0.5, 0.75],
    },
}
_COVERAGE = ("RelCov", "NonRelCov")
# Resources that a family needs, by the names of the parameters of entity_grid.
_NEEDS = {"vectors": ("embeddings", "query_entities"), "texts": ("embed",)}


class EntityGrid(GridResult):
    """Result of :func:`entity_grid`; the family of given runs is ``"given"``.

    The columns of ``runs``: configuration, family, the parameters, measure, value (the mean over topics where it is
    defined), low, high, level, n_qids, duplicate_of.
    """

    TITLE, NOUN, SHOWN = "Entity runs", "entity run", "value"

    def _figures(self) -> Figures:
        families = dict(zip(self.runs["configuration"], self.runs["family"], strict=True))
        axes = dict(zip("yx", self._axes(), strict=True))
        return {"coverage_discrimination": lambda: {"values": self.values, "families": families, **axes}}

    def _axes(self) -> tuple[str, str]:
        """The first measures of coverage of relevant and of non-relevant documents."""
        names = list(self.runs["measure"].unique())
        above, below = (next((name for name in names if name.startswith(kind)), names[0]) for kind in _COVERAGE)
        return above, below

    def frontier(self, **options: Any) -> Frontier:
        """Return the Pareto frontier of the runs over the topics where both measures are defined.

        Runs with the same rankings count once, so that they do not narrow the intervals. ``**options`` of
        :func:`vbterrier.stats.pareto_frontier`; by default, the first RelCov of the grid is maximised and the first
        NonRelCov minimised.
        """
        options = {**dict(zip(("maximised", "minimised"), self._axes(), strict=True)), **options}
        axes = [options["maximised"], options["minimised"]]
        for name in axes:
            choice("measure", name, tuple(self.runs["measure"].unique()))
        distinct = self.runs.loc[self.runs["duplicate_of"].isna(), "configuration"]
        values = self.values[self.values["measure"].isin(axes) & self.values["name"].isin(distinct)]
        n_values = values["name"].nunique() * len(axes)
        return pareto_frontier(values[values.groupby("qid")["value"].transform("size") == n_values], **options)


@dataclass(eq=False)
class _Context:
    """Evaluation of configurations on a pool."""

    pool: LinkedPool
    topics: pd.DataFrame
    measures: list[Measure]
    cutoff: int
    resources: dict[str, Any]

    def ranker(self, family: str, parameters: Mapping[str, Any]) -> pt.Transformer:
        """The stage of a configuration."""
        if family == "consensus":
            return _stage(ConsensusEntities, parameters, links=self.pool)
        if family == "pagerank":
            return _stage(PersonalisedPageRank, parameters, links=self.pool)
        if family in {"vectors", "texts"}:
            used = ("embeddings", "query_entities") if family == "vectors" else ("embed", "texts")
            arguments = {name: self.resources[name] for name in used}
            return _stage(EntitySimilarity, parameters, links=self.pool, **arguments)
        if family == "hybrid":
            if set(parameters) != {"rankers", "fusion", "weight"}:
                raise ParameterError("grid: family 'hybrid' needs the parameters rankers, fusion and weight, no others")
            names, fused, weight = parameters["rankers"], parameters["fusion"], number("weight", parameters["weight"])
            for name, pair in (("rankers", names), ("fusion", fused)):
                if not isinstance(pair, (list, tuple)) or len(pair) != len(("first", "second")):
                    raise ParameterError(
                        f"grid: {name}={excerpt(pair)} of a hybrid: wanted a list of pairs, as [('rrf', 60)]"
                    )
            (fusion, k), rankers = fused, [self.ranker(name, {}) for name in names]
            arguments = {"weights": [weight, 1 - weight], "fusion": fusion, **({} if k is None else {"k": float(k)})}
            return HybridEntities(rankers, **arguments)
        if family == "chance":
            return ConsensusEntities(links=self.pool, min_documents=1) >> _stage(RandomEntities, parameters)
        families = [name for name in ENTITY_GRID if name != "hybrid"]
        raise ParameterError(
            f"grid: no ranker {family!r}; there are {', '.join(families)}.{nearest(str(family), families)}"
        )

    def embed_once(self) -> None:
        """Embed the texts of entities and queries in one call: configurations share the vectors."""
        resources = self.resources
        entities = entity_texts(self.pool.entities.text.to_pylist(), resources["texts"])
        texts = list(dict.fromkeys([*entities, *self.topics["query"].astype(str)]))
        vectors = table(resources["embed"](texts), texts, "texts")
        self.resources = {**resources, "embed": partial(_vector_rows, dict(zip(texts, vectors, strict=True)))}

    def values(self, configuration: tuple[str, Mapping[str, Any]]) -> tuple[dict[str, dict[str, float]], str]:
        """The value of each measure and topic where it is defined, and the fingerprint of the rankings."""
        return self.evaluate_entities(self.ranker(*configuration)(self.topics), "entity run")

    def evaluate_entities(self, entities: pd.DataFrame, name: str) -> tuple[dict[str, dict[str, float]], str]:
        """The values of an entity run, and the fingerprint of its rankings."""
        run = Run(ranked(entities, self.cutoff, name=name), name=name)
        target = EvaluationTarget.of_links(self.pool)
        values: dict[str, dict[str, float]] = {str(measure): {} for measure in self.measures}
        for topic, measure, value in evaluate(self.measures, target, run):
            values[str(measure)][topic] = value
        return values, rankings_fingerprint(run)

    def fingerprint(self) -> str:
        """Digest of all inputs of the configurations."""
        pool, resources, names = self.pool, self.resources, self.pool.entities.text.to_pylist()
        parts = [
            __version__,
            "values and rankings",
            *map(str, self.measures),
            str(self.cutoff),
            *map(str, self.topics["qid"]),
            *pool.topics,
        ]
        parts += [*pool.docno.text.to_pylist(), *names]
        parts += [rows_fingerprint([pool.pairs[pool.pair], pool.document, pool.weight])]
        parts += [rows_fingerprint([pool.rank, pool.label, pool.topic])]
        parts += map(str, self.topics["query"].tolist() if "query" in self.topics else ())
        made = hashlib.blake2b("\0".join(parts).encode(), digest_size=16)
        if resources["embeddings"] is not None:
            for name in names:
                if name in resources["embeddings"]:
                    vector = float_array(f"embeddings: {name!r}", resources["embeddings"][name])
                    made.update(name.encode() + vector.tobytes())
            made.update(resources["query_entities"].to_csv(index=False).encode())
        if resources["embed"] is not None:
            made.update(float_array("embed", resources["embed"](self.topics["query"].tolist())).tobytes())
            made.update("\0".join(str((resources["texts"] or {}).get(name, "")) for name in names).encode())
        return made.hexdigest()


def _vector_rows(vectors: Mapping[str, Floats], texts: Sequence[str]) -> Floats:
    return np.stack([vectors[text] for text in texts])


def _stage(kind: Any, parameters: Mapping[str, Any], **shared: Any) -> Any:
    accepted = inspect.signature(kind).parameters
    if unknown := [name for name in parameters if name not in accepted or name in shared]:
        names = [name for name in accepted if name not in shared]
        raise ParameterError(
            f"grid: {kind.__name__} has no parameter {excerpt(unknown[0])} to vary; it has {', '.join(names)}"
        )
    return kind(**shared, **parameters)


@with_defaults
def entity_grid(
    links: Any,
    topics: Any,
    measures: Sequence[str | ir_measures.Measure] = ("RelCov@20", "NonRelCov@20"),
    *,
    grid: Any = None,
    runs: Mapping[str, Any] | None = None,
    cutoff: int = 20,
    options: GridOptions = GridOptions(
        embeddings=None, query_entities=None, embed=None, texts=None, qrels=None, folds=5
    ),
    inference: Inference = Inference(interval="unseen", level=0.95, n_resamples=N_RESAMPLES, seed=0),
    execution: Execution = Execution(n_jobs=1, resume=None, progress=True),
) -> EntityGrid:
    """Evaluate every configuration of a grid of unsupervised entity rankers on one linked pool.

    Parameters
    ----------
    links, topics
        A :class:`~vbterrier.entities.LinkedPool` with judgments, or its K frame; a frame (qid, query), or the path
        of a topic file.
    grid
        By family, a mapping of parameter to value or list of values, which are combined; or a list of such grids. The
        families: ``consensus``, ``pagerank``, ``vectors`` and ``texts``
        (:class:`~vbterrier.entities.rankers.similarity.EntitySimilarity`), ``hybrid`` (rankers: names of two families,
        fusion: ("rrf", k) or ("linear", None), weight: of the first), ``chance``. By default ``ENTITY_GRID`` of this
        module: 187 configurations, of which those without resources are omitted, with a warning.
    measures, cutoff
        Measures of entity runs, or their names; the number of entities of each topic to keep.
    runs
        Further entity runs by name, such as supervised ones, in the same tables and on the same frontier: frames,
        paths, or stages and pipelines of the topics.
    options
        A :class:`vbterrier.evaluate.GridOptions`: ``embeddings``, ``query_entities``, ``embed``, ``texts``, ``qrels``,
        ``folds``.
    inference
        An :class:`vbterrier.Inference`: ``interval`` (``"unseen"``), ``level`` (0.95), ``n_resamples`` (2,000),
        ``seed`` (0). Intervals are those of means over topics, Student's t instead of ``"unseen"`` for OER, whose range
        is unknown; the seed is also that of folds.
    execution
        An :class:`vbterrier.Execution`: ``n_jobs`` (1), ``resume``, ``progress`` (True). See :func:`rerank_grid`.

    Returns
    -------
    EntityGrid
        ``runs``: a row per configuration and measure; its method ``frontier`` returns the Pareto frontier of both
        coverages.

    Raises
    ------
    InputError, ParameterError
        Links without a pool or judgments; topics without queries for ``texts``; a file with results of other inputs;
        unknown families, parameters or measures; a family of a given grid without the resources that it needs.

    Notes
    -----
    The paper's 187 configurations are listed in an appendix that is not part of it: the default grid has its families
    and its size, not its parameters. Language models that rerank entities are not part of the grid. Intervals are not
    corrected for the number of configurations. The paper's six supervised runs join as pipelines in ``runs``: its
    section 2.6.6 describes MonoBERT on binary and on conceptual labels, the latter with local IDF, and a selector with
    LightGBM. Stages with the same encoder encode the pairs of a topic once.

    Source: Chatterjee: Entities as Retrieval Signals, arXiv 2604.05204, section 2.6.8, figure 6.

    Examples
    --------
    >>> from vbterrier.entities import link_pool
    >>> rows = [(qid, docno, 3.0 - at) for qid in ("q1", "q2") for at, docno in enumerate(["d1", "d2", "d3"])]
    >>> pool = pd.DataFrame(rows, columns=["qid", "docno", "score"])
    >>> tags = pd.DataFrame({"docno": ["d1", "d2", "d3"], "entity_id": ["Paris", "Paris", "Texas"]})
    >>> links = link_pool(pool, tags, pd.DataFrame({"qid": ["q1", "q2"], "docno": "d1", "label": 1}))
    >>> topics = pd.DataFrame({"qid": ["q1", "q2"], "query": "capital"})
    >>> grid = {"consensus": {"min_documents": [1, 2]}}
    >>> result = entity_grid(links, topics, ["RelCov@1", "NonRelCov@2"], grid=grid, execution=Execution(progress=False))
    >>> result.runs[["min_documents", "measure", "value"]].values.tolist()
    [[1, 'RelCov@1', 1.0], [1, 'NonRelCov@2', 1.0], [2, 'RelCov@1', 1.0], [2, 'NonRelCov@2', 0.5]]
    """
    embeddings, query_entities, embed, texts, qrels, folds = (
        options.embeddings,
        options.query_entities,
        options.embed,
        options.texts,
        options.qrels,
        options.folds,
    )
    level, n_resamples, seed = inference.level, inference.n_resamples, inference.seed
    n_jobs, path, progress = execution.n_jobs, execution.resume, execution.progress
    reported = distinct_measures(measures, "RelCov@20")
    refuse_ratios(map(str, reported), "vbterrier.score")
    external = [str(measure) for measure in reported if not isinstance(measure, Measure)]
    if external:
        raise ParameterError(f"measures: wanted measures of entity runs, as 'RelCov@20', found {external}")
    pool = pool_of_links(links, "entity_grid")
    queries = read_topics(topics) if isinstance(topics, (str, os.PathLike)) else pandas_frame(topics, "topics", TOPICS)
    require(queries, ("qid", "query") if embed is not None else ("qid",), "topics")
    query_entities = None if query_entities is None else pandas_frame(query_entities, "query_entities")
    resources = {"embeddings": embeddings, "query_entities": query_entities, "embed": embed, "texts": texts}
    lost = set(pool.topics) - set(queries["qid"].astype(str))
    if lost:
        raise InputError(f"topics: {agreeing(len(lost), 'topics of the links are')} missing ({examples(sorted(lost))})")
    every, omitted = _configurations(ENTITY_GRID if grid is None else grid, resources, is_default=grid is None)
    context = _Context(pool, queries, reported, whole("cutoff", cutoff), resources)
    for configuration in every.values():
        # Bad parameters are refused before any evaluation.
        context.ranker(*configuration)
    journal = Journal(path, context.fingerprint())
    missing = [every[name] for name in every if name not in journal.done]
    if any("texts" in (family, *parameters.get("rankers", ())) for family, parameters in missing):
        context.embed_once()
    else:
        # Workers may be unable to import the function.
        context.resources = {**context.resources, "embed": None}
    names = [str(measure) for measure in reported]
    results = grid_results("entity runs", context, every, journal, path, names, n_jobs=n_jobs, progress=progress)
    for name, source in (runs or {}).items():
        if name in every:
            raise ParameterError(f"runs: {name!r} is the name of a configuration of the grid; give it another name")
        values, ranking = context.evaluate_entities(
            _given_run(name, source, queries, qrels, folds, seed), f"run {name!r}"
        )
        every[name], results[name] = ("given", {}), {"values": values, "ranking": ranking}
    if not every:
        raise ParameterError("grid: no configuration; name at least a family")
    table = _grid_frame(every, results, inference.interval, level=level, n_resamples=n_resamples, seed=seed)
    return EntityGrid.of(table, results, omitted)


def _given_run(name: str, source: Any, topics: pd.DataFrame, qrels: Any, folds: Any, seed: int) -> pd.DataFrame:
    """Return an entity run that was given as a frame, a path or a pipeline."""
    if not is_pipeline(source):
        return loaded_run(name, source).frame
    if not is_trained(source):
        ranking: pd.DataFrame = source.transform(topics)
        return ranking
    if qrels is None:
        raise InputError(f"runs: {name!r} contains an estimator, which is cross-validated; give qrels=")
    judged = read_qrels(qrels) if isinstance(qrels, (str, os.PathLike)) else pandas_frame(qrels, "qrels", QRELS)
    try:
        return cross_validated(source, topics, judged, folds=folds, seed=seed)
    except InputError as error:
        raise InputError(f"run {name!r}: {error}") from error


def _configurations(
    grid: Any, resources: Mapping[str, Any], *, is_default: bool
) -> tuple[dict[str, tuple[str, dict[str, Any]]], list[str]]:
    """The distinct configurations of a grid by name, and the families that lack resources."""
    made: dict[str, tuple[str, dict[str, Any]]] = {}
    lacking = {family: [name for name in needs if resources[name] is None] for family, needs in _NEEDS.items()}
    omitted: set[str] = set()
    items = list(grid_items(grid, ENTITY_GRID))
    for family, parameters in items:
        without = [name for name in parameters.get("rankers", (family,)) if lacking.get(name)]
        if without and not is_default:
            raise ParameterError(f"grid: family {without[0]!r} needs {' and '.join(lacking[without[0]])}")
        if without:
            omitted.update(without)
            continue
        text = ", ".join(f"{name}={value!r}" for name, value in parameters.items())
        made[f"{family}({text})"] = family, parameters
    if omitted:
        n = len(items)
        warn(
            f"grid: {n - len(made)} of {n} configurations are omitted, for lack of resources: "
            + "; ".join(f"{family!r} needs {' and '.join(lacking[family])}" for family in sorted(omitted))
        )
    return made, sorted(omitted)


def _grid_frame(every: Mapping[str, Any], results: Mapping[str, Any], interval: str, **options: Any) -> pd.DataFrame:
    rows = []
    for name, (family, parameters) in every.items():
        for measure, values in results[name]["values"].items():
            numbers = np.array(list(values.values()))
            low = high = mean = float("nan")
            if len(numbers):
                bounds = score_bounds(measure)
                method = method_within(interval, bounds)
                limits = topics_interval(numbers, method=method, qids=list(values), bounds=bounds, **options)
                low, high, mean = limits.low, limits.high, float(numbers.mean())
            row = {"configuration": name, "family": family, **parameters, "measure": measure, "value": mean}
            rows.append(row | {"low": low, "high": high, "level": options["level"], "n_qids": len(numbers)})
    table = pd.DataFrame(rows)
    last = ["measure", "value", "low", "high", "level", "n_qids"]
    heads = ["configuration", "family"]
    return table[[*heads, *table.columns.difference([*heads, *last], sort=False), *last]]
