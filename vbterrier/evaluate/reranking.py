"""Grids of reranker configurations over one linked pool."""

from __future__ import annotations

import hashlib
import inspect
import os
import warnings
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa

from vbterrier.entities.rerank import FAMILIES
from vbterrier.entities.rerank.base import require_finite
from vbterrier.entities.stage import PoolLinks, TopEntities
from vbterrier.errors import DegenerateWarning, FileError, ParameterError, examples, nearest, warn
from vbterrier.evaluate.inputs import named_runs
from vbterrier.execution.checkpoint import Journal
from vbterrier.execution.input_fingerprint import rows_fingerprint
from vbterrier.execution.parallel import mapped
from vbterrier.execution.pending import Shared
from vbterrier.frames.contracts import frame_of, systems_of
from vbterrier.frames.files.reading import read_qrels
from vbterrier.frames.ids import Ids, ids_of, integers_of, require_same_kind
from vbterrier.frames.ranking import Run
from vbterrier.frames.runs import loaded_run, run_places
from vbterrier.measures.base import Measure, evaluate
from vbterrier.measures.external import external_values
from vbterrier.measures.target import EvaluationTarget
from vbterrier.measures.text import measures_from
from vbterrier.stats.topic_intervals import N_RESAMPLES, topics_intervals

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

    import ir_measures
    from numpy.typing import NDArray

    from vbterrier.entities.rerank.base import Reranker

    Values = dict[str, dict[str, float]]


# The configuration that leaves documents as they are.
POOL = "pool"
RESOURCES = ("embeddings", "document_embeddings", "texts")
# A grid links once: its stages hold parameters, and look at no links and no entities of their own.
_NO_LINKS = pd.DataFrame({"docno": [], "entity_id": []}, dtype=str)
_NO_ENTITIES = pd.DataFrame({"qid": [], "docno": [], "score": []}, dtype=str)


@dataclass(frozen=True)
class Configuration:
    """A family of rerankers with all its parameters, by name, on one of the entity runs."""

    family: str
    entities: str
    parameters: tuple[tuple[str, Any], ...]

    def __str__(self) -> str:
        if self.family == POOL:
            return POOL
        return f"{self.family}({', '.join(f'{name}={value!r}' for name, value in self.parameters)}) on {self.entities}"

    @property
    def shared(self) -> tuple[Any, ...]:
        """What configurations have in common that differ only in how they combine the same evidence."""
        cheap = FAMILIES[self.family].CHEAP if self.family != POOL else ()
        kept = tuple((name, value) for name, value in self.parameters if name not in cheap)
        return self.entities, self.family, kept


def reranker(family: str, parameters: Mapping[str, Any], resources: Mapping[str, Any]) -> Reranker:
    """A stage that holds parameters; its links and entities are empty.

    Raises
    ------
    ParameterError
        A parameter that the family does not have, or an illegal value.
    """
    made: Any = FAMILIES[family]
    known = inspect.signature(made).parameters
    unknown = [name for name in parameters if name not in known or name in {"links", "entities", *RESOURCES}]
    if unknown:
        raise ParameterError(f"grid: family {family!r} has no parameter {unknown[0]!r}")
    given = dict(parameters) | {name: value for name, value in resources.items() if name in known}
    if "links" in known:
        given["links"] = _NO_LINKS
    if "embeddings" in known and given.get("embeddings") is None:
        raise ParameterError("grid: family 'embedding' needs embeddings=, vectors of entities by id")
    stage: Reranker = made(entities=_NO_ENTITIES, **given)
    return stage


def all_parameters(stage: Reranker) -> tuple[tuple[str, Any], ...]:
    """Every parameter of a stage that a grid may vary, as it is after checks."""
    names = [name for name in inspect.signature(type(stage)).parameters if name not in {"links", "entities"}]
    return tuple((name, getattr(stage, name)) for name in names if name not in RESOURCES)


