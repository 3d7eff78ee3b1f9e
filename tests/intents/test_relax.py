import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vbterrier.errors import DegenerateWarning, InputError
from vbterrier.intents.calibrate import Calibrate
from vbterrier.intents.constraints import parse_query
from vbterrier.intents.relax import RelaxConstraints
from vbterrier.linking.kb.files import build_kb

pytestmark = pytest.mark.filterwarnings("ignore:.*a constraint whose value no entity has")


def intents(constraints, **columns):
    frame = pd.DataFrame({"qid": "q", "query": "John Smith", "entity_id": ["A", "B", "C"], "prob": [1 / 3] * 3})
    return frame.assign(constraints=[constraints] * 3, **columns)


def deltas(stage, constraints):
    made = stage(intents(constraints))
    return dict(zip(made["entity_id"], made["delta"].tolist(), strict=True))


def test_without_scores_it_is_the_formula_of_the_paper(people):
    made = RelaxConstraints(people)(intents("state:OH; chamber:sen"))
    assert made["delta"].tolist() == [0.0, 1.0, 1.0]
    raised = np.exp([-0.0, -1.0, -1.0])
    assert made["prob"].tolist() == pytest.approx((raised / raised.sum()).tolist())
    assert made["violations"].tolist() == [[0.0, 0.0], [1.0, 0.0], [1.0, 0.0]]


@settings(max_examples=30)
@given(st.lists(st.floats(-20, 20), min_size=3, max_size=3), st.floats(0.1, 10), st.floats(0, 5))
@pytest.mark.slow
def test_with_scores_both_add_in_log_space(people, scores, temperature, weight):
    frame = intents(f"state:OH^{weight!r}; born:1735", score=scores).drop(columns="prob")
    made = (Calibrate(temperature=temperature) >> RelaxConstraints(people))(frame)
    logits = np.array(scores) / temperature - np.array([0.0, weight + 1, weight])
    raised = np.exp(logits - logits.max())
    assert made["prob"].tolist() == pytest.approx((raised / raised.sum()).tolist(), abs=1e-12)


def test_constraints_are_not_undone_by_a_calibration_after_them(people):
    frame = intents("state:OH", score=[3.0, 2.0, 1.0])
    for method in ("softmax", "uniform"):
        with pytest.raises(InputError, match=r"intents: column 'delta' .*; put Calibrate before RelaxConstraints"):
            (RelaxConstraints(people) >> Calibrate(method))(frame)


def test_without_constraints_nothing_changes(people):
    frame = intents("").assign(prob=[0.2, 0.3, 0.5])
    made = RelaxConstraints(people)(frame)
    assert made["prob"].tolist() == pytest.approx([0.2, 0.3, 0.5])
    assert made["delta"].tolist() == [0.0] * 3
    assert made["violations"].tolist() == [[]] * 3


@pytest.mark.parametrize(
    ("constraints", "expected"),
    [
        ("state:oh", [0, 1, 1]),
        ("state:WASHINGTON D.C.", [1, 0, 1]),
        ('state:"washington dc"', [1, 1, 1]),
        ("state:OH|PA", [0, 1, 0]),
        ("chamber:rep", [0, 1, 0]),
        ("born:1735", [0, 1, 0]),
        ("born:1700..1800", [0, 1, 0]),
        ("born:1850..", [1, 0, 0]),
        ("born:..1735|1850", [0, 1, 0]),
        ("current:false", [0, 0, 0]),
        ("current:true", [1, 0, 0]),
        ("state:OH; state:PA", [1, 2, 1]),
        ({"state": "PA", "born": 1735}, [1, 2, 0]),
    ],
)
def test_candidates_are_charged_for_each_violated_constraint(people, constraints, expected):
    assert list(deltas(RelaxConstraints(people), constraints).values()) == expected


@pytest.mark.parametrize(("unknown", "expected"), [("satisfied", 0), ("violated", 1), (0.25, 0.25), (0, 0), (1, 1)])
def test_unknown_attributes_follow_the_policy(people, unknown, expected):
    assert deltas(RelaxConstraints(people, unknown=unknown), "born:1735")["C"] == expected
    assert deltas(RelaxConstraints(people, unknown=unknown), "born:1735")["B"] == 1
    assert deltas(RelaxConstraints(people, unknown=unknown), "born:1735^4")["C"] == 4 * expected


def test_weights_in_the_text_come_before_those_of_the_stage(people):
    stage = RelaxConstraints(people, weights={"state": 3, "born": 0.5})
    assert deltas(stage, "state:XX; born:1")["A"] == 3.5
    assert deltas(stage, "state:XX^2; born:1")["A"] == 2.5
    assert deltas(stage, "chamber:XX; state:XX^0")["A"] == 1.0


def test_huge_weights_leave_no_warning_and_one_candidate(people):
    made = RelaxConstraints(people)(intents("state:OH^1e6"))
    assert made["prob"].tolist() == [1.0, 0.0, 0.0]
    made = RelaxConstraints(people)(intents("state:XX^1e6"))
    assert made["prob"].tolist() == pytest.approx([1 / 3] * 3), "all violate alike"


