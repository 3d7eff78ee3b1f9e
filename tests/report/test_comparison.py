"""Reports of comparisons: verdicts, well-formed LaTeX, escaped Markdown."""

import io
import re
from dataclasses import replace

import pandas as pd
import pytest

from vbterrier.errors import DegenerateWarning, ParameterError
from vbterrier.evaluate.comparison import compare
from vbterrier.report.comparison import comparison_report, verdicts
from vbterrier.report.paper import paper_table
from vbterrier.settings import Inference

A = [0.9, 0.8, 0.7, 0.6, 0.8, 0.9, 0.7, 0.8]
FEW = Inference(n_resamples=300, test="randomisation", interval="percentile")
ODD = r"[1] *a*_b & 50% \ {c} ~^ <d> | $e$ #†"


def frame(measure="nDCG@10", **systems):
    parts = [pd.DataFrame({"name": name, "qid": [*"12345678"], "value": of}) for name, of in systems.items()]
    return pd.concat(parts, ignore_index=True).assign(measure=measure)


def less(by, every=1):
    return [value - by * (at % every == 0) for at, value in enumerate(A)]


BEST = "of systems {} significantly over 8 topics: a has the highest mean, 0.775, and"


@pytest.mark.parametrize(
    ("systems", "message"),
    [
        ({"a": A, "b": less(0.1)}, "a scores higher than b: 0.775 against 0.675, a difference of 0.100 (95% interval "),
        (
            {"a": A, "b": less(0.1, 2)},
            "a and b do not differ significantly: 0.775 against 0.725, a difference of 0.050 (",
        ),
        (
            {"a": A, "b": less(0.1, 2), "c": less(0.1)},
            f"1 of 3 pairs {BEST.format('differs')} does not differ significantly from b.",
        ),
        (
            {"a": A, "b": less(0.1), "c": less(0.2)},
            f"3 of 3 pairs {BEST.format('differ')} differs significantly from all others.",
        ),
    ],
)
def test_verdicts(systems, message):
    (verdict,) = verdicts(compare(frame(**systems), inference=FEW))
    assert verdict.startswith(f"By nDCG@10, {message}")


def test_the_verdict_names_the_lowest_mean_if_lower_is_better():
    (verdict,) = verdicts(compare(frame("NonRelCov@5", a=A, b=less(0.1, 2), c=less(0.1)), inference=FEW))
    assert verdict.startswith("By NonRelCov@5 (lower is better), ")
    assert verdict.endswith("c has the lowest mean, 0.675, and does not differ significantly from b.")


def test_verdicts_against_a_baseline_name_each_system_once():
    values = frame(a=A, b=less(0.1), c=less(0.2), d=[one - 0.1 * (at % 2) for at, one in enumerate(less(0.05))])
    both = pd.concat([values, values.assign(measure="AP")])
    message = "against b (0.675, 8 topics): a scores higher; c scores lower; d does not differ significantly from it."
    expected = [f"By nDCG@10, {message}", f"By AP, {message}"]
    assert verdicts(compare(both, baseline="b", inference=FEW)) == expected


def test_long_lists_end_with_their_number():
    values = frame(**{f"s{at:02d}": less(at / 100, 2) for at in range(16)})
    with pytest.warns(DegenerateWarning, match="no difference can be significant"):
        compared = compare(values, baseline="s00", inference=replace(FEW, correction="holm"))
    (verdict,) = verdicts(compared)
    assert "s08 and 7 more do not differ significantly from it." in verdict


def test_a_verdict_says_that_no_difference_can_be_significant():
    # All 2^8 flips give p of at least 2/256, times 120 pairs.
    values = frame(**{f"s{at:02d}": less(at / 100, 2) for at in range(16)})
    with pytest.warns(DegenerateWarning, match="no difference can be significant"):
        (verdict,) = verdicts(compare(values, inference=replace(FEW, correction="holm")))
    assert "this test cannot find a difference between any two of the 16 systems with so few topics" in verdict


@pytest.mark.parametrize("baseline", [None, "x"])
@pytest.mark.parametrize("margin", [None, 0.05])
def test_latex_is_well_formed(baseline, margin):
    values = frame(**{ODD: A, "x": less(0.1), "cut": [0.9] + [0.0] * 7})
    both = pd.concat([values, values.assign(measure="VB(intents='a_b',alpha=1)@10")])
    with pytest.warns(DegenerateWarning, match="cut scores exactly 0"):
        comparison = compare(both, baseline=baseline, inference=replace(FEW, margin=margin))
    text = comparison_report(comparison, "latex")
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
    text = comparison_report(compare(frame(**{ODD: A, "x": less(0.1)}), inference=FEW), "markdown")
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows[:4]} == {7 + (0 - 1)}
    assert all(r"\*a\*" in row and "&lt;d>" in row and r"\|" in row for row in rows if "50%" in row and "[1]" in row)
    assert sum("**0.7750**" in row for row in rows) == 1
    assert r"0.0078\*" in text


def test_names_cannot_steer_terminals_or_end_comments():
    comparison = compare(frame(**{"a\x1b[31m\nnew": A, "x": less(0.1)}), inference=FEW)
    for style in ("table", "latex", "markdown"):
        text = comparison_report(comparison, style)
        assert "\x1b" not in text
        assert not any(line.startswith("new") for line in text.splitlines())