class RerankContext:
    """A pool with its links, entity runs and judgments: gives the values of any configuration.

    Parameters
    ----------
    links
        What documents mention, as stages take it.
    pool
        The documents to rerank.
    runs
        Entity runs by name.
    qrels
        Judgments.
    measures
        Measures.
    resources
        ``embeddings``, ``document_embeddings`` and ``texts``, as stages take them.
    """

    def __init__(
        self,
        links: Any,
        pool: Run,
        runs: Mapping[str, Run],
        qrels: pd.DataFrame,
        measures: Sequence[ir_measures.Measure],
        resources: Mapping[str, Any],
    ) -> None:
        self.documents = PoolLinks(links).of(pool)
        require_finite(self.documents)
        unknown = np.flatnonzero(~self.documents.known)
        if len(unknown):
            first = self.documents.pool.docno.take(unknown[:4]).text.to_pylist()
            warn(
                f"pool: {len(unknown)} documents are not in the pool of links and count as without entities "
                f"({examples(first)})"
            )
        for run in runs.values():
            require_same_kind(run.topic_ids, pool.topic_ids, f"{run.name} column 'qid'", "pool column 'qid'")
            require_same_kind(
                self.documents.pool.entities, run.docno, "links column 'entity_id'", f"{run.name} 'docno'"
            )
        self.runs, self.qrels, self.measures, self.resources = dict(runs), qrels, list(measures), dict(resources)
        self._frame = pool.frame[["qid", "docno"]].iloc[self.documents.row].reset_index(drop=True)
        self._kept: dict[str, tuple[Hashable, Any]] = {}

    def values(self, configuration: Configuration) -> Values:
        """The value of each measure and topic."""
        run = Run(self._frame.assign(score=self.scores(configuration)), name=f"run {str(configuration)!r}")
        slot = self._once("slot", None, lambda: EvaluationTarget(self.qrels))
        ours = [measure for measure in self.measures if isinstance(measure, Measure)]
        theirs = [measure for measure in self.measures if not isinstance(measure, Measure)]
        found: Values = {str(measure): {} for measure in self.measures}
        for topic, measure, value in evaluate(ours, slot, run) if ours else ():
            found[str(measure)][topic] = value
        for topic, measure, value in external_values(theirs, slot, run, warned=True):
            found[str(measure)][topic] = value
        return found

    def scores(self, configuration: Configuration) -> Any:
        """The score of each document."""
        if configuration.family == POOL:
            return self.documents.score
        stage = reranker(configuration.family, dict(configuration.parameters), self.resources)
        observed = self._once("observed", configuration.shared, lambda: self._observed(stage, configuration.entities))
        return stage.scores(self.documents, observed)

    def _observed(self, stage: Reranker, entities: str) -> Any:
        run, kind = self.runs[entities], type(stage).__name__
        listed = self._once(
            "listed", (entities, stage.cutoff), lambda: TopEntities.of(self.documents.pool, run, stage.cutoff)
        )
        # Of documents alone: the same for all configurations of a family that read the same column.
        prepared = self._once(kind, getattr(stage, "field", None), lambda: stage.prepared(self.documents))
        return stage.observed(listed, prepared)

    def _once(self, what: str, key: Hashable, make: Callable[[], Any]) -> Any:
        """The last value of its sort, if it has this key; otherwise a new one in its place."""
        if what not in self._kept or self._kept[what][0] != key:
            self._kept[what] = key, make()
        return self._kept[what][1]


# Columns of a run that are no text of its documents.
_KEYS = ("qid", "docno", "score", "rank", "query")