def test_strict_filtering_drops_violators(people):
    made = RelaxConstraints(people, strict=True)(intents("state:OH|PA"))
    assert made["entity_id"].tolist() == ["A", "C"]
    assert made["prob"].tolist() == [0.5, 0.5]
    unsure = RelaxConstraints(people, strict=True, unknown=0.1)(intents("born:1735"))
    assert unsure["entity_id"].tolist() == ["A"], "any delta above 0"
    with pytest.warns(DegenerateWarning, match=r"1 query \('q'\) without a candidate that satisfies"):
        assert not len(RelaxConstraints(people, strict=True)(intents("state:XX")))


def test_nil_keeps_its_mass(people):
    frame = intents("state:OH").assign(prob=0.3)
    frame = pd.concat([frame, frame[:1].assign(entity_id="NIL", prob=0.1)], ignore_index=True)
    made = RelaxConstraints(people, unknown="violated")(frame)
    assert made["prob"].tolist()[3] == pytest.approx(0.1)
    assert made["delta"].tolist() == [0.0, 1.0, 1.0, 0.0]
    assert made["violations"].tolist()[3] == [0.0]
    plain = RelaxConstraints(people)(intents("state:OH"))["prob"] * 0.9
    assert made["prob"].tolist()[:3] == pytest.approx(plain.tolist())
    only = RelaxConstraints(people, strict=True)(frame.assign(constraints="state:OH; state:PA"))
    assert only[["entity_id", "prob"]].values.tolist() == [["NIL", 1.0]]


def test_every_query_has_its_own_constraints_and_order_decides_nothing(people, probs):
    by_query = {"q": "state:OH", "r": "state:PA^2", "s": None, "t": {"chamber": "rep"}}
    several = pd.concat([intents(constraints).assign(qid=qid) for qid, constraints in by_query.items()])
    made = RelaxConstraints(people)(several)
    for qid, frame in several.groupby("qid"):
        assert probs(made[made["qid"] == qid]) == probs(RelaxConstraints(people)(frame))
    shuffled = several.sample(frac=1, random_state=3)
    assert probs(RelaxConstraints(people)(shuffled)) == probs(made)
    assert made["prob"].groupby(made["qid"]).sum().tolist() == pytest.approx([1.0] * 4)


def test_the_query_itself_may_hold_the_constraints_and_redirects_are_followed(people):
    frame = intents("").assign(query="John Smith state:OH", entity_id=["A-old", "B", "C"]).drop(columns="constraints")
    made = RelaxConstraints(people, parser=parse_query)(frame)
    assert made["delta"].tolist() == [0, 1, 1]
    assert made["query"].tolist() == ["John Smith state:OH"] * 3


def test_misspelt_attributes_are_refused_with_the_nearest(people):
    message = r"query 'q': no entity of .* has the attribute 'stat'; .* Did you mean state\?"
    with pytest.raises(InputError, match=message):
        RelaxConstraints(people)(intents("stat:OH"))
    assert deltas(RelaxConstraints(people), "kind:planet") == {"A": 0, "B": 0, "C": 0}, "others have it"


def test_candidates_of_another_id_space_are_said_to_be(people):
    with pytest.warns(DegenerateWarning, match=r"has no attribute of any candidate \('Q1', 'Q2', 'Q3'\)"):
        RelaxConstraints(people)(intents("state:OH").assign(entity_id=["Q1", "Q2", "Q3"]))


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (intents("state"), "query 'q': constraints 'state': wanted attribute:value"),
        (intents("").assign(constraints=["a:OH", "a:OH", "a:PA"]), r"row 2 .*and row 0 of the query differ in constr"),
        (intents("").assign(delta=0.0), "column 'delta' is an output column"),
    ],
)
def test_intents_that_are_none_are_refused(people, frame, message):
    with pytest.raises(InputError, match=message):
        RelaxConstraints(people)(frame)


def test_values_match_across_given_spellings(people):
    stage = RelaxConstraints(people, spellings={"state": {"OH": ["Ohio", "Buckeye State"], "PA": ["Pennsylvania"]}})
    assert list(deltas(stage, "state:ohio").values()) == [0, 1, 1]
    assert list(deltas(stage, 'state:"Buckeye State"|PENNSYLVANIA').values()) == [0, 1, 0]
    message = r"1 query has a constraint whose value no entity has \('q'\), such as sta"
    with pytest.warns(DegenerateWarning, match=message):
        assert deltas(stage, "state:Texas") == {"A": 1, "B": 1, "C": 1}
    with pytest.warns(DegenerateWarning, match=r"chamber:Ohio, where candidates have"):
        assert deltas(stage, "chamber:Ohio")["A"] == 1, "spellings are those of one attribute"


def test_values_match_across_names_of_one_entity(tmp_path):
    records = [
        {"id": "Q1397", "label": "Ohio", "aliases": ["OH"]},
        {"id": "A", "attributes": {"state": "OH"}},
        {"id": "B", "attributes": {"state": "Ohio"}},
        {"id": "C", "attributes": {"state": "PA"}},
    ]
    with build_kb(tmp_path / "states.kb", records, id_space="people") as base:
        assert base.attribute_values("state") == ["OH", "Ohio", "PA"]
        for spelling in ("state:OH", "state:ohio"):
            assert list(deltas(RelaxConstraints(base), spelling).values()) == [0, 0, 1]
