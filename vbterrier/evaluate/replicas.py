"""Replicas of scores: perturbed intents, paraphrased queries and repeated pipelines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import InputError, ParameterError, choice, examples, warn
from vbterrier.evaluate.inputs import is_pipeline
from vbterrier.frames.contracts import require
from vbterrier.frames.ranking import places
from vbterrier.intents.coverage import Intents, Tags, cover
from vbterrier.kernels.resample import stream
from vbterrier.log import tracked
from vbterrier.measures.base import deepest
from vbterrier.measures.intents import IntentMeasure
from vbterrier.stats.matches import Matches, Statistic
from vbterrier.stats.replicas import Replicas, left_out, replicate
from vbterrier.stats.variants import ORDERS, Variants, with_variants

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import ir_measures
    from numpy.typing import NDArray

    from vbterrier.frames.ranking import Run
    from vbterrier.intents.coverage import Coverage


_OF_STATISTICS = ("cutoff", "alpha", "gain", "variance", "clip", "monotone")
# Parameters that all measures of a call share.
_OF_CALL = ("intents", "tags", "rel", "normalise", "undefined")
SEPARATOR = "|"


def replicas_of(
    runs: Mapping[str, Run],
    intents: pd.DataFrame,
    tags: pd.DataFrame,
    measures: Sequence[ir_measures.Measure],
    perturbations: Sequence[Any],
    *,
    n_replicas: int,
    seed: int,
    method: str,
    progress: bool,
) -> tuple[Replicas, NDArray[np.float64] | None]:
    """Replicas of the measures over intents; diversity measures, which ignore probabilities, have none.

    Returns
    -------
    (replicas, left_out)
        ``left_out`` is the jackknife over intents for BCa intervals of resampled intents, otherwise ``None``.

    Raises
    ------
    ParameterError
        No measure with replicas; measures whose intents, tags or NIL differ from those of the call.
    """
    asked = [measure for measure in measures if isinstance(measure, IntentMeasure)]
    if not asked:
        raise ParameterError("replicas: no measure over intents among the measures; add ES or VB, or drop replicas")
    frame = with_variants(intents, perturbations)
    known, candidates, cutoff, nil = Tags(tags), Intents(frame), deepest(asked), nil_of(asked)
    matches = {name: matches_of(cover(run, candidates, known, cutoff, nil=nil), run) for name, run in runs.items()}
    statistics = [statistic_of(measure) for measure in asked]
    made = replicate(frame, matches, perturbations, statistics, n_replicas=n_replicas, seed=seed, progress=progress)
    resampled = method == "bca" and made.source == "intents"
    return made, left_out(frame, matches, statistics) if resampled else None


def nil_of(measures: Sequence[ir_measures.Measure]) -> str:
    """The NIL intent of measures over the intents and tags of a call.

    Raises
    ------
    ParameterError
        Measures with their own intents or tags, with other parameters that all measures share, or with different NIL.
    """
    asked = [measure for measure in measures if isinstance(measure, IntentMeasure)]
    nil = {measure["nil"] for measure in asked}
    if len(nil) > 1:
        raise ParameterError("measures must share one nil=; evaluate measures with another nil= in a separate call")
    for measure in asked:
        own = [name for name in _OF_CALL if measure[name] != measure.SUPPORTED_PARAMS[name].default]
        if own:
            raise ParameterError(
                f"{measure}: measures share the intents and tags of the call; drop {own[0]}=, or use vbterrier.score"
            )
    return str(nil.pop()) if nil else ""


def names_of(measures: Sequence[ir_measures.Measure]) -> dict[str, str]:
    """Name of each measure by the name of its statistic, which has no NIL."""
    return {str(statistic_of(measure)): str(measure) for measure in measures if isinstance(measure, IntentMeasure)}


def statistic_of(measure: ir_measures.Measure) -> Statistic:
    """The statistic that replicates a measure."""
    given = {name: value for name, value in measure.params.items() if name in _OF_STATISTICS}
    return Statistic(measure.NAME, **{"cutoff": None, **given})


def matches_of(coverage: Coverage, run: Run) -> Matches:
    """The matches of a run, each with its document."""
    intents = coverage.intents
    topic = places(intents.topics, run.topics)[intents.topic[coverage.intent]]
    rows = run.top(coverage.depth).rows[topic, coverage.rank]
    nil = intents.of_entity(coverage.nil) if coverage.nil else None
    return Matches(
        coverage.intent,
        coverage.rank,
        coverage.weight,
        docno=run.docno.take(rows),
        known=coverage.known,
        nil=nil,
        until=None if nil is None else coverage.first_tagged[intents.topic[nil]],
    )


@dataclass(frozen=True)
class Paraphrases:
    """Perturbation by paraphrases: each replica uses the candidates of the query or of one of its paraphrases.

    Parameters
    ----------
    source
        The column of the topics with the paraphrases: a list of texts, or one text with ``|`` between them; or a
        transformer that returns one row per paraphrase (qid, query).
    order
        ``"random"``, or ``"turn"``: replica b uses wording ``b mod n``.

    Examples
    --------
    >>> Paraphrases("suggestions")
    Paraphrases(source='suggestions', order='random')
    """

    source: Any = "paraphrases"
    order: str = "random"

    def __post_init__(self) -> None:
        if not isinstance(self.source, str) and not is_pipeline(self.source):
            raise ParameterError(f"source={self.source!r}: wanted a column of the topics, or a transformer")
        choice("order", self.order, ORDERS)

    def variants(self, pipeline: Any, topics: pd.DataFrame, n_replicas: int, seed: int, *, progress: bool) -> Variants:
        """Candidates of each wording."""
        del n_replicas, seed
        worded = self._worded(topics)
        number = worded.groupby("qid", sort=False).cumcount()
        rounds = [worded[number == n] for n in range(int(number.max()) + 1)] if len(worded) else []
        asked = [topics, *(topics.drop(columns="query").merge(some[["qid", "query"]], on="qid") for some in rounds)]
        frames = [pipeline.transform(some) for some in tracked(asked, "linking paraphrases", shown=progress)]
        made = Variants([frame for frame in frames if len(frame)], order=self.order)
        _warn_without_candidates(self, asked[1:], frames[1:])
        return made

    def _worded(self, topics: pd.DataFrame) -> pd.DataFrame:
        """One row per paraphrase (qid, query), without empty and duplicated texts and the query itself."""
        if is_pipeline(self.source):
            worded = self.source.transform(topics)
            require(worded, ("qid", "query"), "paraphrases")
            unknown = worded["qid"][~worded["qid"].isin(topics["qid"])]
            if len(unknown):
                raise InputError(
                    f"paraphrases: no topic has qid {examples(unknown)}; give each paraphrase the qid of its query"
                )
        else:
            require(topics, ("qid", "query", self.source), "topics")
            lists = [_listed(value, self.source) for value in topics[self.source]]
            worded = pd.DataFrame({"qid": topics["qid"], "query": lists}).explode("query", ignore_index=True)
        worded = worded[["qid", "query"]]
        worded = worded[worded["query"].notna() & worded["query"].astype(str).str.strip().ne("")]
        own = pd.concat([topics[["qid", "query"]], worded]).duplicated().iloc[len(topics) :].to_numpy()
        distinct: pd.DataFrame = worded[~own]
        if not len(distinct):
            raise InputError(f"{self}: no query has a paraphrase; add some, or leave the perturbation out")
        return distinct


@dataclass(frozen=True)
class RerunPipeline:
    """Perturbation that reruns a random stage, such as a sampled language model, for every replica.

    Parameters
    ----------
    transformer
        From topics to intents; ``None`` for the pipeline of the intents. Topics have two more columns, ``replica`` and
        ``seed`` (a separate number for each query and replica), which should be the only source of randomness.

    Examples
    --------
    >>> RerunPipeline()
    RerunPipeline(transformer=None)
    """

    transformer: Any = None

    def __post_init__(self) -> None:
        if self.transformer is not None and not is_pipeline(self.transformer):
            raise ParameterError(
                f"RerunPipeline({self.transformer!r}): wanted a transformer from topics to intents, or None"
            )

    def variants(self, pipeline: Any, topics: pd.DataFrame, n_replicas: int, seed: int, *, progress: bool) -> Variants:
        """Candidates of each replica."""
        pipeline = self.transformer if self.transformer is not None else pipeline
        qids = topics["qid"].astype(str)
        seeds = np.stack([stream(seed, qid, "rerun").integers(2**31, size=n_replicas) for qid in qids])
        asked = [topics.assign(replica=b, seed=seeds[:, b]) for b in range(n_replicas)]
        frames = [pipeline.transform(some) for some in tracked(asked, "running again", shown=progress)]
        made = Variants(frames, order="turn")
        _warn_without_candidates(self, asked, frames)
        return made


def resolved(
    perturbations: Any, pipeline: Any, topics: pd.DataFrame, n_replicas: int, seed: int, *, progress: bool
) -> list[Any]:
    """A list of perturbations, with the candidates of paraphrases and reruns generated.

    Raises
    ------
    ParameterError
        A perturbation that needs the pipeline of the intents, for intents given as a frame.
    """
    made = []
    for perturbation in perturbations if isinstance(perturbations, (list, tuple)) else [perturbations]:
        if isinstance(perturbation, (Paraphrases, RerunPipeline)):
            if not is_pipeline(pipeline) and getattr(perturbation, "transformer", None) is None:
                raise ParameterError(
                    f"{perturbation} generates new candidates, but intents= is not a pipeline; give the pipeline that "
                    "generates intents, or Variants of frames"
                )
            made.append(perturbation.variants(pipeline, topics, n_replicas, seed, progress=progress))
        else:
            made.append(perturbation)
    return made


def _listed(value: Any, column: str) -> list[str]:
    if isinstance(value, str):
        return [text.strip() for text in value.split(SEPARATOR)]
    if isinstance(value, (list, tuple, np.ndarray)):
        return list(value)
    if pd.isna(value):
        return []
    raise InputError(
        f"topics column {column!r} contains {value!r}; wanted a list of texts, or a text with {SEPARATOR!r}"
    )


def _warn_without_candidates(perturbation: Any, asked: Sequence[pd.DataFrame], frames: Sequence[pd.DataFrame]) -> None:
    """Warn of wordings and reruns without candidates, whose replicas use the candidates of other rounds."""
    without = [some["qid"][~some["qid"].isin(found["qid"])] for some, found in zip(asked, frames, strict=True)]
    n = sum(map(len, without))
    if n:
        warn(
            f"{perturbation}: no candidates for {n} of {sum(map(len, asked))} runs of a query "
            f"({examples(pd.concat(without).unique())}); these replicas use the candidates of its other runs"
        )
