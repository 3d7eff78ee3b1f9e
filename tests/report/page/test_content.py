import html
import itertools
import re

import numpy as np
import pandas as pd
import pytest

import vbterrier
from vbterrier.frames.ranking import Run
from vbterrier.report.page import content
from vbterrier.report.page.content import HEIGHT_DIGITS, SNIPPET, script
from vbterrier.report.page.evaluated import ReportContent
from vbterrier.settings import Data, Inference
from vbterrier.unjudged.pool import Judgments

# Half of the documents of a run are unjudged.
pytestmark = pytest.mark.filterwarnings("ignore:.*can be wrong by more than:vbterrier.errors.DegenerateWarning")

NAMES = ["lexical", "dense", "words"]
MEASURES = ["ENDCG@10", "nDCG@10", "Unjudged@10", "ES@10", "VB@10"]


def test_values_are_those_of_score(demo_page, demo_scores):
    _, _, data = demo_page
    assert data["measures"] == MEASURES
    assert data["systems"] == NAMES
    assert data["topics"] == list(demo_scores.values["qid"].unique())
    for row in demo_scores.values.itertuples(index=False):
        places = (data[key].index(one) for key, one in (("measures", row.measure), ("systems", row.name)))
        measure, system = places
        shown = data["values"][measure][system][data["topics"].index(row.qid)]
        assert shown == pytest.approx(row.value, abs=5e-6), row


PAIR = re.compile(
    r'<th scope="row"><bdi>(\w+)</bdi></th>\s*<td><bdi>(\w+)</bdi></td>\s*<td class="number">(−?[\d.]+)</td>.*?'
    r'<td class="number">(\d+)/(\d+)/(\d+)</td>',
    re.DOTALL,
)


def shown_pairs(text):
    """The pairs in the tables of a page: the names, the difference, and topics won, lost and tied by the first."""
    return [(a, b, float(diff.replace("−", "-")), *map(int, won)) for a, b, diff, *won in PAIR.findall(text)]


def test_the_difference_beside_two_names_is_that_of_their_means(written):
    rng = np.random.default_rng(4)
    rows = [(f"q{topic}", f"d{n}", n % 2) for topic in range(8) for n in range(6)]
    qrels = pd.DataFrame(rows, columns=["qid", "docno", "label"])
    runs = {name: qrels[["qid", "docno"]].assign(score=rng.random(len(qrels))) for name in "abcd"}
    _, text, data = written(runs, qrels, ["nDCG@5"])
    values = dict(zip(data["systems"], np.array(data["values"][0]), strict=True))
    result = shown_pairs(text)
    assert sorted(tuple(sorted(pair[:2])) for pair in result) == list(itertools.combinations("abcd", 2))
    for a, b, diff, won, lost, tied in result:
        assert diff == pytest.approx((values[a] - values[b]).mean(), abs=6e-5)
        assert (won, lost, tied) == tuple((np.sign(values[a] - values[b]) == sign).sum() for sign in (1, -1, 0))


def test_pairs_are_those_of_compare(demo_page, demo_scores):
    _, text, _ = demo_page
    comparison = vbterrier.compare(
        demo_scores, measures=["ENDCG@10", "nDCG@10", "ES@10", "VB@10"], inference=Inference(n_resamples=200, seed=3)
    )
    for row in comparison.pairs.itertuples(index=False):
        assert f'<td class="number">{row.diff:.4f}</td>'.replace("-", "−") in text, row
        assert f'<td class="number ends">{row.low:.4f} to {row.high:.4f}</td>'.replace("-", "−") in text, row
        assert f'<td class="number">{row.p_adjusted:.4f}</td>' in text, row
    assert (comparison.pairs["p_adjusted"] > comparison.pairs["p_value"]).any()