def inputs_print(ground: RerankContext) -> str:
    """What tells the inputs of a grid from others: all that configurations may read, and the measures."""
    documents, pool, resources = ground.documents, ground.documents.pool, ground.resources
    topic = _texts(pool.topics)[pool.topic]
    entity = pool.entities.fingerprints[pool.entity] if len(pool.entity) else np.empty(0, dtype=np.uint64)
    ids = sorted({*pool.entities.text.to_pylist(), *(each for run in ground.runs.values() for each in _docnos(run))})
    texts = resources["texts"] or {}
    own = [each for each in ids if each in texts]
    parts = [
        *map(str, ground.measures),
        rows_fingerprint([topic, pool.docno.fingerprints, documents.score]),
        rows_fingerprint([topic[pool.document], pool.docno.fingerprints[pool.document], entity, pool.weight]),
        _judgments(ground.qrels),
        *(f"{name}: {_run(run)}" for name, run in sorted(ground.runs.items())),
        _vectors(resources["embeddings"] or {}, ids),
        _vectors(resources["document_embeddings"] or {}, sorted(set(pool.docno.text.to_pylist()))),
        rows_fingerprint([_texts(own), _texts([str(texts[each]) for each in own])]),
        *_fields(documents.run),
    ]
    return hashlib.blake2b("\n".join(parts).encode(), digest_size=16).hexdigest()


def _docnos(run: Run) -> list[str]:
    docnos: list[str] = run.docno.text.to_pylist()
    return docnos


def _fields(run: Run) -> list[str]:
    """What the columns of text say of each document."""
    frame = run.frame
    columns = [name for name in sorted(map(str, frame.columns)) if name not in _KEYS]
    texts = [name for name in columns if all(isinstance(value, str) for value in frame[name])]
    return [f"{name}: " + rows_fingerprint([run.docno.fingerprints, _texts(frame[name].tolist())]) for name in texts]


def _texts(texts: list[str]) -> NDArray[np.uint64]:
    return Ids(pa.array(texts, pa.large_string())).fingerprints


def _judgments(qrels: pd.DataFrame) -> str:
    qid, docno = (ids_of(qrels[name], f"qrels column {name!r}").fingerprints for name in ("qid", "docno"))
    return rows_fingerprint([qid, docno, integers_of(qrels["label"], "qrels column 'label'")])


def _run(run: Run) -> str:
    return rows_fingerprint([run.topic_ids.fingerprints[run.topic], run.docno.fingerprints, run.score])


def _vectors(given: Mapping[str, Any], ids: list[str]) -> str:
    """A hash of the vectors of some ids, in their order."""
    made = hashlib.blake2b(digest_size=16)
    for each in ids:
        if each in given:
            made.update(each.encode() + b"\0" + np.asarray(given[each], dtype=np.float64).tobytes())
    return made.hexdigest()


_COLUMNS = ("configuration", "family", "entities")


