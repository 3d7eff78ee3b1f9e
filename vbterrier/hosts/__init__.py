"""Assumptions about ir_measures, PyTerrier and TrecTools, checked when each of them is first used."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable


def require_api(host: Any, distribution: str, tested: str, names: Iterable[str]) -> None:
    """Check that a host package has the names that this package uses: attributes, and keys of dictionaries.

    ``host``: the imported module, or an instance of one of its classes. ``tested``: the version that tests use.

    >>> import math
    >>> require_api(math, "mathematics", "1.0", ["pi", "tau.imag", "phi"])
    Traceback (most recent call last):
    ...
    ImportError: vbterrier was tested with mathematics 1.0; the installed version (unknown) has no math.phi: \
pip install 'mathematics==1.0', or update vbterrier
    """
    missing = [name for name in names if not _has(host, name)]
    if missing:
        try:
            installed = version(distribution)
        except PackageNotFoundError:
            installed = "unknown"
        where = getattr(host, "__name__", type(host).__name__)
        raise ImportError(
            f"vbterrier was tested with {distribution} {tested}; the installed version ({installed}) has no "
            f"{', '.join(f'{where}.{name}' for name in missing)}: pip install '{distribution}=={tested}', or "
            "update vbterrier"
        )


def _has(value: Any, name: str) -> bool:
    for part in name.split("."):
        if isinstance(value, dict) and part in value:
            value = value[part]
        elif hasattr(value, part):
            value = getattr(value, part)
        else:
            return False
    return True
