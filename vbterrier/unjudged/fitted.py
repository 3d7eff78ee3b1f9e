"""Fitted evidence models: fit, save, load, register, and show."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import numpy as np
import pandas as pd
import pyarrow as pa

from vbterrier.errors import (
    CAN_BE_WRONG,
    FileError,
    InputError,
    ParameterError,
    agreeing,
    examples,
    excerpt,
    nearest,
    path_parameter,
    printable,
    warn,
    whole,
)
from vbterrier.frames.files.reading import evaluated_qrels
from vbterrier.frames.files.source import (
    MAX_BYTES,
    Source,
    content_digest,
    is_folder,
    parse_json,
    read_content,
    require_regular,
)
from vbterrier.frames.files.tables import parquet_table
from vbterrier.frames.files.writing import new_folder
from vbterrier.frames.ids import release_unused
from vbterrier.frames.notebook import Panel, count_text
from vbterrier.frames.ranking import Run, places, runs_by_name
from vbterrier.frames.results import SUFFIXES, Shown
from vbterrier.kernels.floats import with_usual_errors
from vbterrier.kernels.grade_regression import sigmoid
from vbterrier.kernels.rankings import MOST_RANKS
from vbterrier.remedies import name_in_use
from vbterrier.unjudged.distribution import resolve_metric
from vbterrier.unjudged.draws import GradeDraws
from vbterrier.unjudged.estimated import EstimatedDistribution
from vbterrier.unjudged.evidence import MIN_LARGE_DOCUMENTS
from vbterrier.unjudged.features import features_of
from vbterrier.unjudged.metrics import AP
from vbterrier.unjudged.model import DEFAULT_POOL_CUTOFF, fit_model, fit_step
from vbterrier.unjudged.pool import Judgments, MachineLabels, machine_labels

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from vbterrier.annotations import StrPath
    from vbterrier.unjudged.metrics import Metric
    from vbterrier.unjudged.model import GradeModel
    from vbterrier.unjudged.pool import JudgedTop


_FORMAT_VERSION = 3
_META, _RUNS, _QRELS, _LABELS = "model.json", "runs.parquet", "qrels.parquet", "labels.parquet"
# Bytes of the names of runs, and of numbers.
_MOST_META = 1 << 24
N_DRAWS = 1000
_N_FOLDS = 5
# Hardly anything is known about runs with a larger unjudged share; see docs/explanation/evidence.md.
_DOUBTFUL_SHARE = 0.8
# Signs above the first show a pool shallower than the cutoff, and fewer effective runs than the second do not show what
# is below it, if its unjudged documents look relevant more often than the judged ones by more than this factor.
_MIN_SHALLOW_SIGN, _FEW_RUNS, _RISING = 0.6, 2.5, 1.05
# Judgments that seem to end at a depth, were selected with more than this probability, and of which no run retrieves at
# most this share at any rank of the evidence, come from these runs, which do not show what other systems find.
_MIN_SELECTION_PROBABILITY, _FROM_OTHERS = 0.7, 0.05
# Documents to judge that a warning names.
_MAX_NAMED = 3
# A smaller weight of the shift of unjudged documents shows no selection for judging.
_LEAST_GATE = 0.05
# Draws that a model keeps, for other measures and runs.
_MAX_KEPT_DRAWS = 8
# Models by registered name; by digest, as long as they exist; and by folder, with the state of its files.
_MODELS: dict[str, EvidenceModel] = {}
_DIGEST_MODELS: WeakValueDictionary[str, EvidenceModel] = WeakValueDictionary()
_LOADED: dict[str, tuple[Any, EvidenceModel]] = {}


@dataclass(frozen=True, eq=False, repr=False)
class EvidenceModel(Shown):
    """A model of the grades of unjudged documents; the result of :func:`fit`.

    Measures of the E family refer to it by name, as ``ENDCG(model="name") @ 10``: a registered name, the model's digest
    while the model exists, or the folder of a saved model. The model estimates scores of runs whose unjudged documents
    its own runs retrieve, with the judgments that it was fitted to.

    Parameters
    ----------
    runs, judgments, labels
        The evidence runs, the judgments, and labels of machines.
    cutoff, pool_cutoff, seed
        The deepest cutoff of the measures that use it (``None`` for whole rankings), the depth to which complete
        judgments judge the runs (``None`` for the depth of the pool), and the seed of the draws that tables summarise.

    Examples
    --------
    >>> qrels = pd.DataFrame({"qid": "q1", "docno": ["a", "b", "c", "d"], "label": [1, 0, 1, 0]})
    >>> run = pd.DataFrame({"qid": "q1", "docno": ["a", "new", "b"], "score": [3.0, 2.0, 1.0]})
    >>> fit({"mine": run}, qrels, cutoff=3).topics()[["n_judged", "n_relevant"]].values.tolist()
    [[4, 2]]
    """

    runs: Mapping[str, Run] | None
    judgments: Judgments
    cutoff: int | None
    pool_cutoff: int | None = None
    seed: int = 0
    labels: MachineLabels | None = None
    _fits: dict[int | None, GradeModel] = field(default_factory=dict, init=False)
    _draws: dict[tuple[int | None, int, int, bool, bool], GradeDraws] = field(default_factory=dict, init=False)

    def __getstate__(self) -> dict[str, Any]:
        # Other processes get the fits and the draws that exist, without the runs.
        return {**vars(self), "digest": self.digest, "runs": None}

    @property
    def depth(self) -> int | None:
        """The rank to which runs are evidence, and the largest cutoff; ``None`` for whole rankings."""
        return None if self.cutoff is None else max(DEFAULT_POOL_CUTOFF, self.cutoff, self.pool_cutoff or 0)

    @cached_property
    def digest(self) -> str:
        """16 hexadecimal digits that determine the model: of its runs, judgments, labels, pool depth and version."""
        parts = [f"{_FORMAT_VERSION} {self.depth} {self.pool_cutoff}".encode()]
        topics = set(self.judgments.topics)
        for name, run in (self.runs or {}).items():
            parts += [name.encode(), run.fingerprint(self.depth, topics)]
        parts.append(self.judgments.fingerprint)
        if self.labels is not None:
            parts.append(self.labels.fingerprint)
        return hashlib.blake2b(b"".join(hashlib.blake2b(part).digest() for part in parts), digest_size=8).hexdigest()

    @property
    def summary(self) -> str:
        """The digest, the numbers of runs and topics, copies among the runs, and the signs of selection for judging."""
        fitted = self.at(self.cutoff)
        evidence = fitted.evidence
        looks = "judgments seem to be missing at random"
        if fitted.gate >= _LEAST_GATE:
            looks = f"unjudged documents seem to differ from judged ones (weight {fitted.gate:.2f} of this difference)"
        copies = "".join(f"; {examples(same)} are copies and count as one run" for same in evidence.copies)
        sizes = f"{count_text(evidence.n_runs, 'run')} and {count_text(len(evidence.topics), 'topic')}"
        return f"model {self.digest} of {sizes}{copies}; {looks}"

    def judged_to(self, cutoff: int | None) -> str:
        """The depth to which the complete judgments of the estimates at a cutoff judge the runs, as words."""
        return f"judged to depth {self.at(cutoff).evidence.depth}"

    def caution(self, cutoff: int | None) -> str:
        """The reason not to trust estimates at a cutoff, with documents to judge first; empty if there is none.

        More than .8 of the documents in the cuts of a run are unjudged; the judgments seem to end at a depth that
        ``pool_cutoff`` does not state, and come from these runs alone; or they look like a pool shallower than the
        cutoff, of which one or two runs are known, and the unjudged documents of these look more relevant than the
        judged ones, so that nothing shows how many relevant documents are below it.
        """
        fitted = self.at(cutoff)
        evidence, k = fitted.evidence, fitted.evidence.cutoff
        share = evidence.n_unjudged.sum(axis=1) / evidence.n_cut.sum(axis=1)
        if not len(share) or not share.any() or not (evidence.level >= 0).any():
            return ""
        high = int(share.argmax())
        first = printable(evidence.names[int(np.argmax(evidence.distinct == high))])
        if share[high] > _DOUBTFUL_SHARE:
            reason = f"{share[high]:.0%} of the first {k} documents of {first} are unjudged"
        elif self._ends_with_its_runs(fitted):
            reason = (
                f"the judgments seem to end at rank {evidence.depth} and to come from these runs alone, which do not "
                "show what others retrieve; pool_cutoff= states the depth"
            )
        elif _is_shallow(fitted) and fitted.relevance_of_unjudged > _RISING:
            reason = (
                f"the pool looks shallower than {k}, {agreeing(evidence.n_distinct, 'runs of it are')} known, and "
                "their unjudged documents look no less relevant than the judged ones"
            )
        else:
            return ""
        entries = np.flatnonzero((evidence.run == high) & (evidence.level[evidence.item] < 0))
        item = evidence.item[entries]
        order = np.lexsort((evidence.topic[item], -evidence.n_retrieving[item], evidence.rank[entries]))
        item = item[order[:_MAX_NAMED]]
        named = [
            f"{docno!r} of query {evidence.topics[topic]!r}"
            for docno, topic in zip(evidence.docno.take(item).text.to_pylist(), evidence.topic[item], strict=True)
        ]
        return (
            f"{reason}: estimates at this cutoff {CAN_BE_WRONG}; judge documents of {first} first, such as "
            f"{', '.join(named)}; {name_in_use('judge', 'judge_next')} selects them"
        )

    def _ends_with_its_runs(self, fitted: GradeModel) -> bool:
        """Return True if judgments seem to be selected from the first ranks of these runs, to an unstated depth."""
        evidence = fitted.evidence
        has_end = self.pool_cutoff is None and evidence.depth < max(DEFAULT_POOL_CUTOFF, evidence.cutoff)
        n_judged = evidence.counts.sum()
        return (
            has_end
            and fitted.sigma > _MIN_SELECTION_PROBABILITY
            and bool(fitted.n_from_others <= _FROM_OTHERS * n_judged)
        )

    def at(self, cutoff: int | None) -> GradeModel:
        """Return the regression of grades for a cutoff, fitted at first use."""
        if cutoff not in self._fits:
            if self.depth is not None and (cutoff is None or cutoff > self.depth):
                reach = "whole rankings" if cutoff is None else f"a cutoff of {cutoff}"
                raise InputError(
                    f"model {self.digest}: wanted {reach}, but its runs are evidence to rank {self.depth}; fit it "
                    f"with cutoff={cutoff}"
                )
            if self.runs is None:
                raise InputError(
                    f"model {self.digest}: without its runs, which other processes do not get; fit it there"
                )
            self._fits[cutoff] = fit_model(self.runs, self.judgments, cutoff, self.pool_cutoff, self.labels)
            # The temporary arrays of many documents.
            if len(self._fits[cutoff].evidence) > MIN_LARGE_DOCUMENTS:
                release_unused()
        return self._fits[cutoff]

    def draw(
        self, cutoff: int | None, n_draws: int, seed: int, *, deep: bool = False, counts_relevant: bool = False
    ) -> GradeDraws:
        """Return joint draws of the grades of unjudged documents in the cuts of the runs, or with ``deep`` of all.

        ``counts_relevant``: for AP, which divides by the number of relevant documents.
        """
        key = cutoff, n_draws, seed, deep, counts_relevant
        if key not in self._draws:
            while len(self._draws) >= _MAX_KEPT_DRAWS:
                self._draws.pop(next(iter(self._draws)))
            fitted = replace(self.at(cutoff), counts_relevant=True) if counts_relevant else self.at(cutoff)
            self._draws[key] = GradeDraws(fitted, n_draws, seed, deep=deep)
            if len(self._fits[cutoff].evidence) > MIN_LARGE_DOCUMENTS:
                release_unused()
        return self._draws[key]

    def distribution(
        self, judged: JudgedTop, metric: Metric | None = None, *, n_draws: int = N_DRAWS, seed: int = 0, name: str = ""
    ) -> EstimatedDistribution:
        """Return the distribution of a run's scores.

        - ``judged``: the run with its judgments, as ``Judgments(qrels).judge(run, cutoff)`` returns it
        - ``metric``: nDCG by default, see :mod:`vbterrier.unjudged.metrics`
        - ``name``: that of the model in messages, by default its digest

        Raises InputError: judgments other than the model's; unjudged documents that none of its runs retrieves; a
        cutoff beyond the depth of its runs.
        """
        name, judgments = name or self.digest, judged.judgments
        self._require_judgments(judgments, name)
        fitted = self.at(judged.cutoff)
        evidence = fitted.evidence
        topic, rank = np.nonzero(judged.unjudged_mask)
        owner = places(judgments.topics, evidence.topics)[topic]
        items = evidence.lookup.find_one(owner, judged.run.docno.take(judged.rows[topic, rank]))
        if (items < 0).any():
            at = int(np.argmax(items < 0))
            docno = judged.run.docno.take(judged.rows[topic[at], rank[[at]]]).text[0].as_py()
            raise InputError(
                f"model {name!r}: none of its runs retrieves {int((items < 0).sum())} of the {len(items)} unjudged "
                f"documents of {judged.run.name} (first: {docno!r} of query {judgments.topics[topic[at]]!r}) up to "
                f"rank {evidence.depth}; fit a model to all runs that are evaluated, this one included, or for deeper "
                "judgments (pool_cutoff=)"
            )
        # Levels of draws are positions among the grades of all topics of the model.
        judged = judged.with_grades(self.judgments.grades)
        # The cuts of the model's runs may lack documents of the cuts of other runs.
        metric = resolve_metric(metric)
        options = {"deep": not evidence.near[items].all(), "counts_relevant": isinstance(metric, AP)}
        draw = partial(self.draw, judged.cutoff, **options)
        positions = np.searchsorted(evidence.unjudged_positions, items)
        if len(evidence) > MIN_LARGE_DOCUMENTS:
            release_unused()
        return EstimatedDistribution(judged, metric, draw, positions, n_draws, seed)

    def run_distribution(
        self, run: Any, cutoff: int | None = 10, metric: Metric | None = None, *, n_draws: int = N_DRAWS, seed: int = 0
    ) -> EstimatedDistribution:
        """Return the distribution of the scores of a run, a frame (qid, docno, score), see :meth:`distribution`."""
        judged = self.judgments.judge(Run(run), cutoff)
        return self.distribution(judged, metric, n_draws=n_draws, seed=seed)

    def _require_judgments(self, judgments: Judgments, name: str) -> None:
        """Refuse judgments of topics that differ from those of the model."""
        if judgments is self.judgments:
            return
        place = places(judgments.topics, self.judgments.topics)
        lacking = [topic for topic, at in zip(judgments.topics, place, strict=True) if at < 0]
        if lacking:
            raise InputError(
                f"model {name!r}: fitted without judgments of {len(lacking)} of the {len(judgments.topics)} topics "
                f"({examples(lacking)}); fit a model to these judgments"
            )
        odd = np.flatnonzero(judgments.of_topics != self.judgments.of_topics[place])
        if len(odd):
            raise InputError(
                f"model {name!r}: fitted to other judgments of {len(odd)} of the {len(judgments.topics)} topics "
                f"({examples([judgments.topics[at] for at in odd])}); fit a model to these judgments"
            )

    @property
    def _grade_model(self) -> GradeModel:
        return self.at(self.cutoff)

    @property
    def _grade_draws(self) -> GradeDraws:
        return self.draw(self.cutoff, N_DRAWS, self.seed)

    def register(self, name: str) -> EvidenceModel:
        """Register the model under a name for this process, for ``ENDCG(model=name)``; return the model."""
        if not isinstance(name, str) or not name:
            raise InputError(f"name={excerpt(name)}: wanted the name of a model, some text")
        _MODELS[name] = self
        return self

    def save(self, path: StrPath) -> Path:
        """Save the model in a new folder, or its page or table in a file.

        ``path``: a folder that does not exist yet, for runs, judgments, labels and parameters as Parquet and JSON,
        which :meth:`load` reads. A path that ends in a suffix of files of results, such as ``.html`` or ``.csv``, is a
        file, as for all results.
        """
        import pyarrow.parquet as pq

        folder = path_parameter("path", path)
        # Suffixes in capitals are refused, as those of all results.
        if folder.suffix.lower() in SUFFIXES:
            return super().save(path)
        if not self.runs:
            raise InputError(f"model {self.digest}: has no runs to save")
        runs = [
            pa.table({**_pairs(run), "score": run.score, "name": pa.array([name] * len(run), pa.large_string())})
            for name, run in self.runs.items()
        ]
        qrels = {**_pairs(self.judgments), "label": self.judgments.label}
        tables = {_RUNS: pa.concat_tables(runs), _QRELS: pa.table(qrels)}
        if self.labels is not None:
            tables[_LABELS] = pa.Table.from_pandas(self.labels.frame(), preserve_index=False)
        # Runs without documents are names without rows.
        meta: dict[str, Any] = {"format": _FORMAT_VERSION, "cutoff": self.cutoff, "pool_cutoff": self.pool_cutoff}
        meta |= {"seed": self.seed, "runs": list(self.runs), "digest": self.digest}
        with new_folder(folder, parents=True) as part:
            for name, table in tables.items():
                pq.write_table(table, part / name)
            (part / _META).write_text(json.dumps(meta) + "\n", encoding="utf-8")
        return folder

    @classmethod
    def load(cls, path: StrPath) -> EvidenceModel:
        """Load a saved model, and fit it."""
        folder = path_parameter("path", path)
        require_regular(*(folder / name for name in (_META, _RUNS, _QRELS, _LABELS)))
        try:
            meta = parse_json(read_content(folder / _META, _MOST_META))
        except (OSError, ValueError, RecursionError) as error:
            raise FileError(folder, "is no saved model; wanted a folder made by EvidenceModel.save") from error
        is_model = (
            isinstance(meta, dict) and meta.get("format") == _FORMAT_VERSION and isinstance(meta.get("digest"), str)
        )
        numbers = is_model and type(meta.get("seed")) is int
        numbers = numbers and all(type(meta.get(key, "")) in (int, type(None)) for key in ("cutoff", "pool_cutoff"))
        if not numbers or not isinstance(meta.get("runs"), list):
            raise FileError(folder / _META, f"wanted a model of format {_FORMAT_VERSION}; save the model again")
        runs = _by_name(_frame(folder / _RUNS, ("qid", "docno", "score", "name"), "score"))
        empty = pd.DataFrame({"qid": [], "docno": [], "score": []}, dtype=object)
        qrels = _frame(folder / _QRELS, ("qid", "docno", "label"), "label")
        labels = None
        if (folder / _LABELS).exists():
            labels_frame = _frame(folder / _LABELS, ("qid", "docno", "grade", "name"), "grade")
            labels = _by_name(labels_frame.rename(columns={"grade": "label"}))
        options = {name: meta[name] for name in ("cutoff", "pool_cutoff", "seed")}
        named = {str(name): runs.get(str(name), empty) for name in meta["runs"]}
        try:
            model = fit(named, qrels, labels=labels, **options)
        except ParameterError as error:
            raise FileError(folder / _META, str(error)) from error
        if model.digest != meta["digest"]:
            raise FileError(
                folder, f"its files make the model {model.digest}, not {meta['digest']}; save the model again"
            )
        return model

    def to_frame(self) -> pd.DataFrame:
        """Return a row per unjudged document: qid, docno, best_rank, n_runs, prob (of relevance), expected_grade."""
        evidence, drawn = self._grade_model.evidence, self._grade_draws
        rows = evidence.unjudged_positions
        columns = {
            "qid": np.array(evidence.topics, dtype=object)[evidence.topic[rows]],
            "docno": evidence.docno.take(rows).text.to_pylist(),
            "best_rank": evidence.best_rank[rows].astype(np.int64),
            "n_runs": evidence.n_retrieving[rows],
            "prob": 1 - drawn.shares[:, 0],
            "expected_grade": drawn.shares @ self.judgments.grades,
        }
        return pd.DataFrame(columns)

    def by_rank(self) -> pd.DataFrame:
        """Return the mean probability of relevance at each rank: name, rank, n_unjudged, prob, judged_share."""
        evidence = self._grade_model.evidence
        prob = np.full(len(evidence), np.nan)
        prob[evidence.unjudged_positions] = 1 - self._grade_draws.shares[:, 0]
        # Copies have the entries of their distinct run.
        named = [
            (name, np.flatnonzero(evidence.run == run))
            for name, run in zip(evidence.names, evidence.distinct, strict=True)
        ]
        names = np.repeat(np.array([name for name, _ in named], dtype=object), [len(rows) for _, rows in named])
        rows = np.concatenate([rows for _, rows in named])
        item, rank = evidence.item[rows], evidence.rank[rows].astype(np.int64)
        frame = pd.DataFrame({"name": names, "rank": rank, "prob": prob[item], "judged": evidence.level[item] >= 0})
        grouped = frame.groupby(["name", "rank"], sort=True)
        n_unjudged = grouped["judged"].size() - grouped["judged"].sum()
        means = {"prob": grouped["prob"].mean(), "judged_share": grouped["judged"].mean()}
        return pd.DataFrame({"n_unjudged": n_unjudged, **means}).reset_index()

    def topics(self, level: float = 0.9) -> pd.DataFrame:
        """Return a row per topic: qid, n_judged, n_relevant, found, unseen (estimated relevant documents), low, high.

        ``found`` are relevant unjudged documents of the runs, ``unseen`` relevant documents that no run retrieves;
        ``low`` and ``high`` are the ends of the interval of the number of all relevant documents.
        """
        evidence, drawn = self._grade_model.evidence, self._grade_draws
        relevant = evidence.counts[:, 1:].sum(axis=1)
        total, unseen = (grade_counts[:, :, 1:].sum(axis=2) for grade_counts in (drawn.counts, drawn.unseen_counts))
        low, high = np.quantile(total, [(1 - level) / 2, (1 + level) / 2], axis=0, method="inverted_cdf")
        judged = {"qid": evidence.topics, "n_judged": evidence.counts.sum(axis=1), "n_relevant": relevant}
        counts = {"found": (total - unseen).mean(axis=0) - relevant, "unseen": unseen.mean(axis=0)}
        return pd.DataFrame({**judged, **counts, "low": low, "high": high, "level": level})

    def selection(self) -> pd.DataFrame:
        """Return why documents were not judged, as far as it shows: sigma, ks, gate, depth, judged_share, n_runs.

        ``gate`` is the weight of the shift of unjudged documents, 0 for judgments that are missing at random or below a
        depth, 1 for documents of runs that were not pooled; ``depth`` that of complete judgments; see
        :func:`vbterrier.unjudged.selection.selection`.
        """
        model, evidence = self._grade_model, self._grade_model.evidence
        judged = 1 - evidence.n_unjudged.sum() / max(evidence.n_cut.sum(), 1)
        row = {"sigma": model.sigma, "ks": model.ks, "gate": model.gate, "depth": evidence.depth}
        return pd.DataFrame([{**row, "judged_share": judged, "n_runs": evidence.n_runs, "cutoff": self.cutoff}])

    def calibration(self) -> pd.DataFrame:
        """Return predictions of held-out judgments by tenths: n, predicted, relevant, log_loss, log_loss_pool.

        Judged documents are divided into five parts with about equal ranks; each is predicted by a regression on the
        others. ``log_loss`` is the mean over all parts and tenths, ``log_loss_pool`` that of the topic's share of
        relevant judged documents.
        """
        model, evidence = self._grade_model, self._grade_model.evidence
        rows = np.flatnonzero(evidence.level >= 0)
        if not len(rows) or not model.steps:
            return pd.DataFrame(columns=["n", "predicted", "relevant", "log_loss", "log_loss_pool"])
        hit, topic, n = evidence.level[rows] > 0, evidence.topic[rows], len(evidence.topics)
        fold = evidence.folds(rows, _N_FOLDS)
        predicted, pool = np.empty((2, len(rows)))
        for part in range(_N_FOLDS):
            out = fold == part
            level = evidence.level.copy()
            level[rows[out]] = -1
            others = replace(evidence, level=level)
            held = fit_step(others, features_of(others), 1)
            predicted[out] = sigmoid(held.regression.logit(held.design[rows[out]], topic[out]))
            overall = (hit[~out].sum() + 0.5) / ((~out).sum() + 1)
            relevant = np.bincount(topic[~out], hit[~out], minlength=n)
            pool[out] = ((relevant + overall) / (np.bincount(topic[~out], minlength=n) + 1))[topic[out]]
        loss, loss_pool = (-np.log(np.where(hit, p, 1 - p).clip(1e-9)).mean() for p in (predicted, pool))
        tenth = np.minimum((predicted * 10).astype(np.int64), 9)
        tenths = pd.DataFrame({"predicted": predicted, "relevant": hit}).groupby(tenth)
        table = tenths.mean().reset_index(drop=True).assign(log_loss=loss, log_loss_pool=loss_pool)
        table.insert(0, "n", tenths.size().to_numpy())
        return table

    def _line(self) -> str:
        evidence = self._grade_model.evidence
        return (
            f"{count_text(evidence.n_runs, 'run')}, {count_text(len(evidence.topics), 'topic')}, cutoff {self.cutoff}, "
            f"{self.judged_to(self.cutoff)}: {len(evidence.unjudged_positions)} of {len(evidence)} documents unjudged"
        )

    def _panels(self) -> Iterator[Panel]:
        yield Panel("Selection for judging", self.selection())
        yield Panel("Relevant documents by topic", self.topics())
        yield Panel("Probability of relevance by rank", self.by_rank())
        yield Panel("Prediction of held-out judgments", self.calibration())


def _is_shallow(fitted: GradeModel) -> bool:
    """Return True if judgments look like a pool shallower than the cutoff, of which one or two runs are known."""
    return min(fitted.ks, fitted.sigma) > _MIN_SHALLOW_SIGN and fitted.evidence.n_effective < _FEW_RUNS


def _pairs(ranked: Run | Judgments) -> dict[str, Any]:
    """The columns qid and docno of runs or judgments."""
    topics = pa.array(ranked.topics, pa.large_string())
    return {"qid": topics.take(pa.array(ranked.topic)), "docno": ranked.docno.text}


def _by_name(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    return {str(name): part.drop(columns="name") for name, part in frame.groupby("name", sort=False)}


def _frame(path: Path, required: tuple[str, ...], number: str) -> pd.DataFrame:
    frame: pd.DataFrame = parquet_table(Source.at(path, MAX_BYTES), required, (number,)).to_pandas()
    return frame


@with_usual_errors
def fit(
    runs: Any,
    qrels: Any,
    *,
    cutoff: int | None = 10,
    pool_cutoff: int | None = None,
    labels: Any = None,
    topics: Any = None,
    seed: int = 0,
) -> EvidenceModel:
    """Fit the model of all evidence about unjudged documents to runs and judgments.

    Parameters
    ----------
    runs, qrels
        The evidence: a mapping of name to run, a frame (qid, docno, score), the path of a TREC run, or a PyTerrier
        pipeline, which is run once on ``topics``, a frame (qid, query) or a path; and judgments, a frame (qid, docno,
        label) or the path of TREC qrels, of which at least 5 % have grade 0. The result does not depend on the order of
        runs.
    cutoff, pool_cutoff
        The deepest cutoff of the measures that use the model, ``None`` for whole rankings; and the depth to which
        complete judgments judge all runs, at least the cutoff: estimates are those of the scores that judgments to this
        depth give. ``None`` for the depth of the pool, see :func:`vbterrier.unjudged.selection.pool_depth`, which
        results name.
    labels, seed
        Labels that machines gave to documents: a frame (qid, docno, label), a path, or a mapping of name to these; seed
        of the draws that tables of the model summarise.

    Returns
    -------
    EvidenceModel
        The fitted model; ``register(name)`` makes it available to measures, ``save(folder)`` keeps it.

    Examples
    --------
    >>> qrels = pd.DataFrame({"qid": "q1", "docno": ["a", "b", "c", "d"], "label": [1, 0, 1, 0]})
    >>> run = pd.DataFrame({"qid": "q1", "docno": ["a", "new", "b"], "score": [3.0, 2.0, 1.0]})
    >>> model = fit({"mine": run}, qrels, cutoff=3).register("example")
    >>> model.to_frame()[["qid", "docno", "best_rank"]].values.tolist()
    [['q1', 'new', 2]]
    >>> import vbterrier
    >>> vbterrier.ENDCG(model="example") @ 3
    ENDCG(model='example')@3
    """
    if cutoff is not None:
        whole("cutoff", cutoff, high=MOST_RANKS)
    if pool_cutoff is not None:
        whole("pool_cutoff", pool_cutoff, high=MOST_RANKS)
    whole("seed", seed, low=0)
    judgments = Judgments(evaluated_qrels(qrels) if isinstance(qrels, (str, os.PathLike)) else qrels)
    depth = None if cutoff is None else max(DEFAULT_POOL_CUTOFF, cutoff, pool_cutoff or 0)
    cut = {}
    for name, run in runs_by_name(runs, topics).items():
        judged = judgments.judge(run, depth)
        kept = np.sort(judged.rows[judged.rows >= 0])
        cut[name] = Run(run.frame.iloc[kept].reset_index(drop=True), name=run.name)
    return fit_loaded(cut, judgments, cutoff, pool_cutoff, machine_labels(labels), seed)


def fit_loaded(
    runs: Mapping[str, Run],
    judgments: Judgments,
    cutoff: int | None,
    pool_cutoff: int | None = None,
    labels: MachineLabels | None = None,
    seed: int = 0,
    *,
    cautious: bool = True,
) -> EvidenceModel:
    """Fit the model to runs and judgments that were read and checked, see :func:`fit`.

    ``cautious``: warn if its estimates should not be trusted.
    """
    # Sorted by name, so that results do not depend on the order of runs.
    model = EvidenceModel(dict(sorted(runs.items())), judgments, cutoff, pool_cutoff, seed, labels)
    caution = model.caution(cutoff)
    if cautious and caution:
        warn(caution)
    _DIGEST_MODELS[model.digest] = model
    return model


def evidence_model(model: EvidenceModel | StrPath) -> EvidenceModel:
    """Return the model itself, a registered one by name, an existing one by digest, or a saved one by folder."""
    if isinstance(model, EvidenceModel):
        return model
    if not isinstance(model, (str, os.PathLike)):
        raise ParameterError(
            f"model={excerpt(model)}: wanted a model fitted by vbterrier.unjudged.fit, its name or "
            "digest, or its folder"
        )
    name = os.fspath(model)
    if name in _MODELS:
        return _MODELS[name]
    if name in _DIGEST_MODELS:
        return _DIGEST_MODELS[name]
    folder = Path(name)
    if not is_folder(folder):
        raise InputError(
            f"model={excerpt(name)}: no model is registered under this name and no such folder exists; registered: "
            f"{examples(list(_MODELS)) or 'none'}; use vbterrier.unjudged.fit(runs, qrels).register(name)."
            f"{nearest(name, list(_MODELS))}"
        )
    # Read again if the folder has changed.
    state = [(path.name, content_digest(path)) for path in sorted(folder.iterdir()) if path.is_file()]
    if name not in _LOADED or _LOADED[name][0] != state:
        _LOADED[name] = state, EvidenceModel.load(folder)
    return _LOADED[name][1]
