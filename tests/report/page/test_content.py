import numpy as np
import pandas as pd
import pytest

import vbterrier
from vbterrier.demo import copy_demo
from vbterrier.report.page.content import STEPS, script

NAMES = ["lexical", "dense", "words"]
MEASURES = ["BNDCG@10", "nDCG@10", "Unjudged@10", "ES@10", "VB@10"]


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    copy_demo(folder)
    return folder


@pytest.fixture(scope="module")
def page_of_demo(demo, written):
    runs = {name: demo / f"{name}.run" for name in NAMES}
    beside = {"intents": demo / "intents.tsv", "tags": demo / "tags.tsv", "topics": demo / "topics.tsv"}
    return written(runs, demo / "qrels.txt", **beside, seed=3)


@pytest.fixture(scope="module")
def scores(demo):
    runs = {name: demo / f"{name}.run" for name in NAMES}
    beside = {"intents": demo / "intents.tsv", "tags": demo / "tags.tsv"}
    return vbterrier.score(runs, demo / "qrels.txt", MEASURES, **beside, n_resamples=200, seed=3)


def test_values_are_those_of_score(page_of_demo, scores):
    _, _, data = page_of_demo
    assert data["measures"] == MEASURES
    assert data["systems"] == NAMES
    assert data["topics"] == list(scores.values["qid"].unique())
    for row in scores.values.itertuples(index=False):
        places = (data[key].index(one) for key, one in (("measures", row.measure), ("systems", row.name)))
        measure, system = places
        shown = data["values"][measure][system][data["topics"].index(row.qid)]
        assert shown == pytest.approx(row.value, abs=5e-6), row


def test_means_intervals_and_pairs_are_those_of_score_and_compare(page_of_demo, scores):
    _, text, _ = page_of_demo
    for row in scores.intervals.itertuples(index=False):
        assert f'<td class="number strong">{row.value:.4f}</td>' in text, row
        assert f"{row.low:.4f} to {row.high:.4f}".replace("-", "−") in text, row
    found = vbterrier.compare(scores, measures=["BNDCG@10", "nDCG@10", "ES@10", "VB@10"], n_resamples=200, seed=3)
    for row in found.pairs.itertuples(index=False):
        assert f'<td class="number strong">{row.diff:.4f}</td>'.replace("-", "−") in text, row
        assert f'<td class="number">{row.p_adjusted:.4f}</td>' in text, row
    assert (found.pairs["p_adjusted"] > found.pairs["p_value"]).any()


def test_unjudged_documents_with_their_ranks(page_of_demo, demo):
    _, _, data = page_of_demo
    qrels = vbterrier.read_qrels(demo / "qrels.txt")
    judged = set(zip(qrels["qid"], qrels["docno"], strict=True))
    for system, name in enumerate(data["systems"]):
        for topic, rows in vbterrier.frames.ranked(vbterrier.read_run(demo / f"{name}.run"), 10).groupby("qid"):
            place = data["topics"].index(topic)
            found = {}
            pairs = zip(data["unjudged"]["documents"][place], data["unjudged"]["ranks"][place], strict=True)
            for docno, at in pairs:
                ranks = dict(zip(at[::2], at[1::2], strict=True))
                if system in ranks:
                    found[docno] = ranks[system]
            wanted = {docno: rank + 1 for docno, rank in zip(rows["docno"], rows["rank"], strict=True)}
            wanted = {docno: rank for docno, rank in wanted.items() if (topic, docno) not in judged}
            assert found == wanted
            assert data["unjudged"]["counts"][system][place] == len(wanted)


def test_distributions_have_the_shape_of_their_atoms(page_of_demo, demo):
    _, _, data = page_of_demo
    distributions = data["distributions"]
    runs = {name: vbterrier.read_run(demo / f"{name}.run") for name in data["systems"]}
    qrels = vbterrier.read_qrels(demo / "qrels.txt")
    vbterrier.unjudged.fit(runs, qrels).register("page of the demo")
    expected = vbterrier.unjudged.bootstrap_distribution(runs["dense"], qrels, model="page of the demo")
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
        heights = np.array([STEPS.index(sign) for sign in shape]) / (len(STEPS) - 1)
        assert heights == pytest.approx(share / share.max(), abs=1 / (len(STEPS) - 1) + 1e-9)
        ends = distributions["low"][system][place], distributions["high"][system][place]
        assert ends == pytest.approx((low[at], high[at]), abs=5e-6)
    assert some > 5


