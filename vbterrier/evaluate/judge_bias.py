"""Bias, calibration and agreement of judges with human judgments, by groups of documents."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import InputError, examples, warn
from vbterrier.evaluate.judge_scores import KEY
from vbterrier.evaluate.judging import held_out
from vbterrier.frames.columns import DOCUMENTS
from vbterrier.frames.contracts import pandas_frame, require
from vbterrier.stats.kappa import judge_agreement

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vbterrier.annotations import Floats
    from vbterrier.unjudged.pool import Judgments

_RANK_RANGES = ((1, 3), (4, 10), (11, 30), (31, 100))
# Agreement that people do not reach, and the fewest documents that show it.
_COPIED, _MIN_COPY_DOCUMENTS = 0.995, 20
_UNLIKELY = 0.001
# Documents up to the cutoff that one other family retrieves.
_OTHERS = "\0others"


def with_groups(
    frame: pd.DataFrame, top: Mapping[str, pd.DataFrame], cutoff: int, families: Any, documents: Any, queries: Any
) -> pd.DataFrame:
    """Judged documents with their best rank, the only run that has them in its cut, length, and families."""
    every = pd.concat([run[[*KEY, "rank"]].assign(name=name) for name, run in top.items()])
    frame = frame.join(every.groupby(KEY)["rank"].min() + 1, on=KEY)
    cut = every[every["rank"] < cutoff]
    of_document = cut.groupby(KEY)["name"].agg(["size", "first"])
    owner = of_document["first"].where(of_document["size"] == 1, "").rename("owner")
    frame = frame.join(owner, on=KEY)
    if documents is not None:
        texts = pandas_frame(documents, "documents", DOCUMENTS)
        require(texts, ("docno", "text"), "documents")
        length = pd.Series([len(str(text).split()) for text in texts["text"]], texts["docno"].astype(str))
        words = frame["docno"].map(length[~length.index.duplicated()])
        if words.isna().all():
            raise InputError(f"documents: no text of a judged document, as {examples(frame['docno'])}; check the ids")
        quarters = pd.qcut(words, 4, duplicates="drop")
        frame["length"] = quarters.map(lambda part: f"{part.left:.0f} to {part.right:.0f} words", na_action="ignore")
        if queries is not None:
            frame["overlap"] = _overlap(frame, texts, queries)
    # Documents of several families are better than others, for any judge.
    cut = cut.assign(family=cut["name"].map({name: (families or {}).get(name, f"\0{name}") for name in top}))
    of_document = cut.groupby(KEY)["family"].agg(["nunique", "first"])
    return frame.join(of_document["first"].where(of_document["nunique"] == 1).rename("family"), on=KEY)


def _overlap(frame: pd.DataFrame, texts: pd.DataFrame, queries: Any) -> pd.Series[Any]:
    """Quarters of the documents by the share of the words of their query that they contain."""
    queries_frame = pandas_frame(queries, "queries")
    require(queries_frame, ("qid", "query"), "queries")
    words = [
        {str(key): set(str(text).lower().split()) for key, text in zip(part.iloc[:, 0], part.iloc[:, 1], strict=True)}
        for part in (queries_frame[["qid", "query"]], texts[["docno", "text"]])
    ]
    shares = [
        len(words[0][qid] & words[1][docno]) / len(words[0][qid]) if words[0].get(qid) and docno in words[1] else np.nan
        for qid, docno in zip(frame["qid"], frame["docno"], strict=True)
    ]
    if np.isnan(shares).all():
        raise InputError(f"queries: no query of a judged topic, as {examples(frame['qid'])}; check the ids")
    quarters = [f"{low}% to {low + 25}% of the query's words" for low in (0, 25, 50, 75)]
    return pd.cut(pd.Series(shares, frame.index), [-0.01, 0.25, 0.5, 0.75, 1], labels=quarters).astype(object)


def warn_of_copies(frame: pd.DataFrame, judges: list[str]) -> None:
    """Warn of judgments that were filled with machine labels: of one system's documents, all are the judge's."""
    for judge in judges:
        both = frame[frame[judge].notna()]
        same = both[judge] == both["grade"]
        of_run = same[both["owner"] != ""].groupby(both["owner"]).agg(["mean", "size"])
        of_run = of_run[(of_run["size"] >= _MIN_COPY_DOCUMENTS) & (of_run["mean"] >= _COPIED)]
        # More equal labels than those of all documents explain.
        of_run = of_run[same.mean() ** of_run["size"] < _UNLIKELY]
        if len(of_run) and same.mean() < _COPIED:
            warn(
                f"judge {judge!r}: its labels equal all {of_run['size'].iloc[0]} judgments of documents that only "
                f"{of_run.index[0]} retrieves, and {same.mean():.0%} of all judgments; the first seem to be machine "
                "labels: give human judgments alone"
            )
        elif len(both) >= _MIN_COPY_DOCUMENTS and same.all():
            warn(f"judge {judge!r}: its labels equal all human judgments; check that they are not a copy")


def bias_by_group(
    frame: pd.DataFrame, judges: list[str], judgments: Judgments, families: Any, level: float
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The bias of each judge by group, and its calibration."""
    ranks = pd.Series("not retrieved", frame.index)
    for low, high in _RANK_RANGES:
        ranks[frame["rank"].between(low, high)] = f"{low} to {high}"
    groups = [("grade", frame["grade"].astype(str)), ("rank", ranks)]
    if "length" in frame:
        groups.append(("length", frame["length"].astype(object)))
    if "overlap" in frame:
        groups.append(("overlap", frame["overlap"]))
    sole, family_names = frame["family"], sorted(set((families or {}).values()))
    groups += [("family", sole.mask(sole.notna() & (sole != family), _OTHERS)) for family in family_names]
    rows, bins = [], []
    most = max(int(judgments.grades[-1]), 1)
    for judge in judges:
        both = frame[frame[judge].notna()]
        label, grade = (both[column].to_numpy(dtype=np.float64) for column in (judge, "grade"))
        if not len(both) or np.ptp(grade) == 0:
            continue
        topic = both["qid"].factorize(sort=True)[0]
        predicted = held_out(label, grade / most, topic)
        table = pd.DataFrame({"predicted": predicted, "observed": grade / most})
        by_tenth = table.groupby(np.minimum((predicted * 10).astype(np.int64), 9))
        bins.append(by_tenth.mean().assign(n=by_tenth.size(), method=judge))
        on_scale = 1 < label.max() <= most or set(np.unique(label)) <= {0.0, 1.0}
        error, bias = most * predicted - grade, label - grade if on_scale else np.full(len(both), np.nan)
        for by, every_group in groups:
            group = every_group[both.index]
            names = sorted(set(group.dropna()) - {_OTHERS})
            # By the number that they begin with; the others follow.
            for name in sorted(
                names, key=lambda name: int(number[0]) if (number := re.match(r"\d+", name)) else math.inf
            ):
                of_group = (group == name).to_numpy()
                mean = _mean(error, of_group, (group == _OTHERS).to_numpy(), topic, level)
                rows.append((judge, by, name, int(of_group.sum()), bias[of_group].mean(), *mean, level))
    columns = ["judge", "by", "group", "n", "bias", "residual", "low", "high", "level"]
    empty = pd.DataFrame(columns=["predicted", "observed", "n", "method"])
    return pd.DataFrame(rows, columns=columns), pd.concat(bins or [empty], ignore_index=True)


