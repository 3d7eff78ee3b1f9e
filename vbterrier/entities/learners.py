"""Base class of stages that learn from the judgments of topics, and the folders that hold them."""

from __future__ import annotations

import abc
import hashlib
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd
import pyterrier as pt

from vbterrier.entities.cross_validation import Folds, Teaching, is_trained, out_of_fold_output
from vbterrier.entities.fingerprints import of_links, require_same_inputs, sample_ids, warn_of_other_links
from vbterrier.entities.provenance import of_cross_validated, of_fitted, require_independent
from vbterrier.entities.stage import EntityStage
from vbterrier.errors import FileError, InputError, ParameterError, agreeing, examples, path_parameter, warn
from vbterrier.frames.files.source import parse_json, read_content, require_regular
from vbterrier.frames.files.writing import folder_of_files, replace_files
from vbterrier.frames.id_spaces import conversion, entity_ids
from vbterrier.frames.ids import column_ids
from vbterrier.frames.linked_pool import LinkedPool
from vbterrier.frames.ranking import Run, ranked
from vbterrier.hosts.pyterrier import META_FILE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from typing_extensions import Self

    from vbterrier.annotations import Floats, Ints, StrPath


# The format and the type of artifacts.
FORMAT, STAGE_TYPE = "vbterrier", "trained_stage"
_PARAMETERS = "model.json"
# The format of the file of parameters.
_FORMAT_VERSION = 5
# The cutoff of nDCG in validations and in the loss of trees.
NDCG_CUTOFF = 20
# The size of the files of a stage: parameters with the topics of the training, and trees as text.
MAX_STAGE_BYTES = 1 << 30


@dataclass(frozen=True, eq=False)
class TrainingTopic:
    """A topic of training or validation: its id, the features of its items, and their labels, shape (n,)."""

    qid: str
    x: Any
    label: Ints


@dataclass(frozen=True, eq=False)
class Prepared:
    """A run with the features of its topics."""

    run: Run
    rows: list[Ints]  # the rows of each topic in the order of its features
    features: list[Any]  # the features of each topic
    sources: tuple[pd.DataFrame, ...] = ()  # other runs from which the features are made
    aligned: Any = None  # entity runs on the pool


def metadata(kind: str) -> str:
    """Return the metadata of an artifact of a type."""
    return json.dumps({"type": kind, "format": FORMAT, "package_hint": FORMAT}) + "\n"


def read_saved_stage(folder: Path) -> dict[str, Any]:
    """Return the stage, the parameters and the topics of a saved stage, and the name of the file of its model."""
    try:
        made = parse_json(read_content(folder / _PARAMETERS, MAX_STAGE_BYTES))
    except (OSError, ValueError, RecursionError) as error:
        raise FileError(folder, f"is not a saved model ({error}); write it with save") from error
    kinds = {"stage": str, "parameters": dict, "topics": list, "weights": str, "digest": str}
    kinds |= {"entities": list, "space": str, "inputs": dict, "links": dict}
    is_own = isinstance(made, dict) and made.get("format") == _FORMAT_VERSION
    if not is_own or not all(isinstance(made.get(name), kind) for name, kind in kinds.items()):
        raise FileError(folder / _PARAMETERS, f"is not a saved stage of format {_FORMAT_VERSION}; write it with save")
    return dict(made)


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=8).hexdigest()


def _require_same_space(stage: str, before: str, now: str) -> None:
    """Refuse links to entities of another id space than those of the training."""
    if before and now and before != now:
        raise InputError(
            f"{stage}: links are to entities of {now}, those of the training to entities of {before}: ids of different "
            f"spaces are different entities; bring the links to that space with {conversion(before)}"
        )


def _require_digest(path: Path, expected: str) -> None:
    """Refuse a model that is not the one saved with the parameters: readers of models crash on damaged ones."""
    try:
        content = read_content(path, MAX_STAGE_BYTES)
    except OSError as error:
        raise FileError(path, f"is not a saved model ({error.strerror or error}); write it with save") from error
    if _digest(content) != expected:
        raise FileError(path, "is not the model that was saved with these parameters; save the stage again")


