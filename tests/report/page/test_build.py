import base64
import hashlib
import itertools
import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

import vbterrier
from vbterrier.errors import FileError, InputError, ParameterError
from vbterrier.report import ReportContent
from vbterrier.report.page.build import write_report
from vbterrier.report.page.evaluated import read_inputs
from vbterrier.settings import Data, Execution, Inference

# Half of the documents of a run are unjudged.
pytestmark = pytest.mark.filterwarnings("ignore:.*can be wrong by more than:vbterrier.errors.DegenerateWarning")

NASTY = "</script><img src=x onerror=alert(1)>&\"'\u202e\u2028`${x}"


class Elements(HTMLParser):
    """Parser that collects the elements of a page."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.open = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [name for name, _ in attrs]


def test_nothing_of_the_input_is_markup(written, small):
    runs, qrels = small
    rename = {"q0": f"q0{NASTY}"}

    def page_with(text, **names):
        """A page with a text in all ids, queries, documents, intents, in the title and in the command."""
        frames = [frame.assign(docno=frame["docno"] + text).replace(names) for frame in (*runs.values(), qrels)]
        systems = dict(zip([f"{name}{text}" for name in runs], frames, strict=False))
        topics = pd.DataFrame({"qid": frames[-1]["qid"].unique(), "query": text})
        documents = pd.DataFrame({"docno": [f"{name}{text}" for name in ("good", "bad", "new")], "text": text})
        intents, tags = topics[["qid"]].assign(entity_id=text, prob=1.0), documents.assign(entity_id=text)
        tags = tags.drop(columns="text")
        content = ReportContent(intents=intents, tags=tags, title=text, command=["vbterrier", text])
        return written(systems, frames[-1], content=content, data=Data(topics=topics, documents=documents))

    page, text, data = page_with(NASTY, qid=rename)
    plain = Elements(page_with("plain")[1])
    assert Elements(text).tags == plain.tags
    assert Elements(text).attributes == plain.attributes
    assert data["intents"]["topics"][0]["names"][0].startswith("</script>")
    assert "\u202e" not in text
    assert "\u2028" not in text
    assert data["topics"][0].startswith("q0</script>")
    assert data["queries"][0].startswith("</script>")
    assert {docno.partition("<")[0] for docno in data["rankings"]["ids"]} == {"good", "bad", "new"}
    assert all("</script>" in shown for shown in data["rankings"]["ids"] + data["rankings"]["texts"])
    assert "<img" in page.verdict[0]


def test_policy_allows_only_the_style_and_script_of_the_page(written, small):
    _, text, _ = written(*small)
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text).group(1).replace("&#39;", "'")
    assert policy.startswith("default-src 'none'; ")
    style = re.search(r"<style>(.*?)</style>", text, re.DOTALL).group(1)
    (code,) = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    for kind, part in (("style", style), ("script", code)):
        digest = base64.b64encode(hashlib.sha256(part.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy
    assert "unsafe" not in policy
    assert not re.findall(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|https?://(?!www\.w3\.org)", code)


def test_no_requests_and_no_inline_styles(written, small):
    _, text, _ = written(*small)
    assert not {"link", "img", "iframe", "object", "image"} & set(Elements(text).tags)
    assert not {"src", "srcset", "style", "onclick", "xlink:href"} & set(Elements(text).attributes)
    assert not re.findall(r'href="(?!#)', text)
    assert len(re.findall(r'\bid="', text)) == len(set(re.findall(r'\bid="([^"]*)"', text)))


def test_headings_are_in_order(written, small):
    _, text, _ = written(*small, content=ReportContent(command=["vbterrier"]))
    levels = [int(tag[1]) for tag in Elements(text).tags if re.fullmatch(r"h\d", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(later <= earlier + 1 for earlier, later in itertools.pairwise(levels))
    assert text.startswith('<!DOCTYPE html>\n<html lang="en">')


@pytest.mark.nightly
@pytest.mark.parametrize("cutoff", [10, 100])
def test_twenty_runs_of_250_topics_take_less_than_3_mb(written, cutoff):
    rng = np.random.default_rng(0)
    qids = [f"topic-{number:03d}" for number in range(250)]

    def listed(n, kind):
        # Long ids, and nearly all documents unjudged: the largest page of this size.
        docnos = [f"clueweb12-{kind:04d}wb-{number:02d}-{rng.integers(1e5):05d}" for number in range(n * len(qids))]
        return pd.DataFrame({"qid": np.repeat(qids, n), "docno": docnos})

    qrels = listed(5, 0).assign(label=rng.integers(0, 2, 1250))
    shared = listed(cutoff - 4, 9999)
    runs = {}
    for system in range(20):
        pairs = pd.concat([shared, listed(4, system + 1), qrels[["qid", "docno"]].iloc[::5]])
        runs[f"a-system-with-quite-a-long-name-{system:02d}"] = pairs.assign(score=rng.random(len(pairs)))
    topics = pd.DataFrame({"qid": qids, "query": "what somebody asked for in a sentence of some length"})
    intents = pd.DataFrame({"qid": np.repeat(qids, 5), "entity_id": [f"Q{n}" for n in range(1250)], "prob": 0.2})
    tags = pd.DataFrame({"docno": shared["docno"].iloc[::2]})
    tags["entity_id"] = rng.choice(intents["entity_id"], len(tags))
    texts = pd.DataFrame({"docno": shared["docno"], "text": "the text of a document of some length " * 9})
    measures = [f"BNDCG(prior='pool',method='mc')@{cutoff}", f"nDCG@{cutoff}", f"ES@{cutoff}"]
    options = {"content": ReportContent(intents=intents, tags=tags), "data": Data(topics=topics, documents=texts)}
    page, _, data = written(runs, qrels, measures, **options, inference=Inference(test="t"))
    assert np.mean(data["unjudged"]) > 0.8 * cutoff
    assert data["rankings"]["depth"] == (10 if cutoff == 10 else 8)
    assert page.n_bytes < 3_000_000


def test_the_same_input_gives_the_same_bytes(written, small, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    first, again = (written(*small)[1] for _ in range(2))
    assert first == again
    assert "2023-11-14 22:13 UTC" in first


def test_the_page_names_command_versions_and_settings(written, small):
    _, text, _ = written(
        *small, inference=Inference(seed=7), content=ReportContent(command=["vbterrier", "report", "a b.run"])
    )
    for message in (
        "vbterrier report &#39;a b.run&#39;",
        f"vbterrier {vbterrier.__version__}",
        "95%, unseen, 200 resamples, seed 7",
        "n = 10 (all judged topics, the same for all systems)",
        "rank 10",
    ):
        assert message in text
    assert re.search(
        r"ENDCG@10 estimates nDCG@10, judged to depth 100; model [0-9a-f]{16} of 2 runs and 10 topics", text
    )


def test_bad_parameters_are_refused_and_nothing_is_written(tmp_path, small):
    runs, qrels = small
    path = tmp_path / "r.html"
    for options, error, message in (
        ({"baseline": "frist"}, ParameterError, "Did you mean first"),
        (
            {"content": {"tags": "x.tsv"}},
            ParameterError,
            r"write_report: wanted settings as ReportContent\(...\), found dict",
        ),
        ({"data": {"topics": "topics.tsv"}}, ParameterError, r"wanted settings as Data\(...\), found dict"),
        ({"measures": "RelCov"}, InputError, "measures of entity runs need the links of a pool"),
        ({"inference": Inference(margin=0.1)}, ParameterError, r"Inference\(margin=0.1\) has no effect"),
    ):
        with pytest.raises(error, match=message):
            write_report(runs, qrels, path=path, **options)
    with pytest.raises(InputError, match="no runs"):
        write_report({}, qrels, path=path)
    for options, message in (
        ({}, "nothing to evaluate against"),
        ({"tags": "x.tsv"}, "nothing to evaluate against"),
        ({"links": "x.parquet", "tags": "x.tsv"}, "links exclude intents and tags"),
    ):
        with pytest.raises(ParameterError, match=message):
            write_report(runs, path=path, content=ReportContent(**options))
    with pytest.raises(FileError, match="there is no folder"):
        write_report(runs, qrels, path=tmp_path / "none" / "r.html")
    with pytest.raises(ParameterError, match="is a folder"):
        write_report(runs, qrels, path=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_an_incomplete_page_does_not_replace_a_file(tmp_path, small, monkeypatch):
    path = tmp_path / "r.html"
    path.write_text("what was there")
    monkeypatch.setattr("vbterrier.report.page.build._render_template", lambda *_, **__: "\ud800")
    with pytest.raises(UnicodeEncodeError):
        write_report(*small[:2], path=path, inference=Inference(n_resamples=50))
    assert path.read_text() == "what was there"
    assert list(tmp_path.iterdir()) == [path]


def test_the_report_command_writes_the_page_of_its_options(in_demo, tmp_path):
    output = tmp_path / "report.html"
    arguments = (
        "lexical.run dense.run --qrels qrels.txt --topics topics.tsv --documents documents.tsv --baseline lexical"
    )
    options = ["-m", "BNDCG@5", "-m", "nDCG@5", "--resamples", "200", "--name", "dense=Dense = new", "-o", output]
    code, out, err = in_demo("report", *arguments.split(), *options)
    assert (code, err) == (0, "")
    assert "BNDCG@5" in out
    # Serious caveats follow the verdict.
    assert "\nSerious caveat: Unjudged documents: Of the first 5 documents" in out
    assert out.splitlines()[-1].startswith("Next: vbterrier judge lexical.run dense.run --qrels qrels.txt")
    text = output.read_text(encoding="utf-8")
    assert "baseline lexical" in text
    assert "mercury temperature" in text
    assert "Dense = new" in text
    assert "At night the temperature on Mercury falls" in text
    assert "vbterrier report" in text


def test_command_refuses_names_without_a_run(in_demo, tmp_path):
    code, _, err = in_demo("report", "dense.run", "-q", "qrels.txt", "-o", tmp_path / "r.html", "--name", "Dense")
    assert code == 2
    assert "wanted the name of a run and its name on the page" in " ".join(err.split())


@pytest.mark.slow
def test_a_page_keeps_first_ranks_and_its_numbers_do_not_depend_on_memory(tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    few = Inference(n_resamples=50)
    rng = np.random.default_rng(0)
    qrels = pd.DataFrame([(f"q{t}", f"d{d}", int(d % 3 == 0)) for t in range(12) for d in range(0, 200, 2)])
    qrels.columns = ["qid", "docno", "label"]
    runs = {}
    for name in ("one", "other"):
        runs[name] = tmp_path / f"{name}.run"
        rows = [(f"q{t}", f"d{d}", at) for t in range(12) for at, d in enumerate(rng.permutation(300))]
        runs[name].write_text("".join(f"{qid} Q0 {docno} {at + 1} {-at} t\n" for qid, docno, at in rows))

    def page(memory=None, measures=None):
        memory = Execution(memory=memory)
        write_report(runs, qrels, measures, path=tmp_path / "page.html", inference=few, execution=memory)
        return (tmp_path / "page.html").read_text()

    read = {
        "content": ReportContent(),
        "data": Data(labels=None, subtopics=None, topics=None, documents=None, duplicates="error", system=None),
    }
    read["execution"] = Execution(memory=None, progress=False)
    whole = page()
    assert "one (3,600 rows), other (3,600 rows)" in whole
    in_chunks = page("64 MiB").replace("memory=&#39;64 MiB&#39;", "memory=None")
    assert in_chunks == whole.replace("(3,600 rows)", "(first ranks)")
    inputs, _ = read_inputs(runs, qrels, None, **read)
    assert [len(run) for run in inputs.runs.values()] == [12 * 101] * 2
    inputs, _ = read_inputs(runs, qrels, ["AP"], **read)
    assert [len(run) for run in inputs.runs.values()] == [12 * 300] * 2
    expected = vbterrier.score(runs, qrels, ["AP", "ENDCG@10"], inference=Inference(n_resamples=2)).means()
    assert f"{expected.loc['one', 'AP']:.3f}" in page(measures=["AP"])
    assert f"{expected.loc['one', 'ENDCG@10']:.3f}" in whole
    with pytest.raises(ParameterError, match="AP: has no cutoff of at most 100, and memory="):
        page("64 MiB", ["AP"])
