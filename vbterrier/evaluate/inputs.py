"""What is evaluated: runs and what they are evaluated against, as frames, files, names or pipelines."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vbterrier.errors import InputError, ParameterError, examples
from vbterrier.frames.contracts import frame_of
from vbterrier.frames.files import read_qrels
from vbterrier.frames.named import named
from vbterrier.measures import measures_from
from vbterrier.measures.process import Bootstrapped
from vbterrier.measures.scoring import Slot
from vbterrier.measures.strangers import warn_of_strangers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    import ir_measures
    import pandas as pd

    from vbterrier.frames.ranked import Run


def named_runs(runs: Any) -> Any:
    """Names for runs that came without."""
    if hasattr(runs, "items") and not hasattr(runs, "columns"):
        return runs
    if isinstance(runs, (list, tuple)):
        unnamed = [run for run in runs if not isinstance(run, (str, os.PathLike))]
        if unnamed:
            raise InputError(f"runs: found a {type(unnamed[0]).__name__} in a list; name frames, as {{'mine': frame}}")
        return [(_stem(run), run) for run in runs]
    return [(_stem(runs) if isinstance(runs, (str, os.PathLike)) else "run", runs)]


def _stem(path: str | os.PathLike[str]) -> str:
    return Path(path).name.removesuffix(".gz").removesuffix(".txt").removesuffix(".run") or str(path)


def is_pipeline(given: Any) -> bool:
    """Whether something is a stage or pipeline: frames have a ``transform`` of their own."""
    return hasattr(given, "transform") and not hasattr(given, "columns")


def slot_of(qrels: Any, intents: Any, tags: Any, read: Callable[[Any], pd.DataFrame] = read_qrels) -> Slot:
    """What runs are evaluated against: judgments, with intents and tags beside them, or intents alone.

    ``read`` opens what is given as the path of judgments.
    """
    if intents is not None:
        intents = named("intents", intents)
    if tags is not None:
        tags = named("tags", tags)
    if qrels is None:
        if intents is None:
            raise InputError("nothing to evaluate against; give qrels, or intents (qid, entity_id, prob)")
        return Slot(intents, tags=tags)
    judged = read(qrels) if isinstance(qrels, (str, os.PathLike)) else frame_of(qrels, "qrels")
    return Slot(judged, intents=intents, tags=tags)


def require_one_tagger(runs: Iterable[Run]) -> None:
    """Refuse runs that are known to be tagged in different ways: the tagger decides more than the system does.

    Raises
    ------
    InputError
        Names the taggers.
    """
    known: dict[str, str] = {}
    for run in runs:
        if "tagger" in run.frame.columns and len(run):
            for tagger in run.frame["tagger"].dropna().unique():
                known.setdefault(str(tagger), run.name)
    if len(known) > 1:
        (first, one), (second, other) = list(known.items())[:2]
        raise InputError(
            f"{one} is tagged by {first}, {other} by {second}: systems are compared under one tagger only; tag all "
            "with the same one, or give tags= for all"
        )


def restricted(slot: Slot, runs: Mapping[str, Run], topics: str) -> Slot:
    """The slot with the topics to average over."""
    known = set(slot.topics)
    found = {name: known.intersection(run.topics) for name, run in runs.items()}
    if topics == "same":
        names = list(found)
        for name in names[1:]:
            if found[name] != found[names[0]]:
                odd = sorted(found[name] ^ found[names[0]])
                raise InputError(
                    f"run {names[0]!r} has {len(found[names[0]])} of the {len(known)} topics, run {name!r} has "
                    f"{len(found[name])}, and they differ in {examples(odd)}: averages over different topics compare "
                    "nothing; ask for topics='common' (only those that all runs have) or topics='all' (missing "
                    "topics score 0)"
                )
    if topics != "common":
        return slot
    common = set.intersection(known, *found.values())
    if not common:
        raise InputError("no topic that all runs and the qrels have in common")
    kept = slot.frame[slot.frame["qid"].astype(str).isin(common)].reset_index(drop=True)
    return Slot(kept, intents=slot.intents, tags=slot.tags)


def aligned(judged: Slot, runs: Mapping[str, Run], topics: str) -> tuple[Slot, dict[str, Run]]:
    """The slot with the topics to average over, and the runs on them; says it when a run is not judged at all."""
    slot = restricted(judged, runs, topics)
    for run in runs.values():
        warn_of_strangers(judged, run, 3)
    return slot, {name: run.only(slot.topics) if topics == "common" else run for name, run in runs.items()}


def bootstrapped(measure: str | ir_measures.Measure) -> Bootstrapped:
    """The one measure, refusing those whose scores have no distribution.

    Raises
    ------
    ParameterError
        A measure that is not bootstrapped.
    """
    (wanted,) = measures_from(measure)
    if not isinstance(wanted, Bootstrapped):
        raise ParameterError(
            f"{wanted}: wanted a bootstrapped measure, as 'BNDCG@10', whose scores have a distribution over what "
            "unjudged documents could be"
        )
    return wanted
