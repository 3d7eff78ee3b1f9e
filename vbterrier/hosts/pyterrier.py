"""Assumptions about PyTerrier, and the base class of this package's transformers.

``pt.Experiment`` passes text to ``ir_measures.parse_trec_measure`` (see :mod:`vbterrier.hosts.ir_measures`), needs a
value of every measure for every topic, and averages the values over topics.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import pyterrier as pt

from vbterrier.demo import demo_folder
from vbterrier.errors import choice
from vbterrier.frames.files.reading import read_documents, read_qrels, read_run, read_topics
from vbterrier.hosts import require_api

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd

_NAMES = (
    "Artifact Compose Estimator Experiment Transformer datasets.Dataset datasets.DatasetProvider "
    "inspect.subtransformers inspect.transformer_apply_attributes inspect.transformer_inputs model.push_queries "
    "model.query_columns validate.InputValidationError validate.any validate.columns validate.query_frame "
    "validate.result_frame"
)
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


def schematic_of(settings: dict[str, str]) -> dict[str, Any]:
    """Description of a transformer for PyTerrier's schematics, without a help page that needs the network."""
    return {"settings": settings, "help_url": None}


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
    def hashed(value: Any) -> int:
        """Hash that equal values share."""
        try:
            return hash(value)
        except TypeError:
            return hash(type(value).__name__)

    def _given(self) -> list[tuple[inspect.Parameter, Any]]:
        declared = list(inspect.signature(type(self).__init__).parameters.values())[1:]
        return [(parameter, getattr(self, parameter.name)) for parameter in declared]

    def schematic(self, *, input_columns: Any) -> dict[str, Any]:  # noqa: ARG002 - PyTerrier's signature
        """Description for PyTerrier's schematics: parameters other than defaults and inner pipelines."""
        inner, label = pt.inspect.subtransformers(self), type(self).__name__
        described = schematic_of(
            {
                parameter.name: self.short(value)
                for parameter, value in self._given()
                if parameter.name not in inner and not self.same(value, parameter.default)
            }
        )
        cut = len(label) > _LONGEST_LABEL
        return described | {"label": f"{label[: _LONGEST_LABEL - 1]}…" if cut else label}

    def __repr__(self) -> str:
        shown = []
        for parameter, value in self._given():
            if parameter.kind is not inspect.Parameter.KEYWORD_ONLY:
                shown.append(self.short(value))
            elif not self.same(value, parameter.default):
                shown.append(f"{parameter.name}={self.short(value)}")
        return f"{type(self).__name__}({', '.join(shown)})"

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other) or not isinstance(other, Stage):
            return NotImplemented
        pairs = zip(self._given(), other._given(), strict=True)
        return all(self.same(one, another) for (_, one), (_, another) in pairs)

    def __hash__(self) -> int:
        # The representation differs between equal stages whose parameters come from files of different names.
        return hash((type(self).__name__, *(self.hashed(value) for _, value in self._given())))