def test_pairs_are_marked_as_significant_by_their_corrected_p_value_and_drawn_on_one_scale():
    rng = np.random.default_rng(1)
    values = {"a": rng.random(12) / 10, "b": rng.random(12) / 10, "c": 0.6 + rng.random(12) / 10}
    rows = [(name, f"q{topic}", "AP", value) for name, scores in values.items() for topic, value in enumerate(scores)]
    comparison = vbterrier.compare(pd.DataFrame(rows, columns=["name", "qid", "measure", "value"]))
    made = content._pairs_table(comparison, "AP", 100)
    shown = made.rows
    # The axis above the bars has a number at the dotted line.
    assert re.findall(r'<text x="([\d.]+)"[^>]*>0<', made.columns[1]) == re.findall(
        r'd="M([\d.]+) 0V14"', shown[0]["bar"]
    )
    assert [[row["a"], row["b"]] for row in shown] == comparison.pairs[["name_a", "name_b"]].to_numpy().tolist()
    assert {frozenset(row["a"] + row["b"]) for row in shown if row["significant"]} == {frozenset("ac"), frozenset("bc")}
    # Differences are as far from the rule as they are from 0, on the pixels 4 to 116 of the scale of all.
    low, high = min(comparison.pairs["low"].min(), 0.0), max(comparison.pairs["high"].max(), 0.0)
    for row, pair in zip(shown, comparison.pairs.itertuples(), strict=True):
        (rule,) = re.findall(r'd="M([\d.]+) 0V14"', row["bar"])
        ((left, right),) = re.findall(r'd="M([\d.]+) 7H([\d.]+)M', row["bar"])
        (mean,) = re.findall(r'<circle cx="([\d.]+)"', row["bar"])
        for place, value in ((rule, 0.0), (left, pair.low), (right, pair.high), (mean, pair.diff)):
            assert float(place) == pytest.approx(4 + 112 * (value - low) / (high - low), abs=0.06)


def rankings_of(data, topic, system):
    """Documents of a ranking with their grades (-1: unjudged) and probabilities of relevance (-1: none), in order."""
    rankings = data["rankings"]
    result = rankings["topics"][data["topics"].index(topic)]
    columns = (result["ids"], result["grades"], result.get("chances", [-1] * len(result["ids"])))
    rows = [tuple(column[place] for column in columns) for place in result["ranks"][data["systems"].index(system)]]
    return [(rankings["ids"][docno], grade, chance) for docno, grade, chance in rows]


def test_rankings_with_grades_and_probabilities_of_relevance(demo_page, demo_files):
    _, _, data = demo_page
    qrels = vbterrier.read_qrels(demo_files / "qrels.txt")
    grades = {(qid, docno): label for qid, docno, label in qrels[["qid", "docno", "label"]].itertuples(index=False)}
    runs = {name: vbterrier.read_run(demo_files / f"{name}.run") for name in NAMES}
    model = vbterrier.unjudged.fit(runs, qrels).to_frame()
    relevant = model.set_index(["qid", "docno"])["prob"].to_dict()
    assert data["rankings"]["depth"] == 10
    n_chances = 0
    for name, run in runs.items():
        for topic, rows in vbterrier.frames.ranked(run, 10).groupby("qid"):
            shown = rankings_of(data, topic, name)
            assert [docno for docno, _, _ in shown] == rows["docno"].tolist()
            assert [grade for _, grade, _ in shown] == [grades.get((topic, docno), -1) for docno in rows["docno"]]
            for docno, grade, chance in shown:
                expected = -1 if grade >= 0 else 100 * relevant[topic, docno]
                assert chance == pytest.approx(expected, abs=0.51), (name, topic, docno)
                n_chances += chance >= 0
            n_unjudged = sum(grade < 0 for _, grade, _ in shown)
            assert data["unjudged"][data["systems"].index(name)][data["topics"].index(topic)] == n_unjudged
    assert n_chances > 20


def test_rankings_with_labels_of_machines_and_texts(written, small):
    runs, qrels = small
    labels = pd.DataFrame({"qid": ["q0", "q0", "q1"], "docno": ["good", "new", "bad"], "label": [2, 0.5, 0]})
    texts = pd.DataFrame({"docno": ["good", "other"], "text": [" a  text\nof two lines " + "x" * 200, "unused"]})
    _, text, data = written(runs, qrels, "nDCG@10", data=Data(labels={"llm": labels}, documents=texts))
    rankings = data["rankings"]
    assert rankings["labellers"] == ["llm"]
    assert "chances" not in rankings["topics"][0]
    first = rankings["topics"][0]
    by_docno = {rankings["ids"][one]: label for one, label in zip(first["ids"], first["label0"], strict=True)}
    assert by_docno == {"good": 2, "bad": None, "new": 0.5}
    shown = dict(zip(rankings["ids"], rankings["texts"], strict=True))
    assert shown["good"].startswith("a text of two lines xxx")
    assert len(shown["good"]) == SNIPPET
    assert shown["new"] == ""
    assert "unused" not in text
    assert not rankings["are_texts_cut"]


