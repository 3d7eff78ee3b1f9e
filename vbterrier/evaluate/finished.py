"""What journals of runs in parts hold, looked at before it is believed: others may have written them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from vbterrier.errors import FileError, printable

if TYPE_CHECKING:
    from collections.abc import Sequence

JOURNAL = "journal.jsonl"
_PLACE = ("file", "offset", "row")
_KEYS = ("qid", "docno", "score")


def require_folder(folder: Path) -> None:
    """Refuse a folder that leads elsewhere, where files would be written and removed.

    Raises
    ------
    FileError
    """
    for name in ("kept", "topics"):
        if (folder / name).is_symlink():
            raise FileError(folder / name, "is a link; wanted a folder of its own: name another for resume=")


def part_of(result: Any, measures: Sequence[str], folder: Path) -> dict[str, Any]:
    """A finished part, if it is one.

    Parameters
    ----------
    result
        What a journal holds of it.
    measures
        Those whose values it must have.
    folder
        Where the journal stands.

    Raises
    ------
    FileError
        Something else, or files that are not of this folder.
    """
    if not isinstance(result, dict) or not _is_part(result, measures):
        raise _not_ours(folder, "a part")
    _require_plain(result["file"], folder)
    return result


def split_of(result: Any, folder: Path) -> dict[str, int]:
    """How many topics stand in each of the files that rows were parted into.

    Raises
    ------
    FileError
        As :func:`part_of`.
    """
    if not isinstance(result, dict) or not all(map(_is_count, result.values())):
        raise _not_ours(folder, "files that rows were parted into")
    for name in result:
        _require_plain(name, folder)
    return result


def length_of(result: Any, folder: Path) -> int:
    """The length of the longest list.

    Raises
    ------
    FileError
        As :func:`part_of`.
    """
    if not _is_count(result):
        raise _not_ours(folder, "a length")
    return int(result)


def rows_of(path: Path) -> Any:
    """The rows of a finished part.

    Raises
    ------
    FileError
        The file is gone, damaged or of something else.
    """
    try:
        with pa.OSFile(str(path)) as file:
            table = pa.ipc.open_file(file).read_all()
        table.validate(full=True)
    except (pa.ArrowException, OSError) as error:
        raise FileError(path, f"cannot be read ({error}); remove the folder, and call again") from error
    kinds = [table.schema.field(name).type for name in _KEYS if name in table.column_names]
    if kinds != [pa.large_string(), pa.large_string(), pa.float64()]:
        raise FileError(path, "holds no rows of a run; remove the folder, and call again")
    return table


def _is_part(result: dict[str, Any], measures: Sequence[str]) -> bool:
    values, tied, told, behind = (result.get(key) for key in ("values", "tied", "told", "behind"))
    return (
        isinstance(values, dict)
        and all(isinstance(values.get(measure), dict) for measure in measures)
        and all(isinstance(value, (int, float)) for measure in measures for value in values[measure].values())
        and _is_count(result.get("n_dropped"))
        and (
            tied is None or (isinstance(tied, (list, tuple)) and len(tied) == len(_PLACE) and all(map(_is_count, tied)))
        )
        and isinstance(told, list)
        and all(isinstance(message, str) for message in told)
        and (behind is None or _is_place(behind))
    )


def _is_place(behind: Any) -> bool:
    return isinstance(behind, dict) and set(behind) == set(_PLACE) and all(map(_is_count, behind.values()))


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _require_plain(name: Any, folder: Path) -> None:
    if not isinstance(name, str) or name in {"", "..", "."} or "\\" in name or "\0" in name or Path(name).name != name:
        raise FileError(
            folder / JOURNAL,
            f"names the file {printable(name)!r}, wanted a file of this folder: remove the folder, and call again",
        )


def _not_ours(folder: Path, what: str) -> FileError:
    return FileError(folder / JOURNAL, f"holds something else in place of {what}; remove the folder, and call again")
