"""Replicas of scores: perturbed intents, paraphrased queries and repeated pipelines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import InputError, ParameterError, examples, warn
from vbterrier.evaluate.inputs import is_pipeline
from vbterrier.frames.contracts import require
from vbterrier.frames.parameters import choice
from vbterrier.frames.runs import places
from vbterrier.intents.coverage import Intents, Tags, cover
from vbterrier.kernels.resample import stream
from vbterrier.log import tracked
from vbterrier.measures.base import deepest
from vbterrier.measures.intents import is_ambiguous
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
# What is settled once for a whole call.
_OF_CALL = ("intents", "tags", "rel", "normalise", "undefined")


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
    """Replicas of the measures over intents; diversity measures, which know no probabilities, have none.

    Returns
    -------
    (replicas, left_out)
        The jackknife over intents is there where BCa intervals of resampled intents take their acceleration from it.

    Raises
    ------
    ParameterError
        No measure that has replicas; measures with other intents, tags or NIL than the call's.
    """
    asked = [measure for measure in measures if is_ambiguous(measure)]
    if not asked:
        raise ParameterError("replicas: no measure over intents among the measures; add ES or VB, or drop replicas")
    frame = with_variants(intents, perturbations)
    known, candidates, depth, nil = Tags(tags), Intents(frame), deepest(asked), nil_of(asked)
    matches = {name: matches_of(cover(run, candidates, known, depth, nil=nil), run) for name, run in runs.items()}
    statistics = [statistic_of(measure) for measure in asked]
    made = replicate(frame, matches, perturbations, statistics, n_replicas=n_replicas, seed=seed, progress=progress)
    resampled = method == "bca" and made.source == "intents"
    return made, left_out(frame, matches, statistics) if resampled else None


def nil_of(measures: Sequence[ir_measures.Measure]) -> str:
    """The NIL intent of measures over the intents and tags of a call.

    Raises
    ------
    ParameterError
        Measures that bring their own intents or tags, or ask to read them otherwise, or that differ in NIL.
    """
    asked = [measure for measure in measures if is_ambiguous(measure)]
    nil = {measure["nil"] for measure in asked}
    if len(nil) > 1:
        raise ParameterError("measures must share one nil=; evaluate others in a call of their own")
    for measure in asked:
        own = [name for name in _OF_CALL if measure[name] != measure.SUPPORTED_PARAMS[name].default]
        if own:
            raise ParameterError(
                f"{measure}: measures share the intents and tags of the call, as they are; drop {own[0]}=, or use "
                "vbterrier.score"
            )
    return str(nil.pop()) if nil else ""


def names_of(measures: Sequence[ir_measures.Measure]) -> dict[str, str]:
    """The text of each measure by that of its replicated twin, which knows no NIL."""
    return {str(statistic_of(measure)): str(measure) for measure in measures if is_ambiguous(measure)}


def statistic_of(measure: ir_measures.Measure) -> Statistic:
    """The replicated twin of a measure."""
    given = {name: value for name, value in measure.params.items() if name in _OF_STATISTICS}
    return Statistic(measure.NAME, **{"cutoff": None, **given})


def matches_of(coverage: Coverage, run: Run) -> Matches:
    """The matches of a run, each with its document."""
    intents = coverage.intents
    topic = places(intents.topics, run.topics)[intents.topic[coverage.intent]]
    rows = run.top(coverage.depth).rows[topic, coverage.rank]
    nil = intents.called(coverage.nil) if coverage.nil else None
    return Matches(
        coverage.intent,
        coverage.rank,
        coverage.weight,
        docno=run.docno.take(rows),
        known=coverage.known,
        nil=nil,
        until=None if nil is None else coverage.first_tagged[intents.topic[nil]],
    )


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

    def __post_init__(self) -> None:
        if not isinstance(self.source, str) and not is_pipeline(self.source):
            raise ParameterError(f"source={self.source!r}: wanted a column of the topics, or a transformer")
        choice("order", self.order, ORDERS)

    def variants(self, pipeline: Any, topics: pd.DataFrame, n_replicas: int, seed: int, *, progress: bool) -> Variants:
        """The candidates of each wording."""
        del n_replicas, seed
        worded = self._worded(topics)
        number = worded.groupby("qid", sort=False).cumcount()
        rounds = [worded[number == n] for n in range(int(number.max()) + 1)] if len(worded) else []
        asked = [topics, *(topics.drop(columns="query").merge(some[["qid", "query"]], on="qid") for some in rounds)]
        frames = [pipeline.transform(some) for some in tracked(asked, "linking paraphrases", shown=progress)]
        made = Variants([frame for frame in frames if len(frame)], order=self.order)
        _warn_of_nothing(self, asked[1:], frames[1:])
        return made

    def _worded(self, topics: pd.DataFrame) -> pd.DataFrame:
        """A row a paraphrase: qid, query; none that is empty, repeated or the query itself."""
        if is_pipeline(self.source):
            worded = self.source.transform(topics)
            require(worded, ("qid", "query"), "paraphrases")
            strange = worded["qid"][~worded["qid"].isin(topics["qid"])]
            if len(strange):
                raise InputError(
                    f"paraphrases: no topic has qid {examples(strange)}; give each paraphrase the qid of its query"
                )
        else:
            require(topics, ("qid", "query", self.source), "topics")
            lists = [_listed(value, self.source) for value in topics[self.source]]
            worded = pd.DataFrame({"qid": topics["qid"], "query": lists}).explode("query", ignore_index=True)
        worded = worded[["qid", "query"]]
        worded = worded[worded["query"].notna() & worded["query"].astype(str).str.strip().ne("")]
        own = pd.concat([topics[["qid", "query"]], worded]).duplicated().iloc[len(topics) :].to_numpy()
        others: pd.DataFrame = worded[~own]
        if not len(others):
            raise InputError(f"{self}: no query has a paraphrase; give some, or leave the perturbation out")
        return others


@dataclass(frozen=True)
class RerunPipeline:
    """Run a stage again for every replica: one that is random itself, such as a sampled language model.

    Parameters
    ----------
    transformer
        Topics to intents; ``None`` for the very pipeline that makes the intents. It sees the topics with two columns
        more, ``replica`` and ``seed`` (a number of its own for each query and replica), and should draw from these
        alone.

    Examples
    --------
    >>> RerunPipeline()
    Rerun(transformer=None)
    """

    transformer: Any = None

    def __post_init__(self) -> None:
        if self.transformer is not None and not is_pipeline(self.transformer):
            raise ParameterError(f"Rerun({self.transformer!r}): wanted a transformer of topics to intents, or None")

    def variants(self, pipeline: Any, topics: pd.DataFrame, n_replicas: int, seed: int, *, progress: bool) -> Variants:
        """The candidates of each replica."""
        pipeline = self.transformer if self.transformer is not None else pipeline
        qids = topics["qid"].astype(str)
        seeds = np.stack([stream(seed, qid, "rerun").integers(2**31, size=n_replicas) for qid in qids])
        asked = [topics.assign(replica=b, seed=seeds[:, b]) for b in range(n_replicas)]
        frames = [pipeline.transform(some) for some in tracked(asked, "running again", shown=progress)]
        made = Variants(frames, order="turn")
        _warn_of_nothing(self, asked, frames)
        return made


def resolved(
    perturbations: Any, pipeline: Any, topics: pd.DataFrame, n_replicas: int, seed: int, *, progress: bool
) -> list[Any]:
    """Perturbations, one or several, those that generate candidates anew having done so.

    Raises
    ------
    ParameterError
        One of these where the intents came ready made.
    """
    made = []
    for perturbation in perturbations if isinstance(perturbations, (list, tuple)) else [perturbations]:
        if isinstance(perturbation, (Paraphrases, RerunPipeline)):
            if not is_pipeline(pipeline) and getattr(perturbation, "transformer", None) is None:
                raise ParameterError(
                    f"{perturbation} generates candidates anew, but intents= came ready made; give the pipeline that "
                    "makes them, or Variants of your own frames"
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
        f"topics column {column!r} holds {value!r}; wanted a list of texts, or one text with {SEPARATOR!r} between them"
    )


def _warn_of_nothing(perturbation: Any, asked: Sequence[pd.DataFrame], frames: Sequence[pd.DataFrame]) -> None:
    """Say how often a query got no candidates: its replicas take what it got at other times."""
    without = [some["qid"][~some["qid"].isin(found["qid"])] for some, found in zip(asked, frames, strict=True)]
    n = sum(map(len, without))
    if n:
        warn(
            f"{perturbation}: {n} of {sum(map(len, asked))} times a query got no candidates "
            f"({examples(pd.concat(without).unique())}); its replicas take those that it got at other times"
        )
