"""Fitted evidence models: fit, save, load, register, and show."""

from __future__ import annotations

import json
import os
import secrets
import shutil
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from vbterrier.errors import FileError, InputError, examples, nearest, whole
from vbterrier.frames.files.reading import MAX_BYTES, read_qrels
from vbterrier.frames.files.source import Source
from vbterrier.frames.files.tables import parquet_table
from vbterrier.frames.notebook import Panel, Shown, counted
from vbterrier.frames.ranking import Run, runs_of
from vbterrier.kernels.grade_regression import sigmoid
from vbterrier.unjudged.evidence import features_of
from vbterrier.unjudged.model import DEPTH, fit_model, fit_step
from vbterrier.unjudged.pool import Judgments, MachineLabels, labels_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from vbterrier.annotations import StrPath
    from vbterrier.unjudged.model import GradeDraws, GradeModel


_FORMAT = 1
_META, _RUNS, _QRELS, _LABELS = "model.json", "runs.parquet", "qrels.parquet", "labels.parquet"
N_DRAWS = 1000
_FOLDS = 5
_MODELS: dict[str, EvidenceModel] = {}


@dataclass(frozen=True, eq=False, repr=False)
class EvidenceModel(Shown):
    """A model of the grades of unjudged documents; the result of :func:`fit`.

    Measures refer to a registered model by name: ``BNDCG(model="name") @ 10`` uses its runs as evidence, with the
    judgments of the call. A run with other documents joins the evidence.

    Parameters
    ----------
    runs, judgments, labels
        The evidence runs, cut to the depth of the evidence, the judgments, and labels of machines.
    cutoff, horizon, seed
        The cutoff k, the requested horizon (0 for the depth of the pool), and the seed of the draws that tables
        summarise.

    Examples
    --------
    >>> qrels = pd.DataFrame({"qid": "q1", "docno": ["a", "b", "c", "d"], "label": [1, 0, 1, 0]})
    >>> run = pd.DataFrame({"qid": "q1", "docno": ["a", "new", "b"], "score": [3.0, 2.0, 1.0]})
    >>> fit({"mine": run}, qrels, cutoff=3).topics()[["n_judged", "n_relevant"]].values.tolist()
    [[4, 2]]
    """

    runs: Mapping[str, Run]
    judgments: Judgments
    cutoff: int
    horizon: int
    seed: int = 0
    labels: MachineLabels | None = None

    @cached_property
    def model(self) -> GradeModel:
        """The fitted regression of grades."""
        return fit_model(self.runs, self.judgments, self.cutoff, self.horizon, self.labels)

    @cached_property
    def _drawn(self) -> GradeDraws:
        return self.model.draw(N_DRAWS, self.seed)

    def register(self, name: str) -> EvidenceModel:
        """Register the model under a name for this process, for ``BNDCG(model=name)``; return the model."""
        if not isinstance(name, str) or not name:
            raise InputError(f"name={name!r}: wanted the name of a model, some text")
        _MODELS[name] = self
        return self

    def save(self, path: StrPath) -> Path:
        """Save runs, judgments, labels and parameters in a new folder, as Parquet and JSON."""
        folder = Path(path)
        runs = [
            pa.table({**_pairs(run), "score": run.score, "name": pa.array([name] * len(run), pa.large_string())})
            for name, run in self.runs.items()
        ]
        qrels = {**_pairs(self.judgments), "label": self.judgments.label}
        tables = {_RUNS: pa.concat_tables(runs), _QRELS: pa.table(qrels)}
        if self.labels is not None:
            tables[_LABELS] = pa.Table.from_pandas(self.labels.frame(), preserve_index=False)
        meta = {"format": _FORMAT, "cutoff": self.cutoff, "horizon": self.horizon, "seed": self.seed}
        part = folder.with_name(f".{secrets.token_hex(8)}.part")
        if folder.exists():
            raise FileError(folder, "exists already; use another folder, or delete this one first")
        try:
            part.mkdir(parents=True)
            try:
                for name, table in tables.items():
                    pq.write_table(table, part / name)
                (part / _META).write_text(json.dumps(meta) + "\n", encoding="utf-8")
                part.replace(folder)
            finally:
                shutil.rmtree(part, ignore_errors=True)
        except OSError as error:
            raise FileError(folder, f"cannot be written: {error.strerror or error}") from error
        return folder

    @classmethod
    def load(cls, path: StrPath) -> EvidenceModel:
        """Load a saved model, and fit it."""
        folder = Path(path)
        try:
            with (folder / _META).open("rb") as file:
                meta = json.loads(file.read(1 << 16))
        except (OSError, ValueError, RecursionError) as error:
            raise FileError(folder, "is no saved model; wanted a folder made by EvidenceModel.save") from error
        known = isinstance(meta, dict) and meta.get("format") == _FORMAT
        if not known or any(type(meta.get(key)) is not int for key in ("cutoff", "horizon", "seed")):
            raise FileError(folder / _META, f"wanted a model of format {_FORMAT}; save the model again")
        runs = _frame(folder / _RUNS, ("qid", "docno", "score", "name"), "score")
        qrels = _frame(folder / _QRELS, ("qid", "docno", "label"), "label")
        labels = None
        if (folder / _LABELS).exists():
            given = _frame(folder / _LABELS, ("qid", "docno", "grade", "name"), "grade")
            labels = _by_name(given.rename(columns={"grade": "label"}))
        options = {name: meta[name] for name in ("cutoff", "horizon", "seed")}
        return fit(_by_name(runs), qrels, labels=labels, **options)

    def probabilities(self) -> pd.DataFrame:
        """Return a row per unjudged document: qid, docno, best_rank, n_runs, prob (of relevance), expected_grade."""
        evidence, drawn = self.model.evidence, self._drawn
        rows = evidence.unjudged
        columns = {
            "qid": np.array(evidence.topics, dtype=object)[evidence.topic[rows]],
            "docno": evidence.docno.take(rows).text.to_pylist(),
            "best_rank": evidence.best_rank[rows],
            "n_runs": evidence.n_retrieving[rows],
            "prob": drawn.probability,
            "expected_grade": self.judgments.grades.astype(np.float64)[drawn.levels].mean(axis=0),
        }
        return pd.DataFrame(columns)

    def by_rank(self) -> pd.DataFrame:
        """Return the mean probability of relevance at each rank: name, rank, n_unjudged, prob, judged_share."""
        evidence = self.model.evidence
        prob = np.full(len(evidence), np.nan)
        prob[evidence.unjudged] = self._drawn.probability
        names, judged = np.array(evidence.names, dtype=object)[evidence.run], evidence.level[evidence.item] >= 0
        frame = pd.DataFrame({"name": names, "rank": evidence.rank, "prob": prob[evidence.item], "judged": judged})
        grouped = frame.groupby(["name", "rank"], sort=True)
        n_unjudged = grouped["judged"].size() - grouped["judged"].sum()
        means = {"prob": grouped["prob"].mean(), "judged_share": grouped["judged"].mean()}
        return pd.DataFrame({"n_unjudged": n_unjudged, **means}).reset_index()

    def topics(self, level: float = 0.9) -> pd.DataFrame:
        """Return a row per topic: qid, n_judged, n_relevant, found, unseen (estimated relevant documents), low, high.

        ``found`` are relevant unjudged documents of the runs, ``unseen`` relevant documents that no run retrieves;
        ``low`` and ``high`` are the ends of the interval of the number of all relevant documents.
        """
        evidence, drawn = self.model.evidence, self._drawn
        relevant, shape = evidence.counts[:, 1:].sum(axis=1), (N_DRAWS, *evidence.counts.shape)
        total, unseen = (np.broadcast_to(of, shape)[:, :, 1:].sum(axis=2) for of in (drawn.counts, drawn.unseen))
        low, high = np.quantile(total, [(1 - level) / 2, (1 + level) / 2], axis=0, method="inverted_cdf")
        judged = {"qid": evidence.topics, "n_judged": evidence.counts.sum(axis=1), "n_relevant": relevant}
        found = {"found": (total - unseen).mean(axis=0) - relevant, "unseen": unseen.mean(axis=0)}
        return pd.DataFrame({**judged, **found, "low": low, "high": high, "level": level})

    def selection(self) -> pd.DataFrame:
        """Return why documents were not judged, as far as it shows: sigma, ks, gate, horizon, judged_share, n_runs.

        ``gate`` is 0 for judgments that are missing at random or below a depth, 1 for documents of runs that were not
        pooled; see :func:`vbterrier.unjudged.evidence.selection`.
        """
        model, evidence = self.model, self.model.evidence
        judged = 1 - evidence.n_unjudged.sum() / max(evidence.n_cut.sum(), 1)
        row = {"sigma": model.sigma, "ks": model.ks, "gate": model.gate, "horizon": evidence.depth}
        return pd.DataFrame([{**row, "judged_share": judged, "n_runs": evidence.n_runs, "cutoff": self.cutoff}])

    def calibration(self) -> pd.DataFrame:
        """Return predictions of held-out judgments by tenths: n, predicted, relevant, log_loss, log_loss_pool.

        Judged documents are divided into five parts by a hash of their ids; each is predicted by a regression on the
        others. ``log_loss`` is the mean over all parts and tenths, ``log_loss_pool`` that of the topic's share of
        relevant judged documents.
        """
        model, evidence = self.model, self.model.evidence
        known = np.flatnonzero(evidence.level >= 0)
        if not len(known) or not model.steps:
            return pd.DataFrame(columns=["n", "predicted", "relevant", "log_loss", "log_loss_pool"])
        hit, topic, n = evidence.level[known] > 0, evidence.topic[known], len(evidence.topics)
        fold = (evidence.keys[known] % np.uint64(_FOLDS)).astype(np.int64)
        predicted, pool = np.empty((2, len(known)))
        for part in range(_FOLDS):
            out = fold == part
            level = evidence.level.copy()
            level[known[out]] = -1
            asked = np.searchsorted(np.flatnonzero(level < 0), known[out])
            others = replace(evidence, level=level)
            held = fit_step(others, features_of(others), 1)
            predicted[out] = sigmoid(held.regression.logit(held.design[asked], topic[out]))
            overall = (hit[~out].sum() + 0.5) / ((~out).sum() + 1)
            relevant = np.bincount(topic[~out], hit[~out], minlength=n)
            pool[out] = ((relevant + overall) / (np.bincount(topic[~out], minlength=n) + 1))[topic[out]]
        loss, loss_pool = (-np.log(np.where(hit, p, 1 - p).clip(1e-9)).mean() for p in (predicted, pool))
        tenth = np.minimum((predicted * 10).astype(np.int64), 9)
        tenths = pd.DataFrame({"predicted": predicted, "relevant": hit}).groupby(tenth)
        found = tenths.mean().reset_index(drop=True).assign(log_loss=loss, log_loss_pool=loss_pool)
        found.insert(0, "n", tenths.size().to_numpy())
        return found

    def _line(self) -> str:
        evidence = self.model.evidence
        return (
            f"{counted(evidence.n_runs, 'run')}, {counted(len(evidence.topics), 'topic')}, cutoff {self.cutoff}, "
            f"horizon {evidence.depth}: {len(evidence.unjudged)} of {len(evidence)} documents unjudged"
        )

    def _panels(self) -> Iterator[Panel]:
        yield Panel("Selection for judging", self.selection())
        yield Panel("Relevant documents by topic", self.topics())
        yield Panel("Probability of relevance by rank", self.by_rank())
        yield Panel("Prediction of held-out judgments", self.calibration())


