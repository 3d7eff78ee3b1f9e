"""Headless Chromium, and a page with all parts."""

import json
import os
import shutil

import numpy as np
import pandas as pd
import pytest
from browsing import NASTY, WIDE, emulated, with_data

from vbterrier.report import ReportContent
from vbterrier.report.page.build import write_report
from vbterrier.settings import Data, Inference


@pytest.fixture(scope="session")
def chromium():
    """Driver of headless Chromium; without it, tests are skipped, but fail in CI."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="pip install selenium: a browser looks at the page")
    service = pytest.importorskip("selenium.webdriver.chrome.service")
    binary, driver = (shutil.which(name) for name in ("chromium", "chromedriver"))
    if not (binary and driver):
        (pytest.fail if os.environ.get("CI") else pytest.skip)("chromium and chromedriver are missing")
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    browser = webdriver.Chrome(options=options, service=service.Service(driver))
    yield browser
    browser.quit()


@pytest.fixture(scope="session")
def address(tmp_path_factory):
    """A page with all parts: unjudged documents, intents, figures, names that are markup."""
    rng = np.random.default_rng(5)
    same = rng.permutation(60)
    qids = [f"q{number}" for number in range(1, 31)] + [f"z{NASTY}"]
    docnos = [f"d{number:03d}" for number in range(60)]
    judged = [(qid, docno, int(rng.integers(0, 3))) for qid in qids for docno in docnos[:40:2]]
    names = ["bm25", "dense", f"odd{NASTY}", "a-name-that-is-longer-than-columns-like-to-be"]
    runs = {}
    for name in names:
        # In ten topics all systems agree.
        ranked = [(same if number % 3 == 0 else rng.permutation(60))[:10] for number in range(31)]
        listed = [docnos[place] for places in ranked for place in places]
        runs[name] = pd.DataFrame(
            {"qid": np.repeat(qids, 10), "docno": listed, "score": [*np.arange(10.0, 0, -1)] * 31}
        )
    senses = [f"{sense}{NASTY}" for sense in ("one", "two", "none")]
    intents = pd.DataFrame({"qid": np.repeat(qids, 3), "entity_id": senses * 31, "prob": [0.7, 0.2, 0.1] * 31})
    tags = pd.DataFrame({"docno": docnos[:40], "entity_id": [f"{('one', 'two')[n % 2]}{NASTY}" for n in range(40)]})
    topics = pd.DataFrame({"qid": qids, "query": [f"what is meant by {number}" for number in range(len(qids))]})
    texts = pd.DataFrame({"docno": docnos, "text": [f"what {docno} says{NASTY} " * 5 for docno in docnos]})
    labels = pd.DataFrame({"qid": np.repeat(qids, 60), "docno": docnos * 31, "label": [0, 1, 2] * 620})
    path = tmp_path_factory.mktemp("browser") / "report.html"
    qrels = pd.DataFrame(judged, columns=["qid", "docno", "label"])
    data = Data(labels={"llm": labels}, topics=topics, documents=texts)
    command = ["vbterrier", "report", *names, "--a-long-command-line" * 9]
    content = ReportContent(intents=intents, tags=tags, command=command)
    write_report(runs, qrels, path=path, content=content, data=data, inference=Inference(n_resamples=300))
    return path.as_uri()


@pytest.fixture
def page(chromium, address):
    """The page, newly loaded; fails if the browser logs a message or requests anything but the file."""
    emulated(chromium, WIDE)
    chromium.get("about:blank")
    for kind in ("browser", "performance"):
        chromium.get_log(kind)
    chromium.get(address)
    yield chromium
    assert chromium.get_log("browser") == []
    events = [json.loads(entry["message"])["message"] for entry in chromium.get_log("performance")]
    urls = {one["params"]["request"]["url"] for one in events if one["method"] == "Network.requestWillBeSent"}
    # Tables are saved from the memory of the page.
    assert {url.partition("#")[0] for url in urls if not url.startswith("blob:")} == {address}


@pytest.fixture
def other(chromium, page, address, tmp_path):
    """Load a page with other data, or at another address; the browser may log nothing there, too."""

    def load(data):
        chromium.get(data if isinstance(data, str) else with_data(address, data, tmp_path / "other.html"))

    yield load
    assert chromium.get_log("browser") == []
    chromium.get_log("performance")
    chromium.get(address)


@pytest.fixture
def data(page):
    return json.loads(page.execute_script("return document.getElementById('data').textContent"))
