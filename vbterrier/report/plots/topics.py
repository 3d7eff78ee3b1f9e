"""What the rows of a figure of topics hold: statistics of each topic's distribution, and values from elsewhere."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import InputError, ParameterError, examples, nearest
from vbterrier.frames.contracts import frame_of, require
from vbterrier.report.plots import style, words

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from vbterrier.judgments.distribution import BootstrapDistribution
    from vbterrier.judgments.process import Process

    Floats = NDArray[np.float64]


def rows_of(law: BootstrapDistribution, topics: Sequence[str] | None, level: float) -> pd.DataFrame:
    """The topics to draw, highest mean first: what their rows say, and their places in the law."""
    low, high = law.interval(level)
    every = pd.DataFrame({"qid": law.topics, "place": np.arange(len(law)), "n_unjudged": law.n_unjudged})
    every = every.assign(mean=law.mean, low=low, high=high, least=law.quantile(0), greatest=law.quantile(1))
    if topics is not None:
        asked = [topics] if isinstance(topics, str) else list(topics)
        strangers = [topic for topic in asked if topic not in law.topics]
        if strangers:
            near = nearest(str(strangers[0]), law.topics)
            raise ParameterError(
                f"topics: {examples(strangers)} not evaluated; there are {examples(law.topics)}.{near}"
            )
        every = every[every["qid"].isin(asked)]
    return every.sort_values("mean", ascending=False, kind="stable").reset_index(drop=True)


def marks_of(marks: Mapping[str, Any], topics: list[str], rows: pd.DataFrame) -> dict[str, Floats]:
    """The value of each mark in each row, NaN where there is none."""
    most = len(style.COLOURS) - 1
    if len(marks) > most:
        raise ParameterError(f"marks: {len(marks)} are more than can be told apart; choose {most} at most")
    return {str(name): _column(pd.Series(given), f"marks[{name!r}]", topics, rows) for name, given in marks.items()}


def _column(given: pd.Series[Any], where: str, topics: list[str], rows: pd.DataFrame) -> Floats:
    qids = words.texts(given.index.to_series(), f"{where} qid")
    values = pd.Series(words.reals(given, where), index=qids)
    if values.index.has_duplicates:
        raise InputError(f"{where}: query {values.index[values.index.duplicated()][0]!r} stands twice; keep one")
    if len(values) and not values.index.isin(topics).any():
        raise InputError(f"{where}: none of its queries ({examples(qids)}) was evaluated ({examples(topics)})")
    found: Floats = values.reindex(rows["qid"]).to_numpy(dtype=np.float64)
    return found


def bounds_of(bounds: Any, topics: list[str], rows: pd.DataFrame) -> tuple[tuple[Floats, Floats] | None, str]:
    """The ends of each row's bounds, and what a legend calls them."""
    if bounds is None:
        return None, ""
    frame = frame_of(bounds, "bounds")
    require(frame, ("qid", "low", "high"), "bounds")
    kinds = list(frame["kind"].unique()) if "kind" in frame.columns else []
    if len(kinds) > 1:
        raise InputError(f"bounds: wanted one kind, found {examples(kinds)}; keep the rows of one")
    low, high = (
        _column(frame.set_index("qid")[end], f"bounds column {end!r}", topics, rows) for end in ("low", "high")
    )
    bad = (low > high) | (np.isnan(low) != np.isnan(high))
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(
            f"bounds: query {rows['qid'][row]!r} has {low[row]:g} to {high[row]:g}; wanted two ends in order, or NaN"
        )
    return (low, high), " ".join([*map(str, kinds), "bounds"])


def measure_of(law: BootstrapDistribution) -> str:
    """The name of the score."""
    return law.metric.name if law.cutoff is None else f"{law.metric.name}@{law.cutoff}"


def described(law: BootstrapDistribution, rows: pd.DataFrame) -> list[str]:
    """What the caption says of topics and process."""
    known = int((rows["n_unjudged"] == 0).sum())
    drawn = sum(law.laws[place].method == "mc" for place in rows["place"])
    n_draws, seed = law.process.n_draws, law.process.seed
    return [
        words.counted(pd.Series([len(rows)]), "topic") + ("" if len(rows) == len(law) else f" of {len(law):,}"),
        _process(law.process),
        f"{n_draws:,} draws, seed {seed}" + ("" if drawn == len(rows) else f" ({drawn} topics)") if drawn else "",
        f"hollow: nothing unjudged ({known} of {len(rows)})" if known else "",
    ]


def _process(process: Process) -> str:
    """The prior, and what else is not as it is by default."""
    chosen = process.chosen_prior
    prior = chosen if isinstance(chosen, str) else dict(chosen)
    said = [f"prior {prior}"]
    for one in fields(process):
        value = getattr(process, one.name)
        if one.name not in ("prior", "method", "n_draws", "seed") and value != one.default:
            said.append(f"{one.name} {value}")
    return ", ".join(said)


def missing(marked: Mapping[str, Floats]) -> list[str]:
    """How many topics lack a mark, for each mark that is missing somewhere."""
    counts = {name: int(np.isnan(values).sum()) for name, values in marked.items()}
    return [f"no {name}: {count} of {len(marked[name])}" for name, count in counts.items() if count]