def test_rankings_of_runs_that_are_too_large_are_cut_at_a_rank(written, small, monkeypatch):
    runs, qrels = small
    monkeypatch.setattr("vbterrier.report.page.content.MOST_SIGNS", 400)
    _, _, data = written(runs, qrels)
    assert data["rankings"]["depth"] == 1
    assert rankings_of(data, "q3", "first") == [("good", 1, -1)]
    assert [docno for docno, _, _ in rankings_of(data, "q3", "second")] == ["new"]
    monkeypatch.setattr("vbterrier.report.page.content.MOST_TEXT", 10)
    texts = pd.DataFrame({"docno": ["good", "new", "bad"], "text": ["ten signs.", "more", "less"]})
    _, _, data = written(runs, qrels, data=Data(documents=texts))
    assert data["rankings"]["texts"] == ["ten signs.", ""]
    assert data["rankings"]["are_texts_cut"]


def test_topics_without_documents_have_empty_rankings(written, small):
    runs, qrels = small
    part = runs["second"][runs["second"]["qid"].isin(["q7", "q2"])]
    with pytest.warns(vbterrier.errors.DegenerateWarning):
        _, _, data = written({"first": runs["first"], "part": part}, qrels, "nDCG@10", data=Data(on_topics="all"))
    assert [len(one["ranks"][1]) for one in data["rankings"]["topics"]] == [2 * (n in (2, 7)) for n in range(10)]
    assert rankings_of(data, "q7", "part") == [("new", -1, -1), ("good", 1, -1)]


def test_distributions_have_the_shape_of_their_atoms(demo_page, demo_files):
    _, _, data = demo_page
    distributions = data["distributions"]
    runs = {name: vbterrier.read_run(demo_files / f"{name}.run") for name in data["systems"]}
    qrels = vbterrier.read_qrels(demo_files / "qrels.txt")
    expected = vbterrier.unjudged.fit(runs, qrels).distribution(Judgments(qrels).judge(Run(runs["dense"]), 10))
    low, high = expected.interval(distributions["level"])
    system, some = data["systems"].index("dense"), 0
    for place, topic in enumerate(data["topics"]):
        at = expected.topics.index(topic)
        shape = distributions["shapes"][system][place]
        if not expected.n_unjudged[at] and low[at] == high[at]:
            assert (shape, distributions["low"][system][place]) == ("", None)
            continue
        some += 1
        values, probs = expected.atoms(topic)
        share = np.histogram(values, bins=distributions["bars"], range=(0, 1), weights=probs)[0]
        heights = np.array([HEIGHT_DIGITS.index(sign) for sign in shape]) / (len(HEIGHT_DIGITS) - 1)
        assert heights == pytest.approx(share / share.max(), abs=1 / (len(HEIGHT_DIGITS) - 1) + 1e-9)
        ends = distributions["low"][system][place], distributions["high"][system][place]
        assert ends == pytest.approx((low[at], high[at]), abs=5e-6)
    assert some > 5


def test_intents_with_their_probabilities_and_the_ranks_that_cover_them(demo_page, demo_files):
    _, _, data = demo_page
    intents, tags = vbterrier.read_intents(demo_files / "intents.tsv"), vbterrier.read_tags(demo_files / "tags.tsv")
    about = tags.groupby("entity_id")["docno"].agg(set)
    for place, topic in enumerate(data["topics"]):
        shown = data["intents"]["topics"][place]
        rows = intents[intents["qid"] == topic].sort_values("prob", ascending=False, kind="stable")
        assert shown["names"] == rows["entity_id"].tolist()
        assert shown["prob"] == pytest.approx(rows["prob"].tolist(), abs=1e-5)
        for system, name in enumerate(data["systems"]):
            run = vbterrier.frames.ranked(vbterrier.read_run(demo_files / f"{name}.run"), 10)
            run = run[run["qid"] == topic]
            ranks = [
                ",".join(str(r + 1) for r, d in zip(run["rank"], run["docno"], strict=True) if d in about.get(e, ()))
                for e in shown["names"]
            ]
            assert shown["ranks"][system].split(";") == ranks


