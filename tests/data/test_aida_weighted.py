"""Diversity measures with the probabilities of AIDA's names, which measures of ndeval ignore."""

import pytest
from aida import aida as read_aida

import vbterrier
from vbterrier.errors import InputError
from vbterrier.settings import Data, Inference

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::vbterrier.errors.DegenerateWarning")]


def test_err_ia_of_names_weighs_their_meanings(shared_data):
    aida = read_aida(shared_data)
    intents = aida.intents[["qid", "entity_id", "prob"]]
    options = {"tags": aida.tags["gold"], "data": Data(on_topics="all"), "inference": Inference(n_resamples=2)}
    with pytest.raises(InputError, match="those of 170 of 199 queries have different probabilities"):
        vbterrier.score(aida.runs, None, ["ERR_IA@10"], intents=intents, **options)
    measures = ["WeightedERRIA@10", "WeightedAlphaNDCG@10", "ES@10"]
    averages = vbterrier.score(aida.runs, None, measures, intents=intents, **options).means()
    assert averages.loc["bm25"].tolist() == pytest.approx([0.6947, 0.9291, 0.9955], abs=5e-5)
    equal = intents.assign(prob=1 / intents.groupby("qid")["prob"].transform("size"))
    theirs = vbterrier.score(aida.runs, None, ["ERR_IA@10", "alpha_nDCG@10", "StRecall@10"], intents=equal, **options)
    ours = vbterrier.score(aida.runs, None, measures, intents=equal, **options)
    assert theirs.means().loc["bm25", "ERR_IA@10"] == pytest.approx(0.5729, abs=5e-5)
    assert ours.means().to_numpy() == pytest.approx(theirs.means().to_numpy(), abs=1e-12)
