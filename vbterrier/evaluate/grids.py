"""Grids: their results, the evaluation of their configurations, and their parameters."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd
import pyarrow as pa

from vbterrier.errors import FileError, ParameterError, heard, nearest, warn
from vbterrier.execution.checkpoint import rows_fingerprint
from vbterrier.execution.parallel import map_items
from vbterrier.execution.pending import Shared
from vbterrier.frames.ids import Ids
from vbterrier.frames.notebook import Panel, count_text
from vbterrier.frames.results import Shown, measure_text
from vbterrier.settings import UNSET, Options

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray
    from typing_extensions import Self

    from vbterrier.execution.checkpoint import Journal
    from vbterrier.frames.ranking import Run


@dataclass(frozen=True, eq=False, repr=False)
class GridResult(Shown):
    """Result of a grid.

    - ``runs``: one row per configuration and measure, in the order of the grid, with the family and the parameters of
      the configuration (missing if the family does not have them), the mean over topics, and ``duplicate_of`` (the
      first configuration with the same rankings of all topics, or missing)
    - ``values``: the V frame, whose names are configurations
    - ``omitted``: families of the default grid without the resources that they need
    """

    runs: pd.DataFrame
    values: pd.DataFrame
    omitted: tuple[str, ...]

    # The title of the table, what a configuration is called, and the column whose intervals are drawn.
    TITLE: ClassVar[str]
    NOUN: ClassVar[str]
    SHOWN: ClassVar[str]

    @classmethod
    def of(cls, table: pd.DataFrame, results: Mapping[str, Any], omitted: Iterable[str]) -> Self:
        """Return the result with the table of means of all configurations."""
        values = [
            (name, qid, measure, value)
            for name, result in results.items()
            for measure, by_topic in result["values"].items()
            for qid, value in by_topic.items()
        ]
        first: dict[str, str] = {}
        same = {name: first.setdefault(result["ranking"], name) for name, result in results.items()}
        other = table["configuration"].map({name: None if name == one else one for name, one in same.items()})
        frame = pd.DataFrame(values, columns=["name", "qid", "measure", "value"])
        return cls(table.assign(duplicate_of=other), frame, tuple(omitted))

    @property
    def n_distinct(self) -> int:
        """The number of configurations with different rankings."""
        return int(self.runs.drop_duplicates("configuration")["duplicate_of"].isna().sum())

    def to_frame(self) -> pd.DataFrame:
        """Return ``runs``: a row per configuration and measure."""
        return self.runs

    def _line(self) -> str:
        n = count_text(self.runs["configuration"].nunique(), self.NOUN)
        shown = self.runs.drop_duplicates("measure")
        named = map(measure_text, shown["measure"], shown.get("estimand", [""] * len(shown)))
        return f"{n}, {self.n_distinct} with different rankings; {', '.join(named)}"

    def _panels(self) -> Iterator[Panel]:
        yield Panel(self.TITLE, self.runs, value=self.SHOWN, by="measure", heads=1)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class GridOptions(Options):
    """Resources of the families of a grid, for :func:`entity_grid` and :func:`rerank_grid`.

    Parameters
    ----------
    embeddings, query_entities
        For the family ``vectors``: vectors of entities by id, and the entities of the queries. For rerankers: vectors
        of entities, see :class:`~vbterrier.entities.rerank.EmbeddingReranker`.
    document_embeddings
        For rerankers: vectors of documents by id.
    embed, texts
        For the family ``texts``: a function from texts to vectors, which embeds every text once, and texts of entities
        by id (otherwise the name in the id). For rerankers: texts of entities, see
        :class:`~vbterrier.entities.rerank.ExpansionReranker`.
    qrels, folds
        For entity runs: judgments of documents (qid, docno, label) and folds (5 by default), with which pipelines of
        ``runs`` that contain an estimator are cross-validated, see :func:`vbterrier.entities.cross_validated`.

    Examples
    --------
    >>> GridOptions(embeddings={"Paris": [0.0, 1.0]}).embeddings
    {'Paris': [0.0, 1.0]}
    """

    embeddings: Mapping[str, Any] | None = UNSET
    document_embeddings: Mapping[str, Any] | None = UNSET
    query_entities: Any = UNSET
    embed: Callable[[list[str]], Any] | None = UNSET
    texts: Mapping[str, str] | None = UNSET
    qrels: Any = UNSET
    folds: Any = UNSET


def grid_results(
    description: str,
    context: Any,
    every: Mapping[str, Any],
    journal: Journal,
    path: Any,
    measures: Sequence[str],
    *,
    n_jobs: int,
    progress: bool,
    key: Callable[[Any], Any] = lambda _: 0,
) -> dict[str, dict[str, Any]]:
    """Values and warnings of each configuration; new ones are computed in the order of a key and added to the journal.

    Warnings are summarised for the whole grid.
    """
    for name in every:
        if name in journal.done and not _is_result(journal.done[name], measures):
            raise FileError(str(path), f"has no valid values of {name!r}; remove its line")
    missing = sorted((name for name in every if name not in journal.done), key=lambda name: key(every[name]))
    with Shared(context) as shared:
        items = [every[name] for name in missing]
        new_results = map_items(
            partial(_configuration_result, shared), items, n_jobs=n_jobs, progress=progress, description=description
        )
        for name, result in zip(missing, new_results, strict=True):
            journal.add(name, result)
    results = {name: journal.done[name] for name in every}
    messages = [result["warnings"][0] for result in results.values() if result["warnings"]]
    if messages:
        warn(f"{len(messages)} of {len(every)} configurations warn; the first warning: {messages[0]}")
    return results


def _configuration_result(shared: Shared, configuration: Any) -> dict[str, Any]:
    (values, ranking), messages = heard(lambda: shared.value.values(configuration))
    return {"values": values, "ranking": ranking, "warnings": messages}


def _is_result(result: Any, measures: Sequence[str]) -> bool:
    """Return True if a result read from a file has the form that :func:`_configuration_result` returns."""
    if not isinstance(result, dict) or not isinstance(result.get("values"), dict):
        return False
    values, messages = result["values"], result.get("warnings")
    return (
        isinstance(result.get("ranking"), str)
        and all(isinstance(values.get(measure), dict) for measure in measures)
        and all(isinstance(value, (int, float)) for measure in measures for value in values[measure].values())
        and isinstance(messages, list)
        and all(isinstance(message, str) for message in messages)
    )


def parameter_combinations(grid: Any) -> Iterator[dict[str, Any]]:
    """Yield every combination of the values of parameters; a single value is a list of one."""
    # Not scikit-learn's ParameterGrid, which needs lists and sorts the parameters, and so changes the order of grids.
    for values in [grid] if hasattr(grid, "items") else grid:
        lists = [one if isinstance(one, (list, tuple, range, np.ndarray)) else [one] for one in values.values()]
        yield from (dict(zip(values, some, strict=True)) for some in product(*lists))


def grid_items(grid: Any, families: Iterable[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the family and the parameters of each configuration of a grid, or of a list of grids."""
    grids = [grid] if hasattr(grid, "items") else grid
    if not isinstance(grids, (list, tuple)) or not all(hasattr(one, "items") for one in grids):
        raise ParameterError(
            f"grid: found {type(grid).__name__}, wanted a mapping of family to parameters, or a list of such mappings"
        )
    pairs = [pair for one in grids for pair in one.items()]
    for family, settings in pairs:
        inner = [settings] if hasattr(settings, "items") else settings
        if not isinstance(inner, (list, tuple)) or not all(hasattr(each, "items") for each in inner):
            raise ParameterError(
                f"grid: family {family!r} has {settings!r}, wanted a mapping of parameter to values, or a list of "
                "such mappings"
            )
    for family, settings in pairs:
        if family not in families:
            names = ", ".join(map(repr, families))
            raise ParameterError(f"grid: no family {family!r}; there are {names}.{nearest(str(family), families)}")
        for parameters in parameter_combinations(settings):
            yield family, parameters


def rankings_fingerprint(run: Run) -> str:
    """Fingerprint of the documents of each topic and their order."""
    top = run.top(None)
    topic, rank = top.topic_and_rank
    return rows_fingerprint([texts_fingerprint(run.topics)[topic], rank, top.docno.fingerprints])


def texts_fingerprint(texts: list[str]) -> NDArray[np.uint64]:
    """Fingerprints of texts, shape (n,)."""
    return Ids(pa.array(texts, pa.large_string())).fingerprints
