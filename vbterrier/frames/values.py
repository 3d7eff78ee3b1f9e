"""The V frame: one value for each system, topic and measure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import InputError
from vbterrier.frames.columns import SAMPLING
from vbterrier.frames.contracts import pandas_frame, require
from vbterrier.frames.ids import column_ids, column_numbers

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray


KEY = ("name", "qid", "measure")
COLUMNS = (*KEY, "value")
# Means that trec_eval writes have four digits.
_ROUNDED = 1e-4


def values_frame(data: Any, where: str = "values") -> pd.DataFrame:
    """Return a checked V frame: name, qid and measure as text, value as float64; the order of rows is kept.

    The result of ``pt.Experiment(perquery=True)`` is accepted, also with Measure objects as measures. With a column
    ``dataset``, topics of different collections are different topics: their ids become ``dataset/qid``. A column
    ``model`` has the digests of models of unjudged documents: one for each measure and collection. Columns ``weight``,
    ``cluster`` and ``drawn``, which would change means or tests, are refused: they belong in a W frame.
    """
    frame = pandas_frame(data, where)
    for name in SAMPLING:
        if name in frame:
            raise InputError(
                f"{where}: a column {name} has no effect here; drop it, or give it as queries=, a table (qid, {name}), "
                "to a call that has it"
            )
    if "name" in frame and not {"qid", "measure", "value"}.intersection(frame):
        raise InputError(
            f"{where}: one row per system, with columns {', '.join(map(str, frame.columns))}; wanted one per system, "
            f"topic and measure, with columns {', '.join(COLUMNS)}: ask pt.Experiment for perquery=True"
        )
    require(frame, COLUMNS, where)
    _require_one_model(frame, where)
    datasets = (
        column_ids(frame["dataset"], f"{where} column 'dataset'").text.to_pandas() if "dataset" in frame else None
    )
    frame = frame[list(COLUMNS)].reset_index(drop=True)
    if frame["measure"].dtype == object:
        frame["measure"] = frame["measure"].map(lambda one: one if isinstance(one, str) or pd.isna(one) else str(one))
    keys = {name: column_ids(frame[name], f"{where} column {name!r}") for name in KEY}
    if datasets is not None:
        keys["qid"] = column_ids(datasets + "/" + keys["qid"].text.to_pandas(), f"{where} columns 'dataset', 'qid'")

    def whose(row: int) -> str:
        name, qid, measure = (ids.text[row].as_py() for ids in keys.values())
        return f" (system {name!r}, topic {qid!r}, {measure})"

    numbers = _numbers(frame["value"], f"{where} column 'value'", whose)
    codes = pd.DataFrame({name: ids.codes()[1] for name, ids in keys.items()})
    again = codes.duplicated().to_numpy()
    if again.any():
        row = int(np.argmax(again))
        first = int(np.argmax((codes == codes.loc[row]).all(axis=1).to_numpy()))
        raise InputError(f"{where}: row {row} repeats row {first}{whose(row)}; keep one value")
    table = pd.DataFrame({**{name: ids.text.to_pandas() for name, ids in keys.items()}, "value": numbers})
    _refuse_means(table, where)
    return table


def _refuse_means(values: pd.DataFrame, where: str) -> None:
    """Refuse means over topics, which trec_eval and its kin write as the values of a topic "all"."""
    is_all = (values["qid"] == "all").to_numpy()
    if not is_all.any() or is_all.all():
        return
    of_topics = values[~is_all].groupby(["name", "measure"])["value"].mean()
    means = values[is_all].set_index(["name", "measure"])["value"]
    if ((means - of_topics.reindex(means.index)).abs() <= _ROUNDED).all():
        raise InputError(
            f"{where}: topic 'all' is no topic: its values are the means over the other topics; drop its "
            f"{len(means)} rows"
        )


def _require_one_model(frame: pd.DataFrame, where: str) -> None:
    """Refuse values of one measure that were estimated by different models of unjudged documents."""
    if "model" not in frame:
        return
    keys = [name for name in ("dataset", "measure") if name in frame]
    models = frame[[*keys, "model"]].astype({"measure": str}).drop_duplicates()
    odd = models[models.duplicated(keys)]
    if len(odd):
        measure = odd["measure"].iloc[0]
        first, second = models.loc[models["measure"] == measure, "model"].iloc[:2]
        raise InputError(
            f"{where}: values of {measure} by the models {first!r} and {second!r}, which are not comparable: score all "
            "systems in one call, or with one model="
        )


def _numbers(column: pd.Series[Any], where: str, whose: Callable[[int], str]) -> NDArray[np.float64]:
    if not pd.api.types.is_numeric_dtype(column):
        text = column.map(lambda value: isinstance(value, str)).to_numpy(dtype=bool)
        if text.any():
            row = int(np.argmax(text))
            raise InputError(f"{where}: row {row} holds the text {column[row]!r}{whose(row)}, wanted a number")
    numbers = column_numbers(column, where, whose)
    infinite = np.isinf(numbers)
    if infinite.any():
        row = int(np.argmax(infinite))
        raise InputError(f"{where}: row {row} is infinite{whose(row)}, wanted a finite number")
    return numbers
