"""What is released: the wheel and the source distribution hold what they should, and nothing else."""

import email
import json
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
import yaml

import vbterrier
from vbterrier import _version

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[1]
# Of a megabyte: data sets are not ours to give.
MOST = 1 << 20


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The source distribution, and the wheel that is built of it."""
    for name in ("hatchling", "build"):
        if not os.environ.get("CI"):
            pytest.importorskip(name)
    folder = tmp_path_factory.mktemp("dist")
    # Without isolation: what builds is here, and nothing is fetched.
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    (sdist,), (wheel,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    return sdist, wheel


@pytest.fixture(scope="module")
def wheel(built):
    with zipfile.ZipFile(built[1]) as file:
        yield file


@pytest.fixture(scope="module")
def sdist(built):
    """Its files by name, without the folder that they all stand in."""
    with tarfile.open(built[0]) as file:
        members = file.getmembers()
        tops = {member.name.partition("/")[0] for member in members}
        assert tops == {f"vbterrier-{vbterrier.__version__}"}
        yield {member.name.partition("/")[2]: file.extractfile(member).read() for member in members if member.isfile()}


def of_package():
    """All files of the package, its data among them."""
    result = (path for path in (ROOT / "vbterrier").rglob("*") if path.is_file() and path.suffix != ".pyc")
    return {path.relative_to(ROOT).as_posix() for path in result}


def test_the_wheel_is_the_package_and_nothing_else(wheel):
    about = f"vbterrier-{vbterrier.__version__}.dist-info/"
    names = {name for name in wheel.namelist() if not name.endswith("/")}
    assert {name for name in names if not name.startswith(about)} == of_package()
    assert names >= {f"{about}{name}" for name in ("METADATA", "RECORD", "entry_points.txt", "licenses/LICENSE")}


def test_the_wheel_has_data_pages_and_the_mark_of_types(wheel):
    names = set(wheel.namelist())
    for name in ("py.typed", "demo/qrels.txt", "pt_docs/index.rst", "report/page/assets/core.js"):
        assert f"vbterrier/{name}" in names
    assert {Path(name).suffix for name in names} >= {".css", ".js", ".html", ".rst", ".run", ".tsv"}


def test_the_wheel_says_what_it_is(wheel):
    about = email.message_from_bytes(wheel.read(f"vbterrier-{vbterrier.__version__}.dist-info/METADATA"))
    assert about["Version"] == vbterrier.__version__
    assert about["Requires-Python"] == ">=3.10"
    assert about["License-Expression"] == "Apache-2.0"
    assert "Typing :: Typed" in about.get_all("Classifier")
    assert "vbterrier demo" in about.get_payload()
    needed = [line for line in about.get_all("Requires-Dist") if "extra ==" not in line]
    # Every bound is one that is tested: see .ci/oldest.txt.
    assert all(">=" in line for line in needed)
    points = wheel.read(f"vbterrier-{vbterrier.__version__}.dist-info/entry_points.txt").decode()
    assert "vbterrier = vbterrier.cli:main" in points


def test_the_sdist_has_what_its_tests_and_its_readers_need(sdist):
    expected = {"pyproject.toml", "README.md", "CHANGELOG.md", "SECURITY.md", "CITATION.cff", "LICENSE", "PKG-INFO"}
    expected |= of_package() | {
        ".ci/run",
        ".ci/oldest.txt",
        "docs/conf.py",
        "tests/conftest.py",
        "tests/test_release.py",
    }
    for folder, kind in (("tests", "*.py"), ("notebooks", "*.ipynb"), ("docs", "*.md")):
        expected |= {
            path.relative_to(ROOT).as_posix() for path in (ROOT / folder).rglob(kind) if "_build" not in path.parts
        }
    assert expected - set(sdist) == set()


def test_the_sdist_has_no_data_of_others_no_leavings_and_nothing_large(sdist):
    assert [name for name, content in sdist.items() if len(content) > MOST] == []
    strange = re.compile(r"__pycache__|\.pyc$|(^|/)\.(git/|mypy|ruff|pytest|hypothesis)|shared/|\.egg-info")
    assert [name for name in sdist if strange.search(name)] == []
    tops = {name.partition("/")[0] for name in sdist if "/" in name}
    assert tops == {"vbterrier", "tests", "docs", "notebooks", ".ci"}


def test_nothing_says_where_it_was_made(built, sdist, wheel):
    # Short ones, as of a container, stand in texts of their own right.
    places = [str(place).encode() for place in (ROOT, Path.home()) if len(place.parts) > 2]
    contents = {**sdist, **{name: wheel.read(name) for name in wheel.namelist()}}
    assert [name for name, content in contents.items() if any(place in content for place in places)] == []


def test_notebooks_are_released_as_they_are_committed(sdist):
    books = {name: json.loads(content) for name, content in sdist.items() if name.endswith(".ipynb")}
    assert books == {f"notebooks/{path.name}": json.loads(path.read_text()) for path in ROOT.glob("notebooks/*.ipynb")}
    assert len(books) >= 6


def test_the_index_would_take_them(built):
    if not os.environ.get("CI"):
        pytest.importorskip("twine")
    command = [sys.executable, "-m", "twine", "check", "--strict", *map(str, built)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


# Citation.


@pytest.fixture(scope="module")
def citation():
    return yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))


def test_the_citation_is_of_this_version_and_licence(citation):
    assert {citation[key] for key in ("cff-version", "version", "license", "title")} == {
        "1.2.0",
        vbterrier.__version__,
        "Apache-2.0",
        "vbterrier",
    }
    assert {"message", "authors", "type", "abstract", "keywords", "references"} <= set(citation)


def test_the_four_papers_are_cited_as_the_readme_cites_them(citation):
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    papers = citation["references"]
    assert len(papers) == 4
    for paper in papers:
        assert {"type", "title", "authors", "year"} <= set(paper)
        assert all({"family-names", "given-names"} <= set(author) for author in paper["authors"])
        # The README has the first part of a title.
        assert paper["title"].partition(":")[0].strip() in readme
        assert ", ".join(author["family-names"] for author in paper["authors"]) + ", *" in readme
        assert str(paper["year"]) in readme
        assert re.fullmatch(r"10\.\d{4,}/\S+", paper.get("doi", "10.1000/none"))


def test_the_version_is_one(citation):
    tomllib = pytest.importorskip("tomllib")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["dynamic"] == ["version"]
    assert _version.__version__ == vbterrier.__version__
    recipe = (ROOT / ".ci" / "release" / "meta.yaml").read_text(encoding="utf-8")
    assert f'set version = "{vbterrier.__version__}"' in recipe
    assert re.findall(r"^    - (\S+) (>=.*)$", recipe.partition("  run:")[2], re.MULTILINE)[1:] == [
        tuple(re.match(r"([\w-]+)(>=.*)", one).groups()) for one in project["dependencies"]
    ]
