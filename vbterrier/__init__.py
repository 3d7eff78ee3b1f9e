"""Evaluation of retrieval systems where ground truth is missing, incomplete or ambiguous.

Importing the package registers its measures with ir_measures. PyTerrier loads this package while PyTerrier is itself
being imported, so transformers are imported on first use. The public names are listed in ``__init__.pyi``.
"""

from vbterrier._startup import IS_COMMAND as _IS_COMMAND  # isort: skip - before the imports that take long

import lazy_loader

from vbterrier._version import __version__ as __version__

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

# The command line registers when it runs a command: its help and completion do without pandas.
if not _IS_COMMAND:
    from vbterrier import _registration as _registration
