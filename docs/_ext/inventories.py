"""Inventories of intersphinx from ``docs/inventories.txt``, so that a build needs no network."""

from __future__ import annotations

import zlib
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1]
_HEAD = "# Sphinx inventory version 2\n# Project: {}\n# Version: \n# The remainder is compressed using zlib.\n"


def packages() -> dict[str, tuple[str, list[str]]]:
    """Return address and rows of the inventory by package."""
    inventories: dict[str, tuple[str, list[str]]] = {}
    rows: list[str] = []
    for line in (DOCS / "inventories.txt").read_text(encoding="utf-8").splitlines():
        match line.split():
            case [package, address]:
                rows = []
                inventories[package] = address, rows
            case [name, role, page] if role.startswith("py:"):
                rows.append(f"{name} {role} 1 {page.replace('$', name)} -")
    return inventories


def mapping(*, online: bool) -> dict[str, tuple[str, str | tuple[str | None, str]]]:
    """Return ``intersphinx_mapping``; ``online`` reads the packages' own inventories first."""
    folder = DOCS / "_build" / "inventories"
    folder.mkdir(parents=True, exist_ok=True)
    table: dict[str, tuple[str, str | tuple[str | None, str]]] = {}
    for package, (address, rows) in packages().items():
        file = folder / f"{package}.inv"
        file.write_bytes(_HEAD.format(package).encode() + zlib.compress("\n".join([*rows, ""]).encode()))
        table[package] = (address, (None, str(file)) if online else str(file))
    return table
