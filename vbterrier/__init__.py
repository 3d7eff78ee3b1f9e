"""Evaluation of retrieval systems where ground truth is missing, incomplete or ambiguous.

Importing the package registers its measures with ir_measures. PyTerrier loads this package while PyTerrier is itself
being imported, so transformers are imported on first use. The public names are listed in ``__init__.pyi``. Any
measure of ``vbterrier.measures`` is an attribute of the package as well, as in ir_measures: ``vbterrier.RelCov @ 20``.
"""

from vbterrier._startup import IS_COMMAND as _IS_COMMAND  # isort: skip - before the imports that take long

import lazy_loader

from vbterrier._version import __version__ as __version__

_public, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> object:
    # Measures begin with a capital letter: their modules are not imported to find that a submodule is none.
    if name not in __all__ and name[:1].isupper():
        from vbterrier import measures

        if name in measures.__all__:
            return getattr(measures, name)
    return _public(name)


# The command line registers when it runs a command: its help and completion do without pandas.
if not _IS_COMMAND:
    from vbterrier import _registration as _registration