def _mean(error: Floats, of_group: Any, others: Any, topic: Any, level: float) -> tuple[float, float, float]:
    """The mean error of a group, less that of others if there are any, with Student's interval over topics."""
    from scipy import special

    value, part, sizes = 0.0, np.zeros(len(error)), []
    for sign, group in ((1, of_group), (-1, others)):
        if group.any():
            value += sign * error[group].mean()
            part[group] = sign * (error[group] - error[group].mean()) / group.sum()
            sizes.append(len(np.unique(topic[group])))
    n = min(sizes)
    if n < 2:  # noqa: PLR2004 - a standard deviation needs two topics
        return value, np.nan, np.nan
    half = special.stdtrit(n - 1, (1 + level) / 2) * np.sqrt(n / (n - 1) * (np.bincount(topic, part) ** 2).sum())
    return value, value - half, value + half


def agreement_on_common(frame: pd.DataFrame, judges: list[str], level: float) -> pd.DataFrame:
    """Agreement of humans and judges on the documents that all of them labelled; empty without whole labels."""
    whole_labels = [name for name in judges if (frame[name].dropna() % 1 == 0).all()]
    common = frame[["grade", *whole_labels]].dropna().astype(np.int64).rename(columns={"grade": "humans"})
    if not whole_labels or not len(common):
        return pd.DataFrame(columns=["judges", "statistic", "value", "low", "high", "level", "method", "n_items"])
    return judge_agreement(common, level=level, n_resamples=500)