def test_ties_for_the_best_are_all_bold_and_small_p_are_not_0():
    comparison = compare(frame(a=A, b=A), inference=FEW)
    assert comparison_report(comparison, "markdown").count("**0.7750**") == 2
    many = pd.concat([frame(a=A, b=less(0.1)).assign(qid=lambda f, at=at: f["qid"] + f"-{at}") for at in range(5)])
    rng = compare(
        many.assign(value=lambda f: f["value"] + f["qid"].str[0].astype(int) / 100),
        inference=Inference(test="randomisation", n_resamples=200_000),
    )
    assert "5.0e-06*" in comparison_report(rng, "table")


@pytest.mark.parametrize("style", ["table", "latex", "markdown"])
def test_stars_of_flagged_systems_have_a_dagger(style):
    with pytest.warns(DegenerateWarning, match="cut scores exactly 0"):
        comparison = compare(frame(a=A, cut=[0.9] + [0.0] * 7, b=less(0.1)), baseline="a", inference=FEW)
    assert comparison.significant().all()
    star, dagger = {"table": "*†", "markdown": r"\*†", "latex": r"{*}\textdagger{}"}[style], "†"
    rows = [line for line in paper_table(comparison, style).splitlines() if "cut" in line]
    # The mean, the difference, the note; in LaTeX and Markdown the verdict is first, and the note below the means.
    stars = {"table": [True, True, False], "latex": [False, False, True, True]}
    assert [star in row for row in rows] == stars.get(style, [False, True, False, True])
    assert all(dagger in row or r"\textdagger{}" in row for row in rows)


def test_notes_give_test_correction_and_intervals():
    values = frame(a=A, b=less(0.1, 3))
    text = comparison_report(
        compare(values, inference=Inference(test="t", interval="normal", margin=0.2, seed=4)), "table"
    )
    assert "nDCG@10: 8 topics; test: paired t" in text
    assert "intervals: of means, topics (normal); of differences, inverted paired t; seed 4" in text
    assert "differ by 0.2 or more" in text
    assert "resamples" not in text
    assert "* differs" not in text, "no star is explained where there is none"
    starred = comparison_report(compare(frame(a=A, b=less(0.1)), inference=FEW), "table")
    assert "* differs significantly: adjusted p at most 0.05" in starred


def wide(baseline=None, **options):
    """A compact table of three systems and two measures, of which two systems differ by the first one alone."""
    both = pd.concat([frame(a=A, b=less(0.1, 2), c=less(0.1)), frame("AP", a=A, b=A, c=less(0.05, 4))])
    comparison = compare(both, baseline=baseline, inference=replace(FEW, **options))
    return comparison, lambda style, **more: comparison_report(comparison, style, compact=True, **more)


def test_a_compact_table_has_a_row_for_each_system_and_a_column_for_each_measure():
    result, table = wide()
    letters = result.systems.set_index(["measure", "name"])["letters"]
    assert letters["nDCG@10"].nunique() > 1 == letters["AP"].nunique()
    rows = [line.split() for line in table("table").splitlines() if line.startswith("  ")]
    assert rows[0] == ["system", "nDCG@10", "AP"]
    means = result.systems.set_index(["measure", "name"])["value"]
    for name, *cells in rows[1:]:
        assert cells == [
            word for measure in ("nDCG@10", "AP") for word in (f"{means[measure, name]:.3f}", letters[measure, name])
        ]
    assert len(rows) == 4
    assert "bold" not in table("table")
    assert rf"b & 0.725\textsuperscript{{{letters['nDCG@10', 'b']}}}" in table("latex").replace(r"\textbf{", "")


def test_a_compact_table_for_papers_names_systems_as_the_text_does():
    _, table = wide()
    text = table("latex", names={"a": "BM25 & RM3", "c": "c_2"})
    assert re.search(r"^BM25 \\& RM3 & \\textbf{0\.775}\\textsuperscript{a}", text, re.MULTILINE)
    assert r"c\_2 &" in text
    with pytest.raises(ParameterError, match=r"names: no system 'aa', found 'a', 'b', 'c'. Did you mean a\?"):
        table("latex", names={"aa": "BM25"})


def test_a_compact_table_against_a_baseline_has_stars_of_its_tests():
    result, table = wide(baseline="a")
    starred = set(result.pairs.loc[result.significant(), ["name_a", "measure"]].itertuples(index=False, name=None))
    assert starred == {("c", "nDCG@10")}
    starred = next(line.split() for line in table("table").splitlines() if "*" in line)
    assert starred[:3] == ["c", "0.675", "*"]
    assert "* differs significantly from a (sign-flip randomisation" in table("markdown").replace("\\", "")
    none = compare(frame(a=A, b=less(0.1, 2)), baseline="a", inference=FEW)
    assert "No system differs significantly from a" in comparison_report(none, "latex", compact=True)


def test_csv_of_a_compact_table_has_all_digits_and_the_marks():
    result, table = wide()
    again = pd.read_csv(io.StringIO(table("csv")))
    assert list(again.columns) == ["system", "nDCG@10", "nDCG@10 letters", "AP", "AP letters"]
    means = result.systems[result.systems["measure"] == "AP"].set_index("name")["value"]
    assert again.set_index("system")["AP"].to_dict() == pytest.approx(means.to_dict(), abs=1e-15)
