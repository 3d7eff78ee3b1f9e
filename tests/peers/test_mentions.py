"""Linking over mentions against neleval 3.1.1 and the values that HIPE-scorer stores for its own test pairs."""

import pytest

from vbterrier.linking import mention_report
from vbterrier.settings import Inference

FEW = Inference(n_resamples=2)
# Mentions of both files, written by a random generator, and the values of `neleval evaluate` on them.
GOLD = (
    "d0\t5\t7\tQ1\t1.0\tPER\nd0\t10\t11\tQ2\t1.0\tPER\nd0\t10\t12\tQ1\t1.0\tPER\nd1\t1\t2\tQ1\t1.0\tPER\n"
    "d1\t5\t5\tNIL1\t1.0\tPER\nd1\t6\t6\tQ1\t1.0\tPER\nd1\t7\t7\tNIL1\t1.0\tPER\nd1\t9\t10\tNIL2\t1.0\tPER\n"
)
SYSTEM = (
    "d0\t5\t7\tQ2\t1.0\tPER\nd0\t10\t12\tQ1\t1.0\tPER\nd1\t1\t2\tQ2\t1.0\tPER\nd1\t5\t5\tNIL1\t1.0\tPER\n"
    "d1\t7\t7\tNIL1\t1.0\tPER\nd1\t9\t10\tNIL2\t1.0\tPER\nd1\t40\t44\tQ1\t1.0\tPER\nd1\t50\t52\tNIL9\t1.0\tPER\n"
)
NELEVAL = {
    "Link": (0.25, 0.2, 0.22222222222222224),  # strong_link_match
    "Nil": (0.75, 1.0, 0.8571428571428571),  # strong_nil_match
    "All": (0.5, 0.5, 0.5),  # strong_all_match
    "Span": (0.75, 0.75, 0.75),  # strong_mention_match
}


def test_values_are_those_of_neleval(tmp_path):
    for name, text in (("gold", GOLD), ("system", SYSTEM)):
        (tmp_path / name).write_text(text, encoding="utf-8")
    figures = mention_report({"a": tmp_path / "system"}, tmp_path / "gold", inference=FEW).figures().loc["a"]
    for kind, values in NELEVAL.items():
        assert figures[[f"{kind}{each}" for each in ("P", "R", "F1")]].tolist() == pytest.approx(values, abs=1e-12)


# neleval's clustering measures on the same files, with the filter is_nil for clusters of NIL.
CLUSTERS = {
    ("nil", "B3"): (0.75, 1.0, 0.8571428571428571),  # b_cubed:is_nil
    ("nil", "CEAFm"): (0.75, 1.0, 0.8571428571428571),  # mention_ceaf:is_nil
    ("nil", "CEAFe"): (0.6666666666666666, 1.0, 0.8),  # entity_ceaf:is_nil
    ("nil", "MUC"): (1.0, 1.0, 1.0),  # muc:is_nil
    ("nil", "Pairs"): (1.0, 1.0, 1.0),  # pairwise:is_nil
    ("all", "B3"): (0.6875, 0.53125, 0.5993589743589743),  # b_cubed
    ("all", "CEAFm"): (0.625, 0.625, 0.625),  # mention_ceaf
    ("all", "CEAFe"): (0.5333333333333333, 0.6666666666666666, 0.5925925925925926),  # entity_ceaf
    ("all", "MUC"): (0.6666666666666666, 0.5, 0.5714285714285715),  # muc
    ("all", "Pairs"): (0.6666666666666666, 0.2857142857142857, 0.4),  # pairwise
    ("all", "B3+"): (0.4375, 0.40625, 0.4212962962962963),  # b_cubed_plus
    ("all", "CEAFm+"): (0.5, 0.5, 0.5),  # mention_ceaf_plus
}


def clusters_of(tmp_path, gold, system):
    for name, text in (("gold", gold), ("system", system)):
        (tmp_path / name).write_text(text, encoding="utf-8")
    return mention_report({"a": tmp_path / "system"}, tmp_path / "gold", inference=FEW).clusters