def _pairs(ranked: Run | Judgments) -> dict[str, Any]:
    """The columns qid and docno of runs or judgments."""
    topics = pa.array(ranked.topics, pa.large_string())
    return {"qid": topics.take(pa.array(ranked.topic)), "docno": ranked.docno.text}


def _by_name(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    return {str(name): part.drop(columns="name") for name, part in frame.groupby("name", sort=False)}


def _frame(path: Path, wanted: tuple[str, ...], number: str) -> pd.DataFrame:
    frame: pd.DataFrame = parquet_table(Source.at(path, MAX_BYTES), wanted, (number,)).to_pandas()
    return frame


def fit(
    runs: Any, qrels: Any, *, cutoff: int = 10, horizon: int = 0, labels: Any = None, seed: int = 0
) -> EvidenceModel:
    """Fit the evidence model of unjudged documents to runs and judgments.

    Parameters
    ----------
    runs, qrels
        The evidence: a mapping of name to run, a frame (qid, docno, score) or the path of a TREC run; a frame (qid,
        docno, label) or the path of TREC qrels, of which at least 5 % have grade 0.
    cutoff, horizon
        The cutoff k of the measures, and the depth to which all documents are meant to be judged: the ideal ranking of
        a drawn pool is that of complete judgments to this depth. 0 for the larger of the cutoff and the depth of the
        pool, see :func:`vbterrier.unjudged.evidence.pool_depth`.
    labels, seed
        Labels that machines gave to documents: a frame (qid, docno, label), a path, or a mapping of name to these; seed
        of the draws that tables of the model summarise.

    Examples
    --------
    >>> qrels = pd.DataFrame({"qid": "q1", "docno": ["a", "b", "c", "d"], "label": [1, 0, 1, 0]})
    >>> run = pd.DataFrame({"qid": "q1", "docno": ["a", "new", "b"], "score": [3.0, 2.0, 1.0]})
    >>> model = fit({"mine": run}, qrels, cutoff=3).register("example")
    >>> model.probabilities()[["qid", "docno", "best_rank"]].values.tolist()
    [['q1', 'new', 2]]
    >>> import vbterrier
    >>> vbterrier.BNDCG(model="example") @ 3
    BNDCG(model='example')@3
    """
    whole("cutoff", cutoff)
    whole("horizon", horizon, low=0)
    whole("seed", seed, low=0)
    judgments = Judgments(read_qrels(qrels) if isinstance(qrels, (str, os.PathLike)) else qrels)
    depth = max(DEPTH, cutoff, horizon)
    cut = {}
    for name, run in runs_of(runs).items():
        judged = judgments.judge(run, depth)
        kept = np.sort(judged.rows[judged.rows >= 0])
        cut[name] = Run(run.frame.iloc[kept].reset_index(drop=True), name=run.name)
    found = EvidenceModel(cut, judgments, cutoff, horizon, seed, labels_of(labels))
    _ = found.model
    return found


def evidence_model(name: str) -> EvidenceModel:
    """Return a registered model, or a model saved in a folder."""
    if name not in _MODELS:
        if not Path(name).is_dir():
            raise InputError(
                f"model={name!r}: no model is registered under this name and no such folder exists; registered: "
                f"{examples(list(_MODELS)) or 'none'}; use vbterrier.unjudged.fit(runs, qrels).register(name)."
                f"{nearest(name, list(_MODELS))}"
            )
        _MODELS[name] = EvidenceModel.load(name)
    return _MODELS[name]
