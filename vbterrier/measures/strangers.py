"""Runs of which nothing is judged: mostly ids that were written otherwise, as integers that a host made text."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from vbterrier.errors import DegenerateWarning, examples
from vbterrier.frames.ids import ids_of

if TYPE_CHECKING:
    from vbterrier.frames.ranked import Run
    from vbterrier.measures.scoring import Slot

_FIRST_ROWS, _FEW = 10_000, 100


def warn_of_strangers(slot: Slot, run: Run, stacklevel: int, *, only_misspelt: bool = False) -> None:
    """Say it when a run and the judgments share topics, but not a single document.

    Parameters
    ----------
    slot, run
        The judgments and the run.
    stacklevel
        Of the warning.
    only_misspelt
        Whether only where ids differ in how they are written: integers, which hosts make text before anybody can refuse
        them, against text; blanks at the ends; Unicode forms. Parts of runs may well hold nothing that is judged.
    """
    # The documents of entity runs are entities: nobody judges them.
    if slot.is_links or not {"docno", "label"} <= set(slot.frame.columns) or not len(run):
        return
    known = slot.once("judged documents", lambda: ids_of(slot.frame["docno"], "qrels column 'docno'").text)
    if not _any_in(run.docno.text, known) and not (only_misspelt and not _are_misspelt(run.docno.text, known)):
        retrieved, judged_ones = (examples(ids[:4].to_pylist()) for ids in (run.docno.text, known))
        warnings.warn(
            f"{run.name}: none of its documents is judged: it has {retrieved}; qrels has {judged_ones}; look for "
            "other prefixes, trailing blanks or another Unicode form",
            DegenerateWarning,
            stacklevel=stacklevel + 1,
        )


def _are_misspelt(ids: Any, known: Any) -> bool:
    """Whether ids are those that are known, written otherwise, as far as the first of them tell."""
    are_numbers = [bool(pc.all(pc.utf8_is_decimal(some.slice(0, _FEW))).as_py()) for some in (ids, known)]
    return are_numbers[0] != are_numbers[1] or _any_in(_tidied(ids.slice(0, _FIRST_ROWS)), _tidied(known))


def _tidied(ids: Any) -> Any:
    return pc.utf8_normalize(pc.utf8_trim_whitespace(ids), form="NFKC")


def _any_in(ids: Any, known: Any) -> bool:
    """Whether one of the ids is known; most runs tell with their first rows."""
    first, rest = ids.slice(0, _FIRST_ROWS), ids.slice(_FIRST_ROWS)
    return any(pc.any(pc.is_in(part, value_set=known)).as_py() for part in (first, rest) if len(part))
