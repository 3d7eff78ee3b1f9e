"""One linked pool on which many configurations of rerankers are scored."""

from __future__ import annotations

import hashlib
import numpy as np
import pyarrow as pa
from vbterrier.evaluate.prints import rows_print
from vbterrier.frames.ids import Ids, ids_of, integers_of

import inspect
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.entities.documents import Links, Listed
from vbterrier.entities.rerank import FAMILIES
from vbterrier.entities.rerank.base import require_finite
from vbterrier.errors import DegenerateWarning, ParameterError, examples
from vbterrier.frames.ids import require_same_kind
from vbterrier.frames.ranked import Run
from vbterrier.measures import Measure
from vbterrier.measures.base import evaluate
from vbterrier.measures.foreign import foreign_values
from vbterrier.measures.scoring import Slot

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from vbterrier.frames.ranked import Run
    from collections.abc import Callable, Hashable, Mapping, Sequence

    import ir_measures

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


class Ground:
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
        self.documents = Links(links).of(pool)
        require_finite(self.documents)
        unknown = np.flatnonzero(~self.documents.known)
        if len(unknown):
            first = self.documents.pool.docno.take(unknown[:4]).text.to_pylist()
            warnings.warn(
                f"pool: {len(unknown)} documents are not in the pool of links and count as without entities "
                f"({examples(first)})",
                DegenerateWarning,
                stacklevel=3,
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
        slot = self._once("slot", None, lambda: Slot(self.qrels))
        ours = [measure for measure in self.measures if isinstance(measure, Measure)]
        theirs = [measure for measure in self.measures if not isinstance(measure, Measure)]
        found: Values = {str(measure): {} for measure in self.measures}
        for topic, measure, value in evaluate(ours, slot, run) if ours else ():
            found[str(measure)][topic] = value
        for topic, measure, value in foreign_values(theirs, slot, run, warned=True):
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
        listed = self._once("listed", (entities, stage.k), lambda: Listed.of(self.documents.pool, run, stage.k))
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


def inputs_print(ground: Ground) -> str:
    """What tells the inputs of a grid from others: all that configurations may read, and the measures."""
    documents, pool, resources = ground.documents, ground.documents.pool, ground.resources
    topic = _texts(pool.topics)[pool.topic]
    entity = pool.entities.prints[pool.entity] if len(pool.entity) else np.empty(0, dtype=np.uint64)
    ids = sorted({*pool.entities.text.to_pylist(), *(each for run in ground.runs.values() for each in _docnos(run))})
    texts = resources["texts"] or {}
    own = [each for each in ids if each in texts]
    parts = [
        *map(str, ground.measures),
        rows_print([topic, pool.docno.prints, documents.score]),
        rows_print([topic[pool.document], pool.docno.prints[pool.document], entity, pool.weight]),
        _judgments(ground.qrels),
        *(f"{name}: {_run(run)}" for name, run in sorted(ground.runs.items())),
        _vectors(resources["embeddings"] or {}, ids),
        _vectors(resources["document_embeddings"] or {}, sorted(set(pool.docno.text.to_pylist()))),
        rows_print([_texts(own), _texts([str(texts[each]) for each in own])]),
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
    return [f"{name}: " + rows_print([run.docno.prints, _texts(frame[name].tolist())]) for name in texts]


def _texts(texts: list[str]) -> NDArray[np.uint64]:
    return Ids(pa.array(texts, pa.large_string())).prints


def _judgments(qrels: pd.DataFrame) -> str:
    qid, docno = (ids_of(qrels[name], f"qrels column {name!r}").prints for name in ("qid", "docno"))
    return rows_print([qid, docno, integers_of(qrels["label"], "qrels column 'label'")])


def _run(run: Run) -> str:
    return rows_print([run.topic_ids.prints[run.topic], run.docno.prints, run.score])


def _vectors(given: Mapping[str, Any], ids: list[str]) -> str:
    """A hash of the vectors of some ids, in their order."""
    made = hashlib.blake2b(digest_size=16)
    for each in ids:
        if each in given:
            made.update(each.encode() + b"\0" + np.asarray(given[each], dtype=np.float64).tobytes())
    return made.hexdigest()
