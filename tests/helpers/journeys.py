"""Functions that a call enters, by module: ``python tests/helpers/journeys.py`` rewrites structure.md."""

import sys
import threading
from pathlib import Path
from typing import NamedTuple

import ir_measures
import pandas as pd

import vbterrier

PACKAGE = Path(vbterrier.__file__).resolve().parent
PAGE = Path(__file__).resolve().parents[2] / "docs" / "developers" / "structure.md"
BEGIN, END = "<!-- journeys -->", "<!-- end of journeys -->"


class Journey(NamedTuple):
    """Functions by module, in the order in which modules are entered, and the depth of the package's frames."""

    modules: dict[str, list[str]]
    depth: int

    @property
    def n_functions(self):
        """Number of distinct functions."""
        return sum(map(len, self.modules.values()))


def journey(call):
    """Trace the second of two equal calls; the first one does the imports."""
    entered, depth = {}, 0

    def seen(frame, event, _):
        nonlocal depth
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(PACKAGE)):
            entered.setdefault(code, None)
            n_calls = 0
            while frame is not None:
                n_calls += frame.f_code.co_filename.startswith(str(PACKAGE))
                frame = frame.f_back
            depth = max(depth, n_calls)

    call()
    before = sys.getprofile()
    threading.setprofile(seen)
    sys.setprofile(seen)
    try:
        call()
    finally:
        sys.setprofile(before)
        threading.setprofile(None)
    modules = {}
    for code in entered:
        # Comprehensions are part of the function that contains them.
        if not code.co_name.startswith("<"):
            path = str(Path(code.co_filename).relative_to(PACKAGE.parent))
            modules.setdefault(path, []).append(code.co_qualname if hasattr(code, "co_qualname") else code.co_name)
    return Journey(modules, depth)


RUN = pd.DataFrame({"qid": ["q1"] * 3 + ["q2"] * 3, "docno": [*"abnamb"], "score": [3.0, 2.0, 1.0] * 2})
QRELS = pd.DataFrame({"qid": ["q1"] * 4 + ["q2"] * 4, "docno": [*"abcd"] * 2, "label": [1, 0, 2, 0] * 2})


def score_bootstrapped():
    """``BNDCG@10`` on six rows through ir_measures."""
    run = RUN.rename(columns={"qid": "query_id", "docno": "doc_id"})
    qrels = QRELS.rename(columns={"qid": "query_id", "docno": "doc_id", "label": "relevance"})
    return lambda: ir_measures.calc_aggregate([vbterrier.BNDCG @ 10], qrels, run)


def score_estimated():
    """``ENDCG@10`` of two runs through ``vbterrier.score``."""
    runs = {"one": RUN, "two": RUN.assign(score=-RUN["score"])}
    return lambda: vbterrier.score(runs, QRELS, ["ENDCG@10"])


JOURNEYS = {
    "`BNDCG@10` through `ir_measures.calc_aggregate`": score_bootstrapped,
    "`ENDCG@10` through `vbterrier.score`": score_estimated,
}


def text():
    """The journeys as Markdown."""
    parts = []
    for title, call in JOURNEYS.items():
        made = journey(call())
        head = f"{title}: {made.n_functions} functions in {len(made.modules)} modules, {made.depth} deep."
        rows = [f"| `{path}` | {', '.join(f'`{name}`' for name in names)} |" for path, names in made.modules.items()]
        parts += [head, "", "| module | functions |", "|:---|:---|", *rows, ""]
    return "\n".join(parts).strip()


def main():
    """Rewrite the journeys of the page."""
    page = PAGE.read_text(encoding="utf-8")
    before, after = page.partition(BEGIN)[0], page.partition(END)[2]
    PAGE.write_text(f"{before}{BEGIN}\n\n{text()}\n\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
