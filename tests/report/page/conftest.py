import json
import re

import pandas as pd
import pytest

import vbterrier
from vbterrier.frames.linked_pool import LinkedPool
from vbterrier.report.page.build import write_report
from vbterrier.report.page.evaluated import ReportContent
from vbterrier.settings import Data, Inference

NASTY = "</script><b>&\"'\u202e\u2028x"


@pytest.fixture(scope="session")
def written(tmp_path_factory):
    """Write a page and read it: the result of ``write_report``, the text, and the data of the explorer."""

    def write(*arguments, inference=Inference(), **options):
        path = tmp_path_factory.mktemp("page") / "report.html"
        few = Inference(**{"n_resamples": 200, **inference.explicit_settings()})
        page = write_report(*arguments, path=path, inference=few, **options)
        text = path.read_text(encoding="utf-8")
        result = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
        return page, text, json.loads(result.group(1))

    return write


@pytest.fixture(scope="session")
def demo(demo_files):
    """Three runs of the demo, its qrels, and its intents and tags."""
    runs = {name: demo_files / f"{name}.run" for name in ("lexical", "dense", "words")}
    beside = {"intents": demo_files / "intents.tsv", "tags": demo_files / "tags.tsv"}
    return runs, demo_files / "qrels.txt", beside


@pytest.fixture(scope="session")
def demo_page(demo, demo_files, written):
    runs, qrels, beside = demo
    return written(
        runs,
        qrels,
        content=ReportContent(**beside),
        data=Data(topics=demo_files / "topics.tsv"),
        inference=Inference(seed=3),
    )


@pytest.fixture(scope="session")
def demo_scores(demo):
    runs, qrels, beside = demo
    measures = ["ENDCG@10", "nDCG@10", "Unjudged@10", "ES@10", "VB@10"]
    return vbterrier.score(runs, qrels, measures, **beside, inference=Inference(n_resamples=200, seed=3))


@pytest.fixture(scope="session")
def mistakes():
    """Entity runs of ten topics and their pool: the entity of the run "good" is in relevant documents alone."""
    qids = [f"q{number}" for number in range(10)]
    docs = [(qid, f"{qid}-{n}", n, e, int(n == 0)) for qid in qids for n, e in enumerate("xyyy")]
    columns = ["qid", "docno", "rank", "entity_id", "label"]
    pool = LinkedPool.from_frame(pd.DataFrame(docs, columns=columns).assign(weight=1.0))
    entities = {"bad": "y", "good": "x", "worse": "y"}
    return {name: pd.DataFrame({"qid": qids, "docno": one, "score": 1.0}) for name, one in entities.items()}, pool


@pytest.fixture(scope="session")
def small():
    """Two runs of ten topics: one ranks the relevant document first, the other an unjudged one before it."""
    first = pd.DataFrame({"qid": [f"q{number}" for number in range(10)] * 2, "docno": ["good"] * 10 + ["bad"] * 10})
    first["score"] = [2.0] * 10 + [1.0] * 10
    second = first.assign(docno=["new"] * 10 + ["good"] * 10)
    return {"first": first, "second": second}, first.assign(label=[1] * 10 + [0] * 10).drop(columns="score")
