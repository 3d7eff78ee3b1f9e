"""Quality of tags against manually labelled documents."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from vbterrier.errors import InputError, ParameterError, examples, excerpt, warn
from vbterrier.frames.entities import documents_frame
from vbterrier.frames.ids import column_ids, require_same_kind
from vbterrier.frames.named import named_frame
from vbterrier.frames.notebook import Panel
from vbterrier.frames.results import Shown
from vbterrier.intents.taggers import TagTable
from vbterrier.kernels.resample import BLOCK_CELLS, stream

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vbterrier.annotations import Floats


COUNTS = ["n_tags", "n_gold", "n_correct"]
RATES = ["precision", "recall", "f1"]
_DECISIONS = ["decision", "n_tags", "n_correct", "precision"]


class Rates(NamedTuple):
    """Precision, recall and F1, each in [0, 1]; NaN if undefined."""

    precision: float
    recall: float
    f1: float


@dataclass(frozen=True, eq=False, repr=False)
class TagQuality(Shown):
    """Precision and recall of tags on a labelled sample, the result of :func:`tag_quality`.

    ``documents`` has a row per document of the sample: docno (and qid), ``n_tags``, ``n_gold``, ``n_correct``,
    ``precision``, ``recall``, ``f1``; ``entities`` one per entity_id, by descending frequency in ``gold``.
    ``decisions`` has a row for tags that scores decide (``decision`` is ``"score"``) and for those that a tie decides
    (``"tie"``), with ``n_tags``, ``n_correct``, ``precision``; empty if the tagger does not say.
    """

    documents: pd.DataFrame
    entities: pd.DataFrame
    decisions: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=_DECISIONS))

    def to_frame(self) -> pd.DataFrame:
        """Return ``documents``: a row per document of the sample."""
        return self.documents

    def _line(self) -> str:
        rates = ", ".join(f"{name} {rate:.4f}" for name, rate in zip(RATES, self.micro, strict=True))
        line = f"micro {rates}; {self.n_tags} tags, {self.n_gold} of gold; {self.n_documents} documents"
        by_tie = self.decisions[self.decisions["decision"] == "tie"].to_dict("records")
        if by_tie and by_tie[0]["n_tags"]:
            line += f"; {by_tie[0]['n_tags']} tags by a tie, precision {by_tie[0]['precision']:.4f}"
        return line

    def _panels(self) -> Iterator[Panel]:
        rows = [("micro", *self.micro), ("macro", *self.macro)]
        yield Panel("Rates", pd.DataFrame(rows, columns=["average", *RATES]))
        if len(self.decisions):
            yield Panel("Tags by decision", self.decisions)
        yield Panel("Entities", self.entities)

    @property
    def n_documents(self) -> int:
        """Documents of the sample."""
        return len(self.documents)

    @property
    def n_tags(self) -> int:
        """Tags of documents of the sample."""
        return int(self.documents["n_tags"].sum())

    @property
    def n_gold(self) -> int:
        """Gold tags of the sample."""
        return int(self.documents["n_gold"].sum())

    @property
    def n_correct(self) -> int:
        """Tags that are gold tags."""
        return int(self.documents["n_correct"].sum())

    @property
    def micro(self) -> Rates:
        """Rates over all tags of the sample."""
        return Rates(*rates(self.documents[COUNTS].sum().to_numpy(dtype=np.float64)).tolist())

    @property
    def macro(self) -> Rates:
        """Mean rates over the documents of the sample."""
        return Rates(*self.documents[RATES].mean().tolist())

    def intervals(self, *, level: float = 0.95, n_resamples: int = 2000, seed: int = 0) -> pd.DataFrame:
        """Return all rates with confidence intervals of a nominal coverage ``level``, in (0, 1).

        Columns measure, value, low, high, level, method, n_documents, n_resamples, seed. Method ``"documents
        (percentile)"`` resamples documents with their tags; ``"tags (wilson)"``, for micro precision and recall (Wilson
        1927), treats tags as independent draws and is too narrow if documents differ.
        """
        if not 0 < level < 1:
            raise ParameterError(f"level={level}: wanted a number between 0 and 1, such as 0.95")
        for name, number, lowest in (("n_resamples", n_resamples, 1), ("seed", seed, 0)):
            if not isinstance(number, int) or number < lowest:
                raise ParameterError(f"{name}={excerpt(number)}: wanted a whole number of at least {lowest}")
        from scipy.stats import binomtest

        names = [f"{kind} {rate}" for kind in ("micro", "macro") for rate in RATES]
        values, resampled = [*self.micro, *self.macro], self._resampled_rates(n_resamples, seed)
        # Percentiles of the defined rates.
        defined, tails = [column[~np.isnan(column)] for column in resampled.T], [(1 - level) / 2, (1 + level) / 2]
        ends = [tuple(np.quantile(column, tails).tolist()) if len(column) else (np.nan, np.nan) for column in defined]
        rows = [(*row, "documents (percentile)", n_resamples, seed) for row in zip(names, values, ends, strict=True)]
        for name, value, n in zip(names, values, (self.n_tags, self.n_gold), strict=False):
            if n:
                interval = binomtest(self.n_correct, n).proportion_ci(confidence_level=level, method="wilson")
                rows.append((name, value, (float(interval.low), float(interval.high)), "tags (wilson)", 0, 0))
        frame = pd.DataFrame(rows, columns=["measure", "value", "ends", "method", "n_resamples", "seed"])
        frame[["low", "high"]] = frame["ends"].tolist()
        columns = ["measure", "value", "low", "high", "level", "method", "n_documents", "n_resamples", "seed"]
        return frame.assign(level=level, n_documents=self.n_documents)[columns]

    def _resampled_rates(self, n_resamples: int, seed: int) -> Floats:
        """Return micro and macro rates of resampled documents, shape (n_resamples, 6)."""
        n = self.n_documents
        if n < 2:  # noqa: PLR2004 - two documents at least
            warn("an interval over documents needs at least two documents")
            return np.full((n_resamples, 6), np.nan)
        content = self.documents[[*COUNTS, *RATES]].to_numpy(dtype=np.float64)
        draw, share = stream(seed, "tag quality"), np.full(n, 1 / n)
        sums, done, step = np.empty((n_resamples, content.shape[1])), 0, max(1, BLOCK_CELLS // n)
        while done < n_resamples:
            times = draw.multinomial(n, share, size=min(step, n_resamples - done))
            sums[done : done + len(times)] = times @ content
            done += len(times)
        return np.hstack([rates(sums[:, :3]), sums[:, 3:] / n])


def tag_quality(tags: Any, gold: Any, *, documents: Any = None) -> TagQuality:
    """Compute precision and recall of tags on a sample of manually labelled documents.

    A tag is a distinct pair of document and entity with positive weight. Only documents of the sample count. Micro
    rates are over all tags, ``P = Σ c_d / Σ t_d``, ``R = Σ c_d / Σ g_d``, with t tags, g gold tags and c correct tags;
    macro rates are means over documents, where as in GERBIL (Usbeck et al. 2015) a document without tags and without
    gold tags scores 1, and a document with only one kind scores 0.

    Parameters
    ----------
    tags, gold
        Columns docno, entity_id, and optionally weight and qid; or a registered name, or a path.
    documents
        The sample: ids, or a frame with docno, and with qid if tags have it. By default the documents of ``gold``, also
        with tags of weight 0; labelled documents without gold tags are then missing, and their wrong tags do not count.

    Returns
    -------
    TagQuality
        ``micro`` and ``macro`` precision, recall and F1; ``documents`` and ``entities``: a row each.

    Raises
    ------
    InputError
        Illegal tags; ids of different kinds; qid in one frame only; a sample without documents.

    Examples
    --------
    >>> import pandas as pd
    >>> gold = pd.DataFrame({"docno": ["d1", "d1", "d2"], "entity_id": ["A", "B", "A"]})
    >>> tags = pd.DataFrame({"docno": ["d1", "d2", "d2", "other"], "entity_id": ["A", "A", "C", "C"]})
    >>> quality = tag_quality(tags, gold)
    >>> round(quality.micro.precision, 4), round(quality.micro.recall, 4), quality.n_documents
    (0.6667, 0.6667, 2)
    """
    tagged, right = (
        TagTable(named_frame("tags", frame), name=name) for frame, name in ((tags, "tags"), (gold, "gold"))
    )
    if (tagged.topics is None) != (right.topics is None):
        odd = "tags" if right.topics is None else "gold"
        raise InputError(f"only {odd} have a column qid; drop it, or add it to both")
    pairs = [(tagged.docno, right.docno, "docno"), (tagged.entity, right.entity, "entity_id")]
    for left, other, name in pairs + ([(tagged.qid, right.qid, "qid")] if tagged.topics is not None else []):
        require_same_kind(left, other, f"tags column {name!r}", f"gold column {name!r}")
    on = ["docno"] if tagged.topics is None else ["qid", "docno"]
    sample = (_columns(right, on) if documents is None else _sample(documents, on, right)).drop_duplicates()
    if not len(sample):
        raise InputError("the sample has no document; pass gold tags, or documents=")
    matched = sample.merge(_pairs(tagged, on), on=on)
    gold_pairs = sample.merge(_pairs(right, on), on=on)
    if not len(matched):
        warn(
            f"no document of the sample has tags: {examples(tagged.docno.text[:4].to_pylist())} against "
            f"{examples(sample['docno'].iloc[:4])}; check the ids"
        )
    by_document = sample.merge(_counts(matched, gold_pairs, on), on=on, how="left").fillna(dict.fromkeys(COUNTS, 0))
    by_document = by_document.astype(dict.fromkeys(COUNTS, "int64")).reset_index(drop=True)
    counts = by_document[COUNTS].to_numpy(dtype=np.float64)
    labelled = counts[:, :2].sum(axis=1, keepdims=True) > 0
    by_document[RATES] = np.where(labelled, np.nan_to_num(rates(counts)), 1.0)
    order = {"n_gold": False, "n_tags": False, "entity_id": True}
    entities = _counts(matched, gold_pairs, ["entity_id"])
    entities = entities.sort_values(list(order), ascending=list(order.values()), ignore_index=True)
    entities[RATES] = rates(entities[COUNTS].to_numpy(dtype=np.float64))
    return TagQuality(by_document, entities, _by_decision(tagged, matched, gold_pairs, on))


def _by_decision(table: TagTable, matched: pd.DataFrame, gold_pairs: pd.DataFrame, on: list[str]) -> pd.DataFrame:
    """Precision of the tags of a sample that scores and that ties decide."""
    if table.tied is None:
        return pd.DataFrame(columns=_DECISIONS)
    pair = [*on, "entity_id"]
    tied = _columns(table, on).assign(entity_id=table.entity.text.to_pylist(), tied=table.tied)[table.weight > 0]
    # A repeated tag is a guess if all its repetitions are.
    frame = matched.merge(tied.groupby(pair, sort=False)["tied"].all().reset_index(), on=pair)
    frame = frame.merge(gold_pairs.assign(n_correct=1), how="left", on=pair).fillna({"n_correct": 0})
    counts = frame.groupby("tied")["n_correct"].agg(["size", "sum"]).reindex([False, True], fill_value=0)
    counts = counts.astype("int64").set_axis(["n_tags", "n_correct"], axis=1)
    counts["precision"] = (counts["n_correct"] / counts["n_tags"]).where(counts["n_tags"] > 0)
    return counts.reset_index(drop=True).assign(decision=["score", "tie"])[_DECISIONS]


def rates(counts: Floats) -> Floats:
    """Return precision, recall and F1 of counts (tags, gold, correct), shape (..., 3); undefined rates are NaN.

    >>> rates(np.array([[4.0, 2.0, 1.0], [0.0, 2.0, 0.0]])).round(4).tolist()
    [[0.25, 0.5, 0.3333], [nan, 0.0, 0.0]]
    """
    tags, gold, correct = np.moveaxis(counts, -1, 0)
    divisors = np.stack([tags, gold, (tags + gold) / 2], axis=-1)
    made = np.full(divisors.shape, np.nan)
    np.divide(correct[..., None], divisors, out=made, where=divisors > 0)
    return made


def _pairs(table: TagTable, on: list[str]) -> pd.DataFrame:
    """Return the distinct tags of positive weight, ids as text."""
    frame = _columns(table, on)
    frame["entity_id"] = pd.Series(table.entity.text.to_pylist(), dtype=object)
    return frame[table.weight > 0].drop_duplicates(ignore_index=True)


def _columns(table: TagTable, on: list[str]) -> pd.DataFrame:
    return pd.DataFrame({name: getattr(table, name).text.to_pylist() for name in on}, dtype=object)


def _sample(documents: Any, on: list[str], gold: TagTable) -> pd.DataFrame:
    """Return the documents of a sample, ids as text."""
    frame = documents_frame(documents, on)
    ids = {name: column_ids(frame[name], f"documents column {name!r}") for name in on}
    for name, column in ids.items():
        require_same_kind(getattr(gold, name), column, f"gold column {name!r}", f"documents column {name!r}")
    return pd.DataFrame({name: column.text.to_pylist() for name, column in ids.items()}, dtype=object)


def _counts(matched: pd.DataFrame, gold_pairs: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Return the numbers of tags, gold tags and correct tags of each document or entity."""
    both = matched.merge(gold_pairs, how="outer", on=list(matched.columns), indicator="side")
    both["n_tags"] = (both["side"] != "right_only").astype("int64")
    both["n_gold"] = (both["side"] != "left_only").astype("int64")
    both["n_correct"] = both["n_tags"] * both["n_gold"]
    return both.groupby(by, sort=False)[COUNTS].sum().reset_index()