def rerank_grid(
    links: Any,
    pool: Any,
    entity_runs: Any,
    grid: Mapping[str, Any],
    measures: Sequence[str | ir_measures.Measure],
    qrels: Any,
    *,
    embeddings: Mapping[str, Any] | None = None,
    document_embeddings: Mapping[str, Any] | None = None,
    texts: Mapping[str, str] | None = None,
    n_jobs: int = 1,
    path: str | os.PathLike[str] | None = None,
    interval: str = "normal",
    level: float = 0.95,
    n_resamples: int = N_RESAMPLES,
    seed: int = 0,
    progress: bool = True,
) -> pd.DataFrame:
    """Evaluate every configuration of a grid of rerankers on one linked pool.

    Parameters
    ----------
    links
        What documents mention: a :class:`~vbterrier.entities.pool.LinkedPool`, its K frame, or tags (docno, entity_id
        [, weight, qid]).
    pool
        The documents to rerank: a run, or its path; with the column ``text`` where a family reads it.
    entity_runs
        Entity runs by name, or paths.
    grid
        By family (``overlap``, ``expansion``, ``embedding``, ``propagation``) the values of its parameters, each one or
        a list, of which all combinations are made; or a list of such mappings. What is not named has its default.
    measures
        Measures of this package or of ir_measures, as objects or text.
    qrels
        A frame (qid, docno, label) or the path of TREC qrels.
    embeddings, document_embeddings, texts
        What :class:`~vbterrier.entities.rerank.EmbeddingReranker` and
        :class:`~vbterrier.entities.rerank.ExpansionReranker` read.
    n_jobs
        Processes; -1 for as many as there are processors. The results are the same.
    path
        A file that results are added to as they come. A call with the same inputs goes on from there, whatever the
        grid; a file of other inputs is refused. Texts and vectors are part of the inputs where the grid reads them.
    interval, level, n_resamples, seed
        Of the gain, topic by topic, as in :func:`vbterrier.score`; Student's t by default.
    progress
        Show a progress bar.

    Returns
    -------
    pandas.DataFrame
        A row for each configuration and measure, in the order of the grid, the pool as it is first: configuration,
        family, entities, its parameters (missing where a family has none of the name), measure, value (the mean over
        topics), gain (over the pool), low, high, level, n_qids.

    Raises
    ------
    InputError
        Frames or files that cannot be evaluated; a file with results of other inputs.
    ParameterError
        Families, parameters or measures that do not exist.

    Notes
    -----
    The pool is linked once. Configurations that differ in weights alone share all that comes before. Among hundreds of
    configurations some gain by chance: the intervals are of each by itself.

    References
    ----------
    Chatterjee: Entities as Retrieval Signals, arXiv 2604.05204, sections 2.6.5 and 3.5.

    Examples
    --------
    >>> import pandas as pd
    >>> pool = pd.DataFrame({"qid": ["1", "1", "2", "2"], "docno": ["a", "b", "c", "d"], "score": [2.0, 1.0, 2.0, 1.0]})
    >>> qrels = pd.DataFrame({"qid": ["1", "2"], "docno": ["b", "d"], "label": [1, 1]})
    >>> tags = pd.DataFrame({"docno": ["b", "d"], "entity_id": ["X", "X"]})
    >>> runs = {"mine": pd.DataFrame({"qid": ["1", "2"], "docno": ["X", "X"], "score": [1.0, 1.0]})}
    >>> found = rerank_grid(tags, pool, runs, {"overlap": {"weight": [0.2, 0.8]}}, ["RR"], qrels, progress=False)
    >>> found[["family", "weight", "value", "gain"]].values.tolist()
    [['pool', nan, 0.5, 0.0], ['overlap', 0.2, 0.5, 0.0], ['overlap', 0.8, 1.0, 0.5]]
    """
    asked = list(dict.fromkeys(measures_from(*([measures] if isinstance(measures, str) else measures))))
    if not asked:
        raise ParameterError("no measures; name at least one, as 'AP'")
    judged = read_qrels(qrels) if isinstance(qrels, (str, os.PathLike)) else frame_of(qrels, "qrels")
    documents = loaded_run(POOL, pool, "error")
    runs = {name: loaded_run(name, run, "error") for name, run in systems_of(named_runs(entity_runs))}
    slot = EvaluationTarget(judged)
    run_places(documents, slot.topics, slot.qid, "qrels")
    resources = {"embeddings": embeddings, "document_embeddings": document_embeddings, "texts": texts}
    every = configurations(grid, list(runs), resources)
    ground = RerankContext(links, documents.only(slot.topics), runs, judged, asked, resources)
    journal = Journal(path, inputs_print(ground))
    for name, result in journal.done.items():
        if not _is_result(result, list(map(str, asked))):
            raise FileError(str(path), f"holds no values of {name!r} that this version writes; remove its line")
    missing = [configuration for configuration in every if str(configuration) not in journal.done]
    # Neighbours share what they can.
    missing.sort(key=lambda configuration: repr(configuration.shared))
    with Shared(ground) as shared:
        found = mapped(
            partial(_values, shared), missing, n_jobs=n_jobs, progress=progress, description="configurations"
        )
        for configuration, values in zip(missing, found, strict=True):
            journal.add(str(configuration), values)
    options = {"method": interval, "level": level, "n_resamples": n_resamples, "seed": seed}
    _warn(every, journal.done)
    return _table(every, journal.done, [str(measure) for measure in asked], **options)


