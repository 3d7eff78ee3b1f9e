"""Numbers of a benchmark as a JSON file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vbterrier.errors import FileError, InputError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_LISTS = ("timings", "skipped", "growth", "targets")
_PARTS = {"schema", "made", "machine", "versions", "options", *_LISTS}
SCHEMA = 1


def write_numbers(found: Mapping[str, Any], path: str | Path) -> None:
    """Keep what :func:`suite.suite.benchmark` found.

    Raises
    ------
    FileError
        The file cannot be written.
    """
    text = json.dumps(found, indent=1, allow_nan=True)
    try:
        Path(path).write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise FileError(path, f"cannot be written ({error}); give another path") from error


def read_numbers(path: str | Path) -> dict[str, Any]:
    """Read them again.

    Raises
    ------
    FileError
        No file of :func:`write_numbers`.
    """
    try:
        found = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise FileError(path, f"cannot be read ({error}); make it with python -m suite --json") from error
    if not isinstance(found, dict) or not set(found) >= _PARTS or found["schema"] != SCHEMA:
        raise FileError(path, "holds no benchmark of this release; make it with python -m suite --json")
    return found


def joined(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Several benchmarks as one: what they measured one after the other, under the first one's machine and versions.

    Raises
    ------
    InputError
        They were made on different machines or with different versions: their numbers do not compare.
    """
    first = parts[0]
    for part in parts[1:]:
        for what in ("machine", "versions"):
            if part[what] != first[what]:
                raise InputError(f"benchmarks with different {what} do not join; measure again on one machine")
    lists = {name: [one for part in parts for one in part[name]] for name in _LISTS}
    lists["skipped"] = once(lists["skipped"])
    # Only what took turns is compared.
    lists["timings"] = [{**one, "part": place} for place, part in enumerate(parts) for one in part["timings"]]
    sizes = once([size for part in parts for size in part["options"]["sizes"]])
    return {**first, "options": {**first["options"], "sizes": sizes}, **lists}


def once(records: list[Any]) -> list[Any]:
    """Records without repetitions.

    >>> once([{"a": 1}, {"a": 2}, {"a": 1}])
    [{'a': 1}, {'a': 2}]
    """
    return [record for place, record in enumerate(records) if record not in records[:place]]


def rounded(value: Any) -> Any:
    """Numbers to six digits, seconds to the microsecond: a page of what was kept is the page of what was measured.

    >>> rounded({"seconds": [0.12345678]})
    {'seconds': [0.123457]}
    """
    if isinstance(value, float):
        return round(value, 6)
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items()}
    return [rounded(one) for one in value] if isinstance(value, (list, tuple)) else value
