"""Assumptions about PyTerrier, and the base class of this package's transformers.

``pt.Experiment`` passes text to ``ir_measures.parse_trec_measure`` (see :mod:`vbterrier.hosts.ir_measures`), needs a
value of every measure for every topic, and averages the values over topics.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import pyterrier as pt

from vbterrier.demo import demo_folder
from vbterrier.errors import InputError, ParameterError, choice
from vbterrier.frames.files.reading import read_documents, read_qrels, read_run, read_topics
from vbterrier.hosts import require_api

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd

_NAMES = (
    "Artifact Compose Estimator Experiment Transformer datasets.Dataset datasets.DatasetProvider "
    "inspect.subtransformers inspect.transformer_apply_attributes inspect.transformer_inputs model.push_queries "
    "model.query_columns validate.InputValidationError validate.columns"
)
# The file with the metadata of an artifact.
META_FILE = "pt_meta.json"
require_api(pt, "pyterrier", "1.1.2", _NAMES.split())


class DemoDataset(pt.datasets.Dataset):  # type: ignore[misc]
    """The demo collection as a dataset of PyTerrier."""

    def get_corpus_iter(self, *, verbose: bool = True) -> Iterator[dict[Any, Any]]:  # noqa: ARG002 - PyTerrier's name
        """Yield the documents: docno, text."""
        yield from read_documents(demo_folder() / "documents.tsv").to_dict("records")

    def get_topics(self, variant: str | None = None) -> pd.DataFrame:
        """Return the queries: qid, and query, the variant ``None``, or the text of the information need, ``"need"``."""
        topics = read_topics(demo_folder() / "topics.tsv")
        return topics[["qid", "query"]] if variant != "need" else topics[["qid"]].assign(query=topics["need"])

    def get_qrels(self, variant: str | None = None) -> pd.DataFrame:
        """Return the judgments that would exist in practice, or all, the variant ``"complete"``."""
        return read_qrels(demo_folder() / ("complete.txt" if variant == "complete" else "qrels.txt"))

    def get_results(self, variant: str | None = None) -> pd.DataFrame:
        """Return a run: ``"lexical"`` (default), ``"words"`` or ``"dense"``."""
        variant = choice("variant", variant or "lexical", ("lexical", "words", "dense"))
        return read_run(demo_folder() / f"{variant}.run")


class DemoProvider(pt.datasets.DatasetProvider):  # type: ignore[misc]
    """The provider of ``pt.get_dataset("vb:demo")``."""

    def get_dataset(self, name: str) -> DemoDataset:
        """Return the demo collection, the only dataset."""
        if name != "demo":
            raise KeyError(name)
        return DemoDataset()

    def list_dataset_names(self) -> list[str]:
        """Return the names of the datasets."""
        return ["demo"]


class StageInputError(pt.validate.InputValidationError, InputError):  # type: ignore[misc]
    """The input of a stage lacks a column, or has one that makes it another kind of frame.

    PyTerrier reads ``modes``, the sets of columns that the stage accepts.
    """

    def __str__(self) -> str:
        return str(self.args[0])


# How a frame gets a column.
_REMEDIES = {
    "qid": "give it topics (qid, query) or a run (qid, docno, score)",
    "query": "merge the topics (qid, query) into its input",
    "docno": "put a retriever before it",
    "score": "put a retriever before it",
    "text": "put pt.text.get_text(...) before it",
    "entity_id": "put CandidateIntents(...) before it",
    "prob": "put CandidateIntents(...) or Calibrate(...) before it",
    "constraints": "put ParseConstraints() before it",
}

# PyTerrier's own test case refuses longer labels of schematics.
_LONGEST_LABEL = 20


class Stage(pt.Transformer):  # type: ignore[misc]
    """A transformer that stores each constructor parameter as an attribute of the same name.

    Two stages are equal if they have the same class and equal parameters. Subclasses may override the comparison and
    the representation of parameters.
    """

    @staticmethod
    def same(one: Any, other: Any) -> bool:
        """Return True if two values of a parameter are equal."""
        return one is other or (type(one) is type(other) and bool(one == other))

    @staticmethod
    def short(value: Any) -> str:
        """Representation of a parameter value in the representation of the stage."""
        return repr(value)

    @staticmethod
    def hash_value(value: Any) -> int:
        """Hash that equal values share."""
        try:
            return hash(value)
        except TypeError:
            return hash(type(value).__name__)

    def require_columns(self, inp: pd.DataFrame, *columns: str, topics: bool = False) -> None:
        """Raise StageInputError if columns are missing, or if the input has documents and the stage wants topics."""
        try:
            pt.validate.columns(inp, includes=list(columns), excludes=["docno"] if topics else None)
        except pt.validate.InputValidationError as error:
            present = ", ".join(map(str, inp.columns)) or "no columns"
            missing = [name for name in columns if name not in inp.columns]
            if missing:
                names = f"{'column' if len(missing) == 1 else 'columns'} {', '.join(map(repr, missing))}"
                remedies = dict.fromkeys(map(self.remedy, missing))
                problem = f"input without {names}, found {present}; {', and '.join(remedies)}"
            else:
                problem = "input with column 'docno', wanted topics; pass run[['qid', 'query']].drop_duplicates()"
            raise StageInputError(f"{self!r}: {problem}", error.modes) from None

    def remedy(self, column: str) -> str:
        """Return how the input gets a column."""
        return _REMEDIES.get(column, f"add the column {column!r} to its input")

    def set_parameter(self, name: str, value: Any) -> None:
        """Set a parameter, as ``pt.GridSearch`` does, with the checks of the constructor."""
        parameters = {parameter.name: current for parameter, current in self._parameter_values()}
        if name not in parameters:
            raise ParameterError(f"{type(self).__name__} has no parameter {name!r}; it has {', '.join(parameters)}")
        if not self.same(parameters[name], value):
            made = type(self)(**(parameters | {name: value}))
            # Cached properties depend on the parameters, too.
            self.__dict__.clear()
            self.__dict__.update(vars(made))

    def _parameter_values(self) -> list[tuple[inspect.Parameter, Any]]:
        declared = list(inspect.signature(type(self).__init__).parameters.values())[1:]
        return [(parameter, getattr(self, parameter.name)) for parameter in declared]

    def schematic(self, *, input_columns: Any) -> dict[str, Any]:  # noqa: ARG002 - PyTerrier's signature
        """Description for PyTerrier's schematics: parameters other than defaults and inner pipelines."""
        inner, label = pt.inspect.subtransformers(self), type(self).__name__
        settings = {
            parameter.name: self.short(value)
            for parameter, value in self._parameter_values()
            if parameter.name not in inner and not self.same(value, parameter.default)
        }
        cut = len(label) > _LONGEST_LABEL
        # A help page would need the network.
        return {"settings": settings, "help_url": None, "label": f"{label[: _LONGEST_LABEL - 1]}…" if cut else label}

    def __repr__(self) -> str:
        shown = []
        for parameter, value in self._parameter_values():
            if parameter.kind is not inspect.Parameter.KEYWORD_ONLY:
                shown.append(self.short(value))
            elif not self.same(value, parameter.default):
                shown.append(f"{parameter.name}={self.short(value)}")
        return f"{type(self).__name__}({', '.join(shown)})"

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other) or not isinstance(other, Stage):
            return NotImplemented
        pairs = zip(self._parameter_values(), other._parameter_values(), strict=True)
        return all(self.same(one, another) for (_, one), (_, another) in pairs)

    def __hash__(self) -> int:
        # The representation differs between equal stages whose parameters come from files of different names.
        return hash((type(self).__name__, *(self.hash_value(value) for _, value in self._parameter_values())))