def test_clusters_have_the_values_of_neleval(tmp_path):
    table = clusters_of(tmp_path, GOLD, SYSTEM).set_index(["mentions", "measure"])
    assert set(table.index) == set(CLUSTERS)
    for key, values in CLUSTERS.items():
        assert table.loc[key, ["precision", "recall", "f1"]].tolist() == pytest.approx(values, abs=1e-12), key


def test_clusters_of_nil_are_numbered(tmp_path):
    # Unnumbered NILs of a system are clusters of their own, which neleval joins; those of gold say nothing of clusters.
    apart = clusters_of(tmp_path, GOLD, SYSTEM.replace("NIL1", "NIL")).set_index(["mentions", "measure"])
    assert apart.loc[("nil", "B3")].to_dict() == {"name": "a", "precision": 0.75, "recall": 2 / 3, "f1": 12 / 17}
    assert clusters_of(tmp_path, GOLD.replace("NIL2", "NIL"), SYSTEM).empty
    assert clusters_of(tmp_path, GOLD.replace("NIL", "Q9"), SYSTEM).empty


def hipe(words):
    """A table of HIPE of (number of words, entity) pairs, words without an entity have an empty one."""
    lines = ["TOKEN\tNE-COARSE-LIT\tNEL-LIT\tMISC", "#\thipe2022:document_id\t=\tEXP"]
    for n, entity in words:
        for at in range(n):
            tag = "O" if not entity else "B-pers" if at == 0 else "I-pers"
            lines.append(f"w\t{tag}\t{entity or '_'}\t_")
    return "\n".join(lines) + "\n"


# The mentions of unittest-nel-1 and unittest-nel-2 of HIPE-scorer, and its stored micro F1: strict, and fuzzy
# (ent_type). The prediction of the first pair follows its stored counts: two mentions are equal, and one overlaps.
FIRST = [(6, ""), (4, "NIL"), (3, ""), (1, "Q68120"), (11, ""), (3, "Q70"), (9, "")]
SECOND = [(4, ""), (3, "NIL"), (2, ""), (12, "Q3300415"), (3, "NIL"), (2, "Q172161"), (4, "")]
THIRD = [
    (1, "Q1"),
    (1, "Q1"),
    (2, ""),
    (3, "NIL"),
    (1, ""),
    (4, "Q2"),
    (1, ""),
    (3, "NIL"),
    (2, ""),
    (3, "Q4"),
    (3, "NIL"),
]
THIRD += [(2, "Q5"), (4, "")]
FOURTH = [(1, "Q1"), (1, "Q2"), (1, "NIL")] * 3
PAIRS = {
    "nel-1": (FIRST, [*FIRST[:4], (13, ""), (1, "Q70"), FIRST[6]], 2 / 3, 1.0),
    "nel-2": (SECOND, [*SECOND[:3], (12, "NIL"), *SECOND[4:]], 0.75, 0.75),
    # These two have no stored results: five of 8 and 7, and five of 9 and 9 mentions, by the rules of the scorer.
    "nel-3": (THIRD, [(2, "Q2"), (2, ""), (3, "Q5"), *THIRD[4:]], 2 / 3, 2 / 3),
    "nel-4": (FOURTH, [*FOURTH[:3], *[(1, "Q1")] * 3, *[(1, "NIL")] * 3], 5 / 9, 5 / 9),
}


@pytest.mark.parametrize("pair", PAIRS)
def test_values_are_those_of_the_scorer_of_hipe(tmp_path, pair):
    gold, system, strict, fuzzy = PAIRS[pair]
    for name, words in (("gold", gold), ("system", system)):
        (tmp_path / name).write_text(hipe(words), encoding="utf-8")
    for match, value in (("strong", strict), ("weak", fuzzy)):
        report = mention_report({"a": tmp_path / "system"}, tmp_path / "gold", match=match, inference=FEW)
        assert report.figures().loc["a", "AllF1"] == pytest.approx(value, abs=1e-12)


def table_of_hipe(documents):
    """A table of HIPE of documents of (tag, link) pairs, one a word."""
    lines = ["TOKEN\tNE-COARSE-LIT\tNEL-LIT\tMISC"]
    for docno, words in documents.items():
        lines += [f"# document_id = {docno}", *(f"w\t{tag}\t{link}\t_" for tag, link in words)]
    return "\n".join(lines) + "\n"


