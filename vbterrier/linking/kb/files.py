"""Building a knowledge base from a file of entities: JSON lines, or tab-separated columns."""

from __future__ import annotations

import json
from collections import Counter
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vbterrier.errors import FileError, ParameterError, nearest
from vbterrier.frames.files.reading import MAX_BYTES
from vbterrier.linking.kb.building import building
from vbterrier.linking.kb.lines import numbered_lines
from vbterrier.linking.kb.records import Records

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping, Sequence

    from vbterrier.linking.kb.base import KnowledgeBase

    StrPath = str | os.PathLike[str]

_COLUMNS = ("id", "label", "alias", "aliases", "prior", "redirect")


def kb_from_file(
    path: StrPath,
    source: StrPath,
    *,
    id_space: str,
    columns: Sequence[str] | None = None,
    types: Mapping[str, str] | None = None,
    labels_are_aliases: bool = True,
    max_bytes: int | None = MAX_BYTES,
    progress: bool = True,
) -> KnowledgeBase:
    r"""Build a knowledge base from a file: JSON lines or tab-separated columns, plain, gzip or bzip2.

    Which of the two it is shows in the first line: JSON begins with ``{``.

    Parameters
    ----------
    path
        The knowledge base; one that exists is replaced once the new one is complete.
    source
        JSON lines: an entity a line, with the keys of :func:`build_kb`. Columns: a header line, then rows with ``id``
        and any of ``label``, ``alias`` (one), ``aliases`` (several, between ``|``), ``prior`` (of the alias) and
        ``redirect`` (an id that stands for this one); every other column is an attribute. Empty cells say nothing, and
        an id may have many rows. Nothing is quoted or escaped.
    id_space
        What the ids count in.
    columns
        The columns of a file without a header line.
    types, labels_are_aliases, progress
        See :func:`build_kb`.
    max_bytes
        How much the file may hold when unpacked; ``None`` for no limit.

    Returns
    -------
    KnowledgeBase

    Raises
    ------
    FileError
        Names the line: no JSON, another number of columns, and what :func:`build_kb` refuses.

    Warns
    -----
    DegenerateWarning
        See :func:`build_kb`.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> rows = ["id\tlabel\talias\tborn", "B1\tGeorge Bush\tBush\t1924", "B1\t\tBush Senior\t"]
    >>> rows += ["B2\tKate Bush\tBush\t1958"]
    >>> _ = (folder / "people.tsv").write_text("\n".join(rows))
    >>> with kb_from_file(folder / "people.kb", folder / "people.tsv", id_space="people", types={"born": "year"}) as kb:
    ...     kb.lookup(["bush", "bush senior"])[["text", "entity_id", "score"]].values.tolist()
    [[0, 'B1', 0.5], [0, 'B2', 0.5], [1, 'B1', 1.0]]
    """
    from vbterrier.linking.kb.base import KnowledgeBase

    source = Path(source)
    reader = Records(types, labels_are_aliases=labels_are_aliases)
    lines = numbered_lines(source, max_bytes=max_bytes, progress=progress)
    with building(path, id_space, partial(blamed, source), progress=progress) as staging:
        for line, record in _records(source, _filled(lines), columns):
            reader.stage(staging, line, record)
    return KnowledgeBase(path)


def blamed(path: Path, line: int, message: str) -> FileError:
    """The error of a line."""
    return FileError(path, message, line=line)


def parsed(path: Path, line: int, text: bytes) -> Any:
    """The JSON of a line."""
    try:
        return json.loads(text)
    except RecursionError as error:
        raise FileError(path, "nests too deeply; wanted an entity", line=line) from error
    except ValueError as error:
        # Wrong JSON, wrong UTF-8, and numbers of thousands of digits.
        raise FileError(path, f"is no JSON in UTF-8 ({error}); wanted an entity a line", line=line) from error


def _filled(lines: Iterator[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
    return ((number, line) for number, line in lines if line.strip())


def _records(
    path: Path, lines: Iterator[tuple[int, bytes]], columns: Sequence[str] | None
) -> Iterator[tuple[int, Any]]:
    first = next(lines, None)
    if first is None:
        raise FileError(path, "is empty; wanted an entity a line")
    if first[1].lstrip().startswith(b"{"):
        if columns is not None:
            raise ParameterError("columns: given for a file of JSON lines, which name their own; leave it out")
        return ((number, parsed(path, number, line)) for number, line in chain([first], lines))
    if columns is None:
        columns = _cells(path, *first)
    else:
        lines = chain([first], lines)
    _require_columns(path, columns)
    return ((number, _row(path, number, columns, _cells(path, number, line))) for number, line in lines)


def _cells(path: Path, number: int, line: bytes) -> list[str]:
    try:
        return line.decode().split("\t")
    except UnicodeDecodeError as error:
        raise FileError(path, f"is no UTF-8 ({error.reason}); save the file as UTF-8", line=number) from error


def _require_columns(path: Path, columns: Sequence[str]) -> None:
    twice = [name for name, n in Counter(columns).items() if n > 1]
    if "id" not in columns or twice:
        what = f"column {twice[0]!r} stands twice" if twice else f"no column 'id' among {', '.join(map(repr, columns))}"
        raise FileError(
            path,
            f"{what}; wanted a header line with id and any of {', '.join(_COLUMNS[1:])}, between tabs, or columns= "
            f"that names them.{nearest('id', columns)}",
        )


def _row(path: Path, number: int, columns: Sequence[str], cells: list[str]) -> dict[str, Any]:
    """One line of columns as a record."""
    if len(cells) != len(columns):
        raise FileError(
            path, f"has {len(cells)} cells between tabs, wanted {len(columns)}: {', '.join(columns)}", line=number
        )
    row = {name: cell for name, cell in zip(columns, cells, strict=True) if cell}
    alias, prior, several = row.pop("alias", None), row.pop("prior", None), row.pop("aliases", "")
    if prior is not None and (alias is None or several):
        raise FileError(path, "has a prior without one alias that it is of", line=number)
    record: dict[str, Any] = {"id": row.pop("id", ""), "label": row.pop("label", None)}
    record["redirects"] = [row.pop("redirect")] if "redirect" in row else []
    record["aliases"] = [*([[alias, prior]] if alias is not None else []), *(one for one in several.split("|") if one)]
    record["attributes"] = row
    return record
