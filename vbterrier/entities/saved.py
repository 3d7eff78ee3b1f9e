"""Folders of trained stages: parameters, the model, and metadata for PyTerrier."""

from __future__ import annotations

import abc
import hashlib
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from vbterrier.entities.stage import EntityStage
from vbterrier.errors import FileError, InputError, ParameterError
from vbterrier.frames.files.source import json_of, require_regular
from vbterrier.frames.files.writing import replace_files

if TYPE_CHECKING:
    from typing_extensions import Self

    from vbterrier.annotations import StrPath


# The file of metadata of artifacts, and their format and type.
META, FORMAT, TRAINED = "pt_meta.json", "vbterrier", "trained_stage"
_PARAMETERS = "model.json"
# The format of the file of parameters.
_VERSION = 2


def metadata(kind: str) -> str:
    """Return the metadata of an artifact of a type."""
    return json.dumps({"type": kind, "format": FORMAT, "package_hint": FORMAT}) + "\n"


def stored(folder: Path) -> dict[str, Any]:
    """Return the stage, the parameters and the topics of a saved stage, and the name of the file of its model."""
    try:
        made = json_of((folder / _PARAMETERS).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise FileError(folder, f"is not a saved model ({error}); write it with save") from error
    kinds = {"stage": str, "parameters": dict, "topics": list, "weights": str}
    is_own = isinstance(made, dict) and made.get("format") == _VERSION
    if not is_own or not all(isinstance(made.get(name), kind) for name, kind in kinds.items()):
        raise FileError(folder / _PARAMETERS, f"is not a saved stage of format {_VERSION}; write it with save")
    return dict(made)


class Saved(abc.ABC):
    """Base class of trained stages that folders hold, which are artifacts of PyTerrier."""

    # Parameters that a folder stores; texts, links and vectors are given again.
    STORED: ClassVar[tuple[str, ...]]
    # The ending of the file of the model.
    SUFFIX: ClassVar[str]
    # The learned model, None before training, and the topics of the training.
    _learned: Any = None
    _topics: frozenset[str] = frozenset()

    def _require_learned(self, learned: Any) -> None:  # noqa: B027 - most stages read nothing that can differ
        """Refuse a model that was learned from other inputs than those of this stage."""

    @classmethod
    def _arguments(cls, parameters: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments of the class for stored parameters."""
        return parameters

    @staticmethod
    @abc.abstractmethod
    def _packed(learned: Any) -> bytes:
        """Return the content of the file of a model."""

    @staticmethod
    @abc.abstractmethod
    def _unpacked(path: Path) -> Any:
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
        folder, packed, name = Path(path), self._packed(self._learned), f"model{self.SUFFIX}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FileError(folder, f"cannot be written: {error.strerror or error}") from error
        if (folder / name).exists():
            name = f"model-{hashlib.blake2b(packed, digest_size=8).hexdigest()}{self.SUFFIX}"
        parameters = {each: getattr(self, each) for each in self.STORED}
        made = {"format": _VERSION, "stage": type(self).__name__, "parameters": parameters}
        text = json.dumps({**made, "topics": sorted(self._topics), "weights": name}, indent=2) + "\n"
        replace_files({folder / name: packed, folder / META: metadata(TRAINED), folder / _PARAMETERS: text})
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
        """
        folder = Path(path)
        require_regular(folder / _PARAMETERS, *folder.glob(f"model*{cls.SUFFIX}"))
        made = stored(folder)
        parameters, name = made["parameters"], made["weights"]
        if made["stage"] != cls.__name__ or set(parameters) != set(cls.STORED) or not cls._is_model(name):
            wanted = f"{cls.__name__} of format {_VERSION}"
            raise FileError(folder / _PARAMETERS, f"is not a saved {wanted}; write it with save")
        learned = cls._unpacked(folder / name)
        try:
            arguments = cls._arguments(parameters)
        except ParameterError as error:
            raise FileError(folder / _PARAMETERS, f"{error}") from error
        if repeated := sorted(set(options) & set(arguments)):
            raise ParameterError(f"{repeated[0]}: is a parameter of the saved model; leave it out")
        try:
            stage = cls(*inputs, **arguments, **options)
        except ParameterError as error:
            raise FileError(folder / _PARAMETERS, f"{error}") from error
        stage._require_learned(learned)
        stage._learned, stage._topics = learned, frozenset(map(str, made["topics"]))
        return stage

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Saved) or type(other) is not type(self):
            return False
        return bool(super().__eq__(other)) and EntityStage.same(self._learned, other._learned)

    __hash__ = EntityStage.__hash__
