"""Candidate intents generated anew for replicas: from paraphrased queries, or by a stage that is run again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import InputError, ParameterError
from vbterrier.evaluate.inputs import is_pipeline
from vbterrier.frames.contracts import require
from vbterrier.kernels.resample import stream
from vbterrier.uncertainty.variants import Variants

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

SEPARATOR = "|"


@dataclass(frozen=True)
class Paraphrases:
    """Link each query in other words: every replica takes the candidates of one of the wordings, the query's included.

    Parameters
    ----------
    source
        The column of the topics that holds them, a list of texts or one text with ``|`` between them; or a transformer
        that gives topics with one row a paraphrase (qid, query).
    order
        ``"random"``, or ``"turn"``: replica b takes wording ``b mod n``.

    Examples
    --------
    >>> Paraphrases("suggestions")
    Paraphrases(source='suggestions', order='random')
    """

    source: Any = "paraphrases"
    order: str = "random"

    def variants(self, pipeline: Any, topics: pd.DataFrame, n_replicas: int, seed: int, *, progress: bool) -> Variants:
        """The candidates of each wording."""
        del n_replicas, seed
        worded = self._worded(topics)
        number = worded.groupby("qid", sort=False).cumcount()
        rounds = [worded[number == n] for n in range(int(number.max()) + 1)] if len(worded) else []
        asked = [topics, *(topics.drop(columns="query").merge(some[["qid", "query"]], on="qid") for some in rounds)]
        frames = [pipeline.transform(some) for some in _tracked(asked, "linking paraphrases", progress=progress)]
        return Variants([frame for frame in frames if len(frame)], order=self.order)

    def _worded(self, topics: pd.DataFrame) -> pd.DataFrame:
        """A row a paraphrase: qid, query; none that is empty, repeated or the query itself."""
        if is_pipeline(self.source):
            worded = self.source.transform(topics)
            require(worded, ("qid", "query"), "paraphrases")
        else:
            require(topics, ("qid", "query", self.source), "topics")
            lists = topics[self.source].map(_listed)
            worded = pd.DataFrame({"qid": topics["qid"], "query": lists}).explode("query", ignore_index=True)
        worded = worded[["qid", "query"]]
        worded = worded[worded["query"].notna() & worded["query"].astype(str).str.strip().ne("")]
        own = pd.concat([topics[["qid", "query"]], worded]).duplicated().iloc[len(topics) :].to_numpy()
        others: pd.DataFrame = worded[~own]
        if not len(others):
            raise InputError(f"{self}: no query has a paraphrase; give some, or leave the perturbation out")
        return others


@dataclass(frozen=True)
class Rerun:
    """Run a stage again for every replica: one that is random itself, such as a sampled language model.

    Parameters
    ----------
    transformer
        Topics to intents; ``None`` for the very pipeline that makes the intents. It sees the topics with two columns
        more, ``replica`` and ``seed`` (a number of its own for each query and replica), and should draw from these
        alone.

    Examples
    --------
    >>> Rerun()
    Rerun(transformer=None)
    """

    transformer: Any = None

    def variants(self, pipeline: Any, topics: pd.DataFrame, n_replicas: int, seed: int, *, progress: bool) -> Variants:
        """The candidates of each replica."""
        pipeline = self.transformer if self.transformer is not None else pipeline
        qids = topics["qid"].astype(str)
        seeds = np.stack([stream(seed, qid, "rerun").integers(2**31, size=n_replicas) for qid in qids])
        asked = [topics.assign(replica=b, seed=seeds[:, b]) for b in range(n_replicas)]
        frames = [pipeline.transform(some) for some in _tracked(asked, "running again", progress=progress)]
        return Variants(frames, order="turn")


def resolved(
    perturbations: Iterable[Any], pipeline: Any, topics: pd.DataFrame, n_replicas: int, seed: int, *, progress: bool
) -> list[Any]:
    """Perturbations, those that generate candidates anew having done so.

    Raises
    ------
    ParameterError
        One of these where the intents came ready made.
    """
    made = []
    for perturbation in perturbations:
        if isinstance(perturbation, (Paraphrases, Rerun)):
            if not is_pipeline(pipeline) and getattr(perturbation, "transformer", None) is None:
                raise ParameterError(
                    f"{perturbation} generates candidates anew, but intents= came ready made; give the pipeline that "
                    "makes them, or Variants of your own frames"
                )
            made.append(perturbation.variants(pipeline, topics, n_replicas, seed, progress=progress))
        else:
            made.append(perturbation)
    return made


def _listed(value: Any) -> list[str]:
    if isinstance(value, str):
        return [text.strip() for text in value.split(SEPARATOR)]
    return list(value) if isinstance(value, (list, tuple, np.ndarray)) else []


def _tracked(frames: Sequence[pd.DataFrame], what: str, *, progress: bool) -> Iterator[pd.DataFrame]:
    from tqdm.auto import tqdm

    yield from tqdm(frames, desc=what, disable=not progress, leave=False)
