"""Whatever frames are given: the numbers are in their range and know no order of rows, or an error of ours says why."""

import contextlib
import math
import warnings

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vbterrier import score
from vbterrier.errors import DegenerateWarning, InputError, VBTerrierError

OURS = [f"{name}@5" for name in ("BNDCG", "BRBP", "BAP", "BP", "BERR", "BQ", "Unjudged")]
BOUNDS = ["NDCGBound@5", "NDCGBound(side='upper')@5"]
OF_INTENTS = ["ES@5", "VB(clip=True)@5", "VarPenalty@5", "TopIntent@5", "ES(gain='dcg')@5"]
THEIRS = ["nDCG@5", "AP"]
MEASURES = [*OURS, *BOUNDS, *OF_INTENTS, *THEIRS]


def values_of(case):
    """Values by topic and measure."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DegenerateWarning)
        found = score(
            {"mine": case.run},
            case.qrels,
            MEASURES,
            intents=case.intents,
            tags=case.tags,
            duplicates="error",
            n_resamples=2,
        )
    return found.values.set_index(["qid", "measure"])["value"]


def require_range(values):
    assert values.map(math.isfinite).all()
    assert values.between(-1e-9, 1 + 1e-9).all(), values[~values.between(-1e-9, 1 + 1e-9)]
    table = values.unstack("measure")
    assert (table[BOUNDS[0]] <= table[BOUNDS[1]] + 1e-9).all()


@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_good_frames_give_every_topic_a_value_in_range(strategies, data):
    case = data.draw(strategies.cases())
    found = values_of(case)
    assert len(found) == case.qrels["qid"].nunique() * len(MEASURES)
    require_range(found)


@given(data=st.data())
@settings(max_examples=80, deadline=None)
def test_broken_frames_give_an_error_of_ours_or_values_in_range(strategies, data):
    case = data.draw(strategies.broken())
    before = [frame.copy(deep=True) for frame in case]
    with contextlib.suppress(VBTerrierError):
        require_range(values_of(case))
    for frame, old in zip(case, before, strict=True):
        pd.testing.assert_frame_equal(frame, old)


@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_the_order_of_rows_changes_nothing(strategies, data):
    case = data.draw(strategies.cases())
    shuffled = type(case)(*(frame.iloc[data.draw(st.permutations(range(len(frame))))] for frame in case))
    found, again = values_of(case), values_of(shuffled)
    assert again.sort_index().to_dict() == pytest.approx(found.sort_index().to_dict(), abs=1e-9)


def test_an_empty_run_over_judgments_that_are_all_relevant_is_no_arithmetic():
    # Found by the properties above: 0/0 in the strength of the learned prior.
    qrels = pd.DataFrame({"qid": ["q1", "q2"], "docno": ["d1", "d1"], "label": [1, 1]})
    run = pd.DataFrame({"qid": ["q1"], "docno": ["d2"], "score": [1.0]}).iloc[:0]
    with pytest.warns(DegenerateWarning, match="empty"):
        assert score(run, qrels, ["BNDCG@5"], n_resamples=2).values["value"].tolist() == [0.0, 0.0]


@pytest.mark.parametrize("label", [1e308, 2.0**63, 2**63, -(2.0**64)])
def test_a_label_beyond_64_bits_is_an_error_and_no_other_label(label):
    qrels = pd.DataFrame({"qid": ["q1"], "docno": ["d1"], "label": [label]})
    run = pd.DataFrame({"qid": ["q1"], "docno": ["d1"], "score": [1.0]})
    with pytest.raises(InputError, match=r"qrels column 'label': row 0 .*wanted a whole number"):
        score(run, qrels, ["BNDCG@5"])
