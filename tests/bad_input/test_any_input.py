"""Arbitrary frames: values are in range and independent of row order, or a package error is raised."""

import contextlib
import math
import warnings

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vbterrier import score
from vbterrier.errors import DegenerateWarning, InputError, VBTerrierError
from vbterrier.settings import Data, Inference

BOOTSTRAPPED = [f"{name}@5" for name in ("BNDCG", "BRBP", "BAP", "BP", "BERR", "BQ", "Unjudged")]
ESTIMATED = [f"{name}@5" for name in ("ENDCG", "ERBP", "EAP", "EP", "EERR", "EQ")]
BOUNDS = ["NDCGBound(kind='naive')@5", "NDCGBound(side='upper',kind='naive')@5"]
OF_INTENTS = ["ES@5", "VB(clip=True)@5", "VarPenalty@5", "TopIntent@5", "ES(gain='dcg')@5"]
EXTERNAL = ["nDCG@5", "AP"]
WITHOUT_MODEL = [*BOOTSTRAPPED, *BOUNDS, *OF_INTENTS, *EXTERNAL]
MEASURES = [*WITHOUT_MODEL, *ESTIMATED]


def values_of(case, measures=MEASURES):
    """Values by topic and measure."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DegenerateWarning)
        result = score(
            {"mine": case.run},
            case.qrels,
            measures,
            intents=case.intents,
            tags=case.tags,
            data=Data(duplicates="error"),
            inference=Inference(n_resamples=2),
        )
    return result.values.set_index(["qid", "measure"])["value"]


def require_range(values):
    assert values.map(math.isfinite).all()
    assert values.between(-1e-9, 1 + 1e-9).all(), values[~values.between(-1e-9, 1 + 1e-9)]
    table = values.unstack("measure")
    if set(BOUNDS) <= set(table.columns):
        assert (table[BOUNDS[0]] <= table[BOUNDS[1]] + 1e-9).all()


@pytest.mark.slow
@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_good_frames_give_every_topic_a_value_in_range(strategies, data):
    case = data.draw(strategies.cases())
    if any("\0" in value for frame in case[:2] for name in ("qid", "docno") for value in frame[name]):
        with pytest.raises(InputError, match="external measures end ids at a NUL"):
            values_of(case)
        return
    if (case.qrels["label"] > 0).mean() > 0.95:
        # Relevance is identified by documents of grade 0.
        extra = {"docno": "known", "label": 0}
        case = case._replace(qrels=pd.concat([case.qrels, case.qrels.drop_duplicates("qid").assign(**extra)]))
    values = values_of(case)
    assert len(values) == case.qrels["qid"].nunique() * len(MEASURES)
    require_range(values)


@given(data=st.data())
@settings(max_examples=80, deadline=None)
@pytest.mark.slow
def test_broken_frames_give_an_own_error_or_values_in_range(strategies, data):
    case = data.draw(strategies.broken())
    before = [frame.copy(deep=True) for frame in case]
    for measures in (WITHOUT_MODEL, ESTIMATED):
        with contextlib.suppress(VBTerrierError):
            require_range(values_of(case, measures))
    for frame, old in zip(case, before, strict=True):
        pd.testing.assert_frame_equal(frame, old)


@pytest.mark.slow
@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_the_order_of_rows_changes_nothing(strategies, data):
    case = data.draw(strategies.cases())
    shuffled = type(case)(*(frame.iloc[data.draw(st.permutations(range(len(frame))))] for frame in case))
    try:
        values = values_of(case)
    except InputError:
        # Ids with a NUL, which raise for any order of rows.
        with pytest.raises(InputError):
            values_of(shuffled)
        return
    again = values_of(shuffled)
    assert again.sort_index().to_dict() == pytest.approx(values.sort_index().to_dict(), abs=1e-9)


@pytest.mark.filterwarnings("ignore:.*judged documents have grade 0")
def test_an_empty_run_over_judgments_that_are_all_relevant_is_no_arithmetic():
    # Found by the properties above: 0/0.
    qrels = pd.DataFrame({"qid": ["q1", "q2"], "docno": ["d1", "d1"], "label": [1, 1]})
    run = pd.DataFrame({"qid": ["q1"], "docno": ["d2"], "score": [1.0]}).iloc[:0]
    with pytest.warns(DegenerateWarning, match="empty"):
        result = score(run, qrels, ["BNDCG@5", "ENDCG@5"], inference=Inference(n_resamples=2))
    assert result.values["value"].tolist() == [0.0] * 4


@pytest.mark.parametrize(("weight", "message"), [("x", "'x'"), (None, "None"), (math.nan, "nan"), (-1, "weight -1")])
@pytest.mark.parametrize("measure", ["StRecall@5", "ES@5"])
def test_weights_of_tags_are_checked_for_measures_of_other_packages_too(measure, weight, message):
    # Found by the properties above: tags were left out in silence, or text compared with 0.
    run = pd.DataFrame({"qid": ["q1", "q2"], "docno": "d1", "score": 1.0})
    intents = pd.DataFrame({"qid": ["q1", "q1", "q2", "q2"], "entity_id": [*"ABAB"], "prob": 0.5})
    tags = pd.DataFrame({"docno": "d1", "entity_id": ["A", "B"], "weight": pd.Series([weight, "1"], dtype=object)})
    with pytest.raises(InputError, match=f"row 0 .*{message}"):
        score(run, intents, [measure], tags=tags)
    assert score(run, intents, [measure], tags=tags.assign(weight="1")).values["value"].tolist() == [1.0, 1.0]


@pytest.mark.parametrize("column", ["qid", "docno"])
@pytest.mark.parametrize("side", ["run", "qrels"])
def test_ids_with_a_nul_raise_for_external_measures_and_work_for_own_measures(side, column):
    # C engines treat "a" and "a\0b" as one id.
    frames = {
        "run": pd.DataFrame({"qid": "q1", "docno": ["a", "b"], "score": [2.0, 1.0]}),
        "qrels": pd.DataFrame({"qid": "q1", "docno": ["a", "b"], "label": [1, 0]}),
    }
    more = {"qid": "q1", "docno": "c", "score": 0.5, "label": 0, column: "a\0b"}
    frames[side] = pd.concat([frames[side], pd.DataFrame([more])[list(frames[side].columns)]], ignore_index=True)
    with pytest.raises(
        InputError, match=rf"{side}( 'mine')? column '{column}': row 2 holds 'a\\x00b'; external measures"
    ):
        score({"mine": frames["run"]}, frames["qrels"], ["nDCG@5"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DegenerateWarning)
        values = score({"mine": frames["run"]}, frames["qrels"], ["BNDCG@5"], inference=Inference(n_resamples=2)).values
    assert values["value"].iloc[0] == pytest.approx(1.0)
