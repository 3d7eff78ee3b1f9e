"""Notes on intents and tags for captions: unknown priors, queries without candidates, and guessed tags."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import examples
from vbterrier.frames.answer import GUESSES_NOTE, Note
from vbterrier.frames.id_spaces import NIL
from vbterrier.intents.coverage import Intents, Tags, cover
from vbterrier.kernels.tolerances import PROBABILITY_ROUNDING
from vbterrier.kernels.vb import vb_range
from vbterrier.measures.intents import CandidateMeasure

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from vbterrier.frames.ranking import Run
    from vbterrier.measures.target import EvaluationTarget

#: The share of wrong tags, or of tags that a tie decides where no labels say how many are right, from which systems are
#: not ordered.
MOSTLY = 0.5
GUESSES = (
    "tags are mostly guesses: systems are not ordered; annotate a few documents (vbterrier annotate documents, "
    "vbterrier.evaluate.annotate_documents)"
)
# The share of queries with equal probabilities from which it is reported.
_MAX_UNIFORM_SHARE = 0.5


def guessed_measures(measures: Iterable[Any], notes: Iterable[Note], *, judged: bool) -> tuple[str, ...]:
    """Return the measures of tags if a note says that these are mostly guesses; without judgments, all are."""
    if not any(note.kind == GUESSES_NOTE for note in notes):
        return ()
    return tuple(str(one) for one in measures if not judged or isinstance(one, CandidateMeasure))


def guess_note(target: EvaluationTarget, runs: Mapping[str, Any]) -> Iterator[Note]:
    """Yield a sentence if more than half of the tags are decided by ties, which makes them guesses."""
    frames = [run.frame for run in runs.values()] if target.tags is None else [target.tags]
    tied = [_tied_decisions(frame) for frame in frames if "tied" in frame.columns and "entity_id" in frame.columns]
    share = float(np.concatenate(tied).mean()) if any(map(len, tied)) else 0.0
    if share > MOSTLY:
        yield Note(f"{share:.0%} of the tags are decided by a tie: {GUESSES}", GUESSES_NOTE)


def _tied_decisions(frame: pd.DataFrame) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Decisions of the tags of a frame, of positive weight, by a tie; of all ids of a row with several."""
    weighted = pd.to_numeric(frame["weight"], errors="coerce") > 0 if "weight" in frame.columns else True
    counted = frame[frame["entity_id"].notna() & weighted]
    decisions = counted["tied"].explode() if counted["tied"].dtype == object else counted["tied"]
    return decisions.astype(bool).to_numpy()


def notes_on_intents(target: EvaluationTarget, runs: Mapping[str, Any]) -> list[Note]:
    """Return the notes on the intents of an evaluation, if it has any with probabilities."""
    intents = target.frame if target.intents is None else target.intents
    if not {"qid", "entity_id", "prob"} <= set(intents.columns):
        return []
    queries = (qid for run in runs.values() for qid in run.topics)
    return [*guess_note(target, runs), *map(Note, prior_note(intents)), *map(Note, missing_note(queries, intents))]


def prior_note(intents: pd.DataFrame) -> Iterator[str]:
    """Yield the number of candidates if more than half of the ambiguous queries have equal probabilities.

    >>> intents = pd.DataFrame({"qid": ["q1", "q1", "q2"], "entity_id": ["A", "B", "A"], "prob": [0.5, 0.5, 1.0]})
    >>> next(prior_note(intents)).partition(":")[0]
    'the intents of all 1 queries with several are uniform over n candidates (n = 2)'
    """
    prob = intents.loc[intents["entity_id"] != NIL].groupby("qid", sort=False)["prob"].agg(["size", "min", "max"])
    several = prob[prob["size"] > 1]
    uniform = several[several["max"] - several["min"] <= PROBABILITY_ROUNDING]
    if not len(uniform) or len(uniform) <= _MAX_UNIFORM_SHARE * len(several):
        return
    size = uniform["size"]
    many = f"{size.min()} to {size.max()}, mean {size.mean():.1f}" if size.min() < size.max() else f"{size.min()}"
    counted = f"all {len(several)}" if len(uniform) == len(several) else f"{len(uniform)} of {len(several)}"
    yield (
        f"the intents of {counted} queries with several are uniform over n candidates (n = {many}): no source of their "
        "probabilities"
    )


def missing_note(queries: Iterable[str], intents: pd.DataFrame) -> Iterator[str]:
    """Yield the number of queries that have no candidate intents and count in no mean."""
    qids = list(dict.fromkeys(map(str, queries)))
    with_candidates = set(intents["qid"].astype(str).unique())
    missing = [qid for qid in qids if qid not in with_candidates]
    if missing:
        yield (
            f"{len(missing)} of {len(qids)} queries ({examples(missing)}) have no candidate intents and count in no "
            "mean"
        )


def tie_bounds(
    runs: Mapping[str, Run], intents: pd.DataFrame, tags: pd.DataFrame, cutoffs: Sequence[int], nil: str
) -> pd.DataFrame:
    """Return ES and VB of the worst and the best assignment of guessed tags, by system and cutoff.

    At worst a guess is about none of the intents, at best about the most probable one that no other document covers. VB
    is that with α = 1 and the Bernoulli variance, the least and the largest of each query between these two ES.
    """
    candidates, all_tags = Intents(intents), Tags(tags)
    certain = Tags(tags[~all_tags.tied]) if all_tags.tied is not None else all_tags
    rows = []
    for cutoff in cutoffs:
        for name, run in runs.items():
            without = cover(run, candidates, certain, cutoff, nil=nil)
            with_guesses = cover(run, candidates, all_tags, cutoff, nil=nil)
            gain = without.gain(cutoff, "binary")
            low, high = without.success(gain), with_guesses.most_success(gain, cutoff)
            least, most = vb_range((low + high) / 2, (high - low) / 2, 1.0)
            rows.append((name, cutoff, *(float(each.mean()) for each in (low, high, least, most))))
    return pd.DataFrame(rows, columns=["name", "cutoff", "ES_worst", "ES_best", "VB_worst", "VB_best"])


def tie_note(tagging: pd.DataFrame) -> Iterator[str]:
    """Yield the range of scores over guessed tags at the largest cutoff, for the system with the widest range."""
    if "ES_worst" not in tagging.columns:
        return
    deepest = tagging[tagging["cutoff"] == tagging["cutoff"].max()]
    width = (deepest["ES_best"] - deepest["ES_worst"]).to_numpy()
    if not np.any(width > 0):
        return
    row = deepest.iloc[int(np.argmax(width))]
    yield (
        f"{row['tied']:.0%} of the tags of {row['name']} are guesses between candidates with equal scores: for any "
        f"choice, its ES@{row['cutoff']} is {row['ES_worst']:.3f} to {row['ES_best']:.3f} and its VB@{row['cutoff']} "
        f"{row['VB_worst']:.3f} to {row['VB_best']:.3f}"
    )
