"""The page of classic measures is that of its JSON, and the expressions of Polars compute what they claim."""

import json
from pathlib import Path

import classic
import polars as pl
import pytest
from suite.synthetic import Shape

pytestmark = pytest.mark.filterwarnings("ignore::vbterrier.errors.DegenerateWarning")

DOCS = Path(__file__).parents[2] / "docs" / "developers"


def test_the_page_is_written_from_its_json():
    document = json.loads((DOCS / "classic.json").read_text(encoding="utf-8"))
    assert (DOCS / "classic.md").read_text(encoding="utf-8") == classic.page(document)


@pytest.mark.parametrize("measure", ["nDCG@10", "AP"])
def test_expressions_of_polars_have_the_values_of_score(measure):
    made = Shape("judged", 5, 30, ids="clueweb").made()
    run, qrels = made["run"].assign(score=made["run"]["score"].round()), made["qrels"]
    scored = classic.vbterrier.score({"run": run}, qrels, [measure]).values
    ours = dict(zip(scored["qid"], scored["value"], strict=True))
    tables = pl.from_pandas(run[["qid", "docno", "score"]]), pl.from_pandas(qrels[["qid", "docno", "label"]])
    assert classic.polars_values(measure, *tables) == pytest.approx(ours, abs=1e-12)
    with pytest.raises(SystemExit, match="Polars differs"):
        classic.require_equal({classic.OURS: ours, "Polars": dict.fromkeys(ours, 0.5)})
