"""The built site: lengths of pages, a page for each public name and command, anchors, search, copying."""

import html
import importlib
import os
import re
import subprocess
import sys
import threading
import time
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from browsing import PHONE, WIDE, emulated

ROOT = Path(__file__).resolve().parents[2]
LONGEST = 6000
# Source code, and lists of all names.
NO_TEXT = ("_modules/", "genindex.html", "py-modindex.html", "search.html")

pytestmark = pytest.mark.nightly


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of the site: that of ``VBTERRIER_SITE``, which CI has built, or a new one."""
    if built := os.environ.get("VBTERRIER_SITE"):
        return Path(built)
    pytest.importorskip("sphinx")
    folder = tmp_path_factory.mktemp("site")
    subprocess.run([sys.executable, "-m", "sphinx", "-W", "-q", "-b", "html", ROOT / "docs", folder], check=True)
    return folder


@pytest.fixture(scope="module")
def pages(site):
    """The HTML of pages by their path in the site."""
    return {
        name: path.read_text(encoding="utf-8")
        for path in sorted(site.rglob("*.html"))
        if not (name := path.relative_to(site).as_posix()).startswith(NO_TEXT)
    }


def extension(name, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs/_ext"))
    return importlib.import_module(name)


def words(page):
    article = re.search(r"<article.*</article>", page, re.DOTALL)[0]
    article = re.sub(r"<(script|style|svg)\b.*?</\1>", " ", article, flags=re.DOTALL)
    return html.unescape(re.sub(r"<[^>]+>", " ", article)).split()


def test_no_page_is_longer_than_6000_words(pages):
    lengths = {name: len(words(page)) for name, page in pages.items()}
    assert len(lengths) > 300
    assert {name: length for name, length in lengths.items() if length > LONGEST} == {}


def test_each_public_name_has_a_page_with_its_docstring_and_source(pages, monkeypatch):
    names = extension("public_names", monkeypatch)
    listed = names.pages()
    public = {f"vbterrier.{name}" for name, value in names.public().items() if names.package_of(value)}
    assert public <= set(listed)
    for name, parent in listed.items():
        page = pages[f"reference/api/{name}.html"]
        assert f'id="{name}"' in page, name
        # The page that described the name before leads to it from the same anchor.
        assert f'id="{name}"' in pages[f"{parent}.html"], name
    assert 'href="../../_modules/vbterrier/evaluate/scores.html#score"' in pages["reference/api/vbterrier.score.html"]


def test_each_command_has_a_page_with_its_options(pages, monkeypatch):
    command_line = extension("command_line", monkeypatch)
    overview = pages["reference/command-line.html"]
    for name, command in command_line.all_commands().items():
        page = pages[f"reference/commands/{command_line.slug(name)}.html"]
        text = " ".join(words(page))
        assert [option for parameter in command.params for option in parameter.opts if option[:2] == "--"]
        for parameter in command.params:
            assert all(option in text for option in parameter.opts if option[:2] == "--" and option != "--help"), name
        assert f'id="{name.replace(" ", "-")}"' in overview


def test_examples_are_on_the_page_of_what_they_use(pages):
    score = pages["reference/api/vbterrier.score.html"]
    assert 'href="../../tutorial/comparison.html#three-scores-of-the-same-runs"' in score
    assert '<img src="../../_images/gallery-2.png"' in score
    assert 'href="../../how-to/release-gate.html#first-decision"' in pages["reference/commands/gate.html"]


def test_links_within_the_site_lead_to_pages_pictures_and_anchors_that_exist(site, pages):
    broken = []
    for name, page in pages.items():
        article = re.search(r"<article.*</article>", page, re.DOTALL)[0]
        for link in re.findall(r'(?:href|src)="([^":]+)"', article):
            target, _, anchor = html.unescape(link).partition("#")
            path = (site / name).parent.joinpath(target).resolve() if target else site / name
            relative = path.relative_to(site.resolve()).as_posix() if target else name
            if not path.exists() or (anchor and relative in pages and f'id="{anchor}"' not in pages[relative]):
                broken.append((name, link))
    assert broken == []


def test_names_of_other_packages_are_links(pages):
    text = "".join(pages.values())
    for address in (
        "https://pandas.pydata.org/docs/reference/api/pandas.DataFrame.html#pandas.DataFrame",
        "https://pyterrier.readthedocs.io/en/latest/experiments.html#pyterrier.Experiment",
        "https://ir-measur.es/en/latest/api.html#ir_measures.parse_trec_measure",
        "https://numpy.org/doc/stable/reference/generated/numpy.ndarray.html#numpy.ndarray",
    ):
        assert f'href="{address}"' in text


def test_pages_have_a_link_to_their_source(pages):
    place = "https://github.com/vbterrier/vbterrier/edit/main"
    for page, file in (
        ("start.html", "docs/start.md"),
        ("reference/api/vbterrier.score.html", "vbterrier/evaluate/scores.py"),
        ("reference/api/vbterrier.BNDCG.html", "vbterrier/measures/bootstrapped.py"),
        ("reference/commands/gate.html", "vbterrier/cli/"),
    ):
        assert re.search(rf'href="{place}/{file}[^"]*" rel="edit"', pages[page]), page
    for file in re.findall(rf'href="{place}/([^"]+)" rel="edit"', "".join(pages.values())):
        assert file.startswith("docs/pyterrier/") or (ROOT / file).is_file(), file


def test_the_gallery_begins_with_a_thumbnail_of_each_figure(pages):
    gallery = pages["reference/gallery.html"]
    box = re.search(r'<div class="thumbnails.*?</div>', gallery, re.DOTALL)[0]
    figures = re.findall(r'<figure[^>]* id="(plot-\d+)"', gallery)
    plots = (ROOT / "docs/reference/gallery.rst").read_text(encoding="utf-8")
    assert len(figures) == plots.count(".. plot::") - plots.count(":nofigs:")
    assert re.findall(r'href="#(plot-\d+)"', box) == figures
    assert "" not in re.findall(r'alt="([^"]*)"', box)
    assert gallery.index("thumbnails") < gallery.index("<pre>")


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        """Log nothing."""


@pytest.fixture(scope="module")
def address(site):
    """The site on a local server: its search reads pages."""
    handler = partial(Quiet, directory=str(site))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def results(page, address, query):
    page.get(f"{address}/search.html?q={query}")
    for _ in range(100):
        result = page.execute_script(
            "return [...document.querySelectorAll('#search-results li a')].map(a => a.pathname)"
        )
        if result:
            return result
        time.sleep(0.05)
    return []


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("unjudged", "start.html"),
        ("score", "reference/api/vbterrier.score.html"),
        ("compare", "reference/api/vbterrier.compare.html"),
        ("gate", "how-to/release-gate.html"),
    ],
)
def test_the_search_finds_the_page_to_read_first(chromium, address, query, first):
    assert results(chromium, address, query)[0] == f"/{first}"


def test_the_button_copies_code_without_prompts(chromium, address):
    chromium.get(f"{address}/reference/files.html")
    copied = chromium.execute_async_script(
        """
        const done = arguments[0];
        document.execCommand = () => { done(document.querySelector("textarea").value); return true; };
        document.querySelector("button.copybtn").click();
        """
    )
    assert copied.startswith("vbterrier convert qrels.txt")
    assert "$" not in copied


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["start", "explanation/evidence", "reference/gallery", "reference/commands/score"])
def test_pages_are_no_wider_than_a_phone(chromium, address, name, scheme):
    emulated(chromium, PHONE, scheme)
    chromium.get(f"{address}/{name}.html")
    wide = chromium.execute_script("return document.documentElement.scrollWidth")
    light = chromium.execute_script(
        "return [...document.querySelectorAll('article img')].map(i => getComputedStyle(i).filter)"
    )
    assert wide <= PHONE[0]
    assert all((style != "none") == (scheme == "dark") for style in light)
    emulated(chromium, WIDE)
