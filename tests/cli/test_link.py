"""``vbterrier link``: tables, differences, errors."""

import json
from pathlib import Path

import pandas as pd
import pytest

from vbterrier.linking.quality import linking_report
from vbterrier.settings import Inference

GOLD = pd.DataFrame({"qid": ["q1", "q2", "q3", "q4", "q5"], "entity_id": ["Q90", "NIL", "Q142", "Q90", "NIL"]})


@pytest.fixture
def made(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    GOLD.to_csv("gold.tsv", sep="\t", index=False)
    GOLD.assign(entity_id=["Q90", "Q1", "Q142", "Q90", "NIL"]).to_csv("one.tsv", sep="\t", index=False)
    GOLD.assign(entity_id=["Q1", "NIL", "NIL", "Q90", "NIL"]).to_csv("other.tsv", sep="\t", index=False)


def test_figures_of_each_system(made, command):
    code, out, err = command("link", "one.tsv", "other.tsv", "--gold", "gold.tsv", "--resamples", "100")
    assert code == 0, err
    assert "Entity linking over 5 queries." in out
    lines = [
        line.split() for line in out.splitlines() if line.strip()[:3] in {"one", "oth"} and line.split()[1][-1] in "PR1"
    ]
    expected = linking_report(
        {"one.tsv": "one.tsv", "other.tsv": "other.tsv"}, "gold.tsv", inference=Inference(n_resamples=100)
    ).intervals
    assert [line[2] for line in lines] == [f"{value:.4f}" for value in expected["value"]]


def test_differences_in_json_and_in_a_file(made, command):
    code, out, _ = command("link", "one.tsv", "other.tsv", "-g", "gold.tsv", "--pairs", "--format", "json")
    assert code == 0
    rows = {row["measure"]: row for row in json.loads(out)}
    # Of the three queries that one system alone answers correctly, one has two and the other one.
    assert (rows["LinkingF1"]["wins"], rows["LinkingF1"]["losses"], rows["LinkingF1"]["ties"]) == (2, 1, 2)
    assert rows["LinkingR"]["p_value"] == 1.0
    code, _, _ = command("link", "one.tsv", "other.tsv", "-g", "gold.tsv", "--pairs", "-o", "pairs.md")
    assert code == 0
    text = Path("pairs.md").read_text(encoding="utf-8")
    assert "| one | other | LinkingR | 0.2000 |" in text
    assert "p: swaps of answers (all)" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["one.tsv", "-g", "gold.tsv", "--pairs"], "--pairs: wanted at least two systems, found one"),
        (["one.tsv", "-g", "missing.tsv"], "missing.tsv"),
    ],
)
def test_bad_input_is_one_line(made, command, arguments, message):
    code, out, err = command("link", *arguments)
    assert (code != 0, out) == (True, "")
    assert message in err
    assert len(err.strip().splitlines()) == 1


def test_answers_and_gold_are_read_in_any_layout(made, command):
    rows = [{"qid": qid, "entity_id": entity} for qid, entity in GOLD.to_numpy().tolist()]
    Path("lines.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    code, out, err = command("link", "lines.jsonl", "-g", "gold.tsv", "--format", "json", "--resamples", "10")
    assert code == 0, err
    assert {row["value"] for row in json.loads(out)} == {1.0}
    Path("gold.tab").write_text("d1\t0\t4\tQ90\nd1\t6\t9\tQ7\nd2\t0\t3\tNIL01\n", encoding="utf-8")
    Path("rel.json").write_text('{"d1": [[0, 5, "Paris", "Q90", 0.9, 0.9, "LOC"]], "d2": []}', encoding="utf-8")
    code, out, err = command(
        "link", "rel.json", "-g", "gold.tab", "--unanswered", "nil", "--format", "json", "--resamples", "10"
    )
    assert code == 0, err
    values = {row["measure"]: row["value"] for row in json.loads(out)}
    assert (values["LinkP"], values["LinkR"], values["NilP"], values["NilR"]) == (1.0, 0.5, 0.5, 1.0)
    code, out, err = command("score", "rel.json", "-q", "gold.tab", "-m", "LinkR", "--format", "json")
    assert code == 0, err
    assert json.loads(out)[0]["value"] == 0.5


def test_entities_of_several_id_spaces_and_mentions(made, command):
    Path("gold.ttl").write_text(
        "@prefix nif: <http://persistence.uni-leipzig.org/nlp2rdf/ontologies/nif-core#> .\n"
        "@prefix its: <http://www.w3.org/2005/11/its/rdf#> .\n"
        '<d1> nif:isString "Paris in Ohio" .\n'
        "<d1#char=0,5> nif:referenceContext <d1> ; its:taIdentRef <http://dbpedia.org/resource/Paris>,\n"
        "  <http://www.wikidata.org/entity/Q90> .\n"
        "<d1#char=9,13> nif:referenceContext <d1> ; its:taIdentRef <http://www.wikidata.org/entity/Q1397> .\n",
        encoding="utf-8",
    )
    Path("mine.tab").write_text("d1\t0\t4\tQ90\nd1\t9\t11\tQ1397\nd1\t6\t7\tQ5\n", encoding="utf-8")
    options = ["link", "mine.tab", "-g", "gold.ttl", "--format", "json", "--resamples", "10"]
    code, _, err = command(*options)
    assert (code != 0, "choose an id space" in err) == (True, True)
    code, out, err = command(*options, "--ids", "wikidata")
    assert code == 0, err
    assert {row["measure"]: row["value"] for row in json.loads(out)}["LinkR"] == 0.5
    for match, value in (("strong", 2 / 5), ("weak", 4 / 5)):
        code, out, err = command(*options, "--ids", "wikidata", "--match", match)
        assert code == 0, err
        assert {row["measure"]: row["value"] for row in json.loads(out)}["LinkF1"] == pytest.approx(value)
    code, _, err = command(*options, "--ids", "wikidata", "--match", "weak", "--pairs")
    assert (code != 0, "--match: leave out --pairs" in err) == (True, True)
