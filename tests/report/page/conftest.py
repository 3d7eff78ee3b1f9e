import json
import re
from dataclasses import fields

import pandas as pd
import pytest

from vbterrier.report import ComparisonOptions, ReportData
from vbterrier.report.page.build import write_report

NASTY = "</script><b>&\"'\u202e\u2028x"


@pytest.fixture(scope="session")
def written(tmp_path_factory):
    """Write a page and read it: the result of ``write_report``, the text, and the data of the explorer."""

    def write(*arguments, **options):
        path = tmp_path_factory.mktemp("page") / "report.html"
        options = {"n_resamples": 200, **options}
        data, comparison = (
            kind(**{one.name: options.pop(one.name) for one in fields(kind) if one.name in options})
            for kind in (ReportData, ComparisonOptions)
        )
        page = write_report(arguments[0], path, *arguments[1:], data=data, comparison=comparison, **options)
        text = path.read_text(encoding="utf-8")
        found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
        return page, text, json.loads(found.group(1))

    return write


@pytest.fixture(scope="session")
def small():
    """Two runs of ten topics: one ranks the relevant document first, the other an unjudged one before it."""
    qids = [f"q{number}" for number in range(10)]
    qrels = pd.DataFrame({"qid": qids * 2, "docno": ["good"] * 10 + ["bad"] * 10, "label": [1] * 10 + [0] * 10})
    first = pd.DataFrame({"qid": qids * 2, "docno": ["good"] * 10 + ["bad"] * 10, "score": [2.0] * 10 + [1.0] * 10})
    second = pd.DataFrame({"qid": qids * 2, "docno": ["new"] * 10 + ["good"] * 10, "score": [2.0] * 10 + [1.0] * 10})
    return {"first": first, "second": second}, qrels
