"""Texts of stages, and pipelines of stages."""

import pickle

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest

import vbterrier
from vbterrier.errors import DegenerateWarning
from vbterrier.frames.id_spaces import NIL
from vbterrier.intents.calibrate import METHODS, Calibrate
from vbterrier.intents.candidates import CandidateIntents
from vbterrier.intents.constraints import ParseConstraints, parse_query
from vbterrier.intents.dedup import Dedup, MiniLM
from vbterrier.intents.relax import RelaxConstraints
from vbterrier.intents.truncation import Truncate

I = ["qid", "query", "entity_id", "prob", "score", "name", "mention", "source"]


def test_the_text_of_a_stage_has_its_arguments(people):
    for text in ("ParseConstraints(names=('state',))", "Calibrate('platt')", "Truncate(cutoff=3, mass=0.9)", "Dedup()"):
        assert repr(eval(text)) == text
    assert repr(CandidateIntents(people, nil=0.1, cutoff=3)).endswith(", cutoff=3, nil=0.1)")


@pytest.mark.parametrize(
    ("make", "takes", "makes"),
    [
        (lambda kb: CandidateIntents(kb, nil=0.1, cutoff=3), ["qid", "query"], I),
        (lambda _: Calibrate(), ["qid", "docno", "score", "rank"], ["qid", "entity_id", "score", "rank", "prob"]),
        (lambda _: Calibrate("platt"), I, I),
        (lambda kb: RelaxConstraints(kb, parser=parse_query, strict=True, unknown=0.5), I, [*I, "delta", "violations"]),
        (lambda kb: Dedup(kb=kb, aliases={"a": "b"}, embedder=MiniLM(), similarity=0.9), I, [*I, "merged"]),
    ],
)
def test_parameters_determine_the_columns_of_an_empty_result(make, takes, makes, people):
    """Further parameters of the stages of tests/hosts/test_stage_contracts.py."""
    stage = make(people)
    assert any(set(columns) <= set(takes) for columns in pt.inspect.transformer_inputs(stage))
    assert pt.inspect.transformer_outputs(stage, takes) == makes


@pytest.mark.parametrize("different", [{"cutoff": 2}, {"cutoff": 3, "mass": 0.9}, {"threshold": 0.5}])
def test_other_parameters_are_another_stage(different):
    assert Truncate(cutoff=3) != Truncate(**different)
    assert Truncate(cutoff=3) == Truncate(cutoff=3)


def test_long_texts_are_cut():
    stage = Dedup(aliases={f"entity number {i}": "x" for i in range(99)})
    assert repr(stage) == "Dedup(aliases=99 entries)"
    address = "https://linker.example.org/of/a/rather/long/name"
    for shown, short in [
        (f"Client('{address[:30]}', token=***, timeout=5, deadline=60)", f"Client('{address[:30]}', token=***, ...)"),
        (f"Client('{address}', token=***, timeout=5)", "Client(...)"),
        (f"Linker(Base('{'x' * 40}', how='exact'), depth=5)", "Linker(...)"),
    ]:
        source = type("Named", (), {"link": len, "id_space": "k", "__repr__": lambda _, shown=shown: shown})()
        assert repr(CandidateIntents(source)) == f"CandidateIntents({short})"
    assert repr(RelaxConstraints(KnowledgeBaseOfALongName())) == f"RelaxConstraints({'KnowledgeBase' * 4}Knowl...)"


class KnowledgeBaseOfALongName:
    def attributes(self, ids):
        raise NotImplementedError

    def attribute_names(self):
        raise NotImplementedError

    def __repr__(self):
        return "KnowledgeBase" * 9


TOPICS = pd.DataFrame(
    {
        "qid": ["1", "2", "3", "4"],
        "query": ["John Smith state:OH^2 born:1735", "john smith chamber:sen", "Mercury", "JOHN SMITH"],
        "year": [1, 2, 3, 4],
    }
)


def full(kb, **options):
    return (
        ParseConstraints()
        >> CandidateIntents(kb, **options)
        >> Calibrate("prior", temperature=2)
        >> RelaxConstraints(kb, unknown="violated")
        >> Dedup(kb=kb)
        >> Truncate(threshold=0.05)
    )


def test_from_topics_to_intents(people):
    made = full(people)(TOPICS)
    assert {"qid", "query", "query_0", "year", "constraints", "delta", "violations", "merged"} <= set(made.columns)
    first = made[made["qid"] == "1"].set_index("entity_id")["prob"]
    raised = np.sqrt([0.5, 0.3, 0.2]) * np.exp([0.0, -3.0, -3.0])
    expected = raised / raised.sum()
    assert (expected < 0.05).tolist() == [False, True, True]
    assert first.to_dict() == {"A": 1.0}
    assert made[made["qid"] == "3"]["entity_id"].tolist() == ["M1", "M2"], "homonyms of the knowledge base"


