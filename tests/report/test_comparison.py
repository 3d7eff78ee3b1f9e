"""Reports of comparisons: verdicts, well-formed LaTeX, escaped Markdown."""

import re

import pandas as pd
import pytest

from vbterrier.errors import DegenerateWarning
from vbterrier.evaluate.comparison import compare
from vbterrier.report.comparison import comparison_report, verdicts

A = [0.9, 0.8, 0.7, 0.6, 0.8, 0.9, 0.7, 0.8]
FEW = {"n_resamples": 300}
ODD = r"[1] *a*_b & 50% \ {c} ~^ <d> | $e$ #†"


def frame(measure="nDCG@10", **systems):
    parts = [pd.DataFrame({"name": name, "qid": [*"12345678"], "value": of}) for name, of in systems.items()]
    return pd.concat(parts, ignore_index=True).assign(measure=measure)


def less(by, every=1):
    return [value - by * (at % every == 0) for at, value in enumerate(A)]


LEVEL = "at the level 0.05"
BEST = f"of 3 pairs of systems differ significantly {LEVEL}; a has the highest mean,"


@pytest.mark.parametrize(
    ("systems", "said"),
    [
        ({"a": A, "b": less(0.1)}, f"a and b differ significantly {LEVEL}: a scores higher by 0.1000"),
        ({"a": A, "b": less(0.1, 2)}, f"a and b do not differ significantly {LEVEL}"),
        ({"a": A, "b": less(0.1, 2), "c": less(0.1)}, f"1 {BEST} not significantly different: b"),
        ({"a": A, "b": less(0.1), "c": less(0.2)}, f"3 {BEST} significantly different from all"),
    ],
)
def test_verdicts(systems, said):
    assert verdicts(compare(frame(**systems), **FEW)) == [f"nDCG@10: {said}"]


def test_the_verdict_names_the_lowest_mean_if_lower_is_better():
    (said,) = verdicts(compare(frame("NonRelCov@5", a=A, b=less(0.1, 2), c=less(0.1)), **FEW))
    assert said.endswith("c has the lowest mean, not significantly different: b")


def test_verdicts_against_a_baseline_name_each_system_once():
    values = frame(a=A, b=less(0.1), c=less(0.2), d=[one - 0.1 * (at % 2) for at, one in enumerate(less(0.05))])
    both = pd.concat([values, values.assign(measure="AP")])
    said = "against b at the level 0.05: higher: a; lower: c; not significantly different: d"
    assert verdicts(compare(both, baseline="b", **FEW)) == [f"nDCG@10, {said}", f"AP, {said}"]


def test_long_lists_end_with_their_number():
    # All 2^8 flips give p of at least 2/256, times 120 pairs: nothing is significant, and the verdict says so.
    values = frame(**{f"s{at:02d}": less(at / 100, 2) for at in range(16)})
    with pytest.warns(DegenerateWarning, match="no difference can be significant"):
        (said,) = verdicts(compare(values, correction="holm", **FEW))
    assert said.endswith("s11, s12 and 3 more")


@pytest.mark.parametrize("baseline", [None, "x"])
@pytest.mark.parametrize("margin", [None, 0.05])
def test_latex_is_well_formed(baseline, margin):
    values = frame(**{ODD: A, "x": less(0.1), "cut": [0.9] + [0.0] * 7})
    both = pd.concat([values, values.assign(measure="VB(intents='a_b',alpha=1)@10")])
    with pytest.warns(DegenerateWarning, match="cut scores exactly 0"):
        found = compare(both, baseline=baseline, margin=margin, **FEW)
    text = comparison_report(found, "latex")
    plain = re.sub(r"(?m)^%.*$", "", text)
    # Means, and the differences of each measure.
    for part in ("begin{tabular}", "end{tabular}", "toprule", "midrule", "bottomrule"):
        assert plain.count(f"\\{part}") == 3
    depth = 0
    for sign in re.sub(r"\\[{}]", "", plain):
        depth += (sign == "{") - (sign == "}")
        assert depth >= 0
    assert depth == 0
    # No special characters of TeX, and no characters that fonts lack.
    assert not re.search(r"(?<!\\)[#$%_^~<>|†]", plain), plain
    assert plain.isascii()
    for columns, body in re.findall(r"\\begin{tabular}{(\w+)}\n(.*?)\\end{tabular}", plain, re.DOTALL):
        rows = [line for line in body.splitlines() if line.endswith(r"\\")]
        assert {len(re.findall(r"(?<!\\)&", row)) + 1 for row in rows} == {len(columns)}
        # At the start of a row, these are arguments of the line break above.
        assert not any(row.lstrip().startswith(("[", "*")) for row in rows)
    best = re.findall(r"\\textbf{([\d.]*)", plain)
    assert best == ["0.7750", "0.7750"]
    assert plain.count(r"\textdagger{} cut scores exactly 0") == 1


def test_markdown_is_escaped():
    text = comparison_report(compare(frame(**{ODD: A, "x": less(0.1)}), **FEW), "markdown")
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows[:4]} == {7 + (0 - 1)}
    assert all(r"\*a\*" in row and "&lt;d>" in row and r"\|" in row for row in rows if "50%" in row and "[1]" in row)
    assert sum("**0.7750**" in row for row in rows) == 1
    assert r"0.0078\*" in text


def test_names_cannot_steer_terminals_or_end_comments():
    found = compare(frame(**{"a\x1b[31m\nnew": A, "x": less(0.1)}), **FEW)
    for style in ("table", "latex", "markdown"):
        text = comparison_report(found, style)
        assert "\x1b" not in text
        assert not any(line.startswith("new") for line in text.splitlines())


def test_ties_for_the_best_are_all_bold_and_small_p_are_not_0():
    found = compare(frame(a=A, b=A), **FEW)
    assert comparison_report(found, "markdown").count("**0.7750**") == 2
    many = pd.concat([frame(a=A, b=less(0.1)).assign(qid=lambda f, at=at: f["qid"] + f"-{at}") for at in range(5)])
    rng = compare(many.assign(value=lambda f: f["value"] + f["qid"].str[0].astype(int) / 100), n_resamples=200_000)
    assert "5.0e-06*" in comparison_report(rng, "table")


@pytest.mark.parametrize("style", ["table", "latex", "markdown"])
def test_stars_of_flagged_systems_have_a_dagger(style):
    with pytest.warns(DegenerateWarning, match="cut scores exactly 0"):
        found = compare(frame(a=A, cut=[0.9] + [0.0] * 7, b=less(0.1)), baseline="a", **FEW)
    assert found.significant().all()
    star, dagger = {"table": "*†", "markdown": r"\*†", "latex": r"{*}\textdagger{}"}[style], "†"
    rows = [line for line in comparison_report(found, style).splitlines() if "cut" in line]
    # The verdict, the mean, the difference, the note; in LaTeX and Markdown the note is below the means.
    stars = {"table": [False, True, True, False], "latex": [False, False, True, True]}
    assert [star in row for row in rows] == stars.get(style, [False, True, False, True])
    assert all(dagger in row or r"\textdagger{}" in row for row in rows)
