"""Evaluation of retrieval systems where ground truth is missing, incomplete or ambiguous.

Importing the package registers its measures with ir_measures. Its PyTerrier stages are reached as attributes, which is
when pyterrier is imported: pyterrier loads this package while it is itself being imported.
"""

import importlib
from typing import TYPE_CHECKING, Any

from vbterrier.errors import DegenerateWarning, FileError, InputError, ParameterError, VBTerrierError
from vbterrier.frames.files import (
    read_documents,
    read_intents,
    read_qrels,
    read_run,
    read_tags,
    read_topics,
    write_intents,
    write_qrels,
    write_run,
    write_tags,
)
from vbterrier.frames.named import register_intents, register_tags
from vbterrier.frames.qrels import flatten_qrels
from vbterrier.frames.ranked import ranked
from vbterrier.judgments.bootstrap import BootstrapDistribution, bootstrap_distribution
from vbterrier.measures import (
    BNDCG,
    ES,
    VB,
    NDCGBound,
    TopIntent,
    Unjudged,
    VarPenalty,
    enable_string_measures,
    measures_from,
)

if TYPE_CHECKING:
    from vbterrier.adapters.trectools import VBTrecEval
    from vbterrier.evaluate import score
    from vbterrier.judgments.condense import Condense

__version__ = "0.1.0"

__all__ = [
    "BNDCG",
    "ES",
    "VB",
    "BootstrapDistribution",
    "Condense",
    "DegenerateWarning",
    "FileError",
    "InputError",
    "NDCGBound",
    "ParameterError",
    "TopIntent",
    "Unjudged",
    "VBTerrierError",
    "VBTrecEval",
    "VarPenalty",
    "__version__",
    "bootstrap_distribution",
    "enable_string_measures",
    "flatten_qrels",
    "measures_from",
    "ranked",
    "read_documents",
    "read_intents",
    "read_qrels",
    "read_run",
    "read_tags",
    "read_topics",
    "register_intents",
    "register_tags",
    "score",
    "write_intents",
    "write_qrels",
    "write_run",
    "write_tags",
]

# What imports a host library or SciPy, and where it lives.
_LAZY = {
    "Condense": "vbterrier.judgments.condense",
    "VBTrecEval": "vbterrier.adapters.trectools",
    "score": "vbterrier.evaluate",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_LAZY[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