class Learner(EntityStage, pt.Estimator, abc.ABC):  # type: ignore[misc]
    """Base class of trained stages over runs; subclasses compute features and labels of topics, and learn from them.

    Folders hold trained stages: parameters, the model, and metadata for PyTerrier.
    """

    # What messages call the input.
    INPUT = "run"
    # Parameters that a folder stores; texts, links and vectors are given again.
    STORED: ClassVar[tuple[str, ...]]
    # The ending of the file of the model.
    SUFFIX: ClassVar[str]
    # The learned model, None before training, and the topics of the training.
    _learned: Any = None
    _topics: frozenset[str] = frozenset()

    patience: int | None
    seed: int

    @abc.abstractmethod
    def _require_columns(self, inp: pd.DataFrame) -> None:
        """Check the columns of a run."""

    @abc.abstractmethod
    def _compute_features(self, inp: pd.DataFrame) -> Prepared:
        """Compute the features of a run that is not empty."""

    @abc.abstractmethod
    def _labels(self, prepared: Prepared, qrels: Any) -> list[Ints | None]:
        """Return the labels of the rows of each topic, -1 for unknown, and ``None`` for topics without judgments."""

    @abc.abstractmethod
    def _train(self, training: Sequence[TrainingTopic], validation: Sequence[TrainingTopic]) -> Any:
        """Learn from topics; validation topics, if there are any, determine when training stops."""

    @abc.abstractmethod
    def _scores(self, learned: Any, features: Sequence[Any]) -> list[Floats]:
        """Return the scores of the items of each topic."""

    def _example(self, qid: str, x: Any, label: Ints) -> TrainingTopic:
        return TrainingTopic(qid, x, label)

    def _require_features(self, x: Any) -> None:
        """Refuse features of other sizes than those in training."""

    def _examples(self, prepared: Prepared, qrels: Any) -> list[TrainingTopic]:
        labels = self._labels(prepared, qrels)
        lost = [qid for qid, label in zip(prepared.run.topics, labels, strict=True) if label is None]
        if lost:
            problem = agreeing(len(lost), "topics are not in qrels and are not used")
            warn(f"{prepared.run.name}: {problem} ({examples(lost)})")
        parts = zip(prepared.run.topics, prepared.features, labels, strict=True)
        return [self._example(qid, x, label) for qid, x, label in parts if label is not None]

    def fit(self, topics_or_res_tr: Any, qrels_tr: Any, topics_or_res_va: Any = None, qrels_va: Any = None) -> Self:
        """Learn from the run of judged topics; validation topics, if given, determine when training stops.

        Validation topics without ``qrels_va`` use ``qrels_tr``. An estimator among the ``entities`` is fitted, too; the
        stage then learns from its output for training topics that it has not seen.
        """
        require_independent(topics_or_res_tr, self.INPUT, folds=False)
        has_validation = topics_or_res_va is not None and len(topics_or_res_va)
        checked = topics_or_res_va if has_validation else None
        judged = qrels_tr if qrels_va is None else qrels_va
        training = self._training_features(Teaching(topics_or_res_tr, qrels_tr, checked, judged, self.seed))
        topics, validation = list(training.run.topics), []
        if checked is not None:
            prepared = self._compute_features(checked)
            topics, validation = [*topics, *prepared.run.topics], self._examples(prepared, judged)
        self._learned = self._train(self._examples(training, qrels_tr), validation)
        self._topics = frozenset(topics)
        return self

    def _training_features(self, teaching: Teaching) -> Prepared:
        """Compute the features of the training topics, after fitting the estimators that the stage contains."""
        return self._compute_features(teaching.training)

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Replace the scores and ranks of a run, with the column ``judgments``."""
        self._require_columns(inp)
        if not len(inp):
            return of_fitted(inp.assign(rank=pd.Series(dtype="int64")), self._topics)
        if self._learned is None:
            raise InputError(f"{type(self).__name__} is not fitted; call fit, or use cross_validated or load")
        prepared = self._compute_features(inp)
        for x in prepared.features:
            self._require_features(x)
        score = np.full(len(inp), np.nan)
        for rows, values in zip(prepared.rows, self._scores(self._learned, prepared.features), strict=True):
            score[rows] = values
        made = ranked(prepared.run.frame.assign(score=score), name=prepared.run.name)
        return of_fitted(made, self._topics, inp, *prepared.sources)

    def cross_validated(self, topics_and_res: pd.DataFrame, qrels: Any, *, folds: Any = 5) -> pd.DataFrame:
        """Return the run of all topics, each scored by a model learned from other topics.

        See :func:`vbterrier.entities.cross_validated` for ``folds``; validation topics determine when training stops,
        with ``patience``. An estimator among the ``entities`` is fitted again in each fold.
        """
        require_independent(topics_and_res, self.INPUT, folds=True)
        if any(map(is_trained, pt.inspect.subtransformers(self).values())):
            return out_of_fold_output(
                self, topics_and_res, qrels, folds, seed=self.seed, validated=self.patience is not None
            )
        if not len(topics_and_res):
            return of_cross_validated(topics_and_res.assign(rank=pd.Series(dtype="int64")))
        prepared = self._compute_features(topics_and_res)
        for source in prepared.sources:
            require_independent(source, "entities", folds=True)
        examples_by_topic = {topic.qid: topic for topic in self._examples(prepared, qrels)}
        score = np.full(len(prepared.run), np.nan)
        divided = Folds(folds, prepared.run.topics, self.seed, validated=self.patience is not None)
        for fold in divided:
            training, checked = (
                [examples_by_topic[q] for q in examples_by_topic if q in part]
                for part in (fold.training, fold.validation)
            )
            with divided.error_context(fold):
                learned = self._train(training, checked)
            tested = [at for at, qid in enumerate(prepared.run.topics) if qid in fold.test]
            scores = self._scores(learned, [prepared.features[at] for at in tested])
            for at, values in zip(tested, scores, strict=True):
                score[prepared.rows[at]] = values
        made = ranked(prepared.run.frame.assign(score=score), name=prepared.run.name)
        return of_cross_validated(made, prepared.run.frame, *prepared.sources)

    def set_parameter(self, name: str, value: Any) -> None:
        """Set a parameter; a change of one that training depends on discards the model."""
        learned, topics = self._learned, self._topics
        before = self._stored_parameters()
        super().set_parameter(name, value)
        if before == self._stored_parameters():
            self._learned, self._topics = learned, topics

    def _require_learned(self, learned: Any) -> None:
        """Refuse a model that was learned from other inputs than those of this stage."""

    def _fingerprints(self, ids: Sequence[str]) -> dict[str, Any]:  # noqa: ARG002 - common signature
        """Return fingerprints of the inputs that a folder does not hold, by parameter, for entities of the training."""
        return {}

    def _entity_ids(self) -> list[str]:
        """Return some entities of the links, the same for the same links in any order."""
        links = getattr(self, "links", None)
        if isinstance(links, pd.DataFrame):
            return sample_ids(links["entity_id"].astype(str))
        return sample_ids(links.entities.text.to_pylist()) if isinstance(links, LinkedPool) else []

    def _link_digests(self, docnos: Iterable[str] | None = None) -> dict[str, str]:
        """Return digests of the entities of some documents, of a sample without ``docnos``; empty without links."""
        links = getattr(self, "links", None)
        frame = links.to_frame() if isinstance(links, LinkedPool) else links
        if not isinstance(frame, pd.DataFrame):
            return {}
        # Documents without links have a row in pools.
        frame, column = frame[frame["entity_id"].notna()], "links column 'entity_id'"
        plain = entity_ids(column_ids(frame["entity_id"], column), column)
        docno = frame["docno"].astype(str).to_numpy()
        return of_links(pd.DataFrame({"docno": docno, "entity_id": plain.ids.text.to_pylist()})[~plain.is_nil], docnos)

    def _id_space(self) -> str:
        """Return the id space of the entities of the links, empty if their form does not say it."""
        links = getattr(self, "links", None)
        if isinstance(links, pd.DataFrame):
            column = "links column 'entity_id'"
            return entity_ids(column_ids(links["entity_id"], column), column).space
        return links.space if isinstance(links, LinkedPool) else ""

    def _stored_parameters(self) -> dict[str, Any]:
        """Return the parameters that a folder stores, by name.

        Not ``_parameters``: PyTerrier reads a parameter ``parameters`` from an attribute of this name first.
        """
        return {name: getattr(self, name) for name in self.STORED}

    @classmethod
    def _arguments(cls, parameters: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments of the class for stored parameters."""
        return parameters

    @staticmethod
    @abc.abstractmethod
    def _serialise_model(learned: Any) -> bytes:
        """Return the content of the file of a model."""

    @staticmethod
    @abc.abstractmethod
    def _read_model(path: Path) -> Any:
        """Read and check a model."""

    def save(self, path: StrPath) -> None:
        """Write the trained model and its options to a folder, an artifact of PyTerrier.

        A saved model in the folder is replaced once the new one is complete: ``model.json`` names the file of the
        model, which then has a digest in its name.

        Raises
        ------
        InputError, FileError
            A call before :meth:`fit`; the folder cannot be written.
        """
        if self._learned is None:
            raise InputError(f"{type(self).__name__} is not fitted; there is nothing to save")
        folder, packed, name = path_parameter("path", path), self._serialise_model(self._learned), f"model{self.SUFFIX}"
        digest = _digest(packed)
        if (folder / name).exists():
            name = f"model-{digest}{self.SUFFIX}"
        made = {"format": _FORMAT_VERSION, "stage": type(self).__name__, "parameters": self._stored_parameters()}
        ids = self._entity_ids()
        made |= {"entities": ids, "space": self._id_space(), "inputs": self._fingerprints(ids)}
        made["links"] = self._link_digests()
        text = json.dumps({**made, "topics": sorted(self._topics), "weights": name, "digest": digest}, indent=2) + "\n"
        with folder_of_files(folder):
            replace_files({folder / name: packed, folder / META_FILE: metadata(STAGE_TYPE), folder / _PARAMETERS: text})
        for other in folder.glob(f"model*{self.SUFFIX}"):
            if self._is_model(other.name) and other.name != name:
                other.unlink(missing_ok=True)

    @classmethod
    def _is_model(cls, name: str) -> bool:
        """Return True for names of the file of a model: that of the first save in a folder, and those of later ones."""
        return re.fullmatch(rf"model(-[0-9a-f]{{16}})?{re.escape(cls.SUFFIX)}", name) is not None

    @classmethod
    def load(cls, path: StrPath, *inputs: Any, **options: Any) -> Self:
        """Read a stage that :meth:`save` wrote; other parameters (links, entities, texts...) are given again.

        Raises
        ------
        FileError
            A file that is missing or has other contents.
        InputError
            Another encoder, or other texts or vectors of entities, than those of the training, by their fingerprints;
            links to entities of another id space.

        Warns
        -----
        DegenerateWarning
            Documents of the training with other links, such as those of another linker.
        """
        folder = path_parameter("path", path)
        require_regular(folder / _PARAMETERS, *folder.glob(f"model*{cls.SUFFIX}"))
        made = read_saved_stage(folder)
        parameters, name = made["parameters"], made["weights"]
        if made["stage"] != cls.__name__ or set(parameters) != set(cls.STORED) or not cls._is_model(name):
            kind = f"{cls.__name__} of format {_FORMAT_VERSION}"
            raise FileError(folder / _PARAMETERS, f"is not a saved {kind}; write it with save")
        _require_digest(folder / name, made["digest"])
        learned = cls._read_model(folder / name)
        try:
            arguments = cls._arguments(parameters)
        except ParameterError as error:
            raise FileError(folder / _PARAMETERS, f"{error}") from error
        if repeated := sorted(set(options) & set(arguments)):
            raise ParameterError(f"{repeated[0]}: is a parameter of the saved model; leave it out")
        try:
            stage = cls(*inputs, **arguments, **options)
        except (TypeError, ParameterError) as error:
            raise FileError(folder / _PARAMETERS, f"{error}") from error
        stage._require_learned(learned)
        _require_same_space(cls.__name__, made["space"], stage._id_space())
        require_same_inputs(cls.__name__, made["inputs"], stage._fingerprints(made["entities"]))
        warn_of_other_links(cls.__name__, made["links"], stage._link_digests(made["links"]))
        stage._learned, stage._topics = learned, frozenset(map(str, made["topics"]))
        return stage

    def __eq__(self, other: object) -> bool:
        equal = isinstance(other, Learner) and bool(super().__eq__(other))
        return equal and EntityStage.same(self._learned, getattr(other, "_learned", None))

    __hash__ = EntityStage.__hash__