def _values(shared: Shared, configuration: Configuration) -> dict[str, Any]:
    """The values of a configuration, and what was warned of: that is said once for all of them."""
    ground: RerankContext = shared.value
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        values = ground.values(configuration)
    told = [str(one.message) for one in said if issubclass(one.category, DegenerateWarning)]
    return {"values": values, "warnings": told}


def _is_result(result: Any, measures: Sequence[str]) -> bool:
    """Whether something read from a file has the shape of what :func:`_values` gives."""
    if not isinstance(result, dict) or not isinstance(result.get("values"), dict):
        return False
    values, told = result["values"], result.get("warnings")
    return (
        all(isinstance(values.get(measure), dict) for measure in measures)
        and all(isinstance(value, (int, float)) for measure in measures for value in values[measure].values())
        and isinstance(told, list)
        and all(isinstance(message, str) for message in told)
    )


def _warn(every: Sequence[Configuration], done: Mapping[str, Any]) -> None:
    told = [done[str(configuration)]["warnings"] for configuration in every]
    n = sum(map(bool, told))
    if n:
        first = next(messages[0] for messages in told if messages)
        warn(f"{n} of {len(told)} configurations say less than they seem to; {first}")


def configurations(
    grid: Mapping[str, Any], entity_runs: Sequence[str], resources: Mapping[str, Any]
) -> list[Configuration]:
    """All configurations of a grid, each once, checked, the pool as it is first.

    Raises
    ------
    ParameterError
        A family or parameter that does not exist, an illegal value, nothing at all.
    """
    made = [Configuration(POOL, "", ())]
    for family, given in grid.items():
        if family not in FAMILIES:
            known = ", ".join(map(repr, FAMILIES))
            raise ParameterError(f"grid: no family {family!r}; there are {known}.{nearest(str(family), FAMILIES)}")
        for values in [given] if hasattr(given, "items") else given:
            names = list(values)
            for some in product(*map(_listed, values.values())):
                stage = reranker(family, dict(zip(names, some, strict=True)), resources)
                parameters = all_parameters(stage)
                made += [Configuration(family, name, parameters) for name in entity_runs]
    if len(made) == 1:
        raise ParameterError("grid: no configuration; name a family and an entity run at least")
    return list(dict.fromkeys(made))


def _listed(values: Any) -> list[Any]:
    return list(values) if isinstance(values, (list, tuple, range, np.ndarray)) else [values]


def _table(
    every: Sequence[Configuration], done: Mapping[str, Any], measures: list[str], **options: Any
) -> pd.DataFrame:
    """A row for each configuration and measure."""
    rows: dict[tuple[int, int], dict[str, Any]] = {}
    for of_measure, measure in enumerate(measures):
        pool = done[POOL]["values"][measure]
        own = np.array([[done[str(one)]["values"][measure][topic] for topic in pool] for one in every]).T
        gains = own - np.array(list(pool.values()))[:, None]
        ends = topics_intervals(gains, qids=list(pool), **options)
        for place, one in enumerate(every):
            rows[place, of_measure] = {
                **dict(zip(_COLUMNS, (str(one), one.family, one.entities), strict=True)),
                **dict(one.parameters),
                "measure": measure,
                "value": own[:, place].mean(),
                "gain": gains[:, place].mean(),
                "low": ends.low[place],
                "high": ends.high[place],
                "level": options["level"],
                "n_qids": len(pool),
            }
    table = pd.DataFrame([rows[place] for place in sorted(rows)])
    last = ["measure", "value", "gain", "low", "high", "level", "n_qids"]
    return table[[*_COLUMNS, *table.columns.difference([*_COLUMNS, *last], sort=False), *last]]