@pytest.mark.parametrize("options", [{}, {"nil": 0.1}])
@pytest.mark.slow
def test_batches_change_nothing(people, probs, options):
    pipeline = full(people, **options)
    together = pipeline(TOPICS)
    batches = pd.concat([pipeline(TOPICS[i : i + 1]) for i in range(len(TOPICS))])
    backwards = pipeline(TOPICS[::-1])
    assert probs(batches) == probs(backwards) == probs(together)
    assert together["prob"].groupby(together["qid"]).sum().to_numpy() == pytest.approx(1)


def test_nil_comes_through_all_stages_as_it_was(people):
    made = full(people, nil=0.125)(TOPICS)
    nil = made[made["entity_id"] == NIL]
    assert nil["qid"].tolist() == ["1", "2", "3", "4"]
    assert nil["prob"].tolist() == pytest.approx([0.125] * 4)
    plain = full(people)(TOPICS).set_index(["qid", "entity_id"])["prob"] * 0.875
    rest = made[made["entity_id"] != NIL].set_index(["qid", "entity_id"])["prob"]
    assert rest.to_dict() == pytest.approx(plain.to_dict())


def test_a_pipeline_over_nothing_and_over_strangers(people):
    assert not len(full(people)(TOPICS[:0]))
    with pytest.warns(DegenerateWarning, match=r"1 query \('9'\) without candidates"):
        made = full(people)(pd.DataFrame({"qid": ["9"], "query": ["nobody"]}))
    assert made[["qid", "entity_id", "prob"]].values.tolist() == [["9", "NIL", 1.0]]


def test_pipelines_are_pickled(people):
    pipeline = full(people)
    again = pickle.loads(pickle.dumps(pipeline))
    assert again == pipeline
    pd.testing.assert_frame_equal(again(TOPICS), pipeline(TOPICS))


def test_intents_of_a_pipeline_serve_an_experiment(people):
    intents = full(people, nil=0.1)(TOPICS)
    entities = CandidateIntents(people)(ParseConstraints()(TOPICS)).rename(columns={"entity_id": "docno"})
    run = entities[["qid", "docno", "score"]].assign(entity_id=entities["docno"])
    system = pt.Transformer.from_df(run.assign(rank=0))
    measures = [vbterrier.ES(nil=NIL) @ 10, vbterrier.ES @ 10]
    table = pt.Experiment([system], TOPICS, intents, measures, names=["all"], batch_size=2)
    assert table[str(measures[0])].tolist() == pytest.approx([0.9])
    assert table[str(measures[1])].tolist() == pytest.approx([0.9])


@pytest.mark.parametrize("method", [name for name in METHODS if name not in {"temperature", "platt", "isotonic"}])
def test_candidates_calibrated_again_stay_candidates(people, method):
    made = (CandidateIntents(people) >> Calibrate(method))(TOPICS[2:])
    assert made.columns.tolist() == [*I, "year"]
    assert made.groupby("qid")["prob"].sum().to_numpy() == pytest.approx(1)


@pytest.mark.nightly
def test_relaxation_on_senators_of_one_name(shared_data, tmp_path):
    """One attribute of three is wrong: filters lose the person, relaxation does not."""
    from vbterrier.linking.kb.files import kb_from_file

    source = shared_data / "kb_us_congress" / "entities.jsonl.gz"
    kb = kb_from_file(tmp_path / "congress.kb", source, id_space="bioguide")
    topics = pd.DataFrame({"qid": ["1"], "query": ["William Smith state:SC chamber:sen born:1700"]})
    intents = (ParseConstraints() >> CandidateIntents(kb))(topics)
    assert len(intents) == 15
    relaxed = RelaxConstraints(kb, unknown="violated")(intents)
    truth = kb.attributes(relaxed["entity_id"].tolist())
    has = [set(truth[truth["value"] == value]["entity_id"]) for value in ("SC", "sen")]
    right = has[0] & has[1]
    assert right
    assert relaxed[relaxed["entity_id"].isin(right)]["delta"].tolist() == [1.0] * len(right)
    assert relaxed["prob"].max() == relaxed[relaxed["entity_id"].isin(right)]["prob"].min(), "first, or tied"
    with pytest.warns(DegenerateWarning, match="without a candidate that satisfies all constraints"):
        assert not len(RelaxConstraints(kb, unknown="violated", strict=True)(intents))
