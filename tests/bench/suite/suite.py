"""The suite: every measure on collections of several sizes, growth, and the targets; a result that JSON holds."""

from __future__ import annotations

import importlib
import os
import platform
import tempfile
from datetime import datetime, timezone
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from suite.engines import IR_MEASURES
from suite.growth import growth
from suite.kept import SCHEMA, once, rounded
from suite.memory import peaks
from suite.synthetic import KINDS, Collection, Shape
from suite.targets import met
from suite.timing import PATIENCE, alternating
from suite.ways import MEASURES, PEERS, SOURCES, bare, ways
from vbterrier.errors import ParameterError, choice, nearest, number, whole

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from suite.ways import Way

SIZES = ((250, 1000), (6980, 1000))
ROUNDS = 3
_PACKAGES = ("vbterrier", "numpy", "pandas", "pyarrow", "ir_measures", "pytrec_eval-terrier", "pyndeval", "ranx",
             "trectools", "python-terrier")  # fmt: skip


def benchmark(
    *,
    sizes: Sequence[tuple[int, int]] = SIZES,
    measures: Sequence[str] | None = None,
    peers: Sequence[str] | None = None,
    rounds: int = ROUNDS,
    memory: bool = True,
    grown: bool | None = None,
    targets: bool | None = None,
    patience: float = PATIENCE,
    seed: int = 0,
    said: Callable[[str], object] = lambda _: None,
) -> dict[str, Any]:
    """Time every measure beside the nearest that others have, in turns, on synthetic collections.

    Parameters
    ----------
    sizes
        Pairs of (queries, documents of each). Collections of 1,000 queries and more have numbers as ids, smaller ones
        those of ClueWeb.
    measures
        Text or bare names of measures to keep; ``None`` for all.
    peers
        Packages to keep, of ir_measures, pytrec_eval, pyndeval, ranx and trectools; ``None`` for all. Those that are
        not installed are named in the result, and so are those that fail.
    rounds
        How often everything is timed, after a first time that is not.
    memory
        Whether peaks of memory are measured, each in a process of its own.
    grown, targets
        Whether growth and targets are measured; by default with all measures only.
    patience
        What takes longer, in seconds on processors, is timed once instead of in all rounds.
    seed
        Decides the collections.
    said
        Is told what is done next.

    Returns
    -------
    dict
        What :func:`json.dump` takes: ``schema``, ``made``, ``machine``, ``versions``, ``options``; ``timings``, a
        record for each way, size and source with the seconds of each round, on processors and on the wall, and the
        peak in MiB above the frames; ``skipped``, ``growth`` and ``targets``.

    Raises
    ------
    ParameterError
        A measure or peer that there is not, or a size below 1.
    """
    _require(measures, peers)
    whole("rounds", rounds)
    number("patience", patience, low=0)
    every = measures is None
    timings: list[dict[str, Any]] = []
    skipped: list[dict[str, Any]] = []
    for n_queries, depth in sizes:
        for shape in _shapes(n_queries, depth, seed):
            found = ways(shape.kind, _listed(measures), _listed(peers))
            if found:
                said(f"{shape.kind}, {n_queries:,} queries x {shape.depth:,}")
                _time(shape, found, rounds, timings, skipped, memory=memory, patience=patience)
    numbers = {
        "schema": SCHEMA,
        "made": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "machine": machine(),
        "versions": versions(),
        "options": {"sizes": [list(size) for size in sizes], "rounds": rounds, "seed": seed},
        "timings": timings,
        "skipped": once(skipped),
        "growth": growth(rounds, seed=seed, said=said) if (every if grown is None else grown) else [],
        "targets": met(list(sizes), timings, rounds, patience=patience, seed=seed, said=said)
        if (every if targets is None else targets)
        else [],
    }
    return {key: rounded(value) for key, value in numbers.items()}


def _require(measures: Sequence[str] | None, peers: Sequence[str] | None) -> None:
    known = [text for of in MEASURES.values() for text in of]
    names = {*known, *map(bare, known)}
    for text in measures or ():
        if text not in names:
            raise ParameterError(f"measure {text!r}: the suite has none such.{nearest(text, sorted(names))}")
    for peer in peers or ():
        choice("peer", peer, (IR_MEASURES, *PEERS))


def _listed(given: Sequence[str] | None) -> list[str] | None:
    return None if given is None else list(given)


def _shapes(n_queries: int, depth: int, seed: int) -> list[Shape]:
    ids = "numbers" if n_queries >= 1000 else "clueweb"
    return [
        Shape(kind, n_queries, 1 if kind == "linking" else depth, ids=ids, seed=seed)
        for kind in KINDS
    ]  # fmt: skip


def _time(
    shape: Shape,
    found: list[Way],
    rounds: int,
    timings: list[dict[str, Any]],
    skipped: list[dict[str, Any]],
    *,
    memory: bool,
    patience: float,
) -> None:
    """Add the records of one collection, from memory and from files."""
    there = [way for way in found if not way.missing()]
    skipped += [{"way": way.name, "why": way.missing()} for way in found if way.missing()]
    with tempfile.TemporaryDirectory(prefix="vbterrier-bench-") as folder:
        collection = Collection(shape, folder)
        if memory:
            collection.keep()
        for source in SOURCES:
            calls = {way.name: way.ready(collection, source) for way in there}
            times, failed = alternating(calls, rounds, patience=patience)
            skipped += [{"way": name, "why": why, "source": source} for name, why in failed.items()]
            held: dict[str, float | None] = {}
            if memory:
                try:
                    held = peaks(list(times), collection, source)
                except RuntimeError as error:
                    # What is timed stands; an engine may take down its process where memory ends.
                    skipped.append({"way": "memory", "why": str(error), "source": source})
            about = {"kind": shape.kind, "n_queries": shape.n_queries, "depth": shape.depth, "ids": shape.ids}
            for way in there:
                if way.name in times:
                    took = times[way.name]
                    named = {"source": source, "way": way.name, "tool": way.tool, "measure": way.measure}
                    measured = {"cpu": took.cpu, "wall": took.wall, "peak_mib": held.get(way.name)}
                    timings.append(about | named | measured)


def machine() -> dict[str, Any]:
    """What the numbers were measured on."""
    return {
        "processor": _processor(),
        "n_processors": os.cpu_count(),
        "memory_gib": _memory(),
        "system": f"{platform.system()} {platform.machine()}",
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor())


def _memory() -> float | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    except (AttributeError, ValueError, OSError):
        return None


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that take part."""
    installed = {_plain(found.name): found.version for found in metadata.distributions()}
    others = {name: installed[_plain(name)] for name in _PACKAGES if _plain(name) in installed}
    # By name: the package imports everything lazily, and no floor imports it.
    ours = importlib.import_module("vbterrier").__version__
    return {"python": platform.python_version(), "vbterrier": ours} | others


def _plain(name: str) -> str:
    """A package's name, however it is spelt."""
    return name.lower().replace("_", "-")
