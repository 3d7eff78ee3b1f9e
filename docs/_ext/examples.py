"""Examples of the documentation by what they use: public functions and classes, and commands."""

from __future__ import annotations

import ast
import re
import shlex
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from docutils import nodes

if TYPE_CHECKING:
    from collections.abc import Iterator

DOCS = Path(__file__).resolve().parents[1]
# Folders that are written while the site is built.
GENERATED = ("reference/api", "reference/commands")
_FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_DIRECTIVE = re.compile(r"^\.\. (?:code-block:: )?(\w+)(?:::)?\n((?: +:.*\n)*)\n((?:(?: {3,}.*)?\n)+)", re.MULTILINE)
_HEADING = {".md": re.compile(r"^#+ (.+)$", re.MULTILINE), ".rst": re.compile(r"^(\S.*)\n([=-])\2{2,}$", re.MULTILINE)}
_MEASURE = re.compile(r"\b([A-Z]\w+)(?=(?:\([^()]*\))?@\d)")
# ``table.plot("forest")`` is a use of ``plots.forest``.
_PLOT = "plot"
# A plot without a figure, which counts in the names of the files.
_DATA = "data"


@dataclass(frozen=True)
class Example:
    """A block of code on a page: the page, its title, the section and its number among the plots of the page."""

    page: str
    title: str
    section: str
    plot: int | None = None

    @property
    def link(self) -> str:
        """A link to the section, from a page two folders below the root."""
        anchor = f"#{nodes.make_id(self.section)}" if self.section != self.title else ""
        text = f"{self.title}: {self.section}" if anchor else self.title
        return f"`{text} <../../{self.page}.html{anchor}>`__"


def sources() -> Iterator[tuple[str, Path]]:
    """Yield pages that people write, with the files of their text."""
    for path in sorted(path for path in DOCS.rglob("*") if path.suffix in {".md", ".rst"}):
        page = path.relative_to(DOCS).with_suffix("").as_posix()
        if page.startswith(("_build", *GENERATED)):
            continue
        included = re.match(r"\.\. include:: (\S+)\n$", path.read_text(encoding="utf-8"))
        yield page, (path.parent / included[1]).resolve() if included else path


def blocks(path: Path) -> Iterator[tuple[str, str, str, str]]:
    """Yield language, code, title and section of each block of code."""
    text = path.read_text(encoding="utf-8")
    pattern = _FENCE if path.suffix == ".md" else _DIRECTIVE
    code_spans = [match.span() for match in pattern.finditer(text)]
    headings = [
        (match.start(), re.sub(r"[`*]+", "", match[1]))
        for match in _HEADING[path.suffix].finditer(text)
        if not any(low <= match.start() < high for low, high in code_spans)
    ]
    for match in pattern.finditer(text):
        language, code = match[1], match[match.lastindex or 0]
        if language == _PLOT and ":nofigs:" in match[2]:
            language = _DATA
        above = [heading for start, heading in headings if start < match.start()]
        if above:
            yield language, code if path.suffix == ".md" else re.sub("(?m)^   ", "", code), headings[0][1], above[-1]


def dotted(node: ast.expr) -> str:
    """``a.b.c`` of an expression, or nothing."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (left := dotted(node.value)):
        return f"{left}.{node.attr}"
    return ""


def python_names(code: str, imports: dict[str, str]) -> Iterator[str]:
    """Yield the whole names of the package that a block uses; ``imports`` keeps those of the blocks before."""
    try:
        tree = ast.parse(code)
    except SyntaxError:
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imports.update({alias.asname or alias.name.split(".")[0]: alias.name for alias in node.names})
        elif isinstance(node, ast.ImportFrom) and node.module:
            imports.update({alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names})
    for node in ast.walk(tree):
        if isinstance(node, (ast.Attribute, ast.Name)):
            first, *rest = dotted(node).split(".")
            if imports.get(first, "").split(".")[0] == "vbterrier":
                yield ".".join([imports[first], *rest])
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == _PLOT:
            yield from (f"vbterrier.plots.{kind.value}" for kind in node.args[:1] if isinstance(kind, ast.Constant))


def command_words(code: str) -> Iterator[str]:
    """Yield the commands of a block with all their words, such as ``vbterrier queries power FILE``."""
    for line in code.replace("\\\n", " ").splitlines():
        words = line.removeprefix("$ ")
        if words.startswith("vbterrier "):
            yield " ".join(shlex.split(words, comments=True))


@cache
def uses() -> dict[str, tuple[Example, ...]]:
    """Return the examples by whole name (``vbterrier.score``) and by command (``vbterrier score ...``)."""
    table: dict[str, dict[Example, None]] = {}
    for page, path in sources():
        imports: dict[str, str] = {}
        n_plots = 0
        for language, code, title, section in blocks(path):
            n_plots += language in {_PLOT, _DATA}
            example = Example(page, title, section, n_plots if language == _PLOT else None)
            names = python_names(code, imports) if language in {"python", _PLOT, _DATA} else command_words(code)
            if language in {"python", _PLOT, _DATA, "sh", "console", "bash"}:
                # Measures are mostly texts, as "BNDCG@10" and -m "VB(alpha=2)@5".
                measures = (f"vbterrier.{name}" for name in _MEASURE.findall(code))
                for name in (*names, *measures):
                    table.setdefault(name, {})[example] = None
    return {name: tuple(examples) for name, examples in table.items()}


def links(examples: tuple[Example, ...]) -> Iterator[str]:
    """Yield a section of a generated page: pictures of the gallery, then links to the examples."""
    if not examples:
        return
    yield from ("Examples", "--------", "")
    pictures = [example for example in examples if example.plot]
    if pictures:
        yield from (".. raw:: html", "", '   <div class="thumbnails">')
        for example in pictures:
            file = f"../../_images/{example.page.rpartition('/')[2]}-{example.plot}.png"
            link = f"../../{example.page}.html#plot-{example.plot}"
            yield f'   <a href="{link}"><img src="{file}" alt="Figure of the gallery" loading="lazy"></a>'
        yield from ("   </div>", "")
    for link in dict.fromkeys(example.link for example in examples):
        yield f"- {link}"
    yield ""


def write(folder: str, texts: dict[str, str]) -> None:
    """Write the pages of a generated folder: only those that changed, and without those that are gone."""
    place = DOCS / folder
    place.mkdir(exist_ok=True)
    for path in place.glob("*.rst"):
        if path.stem not in texts:
            path.unlink()
    for name, text in texts.items():
        path = place / f"{name}.rst"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