DIVERSITY = pd.DataFrame({"qid": [*"11122"], "iteration": [*"12212"], "docno": [*"abaac"], "label": 1})
DIVERSE = pd.DataFrame({"qid": [*"1122"], "docno": ["b", "x", "a", "y"], "score": [2.0, 1.0] * 2})


def test_diversity_judgments_have_intents_and_no_bootstrapped_scores(written):
    run, qrels = DIVERSE, DIVERSITY
    with pytest.warns(vbterrier.errors.DegenerateWarning):
        page, _, data = written(
            {"one": run, "other": run.assign(score=-run["score"])}, qrels, inference=Inference(test="randomisation")
        )
    pytest.importorskip("pyndeval")
    assert data["measures"] == ["alpha_nDCG@10", "ERR_IA@10", "ES@10", "VB@10"]
    assert page.verdict[0].startswith("By alpha_nDCG@10, ")
    # Nobody gave tags, and both systems retrieve the same documents in reverse order.
    assert "Tags" not in [caveat.about for caveat in page.caveats]
    assert data["rankings"]["topics"][0]["ranks"] == [[0, 1], [1, 0]]
    assert data["intents"]["topics"][0] == {"names": ["1", "2"], "prob": [0.5, 0.5], "ranks": [";1", ";2"]}
    assert data["unjudged"] == [[1, 1], [1, 1]]
    assert "distributions" not in data


