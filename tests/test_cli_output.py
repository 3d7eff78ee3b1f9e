"""Commands write tables to files."""

import pandas as pd
import pytest

FILES = ("lexical.run", "dense.run", "--qrels", "qrels.txt")


@pytest.mark.parametrize(
    "options",
    [
        ("score", *FILES, "-m", "nDCG@10", "--resamples", "20"),
        ("compare", *FILES, "-m", "nDCG@10", "--resamples", "200"),
        ("rank", *FILES, "--draws", "10"),
    ],
)
def test_tables_go_to_files_in_the_format_of_their_name(in_demo, tmp_path, options):
    code, out, _ = in_demo(*options, "-o", tmp_path / "table.tex")
    assert (code, out) == (0, "")
    assert (tmp_path / "table.tex").read_text().rstrip("\n") == in_demo(*options, "-f", "latex")[1].rstrip("\n")
    assert in_demo(*options, "-o", tmp_path / "table.csv")[0] == 0
    assert len(pd.read_csv(tmp_path / "table.csv")) >= 1
    assert "over 12 topics: " in (tmp_path / "table.caption.txt").read_text()


def test_two_formats_or_an_unknown_one_are_refused_before_any_work(in_demo, tmp_path):
    options = ("score", "missing.run", "--qrels", "missing.txt", "-m", "nDCG@10")
    code, _, err = in_demo(*options, "-f", "csv", "-o", tmp_path / "table.tex")
    assert code == 2
    assert "asks for latex; leave one of them out" in err
    code, _, err = in_demo(*options, "-o", tmp_path / "table.docx")
    assert code == 2
    assert "wanted a name that ends in .tex" in err


def test_systems_of_a_comparison_are_chosen_for_csv_files_too(in_demo, tmp_path):
    options = ("compare", *FILES, "-m", "nDCG@10", "--resamples", "200", "--systems")
    assert in_demo(*options, "-o", tmp_path / "systems.csv")[0] == 0
    assert pd.read_csv(tmp_path / "systems.csv")["name"].tolist() == ["lexical", "dense"]
    assert (tmp_path / "systems.caption.txt").read_text().startswith("Means over 12 topics")
    assert in_demo(*options, "-o", tmp_path / "systems.tex")[0] == 2
