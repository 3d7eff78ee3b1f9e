"""The suite: every measure on collections of several sizes, growth, and the targets; a result that JSON holds."""

import os
import platform
import tempfile
from datetime import datetime, timezone
from importlib import metadata
from pathlib import Path

import vbterrier
from suite.memory import peaks
from suite.synthetic import KINDS, Collection, Shape
from suite.targets import met
from suite.timing import alternating
from suite.ways import SOURCES, ways

# The everyday frames of a notebook, a test collection, and the queries of a benchmark.
SIZES = ((50, 100), (250, 1000), (6980, 1000))
ROUNDS = 3
# Seconds beyond which a call is timed once: those of other packages on the largest collection.
PATIENCE = 10.0
_PACKAGES = ("vbterrier", "numpy", "pandas", "pyarrow", "ir_measures", "pytrec_eval-terrier", "pyndeval", "ranx",
             "trectools", "python-terrier")  # fmt: skip


def benchmark(*, sizes=SIZES, rounds=ROUNDS, seed=0, notify=lambda _: None):
    """Time every measure beside the nearest that others have, in turns, on synthetic collections.

    ``sizes`` are pairs of (queries, documents of each): collections of 1,000 queries and more have numbers as ids,
    smaller ones those of ClueWeb. Returned is what :func:`json.dump` takes: ``made``, ``machine``, ``versions``,
    ``options``; ``timings``, a record for each way, size and source with the seconds of each round, on processors and
    on the wall, and the peak in MiB above the frames; ``skipped`` (packages that are not installed or fail) and
    ``targets``.
    """
    timings = []
    skipped = []
    for n_queries, depth in sizes:
        for kind in KINDS:
            ids = "numbers" if n_queries >= 1000 else "clueweb"
            shape = Shape(kind, n_queries, 1 if kind == "linking" else depth, ids=ids, seed=seed)
            notify(f"{shape.kind}, {n_queries:,} queries x {shape.depth:,}")
            _time(shape, ways(shape.kind), rounds, timings, skipped)
    numbers = {
        "made": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "machine": machine(),
        "versions": versions(),
        "options": {"sizes": [list(size) for size in sizes], "rounds": rounds, "patience": PATIENCE, "seed": seed},
        "timings": timings,
        "skipped": once(skipped),
        "targets": met(list(sizes), timings, rounds, PATIENCE, seed=seed, notify=notify),
    }
    return {key: rounded(value) for key, value in numbers.items()}


def _time(shape, results, rounds, timings, skipped):
    """Add the records of one collection, from memory and from files."""
    there = [way for way in results if not way.missing()]
    skipped += [{"way": way.name, "why": way.missing()} for way in results if way.missing()]
    with tempfile.TemporaryDirectory(prefix="vbterrier-bench-") as folder:
        collection = Collection(shape, folder)
        collection.keep()
        for source in SOURCES:
            calls = {way.name: way.ready(collection, source) for way in there}
            times, failed = alternating(calls, rounds, patience=PATIENCE)
            skipped += [{"way": name, "why": why, "source": source} for name, why in failed.items()]
            held = {}
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


def machine():
    """What the numbers were measured on."""
    return {
        "processor": _processor(),
        "n_processors": os.cpu_count(),
        "memory_gib": _memory(),
        "system": f"{platform.system()} {platform.machine()}",
    }


def _processor():
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor())


def _memory():
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    except (AttributeError, ValueError, OSError):
        return None


def versions():
    """Versions of Python and of the packages that take part."""
    installed = {results.name.lower().replace("_", "-"): results.version for results in metadata.distributions()}
    spelt = {name: name.lower().replace("_", "-") for name in _PACKAGES}
    others = {name: installed[plain] for name, plain in spelt.items() if plain in installed}
    return {"python": platform.python_version(), "vbterrier": vbterrier.__version__} | others


def once(records):
    """Records without repetitions."""
    return [record for place, record in enumerate(records) if record not in records[:place]]


def rounded(value):
    """Numbers to six digits, seconds to the microsecond: a page of what was kept is the page of what was measured."""
    if isinstance(value, float):
        return round(value, 6)
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items()}
    return [rounded(one) for one in value] if isinstance(value, (list, tuple)) else value
