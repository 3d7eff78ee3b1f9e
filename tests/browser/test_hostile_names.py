"""Pages of results in a browser, with names that are markup, code, members of JavaScript's objects, or hard to draw."""

import json

import numpy as np
import pandas as pd
import pytest
from browsing import WIDE, emulated

import vbterrier
from vbterrier.evaluate import audit_judge, diagnose, leaderboard, release_gate
from vbterrier.report import ReportContent
from vbterrier.report.page.build import write_report
from vbterrier.settings import Data, Inference

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::vbterrier.errors.DegenerateWarning")]

NAMES = [
    "</script><script>window.ran=1</script>",
    "<img src=x onerror=window.ran=1>",
    "javascript:window.ran=1//",
    "__proto__",
    "\"'`${window.ran=1}{{7*7}}",
    "constructor",
    "null",
    "\u202egnp.exe",
    "e\u0301\U0001f469\u200d\U0001f680\u2028x",
    "n" * 300,
]
RNG = np.random.default_rng(3)
QIDS, DOCNOS = NAMES + [f"q{n}" for n in range(5)], NAMES + [f"d{n}" for n in range(5)]
EVERY = pd.DataFrame([(qid, docno, int(RNG.integers(0, 3))) for qid in QIDS for docno in DOCNOS])
EVERY.columns = ["qid", "docno", "label"]
QRELS = EVERY.sample(frac=0.6, random_state=1)
RUNS = {name: EVERY[["qid", "docno"]].assign(score=RNG.random(len(EVERY))) for name in NAMES[:5]}
NEW, OLD = ({name: RUNS[name]} for name in NAMES[:2])


def report(path):
    intents = pd.DataFrame({"qid": np.repeat(QIDS, 2), "entity_id": NAMES[:2] * len(QIDS), "prob": 0.5})
    tags = pd.DataFrame({"docno": DOCNOS, "entity_id": NAMES[:3] * (len(DOCNOS) // 3)})
    topics = pd.DataFrame({"qid": QIDS, "query": QIDS})
    content = ReportContent(intents=intents, tags=tags, command=["vbterrier", *NAMES])
    data = Data(topics=topics, documents=pd.DataFrame({"docno": DOCNOS, "text": QIDS}))
    write_report(RUNS, QRELS, ["nDCG@10", "ES@10"], path=path, content=content, data=data)


PAGES = {
    "report": report,
    "compare": lambda _: vbterrier.compare(
        vbterrier.score(RUNS, QRELS, ["P@5"], inference=Inference(n_resamples=20)), inference=Inference(n_resamples=20)
    ),
    "rank": lambda _: vbterrier.rank_systems(RUNS, QRELS, "ENDCG@10", inference=Inference(n_draws=50)),
    "gate": lambda _: release_gate(NEW, QRELS, "ENDCG@10", baseline=OLD, margin=0.05, budget=5),
    "doctor": lambda _: diagnose(RUNS, QRELS),
    "track": lambda _: leaderboard(
        RUNS, QRELS, "ENDCG@10", groups=dict(zip(RUNS, NAMES, strict=False)), inference=Inference(n_draws=50)
    ),
    "audit": lambda _: audit_judge(
        RUNS, QRELS, labels=dict.fromkeys(NAMES[:2], EVERY), inference=Inference(n_draws=50)
    ),
}
# Every button, choice and search of a page, in turn.
USE = """
for (const part of document.querySelectorAll("button, summary")) part.click();
for (const part of document.querySelectorAll("select")) for (const option of part.options) {
  part.value = option.value;
  part.dispatchEvent(new Event("change", {bubbles: true}));
}
for (const part of document.querySelectorAll("input")) for (const text of arguments[0]) {
  part.value = text;
  part.dispatchEvent(new Event("input", {bubbles: true}));
}
"""


@pytest.mark.parametrize("kind", PAGES)
def test_names_are_shown_and_never_run(chromium, tmp_path, kind):
    path = tmp_path / "page.html"
    result = PAGES[kind](path)
    if result is not None:
        path.write_text(result.page(), encoding="utf-8")
    emulated(chromium, WIDE)
    chromium.get("about:blank")
    chromium.get_log("browser"), chromium.get_log("performance")
    chromium.get(path.as_uri())
    chromium.execute_script(USE, [*NAMES[:5], ""])
    assert chromium.execute_script("return window.ran") is None
    assert chromium.find_elements("css selector", "img, iframe, object, [onerror]") == []
    links = chromium.execute_script("return [...document.links].map(link => link.protocol)")
    assert "javascript:" not in links
    shown = chromium.execute_script("return document.body.textContent")
    assert NAMES[0] in shown
    assert [line["message"] for line in chromium.get_log("browser")] == []
    events = [json.loads(entry["message"])["message"] for entry in chromium.get_log("performance")]
    urls = [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]
    assert {address.partition(":")[0] for address in urls} <= {"file", "data", "blob"}
