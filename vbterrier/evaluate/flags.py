"""Systems that seem to have retrieved nothing for most topics: their means say more of a file than of a system."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import DegenerateWarning

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from vbterrier.evaluate.value_tables import Floats, Ints, ValueTable

COLUMNS = ("name", "measure", "n_qids", "n_missing", "n_zero", "flag")


def flags_of(tables: Sequence[ValueTable], missing: pd.DataFrame | None = None) -> pd.DataFrame:
    """How much of each system is there, and a sentence about those of which most is not.

    Parameters
    ----------
    tables
        The values of each measure.
    missing
        name, n_qids, n_missing, of :class:`vbterrier.Scores`; ``None`` where nobody knows.

    Returns
    -------
    pandas.DataFrame
        name, measure, n_qids, n_missing (missing where nobody knows), n_zero, flag. ``n_zero`` counts topics on which
        a system scores exactly 0 and others do not: at least half of the others that score on any topic at all.
        ``flag`` is empty, or says that a system retrieved nothing for more than half of its topics; where nobody knows,
        that it scores 0 on more than half of the topics on which others do not, and on more than half of all.

    >>> from vbterrier.evaluate.value_tables import value_tables
    >>> values = pd.DataFrame({"name": ["a", "a", "b", "b"], "qid": ["1", "2"] * 2, "measure": "AP",
    ...                        "value": [0.5, 0.2, 0.0, 0.0]})
    >>> flags_of(value_tables(values, []))["flag"].tolist()
    ['', 'scores exactly 0 on 2 of the 2 topics on which others do not: it may have retrieved nothing there']
    """
    rows: list[tuple[Any, ...]] = []
    known: Mapping[Any, Any] = {} if missing is None else missing.set_index("name").to_dict("index")
    for table in tables:
        n_zero, n_contested = _zeros(table.values)
        # Who scores on most topics has retrieved something there, though others have not.
        is_mostly_zero = 2 * np.count_nonzero(table.values, axis=0) < len(table.qids)
        counts = zip(table.names, n_zero.tolist(), n_contested.tolist(), is_mostly_zero, strict=True)
        for name, zero, contested, suspect in counts:
            if name in known:
                n_missing, n_qids = known[name]["n_missing"], known[name]["n_qids"]
                flag = f"retrieved nothing for {n_missing} of {n_qids} topics" if 2 * n_missing > n_qids else ""
            else:
                n_missing, flag = None, _suspicion(zero, contested) if suspect else ""
            rows.append((name, table.measure, len(table.qids), n_missing, zero, flag))
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype({"n_missing": "Int64"})


def _zeros(table: Floats) -> tuple[Ints, Ints]:
    """Of each column, the topics on which it is 0 and others are not, and those on which others are not."""
    scored = table != 0
    others = scored.sum(axis=1)[:, None] - scored
    # A system that scores nowhere is no witness: several empty runs would vouch for each other.
    n_others = scored.any(axis=0).sum() - scored.any(axis=0)
    contested = (others > 0) & (2 * others >= n_others)
    return (contested & ~scored).sum(axis=0), contested.sum(axis=0)


def _suspicion(n_zero: int, n_contested: int) -> str:
    if 2 * n_zero <= n_contested:
        return ""
    return (
        f"scores exactly 0 on {n_zero} of the {n_contested} topics on which others do not: it may have retrieved "
        "nothing there"
    )


def flagged(pairs: pd.DataFrame, flags: pd.DataFrame) -> pd.DataFrame:
    """Pairs with a column ``flag``, a sentence where one of the two is flagged; says it once."""
    said = flags[flags["flag"] != ""]
    sentence = {(row.name, row.measure): f"{row.name} {row.flag}" for row in said.itertuples(index=False)}
    keys = (zip(pairs[side], pairs["measure"], strict=True) for side in ("name_a", "name_b"))
    texts = ["; ".join(filter(None, map(sentence.get, both))) for both in zip(*keys, strict=True)]
    if sentence:
        warnings.warn(
            f"{'; '.join(dict.fromkeys(sentence.values()))}; differences may say that a file is incomplete, and "
            "nothing about the quality of a system: such pairs are flagged",
            DegenerateWarning,
            stacklevel=3,
        )
    return pairs.assign(flag=texts)
