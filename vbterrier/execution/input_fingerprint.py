"""Fingerprints of inputs that do not depend on the order of rows."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier._version import __version__
from vbterrier.frames.named import named
from vbterrier.kernels.fingerprints import mix

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from vbterrier.execution.chunks import Work


_SAMPLE = 1 << 16


def rows_fingerprint(columns: Iterable[NDArray[Any]]) -> str:
    """Return a short digest of a table that does not depend on the order of rows.

    Parameters
    ----------
    columns
        64-bit numbers, each of shape (n,).

    >>> one, other = np.array([1.0, 2.0]), np.array([3, 4])
    >>> rows_fingerprint([one, other]) == rows_fingerprint([one[::-1], other[::-1]])
    True
    >>> rows_fingerprint([one, other]) == rows_fingerprint([one[::-1], other])
    False
    """
    key = np.zeros(1, dtype=np.uint64)
    for column in columns:
        key = mix(key + mix(np.ascontiguousarray(column).view(np.uint64) + np.uint64(1)))
    # Sums and parities do not depend on the order of rows.
    return f"{len(key)}-{int(key.sum(dtype=np.uint64)):016x}-{int(np.bitwise_xor.reduce(key)):016x}"


def inputs_of(paths: Sequence[Path], work: Work) -> str:
    """Return a digest of the inputs: files by size, time and samples, judgments, measures and version."""
    plan, target = work.plan, work.target
    frames = [target.frame, target.intents, target.tags] if plan.at_once else []
    for measure in plan.at_once:
        frames += [named(kind, given) for kind in ("intents", "tags") if (given := measure.params.get(kind))]
    parts = [
        __version__,
        *(repr((work.name, work.duplicates, plan.depth)), *map(repr, plan.at_once)),
        *map(_file_fingerprint, paths),
    ]
    for frame in frames:
        if frame is not None:
            columns = sorted(map(str, frame.columns))
            numbers = pd.util.hash_pandas_object(frame[columns], index=False).to_numpy()
            parts.append(" ".join(columns) + rows_fingerprint([numbers]))
    return hashlib.blake2b("\n".join(parts).encode(), digest_size=16).hexdigest()


def _file_fingerprint(path: Path) -> str:
    try:
        about = path.stat()
        with path.open("rb") as file:
            made = hashlib.blake2b(digest_size=16)
            for start in (0, about.st_size // 2, max(about.st_size - _SAMPLE, 0)):
                file.seek(start)
                made.update(file.read(_SAMPLE))
    except OSError:
        # Reading the file raises the error.
        return str(path)
    return f"{about.st_size} {about.st_mtime_ns} {made.hexdigest()}"
