"""Entity linking on real data: Y-ERD's queries, and two linkers on the news of AIDA-CoNLL."""

import json

import ir_measures
import numpy as np
import pandas as pd
import pyterrier as pt
import pytest

from vbterrier.errors import DegenerateWarning, InputError
from vbterrier.evaluate.scores import score
from vbterrier.frames.entity_answers import Gold
from vbterrier.linking.dictionary import DictionaryLinker
from vbterrier.linking.quality import linking_report
from vbterrier.measures import LINKING
from vbterrier.measures.linking import LinkingF1, LinkingR, LinkP, LinkR
from vbterrier.settings import Data, Inference

pytestmark = pytest.mark.slow

KEYS = ["qid", "entity_id"]
ANY = [measure(multiple_answers="any") for measure in LINKING]


@pytest.fixture(scope="module")
def y_erd(shared_data):
    """Y-ERD's gold standard, NIL for queries without a link, with each query's session."""
    rows = pd.read_csv(shared_data / "y_erd_elq" / "Y-ERD.tsv", sep="\t", dtype=str, na_filter=False, quoting=3)
    rows = rows.apply(lambda column: column.str.strip())
    session = rows["qid"].str.rsplit("_", n=1).str[0]
    number = session.drop_duplicates().reset_index(drop=True)
    return rows.assign(train=session.isin(number[number.index % 2 == 0]), entity_id=rows["entity"].replace("", "NIL"))


@pytest.fixture(scope="module")
def second_half(y_erd):
    return y_erd.loc[~y_erd["train"], ["qid", "entity_id"]].reset_index(drop=True)


@pytest.fixture(scope="module")
def system(y_erd):
    """For each query of the second half, the longest name seen in the first half, by its most frequent entity."""
    named = y_erd[y_erd["train"] & (y_erd["mention"] != "")]
    seen = named.groupby(["mention", "entity"]).size().rename("score").reset_index()
    seen["score"] /= seen.groupby("mention")["score"].transform("sum")
    aliases = seen.rename(columns={"mention": "alias", "entity": "entity_id"})
    with pytest.warns(DegenerateWarning, match="aliases are left out or truncated"):
        linker = DictionaryLinker(aliases, id_space="dbpedia", numeric=True)
    queries = y_erd[~y_erd["train"]].drop_duplicates("qid").reset_index(drop=True)
    links = linker.link(queries["query"].tolist()).frame
    links = links.assign(length=links["end"] - links["start"])
    best = links.sort_values(["text", "length", "score"], ascending=[True, False, False]).drop_duplicates("text")
    answers = queries[["qid"]].assign(entity_id="NIL")
    answers.loc[best["text"], "entity_id"] = best["entity_id"].to_numpy()
    return answers


def test_y_erd_has_the_links_that_its_readme_counts(y_erd):
    gold = Gold(y_erd[["qid", "entity_id"]], multiple_answers="any")
    assert (len(gold.topics), int((~gold.is_nil).sum())) == (2398, 1256)


def test_names_of_other_sessions_on_y_erd(second_half, system):
    report = linking_report({"names": system}, second_half, multiple_answers="any")
    right = set(second_half.itertuples(index=False, name=None))
    answered = set(system.itertuples(index=False, name=None))
    links = {pair for pair in answered if pair[1] != "NIL"}
    n_gold = second_half.loc[second_half["entity_id"] != "NIL", "qid"].nunique()
    row = report.figures().loc["names"]
    assert row["LinkP"] == pytest.approx(len(links & right) / len(links))
    assert row["LinkR"] == pytest.approx(len(links & right) / n_gold)
    assert row["LinkingR"] == pytest.approx(len(answered & right) / len(system))
    assert row["LinkP"] > 0.5, "most of what is linked is right, with no context at all"


def test_the_command_agrees_and_other_hosts_refuse_on_y_erd(second_half, system, tmp_path, command):
    expected = linking_report({"names": system}, second_half, multiple_answers="any").figures().loc["names"].to_dict()
    run = system.rename(columns={"entity_id": "docno"}).assign(score=1.0, rank=0)
    theirs = [frame.rename(columns={"qid": "query_id", "docno": "doc_id"}) for frame in (second_half, run)]
    topics = system[["qid"]].assign(query="")
    for measure in ANY:
        with pytest.raises(InputError, match="the value of a topic depends on all topics"):
            ir_measures.calc_aggregate([measure], *theirs)
        with pytest.raises(InputError, match="the value of a topic depends on all topics"):
            pt.Experiment([run], topics, second_half, [measure], names=["names"])
    for frame, name in ((second_half, "gold.tsv"), (system, "system.tsv")):
        frame.to_csv(tmp_path / name, sep="\t", index=False)
    options = [option for measure in ANY for option in ("-m", repr(measure))]
    code, out, err = command("score", tmp_path / "system.tsv", "-q", tmp_path / "gold.tsv", *options, "-f", "json")
    assert (code, err) == (0, "")
    assert [row["value"] for row in json.loads(out)] == pytest.approx(list(expected.values()), abs=1e-12)


@pytest.fixture(scope="module")
def linkers(aida):
    """The gold standard with mentions as queries, and the links of WAT and GENRE; neither says NIL on purpose."""
    links = {
        name: frame.assign(qid=[f"{docno}:{a}-{b}" for docno, a, b in frame[["docno", 1, 2]].to_numpy()])[KEYS]
        for name, frame in aida.links.items()
    }
    return links["gold"], {
        name: links[name][links[name]["qid"].isin(links["gold"]["qid"])] for name in ("wat", "genre")
    }


def test_linkers_on_aida_are_those_of_a_join(linkers):
    gold, systems = linkers
    numbers = linking_report(systems, gold, nil="<NIL>", unanswered="nil").figures()
    for name, system in systems.items():
        both = gold.merge(system, on="qid", how="left", suffixes=("", "_answer"))
        # An entity that has no id at Wikidata is none of the knowledge base.
        answer, entity = (
            both[column].fillna("<NIL>").replace("<NO_MAPPING>", "<NIL>")
            for column in ("entity_id_answer", "entity_id")
        )
        right, link = answer == entity, entity != "<NIL>"
        assert numbers.loc[name, "LinkR"] == pytest.approx(right[link].mean())
        assert numbers.loc[name, "LinkP"] == pytest.approx(right[answer != "<NIL>"].mean())
        assert numbers.loc[name, "NilP"] == pytest.approx(right[answer == "<NIL>"].mean())
        assert numbers.loc[name, "NilR"] == pytest.approx(right[~link].mean())
    assert (numbers.loc["genre"] > numbers.loc["wat"]).drop(["NilR"]).all()


def test_values_on_aida_have_the_intervals_of_the_figures(linkers):
    gold, systems = linkers
    options = {"nil": "<NIL>", "unanswered": "nil"}
    measures = [measure(**options) for measure in (LinkP, LinkR, LinkingR, LinkingF1)]
    result = score(systems, gold, measures, data=Data(on_topics="all"), inference=Inference(interval="normal"))
    report = linking_report(systems, gold, **options).intervals.set_index(["name", "measure"])
    for row in result.intervals.itertuples():
        other = report.loc[(row.name, row.measure.split("(")[0])]
        assert row.value == pytest.approx(other["value"], abs=1e-12)
        ends = np.abs([row.low - other["low"], row.high - other["high"]])
        assert ends.max() < 0.15 * (other["high"] - other["low"])
