"""Packages that only some linkers need."""

from __future__ import annotations

import importlib
from typing import Any


def module_of_extra(name: str, extra: str) -> Any:
    """Import an optional package, or say how to install it.

    >>> module_of_extra("no_such_package", "linkers")
    Traceback (most recent call last):
    ...
    ModuleNotFoundError: no_such_package is not installed; pip install 'vbterrier[linkers]'
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise ModuleNotFoundError(f"{name} is not installed; pip install 'vbterrier[{extra}]'", name=name) from error
