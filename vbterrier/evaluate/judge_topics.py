"""Topics that humans judged completely: the sample from which an audit corrects the scores by a judge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import InputError, ParameterError, examples, whole
from vbterrier.evaluate.inputs import evaluation_target, loaded_runs, require_spellings
from vbterrier.evaluate.judge_scores import KEY, topic_table
from vbterrier.kernels.rankings import MOST_RANKS
from vbterrier.kernels.resample import stream
from vbterrier.measures.target import EvaluationTarget, restricted_target
from vbterrier.settings import Data, Inference, with_defaults
from vbterrier.unjudged.pool import MachineLabels

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vbterrier.annotations import Floats
    from vbterrier.frames.ranking import Run


@dataclass(frozen=True, eq=False)
class JudgedTopics:
    """Scores of systems by a judge on its topics, and their corrections on those that humans judged completely.

    - ``topics``, ``scores``: the topics with labels that some run retrieves, sorted, and nDCG by the labels, shape
      (n_systems, T)
    - ``complete``, ``corrections``: the topics in which humans judged all documents that some run retrieves up to the
      cutoff and all that the judge labelled, and nDCG by humans minus that by the judge, shape (n_systems, k)
    """

    topics: list[str]
    scores: Floats
    complete: list[str]
    corrections: Floats

    @property
    def n_complete(self) -> int:
        """The number of complete topics."""
        return len(self.complete)


def open_documents(
    top: Mapping[str, pd.DataFrame], labelled: pd.DataFrame, human: pd.DataFrame, topics: list[str], cutoff: int
) -> pd.DataFrame:
    """The documents that complete judgments of some topics lack: qid, docno, rank (the best, from 1), n_runs.

    ``top``: the runs with text as ids and ranks from 0. Documents that no run retrieves up to the cutoff have no rank.
    """
    cut = pd.concat([run.loc[run["rank"] < cutoff, [*KEY, "rank"]] for run in top.values()])
    cut = cut[cut["qid"].isin(topics)]
    pool = pd.concat([cut[KEY], labelled.loc[labelled["qid"].isin(topics), KEY]]).drop_duplicates()
    pool = pool.merge(human[KEY].drop_duplicates(), how="left", on=KEY, indicator="judged")
    pool = pool.loc[pool["judged"] == "left_only", KEY]
    places = cut.groupby(KEY)["rank"].agg(rank="min", n_runs="size").reset_index()
    pool = pool.merge(places.assign(rank=places["rank"] + 1), how="left", on=KEY).fillna({"n_runs": 0})
    return pool.astype({"n_runs": np.int64}).sort_values(["qid", "rank", "docno"], ignore_index=True)


def labelled_topics(labelled: pd.DataFrame, runs: Mapping[str, Run], on_topics: str) -> list[str]:
    """The topics with labels that some run retrieves, or all runs for ``on_topics="common"``, sorted."""
    topics = set(restricted_target(EvaluationTarget(labelled[[*KEY, "label"]]), runs, on_topics).topics)
    retrieved = {topic for run in runs.values() for topic in run.topics}
    if not topics & retrieved:
        raise InputError(
            f"labels of {labelled['name'].iloc[0]!r}: none is of a topic that a run has: they have "
            f"{examples(sorted(topics))}; the runs have {examples(sorted(retrieved))}; use the same ids of topics"
        )
    return sorted(topics & retrieved)


def judged_topics(
    top: Mapping[str, pd.DataFrame],
    labelled: pd.DataFrame,
    human: pd.DataFrame,
    runs: Mapping[str, Run],
    topics: list[str],
    cutoff: int,
) -> JudgedTopics:
    """The scores by a judge on some topics, and their corrections by complete human judgments."""
    measure, names = f"nDCG@{cutoff}", list(runs)
    labelled = labelled[labelled["qid"].isin(topics)]
    topics, scores = topic_table(labelled[[*KEY, "label"]], runs, measure)
    lacking = set(open_documents(top, labelled, human, topics, cutoff)["qid"].unique())
    complete = [topic for topic in topics if topic not in lacking]
    corrections = np.zeros((len(names), 0))
    if complete:
        judged = human.loc[human["qid"].isin(complete), [*KEY, "label"]]
        complete, by_humans = topic_table(judged, runs, measure)
        corrections = by_humans - scores[:, [topics.index(topic) for topic in complete]]
    return JudgedTopics(topics, scores, complete, corrections)


@with_defaults
def topics_to_judge(
    runs: Any,
    qrels: Any,
    *,
    labels: Any,
    n_topics: int,
    cutoff: int = 10,
    data: Data = Data(on_topics="same", duplicates="error", system=None),
    inference: Inference = Inference(seed=0),
) -> pd.DataFrame:
    """List the documents that complete a random sample of topics, for :func:`vbterrier.evaluate.audit_judge`.

    A topic is complete if humans judged all documents that some run retrieves up to the cutoff, and all that a judge
    labelled: the pool of the ideal ranking. Topics that are complete already count; others are drawn at random.

    Parameters
    ----------
    runs, qrels, labels
        See :func:`vbterrier.evaluate.audit_judge`. ``qrels`` may lack topics; ``None`` if humans judged nothing yet.
    n_topics
        The number of topics that are to be complete in the end, at least 1.
    cutoff
        The cutoff k of nDCG@k.
    data
        A :class:`vbterrier.Data`: ``on_topics`` (``"same"``), ``duplicates`` (``"error"``), ``system``.
    inference
        An :class:`vbterrier.Inference`: ``seed`` (0) of the sample.

    Returns
    -------
    pandas.DataFrame
        A row per document, topic by topic: qid, docno, rank (the best in a run, NaN if no run retrieves it up to the
        cutoff), n_runs (that do), reason. Empty if enough topics are complete. The sample for a larger number contains
        that for a smaller one, until some of its topics are judged.

    Raises
    ------
    InputError, ParameterError
        Runs, judgments or labels that cannot be read; fewer topics with labels than ``n_topics``.

    Examples
    --------
    >>> labels = pd.DataFrame({"qid": ["1", "1", "2"], "docno": ["a", "b", "a"], "label": [1, 0, 1]})
    >>> run = pd.DataFrame({"qid": ["1", "2"], "docno": ["a", "c"], "score": [1.0, 1.0]})
    >>> human = pd.DataFrame({"qid": ["1", "1"], "docno": ["a", "b"], "label": [1, 1]})
    >>> plan = topics_to_judge({"mine": run}, human, labels={"llm": labels}, n_topics=2)
    >>> plan[["qid", "docno", "reason"]].values.tolist()
    [['2', 'c', 'rank 1 of a run'], ['2', 'a', 'labelled by a judge']]
    """
    on_topics, seed = data.on_topics, inference.seed
    whole("n_topics", n_topics)
    whole("cutoff", cutoff, high=MOST_RANKS)
    judges, loaded = MachineLabels(labels), loaded_runs(runs, data.duplicates, data.system)
    human = pd.DataFrame(columns=KEY, dtype=str)
    if qrels is not None:
        target = evaluation_target(qrels, None, None)
        require_spellings(target, loaded, judges)
        human = target.frame[KEY].astype(str)
    labelled = judges.frame().rename(columns={"grade": "label"})
    topics = labelled_topics(labelled, loaded, on_topics)
    if n_topics > len(topics):
        raise ParameterError(f"n_topics={n_topics}: only {len(topics)} topics have labels and documents in a run")
    top = {name: run.first(cutoff).astype({"qid": str, "docno": str}) for name, run in loaded.items()}
    lacking = open_documents(top, labelled, human, topics, cutoff)
    incomplete = sorted(lacking["qid"].unique())
    n_more = max(n_topics - (len(topics) - len(incomplete)), 0)
    drawn = sorted(stream(seed, "complete topics").permutation(np.array(incomplete, dtype=object))[:n_more].tolist())
    plan = lacking[lacking["qid"].isin(drawn)].reset_index(drop=True)
    return plan.assign(reason=[_reason(rank, n) for rank, n in zip(plan["rank"], plan["n_runs"], strict=True)])


def _reason(rank: float, n_runs: int) -> str:
    if not n_runs:
        return "labelled by a judge"
    return f"rank {rank:.0f} of a run" if n_runs == 1 else f"rank {rank:.0f}, in {n_runs} runs"
