"""What scoring in chunks costs beside reading a run whole: pytest tests/bench --benchmark-only."""

import numpy as np
import pandas as pd
import pytest

from vbterrier.evaluate.scores import score

N_TOPICS, DEPTH = 1000, 1000


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    path = tmp_path_factory.mktemp("bench") / "bm25.run"
    rows = "".join(f"TOPIC Q0 D{r * 7919 % 8_841_823:07d} {r + 1} {DEPTH - r}.25 bm25\n" for r in range(DEPTH))
    with path.open("w", encoding="utf-8") as file:
        file.writelines(rows.replace("TOPIC", str(topic)) for topic in range(N_TOPICS))
    draw = np.random.default_rng(7)
    qrels = pd.DataFrame({"qid": np.repeat(np.arange(N_TOPICS).astype(str), 20), "label": 1})
    qrels["docno"] = [f"D{r * 7919 % 8_841_823:07d}" for r in draw.integers(DEPTH, size=len(qrels))]
    return path, qrels.drop_duplicates(ignore_index=True)


@pytest.mark.parametrize("memory", [None, "1 GiB", "64 MiB"])
def test_scoring_a_run_of_a_million_rows_from_its_file(benchmark, given, memory):
    path, qrels = given
    options = {
        "args": (path, qrels, ["BNDCG(prior='learned')@10", "nDCG@10"]),
        "kwargs": {"memory": memory, "interval": "normal"},
    }
    found = benchmark.pedantic(score, **options, rounds=3, warmup_rounds=1)
    assert found.missing["n_missing"].tolist() == [0]
