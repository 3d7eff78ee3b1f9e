"""Values of topics to compare, and runs with suspiciously many empty topics."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import ir_measures
import numpy as np
import pandas as pd

from vbterrier.errors import InputError, ParameterError, examples, nearest, warn
from vbterrier.frames.ranges import is_linearised, is_ratio_of_means
from vbterrier.frames.score_table import answers_by, by_mean, linearised_view, plain_mean, with_answers_of_ratios
from vbterrier.measures.external import is_mean
from vbterrier.measures.linking import LinkingR
from vbterrier.measures.text import measures_from

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from vbterrier.annotations import Floats, Ints
    from vbterrier.frames.score_table import ScoreTable, View


COLUMNS = ("name", "measure", "n_qids", "n_missing", "n_zero", "flag")


def measure_views(scores: ScoreTable, measures: Sequence[Any], *, common: bool = False) -> list[View]:
    """Views by measure, the highest mean first; ``common`` drops topics that some system lacks, instead of raising."""
    if len(scores.names) < 2:  # noqa: PLR2004 - a comparison needs two
        raise InputError(f"wanted at least two systems, found {examples(scores.names) or 'none'}; give another")
    of_answers = answers_by(scores.measures).values()
    every = [measure for measure in scores.measures if measure not in of_answers]
    names = list(dict.fromkeys(_named_as(measure, scores.measures) for measure in measures)) or every
    require_means(names)
    views = with_answers_of_ratios(scores.of(names).views(common=common, of_all=True), scores)
    return [by_mean(linearised_view(view, plain_mean)) for view in views]


def _named_as(measure: Any, measures: Sequence[str]) -> str:
    """The name of a measure in the values."""
    if str(measure) in measures:
        return str(measure)
    same = str(measures_from(measure)[0])
    if same not in measures:
        raise ParameterError(f"measures: no values of {measure}; found {examples(measures)}.{nearest(same, measures)}")
    return same


def require_means(names: Iterable[str]) -> None:
    """Refuse measures whose value for a collection is not a mean over topics: sums of counts, ratios of means."""
    for name in names:
        for measure in _named_measures(name):
            is_ratio = is_ratio_of_means(str(measure))
            if is_ratio or not is_mean(measure):
                raise ParameterError(
                    f"{name}: its value for a collection is not a mean over topics"
                    f"{' (see coverage_report)' if is_ratio else ''}, so a comparison of means is misleading; leave it "
                    "out of measures"
                )


def _named_measures(name: str) -> list[ir_measures.Measure]:
    """Parse a name of ir_measures or trec_eval (pt.Experiment writes both); empty for an unknown name."""
    try:
        return measures_from(name)
    except ParameterError:
        try:
            return list(ir_measures.parse_trec_measure(name))
        except ValueError:
            return []


def suspect_runs(views: Sequence[View], missing: pd.DataFrame | None = None) -> pd.DataFrame:
    """Missing and zero topics of each system, and a flag for systems with too many of them.

    ``missing``: name, n_qids, n_missing of the runs; ``None`` if they are unknown. ``n_zero`` counts topics on which a
    system scores exactly 0, and at least half of the other systems (of those that score above 0 on any topic) do not.
    ``flag`` is empty, or says that a system retrieved nothing for more than half of its topics; if the runs are
    unknown, that it scores 0 on more than half of all topics and of the topics on which other systems do not.
    """
    rows: list[tuple[Any, ...]] = []
    missing_by_name: Mapping[Any, Any] = {} if missing is None else missing.set_index("name").to_dict("index")
    for table in views:
        n_zero, n_contested = _zeros(table.values)
        # A system with a score above 0 on most topics is not suspect.
        is_mostly_zero = 2 * np.count_nonzero(table.values, axis=0) < len(table.qids)
        counts = zip(table.names, n_zero.tolist(), n_contested.tolist(), is_mostly_zero, strict=True)
        for name, zero, contested, suspect in counts:
            n_missing, flag = None, ""
            if name in missing_by_name:
                n_missing, n_qids = missing_by_name[name]["n_missing"], missing_by_name[name]["n_qids"]
                flag = f"retrieved nothing for {n_missing} of {n_qids} topics" if 2 * n_missing > n_qids else ""
            elif suspect and 2 * zero > contested:
                flag = (
                    f"scores exactly 0 on {zero} of the {contested} topics on which other systems do not: it may have "
                    "retrieved nothing"
                )
            rows.append((name, table.measure, len(table.qids), n_missing, zero, flag))
    columns: dict[str, Any] = dict(zip(COLUMNS, zip(*rows, strict=True), strict=True))
    return pd.DataFrame({**columns, "n_missing": pd.array(columns["n_missing"], dtype="Int64")})


def _zeros(table: Floats) -> tuple[Ints, Ints]:
    """For each column, the number of topics on which it is 0 and others are not, and on which others are not."""
    scored = table != 0
    others = scored.sum(axis=1)[:, None] - scored
    # Systems that are 0 on all topics do not count as others, so that several empty runs are all found.
    n_others = scored.any(axis=0).sum() - scored.any(axis=0)
    contested = (others > 0) & (2 * others >= n_others)
    return (contested & ~scored).sum(axis=0), contested.sum(axis=0)


def with_flags(pairs: pd.DataFrame, flags: pd.DataFrame) -> pd.DataFrame:
    """Add a column ``flag`` to the pairs, and warn once of all suspect runs."""
    suspect = flags[flags["flag"] != ""]
    sentence = {(row.name, row.measure): f"{row.name} {row.flag}" for row in suspect.itertuples(index=False)}
    keys = (zip(pairs[side], pairs["measure"], strict=True) for side in ("name_a", "name_b"))
    texts = ["; ".join(filter(None, map(sentence.get, both))) for both in zip(*keys, strict=True)]
    if sentence:
        warn(
            f"{'; '.join(dict.fromkeys(sentence.values()))}; the file may be incomplete, so that differences "
            "say nothing about the quality of the system: such pairs are flagged"
        )
    return pairs.assign(flag=texts)


def answered_by(measures: Iterable[str]) -> list[str]:
    """For linearised linking measures, LinkingR with the same parameters, whose value is 1 for a correct answer.

    >>> answered_by(["LinkingF1(nil='O')", "LinkP(nil='O')", "AP"])
    ["LinkingR(nil='O')"]
    """
    linearised = filter(is_linearised, measures)
    return list(dict.fromkeys(re.sub(r"^\w+", str(LinkingR), measure) for measure in linearised))


def counted_by(measures: Sequence[str]) -> list[str]:
    """The measures of correct answers, and of answers, that comparisons of linking measures need."""
    return [*answered_by(measures), *answers_by(measures).values()]


def count_answers(pairs: pd.DataFrame, scores: ScoreTable) -> pd.DataFrame:
    """Fill wins, losses and ties of linearised measures with queries that one, the other, or both or neither answer.

    The counts remain missing unless LinkingR is among the scores.
    """
    counts = ["wins", "losses", "ties"]
    ratios = [measure for measure in scores.measures if is_linearised(measure)]
    if not ratios:
        return pairs
    table = pairs.copy()
    for measure in filter(ratios.__contains__, pairs["measure"].unique()):
        for view in scores.of(answered_by([measure])).views(common=True):
            names, qids, correct = view.names, view.qids, view.values
            wide = pd.DataFrame(correct, index=qids, columns=names)
            rows = table.index[table["measure"] == measure]
            a, b = (wide[table.loc[rows, side]].to_numpy() > 0 for side in ("name_a", "name_b"))
            table.loc[rows, counts] = np.stack([some.sum(axis=0) for some in (a & ~b, b & ~a, a == b)], axis=1)
    return table