def bundle3(links):
    """The words of both documents of bundle3: mentions by their first word, with the links of their words."""
    documents = {}
    for docno, n_words in (("a", 36), ("b", 33)):
        words = [("O", "_")] * n_words
        for start, kind, cells in links[docno]:
            for at, cell in enumerate(cells):
                words[start + at] = ("O" if not kind else f"{'I' if at else 'B'}-{kind}", cell)
        documents[docno] = words
    return table_of_hipe(documents)


NILS = [(3, "loc", ["Q72"]), (7, "org", ["NIL"] * 6), (16, "loc", ["Q9125"]), (20, "pers", ["NIL"] * 10)]
BUNDLE3 = {
    "a": [
        (3, "pers", ["Q313843"] * 3),
        (9, "pers", ["Q571638"] * 11),
        (23, "loc", ["Q403"]),
        (27, "loc", ["Q1435"]),
        (31, "pers", ["Q313843"] * 2),
    ],
    "b": NILS,
}
# A word outside of mentions has a link, a mention has two links in its words, another one none, and one has candidates.
PREDICTED3 = {
    "a": [
        (3, "pers", ["Q313843"] * 3),
        (6, "", ["NIL"]),
        (9, "pers", ["_"] * 3 + ["Q571638"] + ["_"] * 4 + ["Q1"] * 2 + ["_"]),
        (23, "loc", ["_"]),
        (27, "loc", ["Q1435|Q9"]),
        (31, "pers", ["Q313843"] * 2),
    ],
    "b": NILS,
}


@pytest.mark.filterwarnings("ignore::vbterrier.errors.DegenerateWarning")
def test_values_of_bundle3_are_those_of_the_scorer_of_hipe(tmp_path):
    # Stored micro and macro values of precision, recall and F1. The first candidate is the answer (n_best = 1).
    (tmp_path / "gold").write_text(bundle3(BUNDLE3), encoding="utf-8")
    (tmp_path / "system").write_text(bundle3(PREDICTED3), encoding="utf-8")
    stored = {
        ("strong", "micro"): (7 / 10, 7 / 9, 14 / 19),
        ("weak", "micro"): (8 / 10, 8 / 9, 16 / 19),
        ("strong", "macro"): (0.75, 0.8, 0.7727272727272727),
        ("weak", "macro"): (0.8333333333333333, 0.9, 0.8636363636363635),
    }
    for (match, average), values in stored.items():
        options = {"match": match, "average": average, "inference": FEW}
        figures = mention_report({"a": tmp_path / "system"}, tmp_path / "gold", **options).figures().loc["a"]
        assert figures[["AllP", "AllR", "AllF1"]].tolist() == pytest.approx(values, abs=1e-12), (match, average)
    second = bundle3(PREDICTED3).replace("Q1435|Q9", "Q9|Q1435")
    (tmp_path / "system").write_text(second, encoding="utf-8")
    counts = mention_report({"a": tmp_path / "system"}, tmp_path / "gold", inference=FEW).counts
    assert counts.set_index("kind").loc["All", ["gold", "predicted", "right"]].tolist() == [9, 10, 6]


@pytest.mark.filterwarnings("ignore::vbterrier.errors.DegenerateWarning")
def test_gold_mentions_of_hipe_have_the_link_of_their_first_word(tmp_path):
    words = {"d": [("B-pers", "Q1"), ("I-pers", "Q2"), ("O", "_"), ("B-loc", "_"), ("I-loc", "Q3")]}
    for name in ("gold", "system"):
        (tmp_path / name).write_text(table_of_hipe(words), encoding="utf-8")
    options = {"a": tmp_path / "system"}, tmp_path / "gold"
    counts = mention_report(*options, inference=FEW).counts.set_index("kind")
    # As predictions these are the mentions Q1, Q2 and Q3, of a word each.
    assert counts.loc["All", ["gold", "predicted", "right"]].tolist() == [1, 3, 0]
    counts = mention_report(*options, match="weak", inference=FEW).counts.set_index("kind")
    assert counts.loc["All", ["gold", "predicted", "right"]].tolist() == [1, 3, 1]
