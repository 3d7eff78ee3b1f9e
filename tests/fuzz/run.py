"""Fuzz one target with atheris: ``python tests/fuzz/run.py TARGET SECONDS``.

Begins with the inputs kept in ``corpus/TARGET`` and writes an input that fails there too, as ``crash-...``: with that
it is a test. What libFuzzer learns on the way goes to a folder that is thrown away.
"""

import contextlib
import io
import itertools
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["vbterrier"]), contextlib.redirect_stderr(io.StringIO()):
    import targets

HERE = Path(__file__).parent


def main():
    name, seconds = sys.argv[1], int(sys.argv[2])
    kept = HERE / "corpus" / name
    folder = Path(tempfile.mkdtemp(prefix="vbterrier-fuzz-"))
    learnt, work = folder / "learnt", folder / "work"
    learnt.mkdir()
    count, end = itertools.count(1), time.monotonic() + seconds

    def one(data):
        n = next(count)
        if time.monotonic() > end:
            # Exiting through libFuzzer waits for threads of Arrow, which wait for Python.
            print(f"{name}: {n:,} inputs")
            sys.stdout.flush()
            os._exit(0)
        # Files of the previous input must not affect this one.
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir()
        targets.check(name, work, data)

    options = ["-timeout=20", "-rss_limit_mb=2048", "-max_len=4096"]
    options += [f"-artifact_prefix={kept}/", "-verbosity=0"]
    atheris.Setup([sys.argv[0], *options, str(learnt), str(kept)], one)
    atheris.Fuzz()


main()
