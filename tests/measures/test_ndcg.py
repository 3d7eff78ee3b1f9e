"""nDCG@k that takes no engine, against trec_eval to the last bit."""

import ir_measures
import numpy as np
import pandas as pd
import pytest
import pytrec_eval
from ir_measures import nDCG

from vbterrier.errors import InputError
from vbterrier.evaluate.scores import score
from vbterrier.measures.adhoc import is_computed_here
from vbterrier.settings import Data, Inference


def random_frames(seed, n_topics=30):
    """Runs with ties and topics missing on either side; labels from below 0 to 40."""
    rng = np.random.default_rng(seed)
    run, qrels = [], []
    for topic in range(n_topics):
        docs = [f"d{number}" for number in rng.permutation(80)]
        highest = rng.choice([0, 1, 3, 40])
        run += [(f"q{topic}", doc, float(rng.integers(0, 12))) for doc in docs[: rng.integers(1, 40)] if topic % 10]
        judged = rng.permutation(docs)[: rng.integers(1, 50)]
        qrels += [(f"q{topic}", doc, int(rng.integers(-2, highest + 1))) for doc in judged]
    return pd.DataFrame(run, columns=["qid", "docno", "score"]), pd.DataFrame(qrels, columns=["qid", "docno", "label"])


def trec_eval(run, qrels, cutoff):
    nested = [
        {qid: dict(zip(rows["docno"], rows[name], strict=True)) for qid, rows in frame.groupby("qid")}
        for frame, name in ((qrels, "label"), (run, "score"))
    ]
    result = pytrec_eval.RelevanceEvaluator(nested[0], {f"ndcg_cut.{cutoff}"}).evaluate(nested[1])
    return {qid: result[qid][f"ndcg_cut_{cutoff}"] if qid in result else 0.0 for qid in nested[0]}


@pytest.mark.parametrize("cutoff", [1, 2, 5, 10, 100])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.filterwarnings("ignore::vbterrier.errors.DegenerateWarning")
def test_numbers_are_trec_evals_to_the_last_bit(seed, cutoff):
    run, qrels = random_frames(seed)
    values = score(
        {"run": run}, qrels, [nDCG @ cutoff], data=Data(on_topics="all"), inference=Inference(n_resamples=10)
    ).values
    assert dict(zip(values["qid"], values["value"], strict=True)) == trec_eval(run, qrels, cutoff)


def test_common_settings_of_ndcg_and_err_are_computed_here_and_others_by_engines():
    here = ("nDCG@10", "nDCG(dcg='log2')@10", "nDCG(dcg='exp-log2')@10", "nDCG(judged_only=False)@10", "ERR@20")
    here = (*here, "nDCG", "nDCG(judged_only=True)@10", "P@10")
    others = ("nDCG(gains={0:0,1:9})@10", "ERR", "ERR@0", "P(rel=0)@10", "NumRel")
    texts = (*here, *others, "nDCG@0", "nDCG@True")
    assert [text for text in texts if is_computed_here(ir_measures.parse_measure(text))] == list(here)


@pytest.mark.filterwarnings("ignore::vbterrier.errors.DegenerateWarning")
def test_beside_measures_that_take_an_engine_it_is_the_same():
    run, qrels = random_frames(1)
    alone = score(
        {"run": run}, qrels, ["nDCG@10"], data=Data(on_topics="all"), inference=Inference(n_resamples=10)
    ).values
    beside = score(
        {"run": run}, qrels, ["P@5", "nDCG@10", "AP"], data=Data(on_topics="all"), inference=Inference(n_resamples=10)
    )
    assert list(beside.means().columns) == ["P@5", "nDCG@10", "AP"]
    both = alone.merge(beside.values, on=["qid", "measure"])
    assert len(both) == len(alone)
    assert both["value_x"].equals(both["value_y"])


@pytest.mark.parametrize(("column", "value"), [("docno", ""), ("docno", "a\0b"), ("qid", "q\0")])
def test_ids_that_engines_misread_are_refused_all_the_same(column, value):
    qrels = pd.DataFrame({"qid": ["q", "q"], "docno": ["a", "b"], "label": [1, 0]})
    run = qrels.assign(score=1.0)
    odd = run.assign(**{column: [run[column].iloc[0], value]})
    for frames in ((odd, qrels), (run, odd)):
        with pytest.raises(InputError, match=rf"column '{column}': row 1 .*(is empty|NUL)"):
            score({"run": frames[0]}, frames[1], ["nDCG@10"], data=Data(on_topics="all"))


@pytest.mark.parametrize("measure", ["nDCG@10", "BNDCG@10", "ENDCG@10", "AP", "Judged@10", "BAP@10", "NDCGBound@10"])
def test_empty_ids_are_refused_by_every_measure(measure):
    qrels = pd.DataFrame({"qid": ["q", "q"], "docno": ["a", "b"], "label": [1, 0]})
    run = pd.DataFrame({"qid": "q", "docno": ["a", "", "b"], "score": [3.0, 2.0, 1.0]})
    with pytest.raises(InputError, match=r"^run 'run' column 'docno': row 1 is empty; give it an id"):
        score({"run": run}, qrels, [measure])
