"""Evaluation of retrieval systems where ground truth is missing, incomplete or ambiguous.

Importing the package registers its measures with ir_measures. PyTerrier loads this package while PyTerrier is itself
being imported, so transformers are imported on first use. The public names are listed in ``__init__.pyi``.
"""

from vbterrier import _startup as _startup  # isort: skip - before the imports that take long

import lazy_loader

from vbterrier import measures as measures
from vbterrier._version import __version__ as __version__
from vbterrier.frames.notebook import LOADERS as _LOADERS

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def _plots() -> object:
    from vbterrier.report import plots

    return plots


def _page() -> object:
    from vbterrier.report.page.build import tables_page

    return tables_page


# Results of lower layers draw themselves with the figures of the report, and are written as pages in its style.
_LOADERS |= {"plots": _plots, "page": _page}
