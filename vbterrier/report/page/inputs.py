"""What a page is made of: runs and what they are evaluated against, read once, and what is measured by default."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vbterrier.entities.files import read_links
from vbterrier.entities.pool import LinkedPool, link_pool
from vbterrier.errors import InputError, ParameterError
from vbterrier.evaluate.inputs import named_runs
from vbterrier.evaluate.sources import topics_of
from vbterrier.frames.contracts import frame_of, systems_of
from vbterrier.frames.files import read_qrels
from vbterrier.frames.named import named
from vbterrier.frames.runs import loaded_run
from vbterrier.measures import measures_from

if TYPE_CHECKING:
    import ir_measures
    import pandas as pd

    from vbterrier.frames.ranked import Run

OF_QRELS = ("BNDCG@10", "nDCG@10", "Unjudged@10")
OF_INTENTS = ("ES@10", "VB@10")
OF_LINKS = ("RelCov@20", "NonRelCov@20", "DiscRatio@20")


@dataclass(frozen=True, eq=False)
class Inputs:
    """Runs, and what they are evaluated against.

    Parameters
    ----------
    runs
        By name.
    qrels, intents, tags
        Frames; ``None`` where there are none.
    links
        The linked pool that entity runs are measured on, in place of the other three.
    queries
        The text of each topic, as far as it is known.
    """

    runs: dict[str, Run]
    qrels: pd.DataFrame | None
    intents: pd.DataFrame | None
    tags: pd.DataFrame | None
    links: LinkedPool | None
    queries: dict[str, str]

    @property
    def is_diversity(self) -> bool:
        """Whether documents are judged for several subtopics."""
        frame = self.qrels
        if frame is None or "iteration" not in frame.columns or frame["iteration"].nunique() < 2:  # noqa: PLR2004
            return False
        return bool(frame.duplicated(["qid", "docno"]).any())

    def measures(self, asked: Any) -> list[ir_measures.Measure]:
        """What is measured: what was asked for, or what the inputs support."""
        if asked is not None and (isinstance(asked, str) or not hasattr(asked, "__len__") or len(asked)):
            return measures_from(*([asked] if isinstance(asked, str) or not hasattr(asked, "__len__") else asked))
        if self.links is not None:
            return measures_from(*OF_LINKS)
        adhoc = OF_QRELS if self.qrels is not None and not self.is_diversity else ()
        return measures_from(*adhoc, *(OF_INTENTS if self.intents is not None or self.is_diversity else ()))


def inputs_of(
    runs: Any, qrels: Any, *, intents: Any, tags: Any, links: Any, topics: Any, duplicates: str = "error"
) -> Inputs:
    """Read what is given as paths.

    Raises
    ------
    InputError
        Files or frames that cannot be evaluated; no run.
    ParameterError
        Nothing to evaluate against, or too much.
    """
    if links is not None and (intents is not None or tags is not None):
        raise ParameterError("links are what entity runs are measured on: leave out intents and tags, or links")
    if qrels is None and intents is None and links is None:
        raise ParameterError("nothing to evaluate against: wanted qrels, intents (with tags), or links")
    loaded = {name: loaded_run(name, run, duplicates) for name, run in systems_of(named_runs(runs))}
    if not loaded:
        raise InputError("no runs; name at least one")
    return Inputs(
        loaded,
        None if qrels is None else _judgments(qrels),
        None if intents is None else named("intents", intents),
        None if tags is None else named("tags", tags),
        None if links is None else _linked(links, qrels),
        {} if topics is None else _queries(topics_of(topics)),
    )


def _judgments(qrels: Any) -> pd.DataFrame:
    return read_qrels(qrels) if isinstance(qrels, (str, os.PathLike)) else frame_of(qrels, "qrels")


def _linked(links: Any, qrels: Any) -> LinkedPool:
    """The linked pool, with the labels of the judgments where there are any."""
    if isinstance(links, (str, os.PathLike)):
        found = read_links(links)
    else:
        found = links if isinstance(links, LinkedPool) else LinkedPool.from_frame(links)
    if qrels is None:
        return found
    frame = found.frame()
    documents = frame.drop_duplicates(["qid", "docno"])
    tags = frame.loc[frame["entity_id"].notna(), ["qid", "docno", "entity_id", "weight"]]
    return link_pool(documents.assign(score=-documents["rank"]), tags, _judgments(qrels))


def _queries(topics: pd.DataFrame) -> dict[str, str]:
    return dict(zip(topics["qid"].astype(str), topics["query"].astype(str), strict=True))
