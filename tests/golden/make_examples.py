"""Rewrite the outputs that pages show under their examples: ``python tests/golden/make_examples.py [PAGE...]``.

Only outputs that are not what the examples print are replaced; numbers in the prose are not.
"""

import contextlib
import doctest
import io
import os
import re
import shlex
import sys
import tempfile
import warnings
from pathlib import Path

from vbterrier.cli import app
from vbterrier.demo import copy_demo

ROOT = Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "notebooks"), str(ROOT / "tests" / "helpers")]
_FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def printed(language, code, names):
    """What an example prints."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        if language == "python":
            exec(compile(code, "example", "exec"), names)
        else:
            for line in code.replace("\\\n", " ").splitlines():
                words = shlex.split(line, comments=True)
                if words[:1] == ["vbterrier"]:
                    app(words[1:], standalone_mode=False)
    return out.getvalue()


def rewritten(text):
    """The text of a page with the outputs that its examples print."""
    names, last, parts, end = {}, None, [], 0
    for block in _BLOCK.finditer(text):
        language, shown = block.groups()
        if language in ("python", "sh"):
            last = printed(language, shown, names)
        elif language == "text" and last is not None:
            if not doctest.OutputChecker().check_output(shown, last, _FLAGS):
                lines = "\n".join(line.rstrip() for line in last.strip("\n").splitlines())
                parts += [text[end : block.start(2)], f"{lines}\n"]
                end = block.end(2)
            last = None
    return "".join([*parts, text[end:]])


def main():
    """Rewrite the given pages, by default all of docs."""
    warnings.simplefilter("ignore")
    pages = [Path(name).resolve() for name in sys.argv[1:]]
    for page in pages or [*sorted((ROOT / "docs").rglob("*.md"))]:
        text = page.read_text(encoding="utf-8")
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            if "demo --save demo" not in text:
                copy_demo(Path("demo"))
            try:
                made = rewritten(text)
            except Exception as error:  # noqa: BLE001 - examples may raise anything
                print(f"{page.relative_to(ROOT)}: {type(error).__name__}: {error}", file=sys.stderr)
                continue
            finally:
                os.chdir(ROOT)
        if made != text:
            page.write_text(made, encoding="utf-8")
            print(page.relative_to(ROOT))


if __name__ == "__main__":
    main()
