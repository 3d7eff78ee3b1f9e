"""Commands write tables to files."""

import pandas as pd
import pytest

from vbterrier.cli import main
from vbterrier.demo import copy_demo


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("demo")
    copy_demo(made)
    return made


@pytest.fixture
def command(folder, monkeypatch, capsys):
    def run(*arguments):
        monkeypatch.chdir(folder)
        monkeypatch.setattr("sys.argv", ["vbterrier", *map(str, arguments)])
        with pytest.raises(SystemExit) as left:
            main()
        out, err = capsys.readouterr()
        return left.value.code or 0, out, err

    return run


FILES = ("lexical.run", "dense.run", "--qrels", "qrels.txt")


@pytest.mark.parametrize(
    "options",
    [
        ("score", *FILES, "-m", "nDCG@10", "--resamples", "20"),
        ("compare", *FILES, "-m", "nDCG@10", "--resamples", "200"),
        ("rank", *FILES, "--draws", "10"),
    ],
)
def test_tables_go_to_files_in_the_format_of_their_name(command, tmp_path, options):
    code, out, _ = command(*options, "-o", tmp_path / "table.tex")
    assert (code, out) == (0, "")
    assert (tmp_path / "table.tex").read_text().rstrip("\n") == command(*options, "-f", "latex")[1].rstrip("\n")
    assert command(*options, "-o", tmp_path / "table.csv")[0] == 0
    assert len(pd.read_csv(tmp_path / "table.csv")) >= 1
    assert "over 12 topics: " in (tmp_path / "table.caption.txt").read_text()


def test_two_formats_or_an_unknown_one_are_refused_before_any_work(command, tmp_path):
    options = ("score", "missing.run", "--qrels", "missing.txt", "-m", "nDCG@10")
    code, _, err = command(*options, "-f", "csv", "-o", tmp_path / "table.tex")
    assert code == 2
    assert "asks for latex; leave one of them out" in err
    code, _, err = command(*options, "-o", tmp_path / "table.docx")
    assert code == 2
    assert "wanted a name that ends in .tex" in err


def test_systems_of_a_comparison_are_chosen_for_csv_files_too(command, tmp_path):
    options = ("compare", *FILES, "-m", "nDCG@10", "--resamples", "200", "--systems")
    assert command(*options, "-o", tmp_path / "systems.csv")[0] == 0
    assert pd.read_csv(tmp_path / "systems.csv")["name"].tolist() == ["lexical", "dense"]
    assert (tmp_path / "systems.caption.txt").read_text().startswith("Means over 12 topics")
    assert command(*options, "-o", tmp_path / "systems.tex")[0] == 2