def test_intents_with_their_probabilities_and_the_ranks_that_cover_them(page_of_demo, demo):
    _, _, data = page_of_demo
    intents, tags = vbterrier.read_intents(demo / "intents.tsv"), vbterrier.read_tags(demo / "tags.tsv")
    about = tags.groupby("entity_id")["docno"].agg(set)
    for place, topic in enumerate(data["topics"]):
        shown = data["intents"]["topics"][place]
        own = intents[intents["qid"] == topic].sort_values("prob", ascending=False, kind="stable")
        assert shown["names"] == own["entity_id"].tolist()
        assert shown["prob"] == pytest.approx(own["prob"].tolist(), abs=1e-5)
        for system, name in enumerate(data["systems"]):
            run = vbterrier.frames.ranked(vbterrier.read_run(demo / f"{name}.run"), 10)
            run = run[run["qid"] == topic]
            ranks = [
                ",".join(str(r + 1) for r, d in zip(run["rank"], run["docno"], strict=True) if d in about.get(e, ()))
                for e in shown["names"]
            ]
            assert shown["ranks"][system].split(";") == ranks


def test_diversity_judgments_have_intents_and_no_bootstrapped_scores(written):
    rows = [("1", "1", "a", 1), ("1", "2", "b", 1), ("1", "2", "a", 1), ("2", "1", "a", 1), ("2", "2", "c", 1)]
    qrels = pd.DataFrame(rows, columns=["qid", "iteration", "docno", "label"])
    run = pd.DataFrame({"qid": [*"1122"], "docno": ["b", "x", "a", "y"], "score": [2.0, 1.0] * 2})
    with pytest.warns(vbterrier.DegenerateWarning):
        _, _, data = written({"one": run, "other": run.assign(score=-run["score"])}, qrels)
    assert data["measures"] == ["ES@10", "VB@10"]
    assert data["intents"]["topics"][0] == {"names": ["1", "2"], "prob": [0.5, 0.5], "ranks": [";1", ";2"]}
    assert data["unjudged"]["counts"] == [[1, 1], [1, 1]]
    assert "distributions" not in data


def test_entity_runs_on_links(written):
    links = pd.DataFrame(
        {
            "qid": np.repeat([*"123456"], 4),
            "docno": ["d1", "d2", "d3", "d4"] * 6,
            "entity_id": ["Paris", "Texas", "Rome", "Texas"] * 6,
            "label": [1, 0, 1, 0] * 6,
            "rank": [0, 1, 2, 3] * 6,
            "weight": 1.0,
        }
    )
    good = pd.DataFrame({"qid": np.repeat([*"123456"], 2), "docno": ["Paris", "Rome"] * 6, "score": [2.0, 1.0] * 6})
    runs = {"good": good, "half": good[good["docno"] == "Paris"]}
    # OER is the same in all topics.
    with pytest.warns(vbterrier.DegenerateWarning, match="the ratio is infinite|intervals are withheld"):
        page, text, data = written(runs, links=links)
    assert data["measures"] == ["RelCov@20", "NonRelCov@20"]
    assert data["values"] == [[[1] * 6, [0.5] * 6], [[0] * 6] * 2]
    assert page.verdict[0].startswith("By RelCov@20, good scores higher than half: 1.000 against 0.500")
    assert "DiscRatio@20, ratio of means" in text
    assert "Mean RelCov@20" in text
    assert next(one for one in page.caveats if one.about == "The linked pool").text.startswith("Of 24 documents")
    qrels = pd.DataFrame({"qid": [*"123456"], "docno": "d1", "label": 1})
    with pytest.warns(vbterrier.DegenerateWarning, match="the ratio is infinite|intervals are withheld"):
        _, _, data = written(runs, qrels, "RelCov@20", links=links)
    assert data["values"] == [[[1] * 6] * 2]


def test_long_ids_and_lists_are_shortened(written, small):
    runs, qrels = small
    longer = {name: run.replace({"docno": {"new": "n" * 500}}) for name, run in runs.items()}
    many = pd.DataFrame({"qid": "q0", "entity_id": [f"e{number}" for number in range(40)], "prob": 1 / 40})
    rest = pd.DataFrame({"qid": [f"q{n}" for n in range(1, 10)], "entity_id": "e", "prob": 1.0})
    tags = pd.DataFrame({"docno": ["good"], "entity_id": ["e"]})
    topics = pd.DataFrame({"qid": ["q0"], "query": ["q" * 1000]})
    _, _, data = written(longer, qrels, intents=pd.concat([many, rest]), tags=tags, topics=topics)
    assert len(data["unjudged"]["documents"][0][0]) == 80
    assert len(data["queries"][0]) == 300
    shown = data["intents"]["topics"][0]
    assert (len(shown["names"]), shown["more"], shown["left"]) == (30, 10, 0.25)


def test_json_of_ids_closes_no_script():
    assert "<" not in script({"<": "</script>&\u2028"})
    assert "\u2028" not in script({"a": "\u2028\u2029"})
