"""Many rerankers of one linked pool, evaluated in parallel and resumed where they were interrupted."""

from __future__ import annotations

import os
import warnings
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.entities.rerank import FAMILIES
from vbterrier.errors import DegenerateWarning, FileError, ParameterError, nearest
from vbterrier.evaluate.grounds import POOL, Configuration, Ground, all_parameters, reranker
from vbterrier.evaluate.inputs import named_runs
from vbterrier.evaluate.journal import Journal
from vbterrier.evaluate.grounds import inputs_print
from vbterrier.frames.contracts import frame_of, systems_of
from vbterrier.frames.files import read_qrels
from vbterrier.frames.runs import loaded_run
from vbterrier.frames.topics import run_places
from vbterrier.measures import measures_from
from vbterrier.measures.scoring import Slot
from vbterrier.parallel import Shared, mapped
from vbterrier.uncertainty.intervals import N_RESAMPLES, topics_intervals

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import ir_measures


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
    slot = Slot(judged)
    run_places(documents, slot.topics, slot.qid, "qrels")
    resources = {"embeddings": embeddings, "document_embeddings": document_embeddings, "texts": texts}
    every = configurations(grid, list(runs), resources)
    ground = Ground(links, documents.only(slot.topics), runs, judged, asked, resources)
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
    ground: Ground = shared.value
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
        warnings.warn(f"{n} of {len(told)} configurations say less than they seem to; {first}", DegenerateWarning, 3)


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
