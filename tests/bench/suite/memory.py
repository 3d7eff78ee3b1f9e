"""The peak of memory above the frames, measured in a process of its own: ``python -m suite.memory``.

tracemalloc does not see what Arrow takes, and a process that has done other work before has memory to reuse.
"""

import ctypes
import gc
import json
import subprocess
import sys
import tempfile
from dataclasses import asdict, replace
from pathlib import Path

import pyarrow as pa

from suite.synthetic import Collection, Shape
from suite.ways import way_named

_MIB = 1 / 1024
TIMEOUT = 3600


def peak_above(call):
    """MiB that a call takes at its peak above what is held before; ``None`` where the system does not say."""
    # What earlier calls freed is returned, so that the next one cannot take it unseen.
    gc.collect()
    pa.default_memory_pool().release_unused()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)
    try:
        # Set the peak back to what is held now.
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    except OSError:
        return None
    before = _status("VmRSS")
    call()
    return (_status("VmHWM") - before) * _MIB


def _status(name):
    lines = Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))


def peaks(names, collection, source):
    """:func:`peak_above` of ways by their names, in a process of its own that reads the kept frames."""
    told = json.dumps(
        {"ways": list(names), "shape": asdict(collection.shape), "folder": str(collection.folder), "source": source}
    )
    command = [sys.executable, "-m", "suite.memory", told]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=TIMEOUT, check=False, cwd=Path(__file__).parents[1]
    )
    if done.returncode:
        raise RuntimeError(f"no peaks of memory: {done.stderr.strip()[-500:]}")
    return json.loads(done.stdout.splitlines()[-1])


def main(told):
    """Measure what was told, and print the peaks."""
    parameters = json.loads(told)
    shape = Shape(**parameters["shape"])
    results = {}
    with tempfile.TemporaryDirectory(prefix="vbterrier-bench-") as folder:
        small = Collection(replace(shape, n_queries=3, depth=min(shape.depth, 20)), folder)
        collection = Collection(shape, parameters["folder"])
        for name in parameters["ways"]:
            way = way_named(name)
            # Imports and caches of the first call are nobody's: a tiny collection goes first.
            way.ready(small, parameters["source"])()
            results[name] = peak_above(way.ready(collection, parameters["source"]))
    print(json.dumps(results))


if __name__ == "__main__":
    main(sys.argv[1])