def test_diversity_judgments_without_pyndeval(written, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    _, _, data = written({"one": DIVERSE}, DIVERSITY)
    assert data["measures"] == ["ES@10", "VB@10"]


def test_intents_are_named(written):
    judged = [(qid, s, d, int(d in "ac")) for qid in "12" for s in "12" for d in "abc"]
    qrels = pd.DataFrame(judged, columns=["qid", "iteration", "docno", "label"])
    run = pd.DataFrame({"qid": [*"1122"], "docno": ["b", "c", "a", "c"], "score": [2.0, 1.0] * 2})
    names = ["Find the planet.", "Find the god.", "Find the river.", None]
    subtopics = pd.DataFrame({"qid": [*"1122"], "entity_id": [*"1212"], "name": names})
    _, _, data = written({"one": run}, qrels, "ES@10", data=Data(subtopics=subtopics))
    assert [topic["names"] for topic in data["intents"]["topics"]] == [names[:2], [names[2], "2"]]
    intents = subtopics.assign(prob=0.5)
    tags = pd.DataFrame({"docno": ["a"], "entity_id": ["1"]})
    page, _, data = written({"one": run}, None, "ES@10", content=ReportContent(intents=intents, tags=tags))
    assert [topic["names"] for topic in data["intents"]["topics"]] == [names[:2], [names[2], "2"]]
    assert "Tags" in [caveat.about for caveat in page.caveats]


def test_systems_have_the_given_names(written, small):
    runs, qrels = small
    titles = {"first": "Our system", "second": "BM25"}
    page, text, data = written(
        runs,
        qrels,
        "nDCG@10",
        content=ReportContent(names=titles),
        baseline="second",
        inference=Inference(test="randomisation"),
    )
    assert data["systems"] == ["Our system", "BM25"]
    assert page.verdict[0].startswith("By nDCG@10, Our system scores higher than BM25")
    assert ">first<" not in text
    assert "baseline BM25" in text
    for names, message in (
        ({"frist": "a"}, "'frist' is no run.*Did you mean first"),
        ({"first": "second"}, "'second'"),
    ):
        with pytest.raises(vbterrier.errors.ParameterError, match=message):
            written(runs, qrels, "nDCG@10", content=ReportContent(names=names))


def test_entity_runs_on_links(written):
    links = pd.DataFrame({"qid": np.repeat([*"123456"], 4), "docno": ["d1", "d2", "d3", "d4"] * 6, "weight": 1.0})
    links["entity_id"] = ["Paris", "Texas", "Rome", "Texas"] * 6
    links["label"], links["rank"] = [1, 0, 1, 0] * 6, [0, 1, 2, 3] * 6
    good = pd.DataFrame({"qid": np.repeat([*"123456"], 2), "docno": ["Paris", "Rome"] * 6, "score": [2.0, 1.0] * 6})
    runs = {"good": good, "half": good[good["docno"] == "Paris"]}
    # OER is the same in all topics.
    with pytest.warns(vbterrier.errors.DegenerateWarning, match="the ratio is infinite|intervals are withheld"):
        page, text, data = written(runs, content=ReportContent(links=links), inference=Inference(test="randomisation"))
    assert data["measures"] == ["RelCov@20", "NonRelCov@20"]
    assert data["values"] == [[[1] * 6, [0.5] * 6], [[0] * 6] * 2]
    assert page.verdict[0].startswith("By RelCov@20, good scores higher than half: 1.000 against 0.500")
    assert 'DiscRatio@20 <span class="aside">ratio of means</span>' in text
    reach = next(one for one in page.caveats if one.about == "The linked pool")
    # No document is unjudged or without entities.
    assert reach.text.startswith("Of 24 documents")
    assert not reach.serious
    qrels = pd.DataFrame({"qid": [*"123456"], "docno": "d1", "label": 1})
    with pytest.warns(vbterrier.errors.DegenerateWarning, match="the ratio is infinite|intervals are withheld"):
        _, _, data = written(runs, qrels, "RelCov@20", content=ReportContent(links=links))
    assert data["values"] == [[[1] * 6] * 2]


def test_long_ids_and_lists_are_shortened(written, small):
    runs, qrels = small
    longer = {name: run.replace({"docno": {"new": "n" * 500}}) for name, run in runs.items()}
    many = pd.DataFrame({"qid": "q0", "entity_id": [f"e{number}" for number in range(40)], "prob": 1 / 40})
    rest = pd.DataFrame({"qid": [f"q{n}" for n in range(1, 10)], "entity_id": "e", "prob": 1.0})
    tags = pd.DataFrame({"docno": ["good"], "entity_id": ["e"]})
    topics = pd.DataFrame({"qid": ["q0"], "query": ["q" * 1000]})
    _, _, data = written(
        longer, qrels, content=ReportContent(intents=pd.concat([many, rest]), tags=tags), data=Data(topics=topics)
    )
    assert sorted(map(len, data["rankings"]["ids"])) == [3, 4, 80]
    assert len(data["queries"][0]) == 300
    shown = data["intents"]["topics"][0]
    assert (len(shown["names"]), shown["more"], shown["left"]) == (30, 10, 0.25)


@pytest.mark.slow
def test_of_many_pairs_those_of_the_best_are_shown_and_the_csv_has_all(written, monkeypatch):
    rng = np.random.default_rng(4)
    qids = [f"q{n}" for n in range(8)]
    qrels = pd.DataFrame([(qid, f"d{n}", n % 2) for qid in qids for n in range(6)], columns=["qid", "docno", "label"])
    runs = {name: qrels[["qid", "docno"]].assign(score=rng.random(len(qrels))) for name in "abcd"}
    monkeypatch.setattr(content, "MOST_PAIRS", 5)
    _, text, data = written(runs, qrels, ["nDCG@5"])
    page = html.unescape(text)
    best = re.search(r"By nDCG@5: 3 pairs, those of the best system, (\w); the CSV has all 6\.", page)[1]
    means = {name: np.mean(data["values"][0][place]) for place, name in enumerate(data["systems"])}
    assert best == max(means, key=means.get)
    assert len(shown_pairs(text)) == 3
    assert all(best in pair[:2] for pair in shown_pairs(text))
    rest = [tuple(sorted(row[:2])) for row in data["rest"][0]]
    assert sorted(rest) == list(itertools.combinations(sorted(set("abcd") - {best}), 2))
    for a, b, diff, *_ in data["rest"][0]:
        assert float(diff.replace("−", "-")) == pytest.approx(means[a] - means[b], abs=6e-5)
    # More than fit the page are named with the command that writes them.
    monkeypatch.setattr(content, "MOST_REST", 2)
    _, text, data = written(runs, qrels, ["nDCG@5"])
    assert "`vbterrier compare -m 'nDCG@5' -f csv` has all 6." in html.unescape(text)
    assert "rest" not in data
    # A baseline has few pairs, all of which are shown.
    _, text, data = written(runs, qrels, ["nDCG@5"], baseline="a")
    assert "rest" not in data
    monkeypatch.setattr(content, "MOST_PAIRS", 6)
    assert "those of the best" not in written(runs, qrels, ["nDCG@5"])[1]


def test_json_of_ids_closes_no_script():
    assert "<" not in script({"<": "</script>&"})
    assert "\u2028" not in script({"a": "\u2028\u2029"})
