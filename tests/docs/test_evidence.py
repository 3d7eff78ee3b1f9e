"""The sentences about measurements have the numbers of the tables below them."""

from pathlib import Path

import numpy as np
import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
# The pages of evidence, one text.
EVIDENCE = "\n".join(page.read_text(encoding="utf-8") for page in sorted((DOCS / "explanation").glob("evidence*.md")))


def prose(*path):
    """The text of a page with single blanks between words."""
    return " ".join(DOCS.joinpath(*path).read_text(encoding="utf-8").split())


SAID = " ".join(EVIDENCE.split())


def table(name):
    """The rows of a table between two comments, as lists of cells."""
    part = EVIDENCE.split(f"<!-- {name} -->", 1)[1].split(f"<!-- end of {name} -->", 1)[0]
    lines = [line for line in part.splitlines() if line.startswith("|")][2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def column(rows, place):
    """The first number of each cell, NaN where it is empty."""
    return np.array([float(row[place].split()[0]) if row[place] else np.nan for row in rows])


@pytest.fixture(scope="module")
def estimates():
    return table("estimates")


def test_smallest_errors_are_counted(estimates):
    error, other = column(estimates, 3), column(estimates, 4)
    n_smallest, n = int((error < other).sum()), len(estimates)
    assert f"error in {n_smallest} of {n} settings below" in SAID
    assert f"E has the smallest error in {n_smallest} of these {n} rows" in SAID
    ratio = f"{np.exp(np.log(error / other).mean()):.2f}".removeprefix("0")
    assert f"(geometric mean of the ratio to the best other {ratio})" in SAID
    assert f"in {n_smallest} of {n} rows" in prose("explanation", "departures.md")


def test_coverage_is_counted(estimates):
    topics, means, differences = (column(estimates, place) for place in (6, 8, 9))
    within = int(((topics >= 0.85) & (topics <= 0.95)).sum())
    numbers = within, int((topics > 0.95).sum())
    assert "cover .85 to .95 of topics in {} rows, more in {}".format(*numbers) in SAID
    defined = ~np.isnan(means)
    text = f"at least .85 of means in {int((means[defined] >= 0.85).sum())} of {int(defined.sum())}"
    assert text in SAID
    text = f"of differences in {int((differences[defined] >= 0.85).sum())} of {int(defined.sum())}"
    assert text in SAID


def test_settings_with_labels_are_counted():
    page, changes = prose("how-to", "machine-labels.md"), []
    for row in table("labels beside few judgments"):
        without = [float(part.split()[0]) for part in row[4].split(";")[:2]]
        for cell in filter(None, row[5:]):
            with_labels = [float(part.split()[0]) for part in cell.split(";")[:2]]
            changes.append((row[1] not in {"1", "2"}, *np.divide(with_labels, without)))
    enough, topics, means = (np.array(each) for each in zip(*changes, strict=True))
    enough = enough.astype(bool)
    assert (topics[enough] < 1).all()
    ends = [f"{end(topics[enough]):.2f}".removeprefix("0") for end in (min, max)]
    assert f"in all of {enough.sum()} settings" in page
    assert "to {} to {} of that without labels".format(*ends) in page
    assert f"it raised it in {(topics[~enough] > 1).sum()} of {(~enough).sum()}" in page
    assert f"over topics fell in {(means[enough] < 1).sum()} of the {enough.sum()}" in page
