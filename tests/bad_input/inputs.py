"""The inputs of the matrix, each with what it is called."""

import bz2
import gzip
import io
import lzma
import math
import re
import sqlite3
import warnings
import zipfile
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyterrier as pt

import vbterrier
from vbterrier.settings import Inference

MEASURE = "BNDCG@10"
QRELS = pd.DataFrame(
    {"qid": ["q1", "q1", "q1", "q2", "q2"], "docno": ["d1", "d2", "d3", "d4", "d5"], "label": [2, 1, 0, 1, 0]}
)
RUN = pd.DataFrame(
    {
        "qid": ["q1"] * 4 + ["q2"] * 2,
        "docno": ["d1", "d2", "d3", "d9", "d5", "d4"],
        "score": [3.0, 2.0, 1.0, 0.5, 2.0, 1.0],
    }
)
INTENTS = pd.DataFrame({"qid": ["q1", "q1", "q2"], "entity_id": ["A", "B", "A"], "prob": [0.75, 0.25, 1.0]})
TAGS = pd.DataFrame({"docno": ["d1", "d2", "d4", "d5"], "entity_id": ["A", "B", "A", "B"], "weight": 1.0})
PEOPLE = [{"id": "A", "label": "Ann", "aliases": [["Ann", 1.0]]}, {"id": "B", "label": "Bob", "redirects": ["B1"]}]


def _zip(data):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("mine.run", data)
    return stream.getvalue()


@dataclass
class Case:
    """One input: frames, or the bytes of files; or a question about a folder, a pipeline and a command of its own.

    What is ``held`` stays open meanwhile.
    """

    folder: Path
    data: dict[str, Any]
    measure: str = MEASURE
    options: list[str] = field(default_factory=list)
    ask: Any = None
    pipeline: Any = None
    arguments: Any = None
    held: Any = None
    experiment: Any = None
    how: dict[str, Any] = field(default_factory=dict)
    is_of_python: bool = False
    topics: list[Any] = field(default_factory=lambda: ["q1", "q2"])

    @property
    def measures(self):
        """The measures, apart by blanks."""
        return self.measure.split(" ")

    def file(self, name):
        """A frame, or the path of a file."""
        data = self.data[name]
        return written(self.folder / f"{name}.in", data) if isinstance(data, bytes) else data

    def frame(self, name):
        path = self.file(name)
        return getattr(vbterrier, f"read_{name}")(path) if isinstance(path, Path) else path

    def command(self):
        """Everything written to files."""
        (self.folder / "given").mkdir(exist_ok=True)
        files = {name: data for name, data in self.data.items() if data is not None}
        paths = {
            name: written(self.folder / "given" / ("mine.run" if name == "run" else name), lines(name, data))
            for name, data in files.items()
        }
        options = [
            part for name in ("qrels", "intents", "tags") if name in paths for part in (f"--{name}", paths[name])
        ]
        expected = [part for measure in self.measures for part in ("-m", measure)]
        return ["score", paths["run"], *options, *expected, "-f", "csv", "--resamples", 2, *self.options]


def written(path, content):
    path.write_bytes(content)
    return path


def lines(name, data):
    """A frame as the lines of a file, unchecked."""
    if isinstance(data, bytes):
        return data
    forms = {
        "run": "{qid} Q0 {docno} 1 {score} tag",
        "qrels": "{qid} {iteration} {docno} {label}",
        "intents": "{qid}\t{entity_id}\t{prob}",
        "tags": "{docno}\t{entity_id}\t{weight}",
    }
    # Where ids may hold blanks, a header line says that tabs part them.
    head = re.sub("[{}]", "", forms[name]) + "\n" if name in {"intents", "tags"} else ""
    named = data.rename(columns=lambda column: str(column).removesuffix("s")).astype(object)
    rows = named.mask(named.map(lambda value: value is None), "").to_dict("records")
    blank = dict.fromkeys(("qid", "docno", "score", "label", "entity_id", "prob", "weight"), "") | {"iteration": "0"}
    return head.encode() + "".join(forms[name].format(**(blank | row)) + "\n" for row in rows).encode()


def scored(folder, run=RUN, qrels=QRELS, intents=None, tags=None, **more):
    return Case(folder, {"run": run, "qrels": qrels, "intents": intents, "tags": tags}, **more)


def of_intents(folder, run=RUN, intents=INTENTS, tags=TAGS, **more):
    return scored(folder, run, QRELS, intents, tags, **{"measure": "ES@1", **more})


def cell(frame, column, row, value):
    cells = [value if place == row else old for place, old in enumerate(frame[column])]
    return frame.assign(**{column: pd.Series(cells, dtype=object)})


def of_kb(folder, make):
    """A knowledge base: asked by name, as the tagger of a pipeline, and by the command that writes intents."""
    held = make(folder)
    texts = RUN.assign(text=["Ann", "Bob", "", "", "Bob", "Ann"])

    def ask(folder):
        with closing(vbterrier.linking.KnowledgeBase(folder / "people.kb")) as kb:
            return ", ".join(kb.lookup(["ann", "x' OR 1=1 --"])["entity_id"])

    def pipeline(folder):
        base = vbterrier.linking.KnowledgeBase(folder / "people.kb")
        return pt.Transformer.from_df(texts) >> vbterrier.TagEntities(
            vbterrier.linking.DictionaryLinker(base), fields=["text"]
        )

    def arguments(folder):
        (folder / "topics.tsv").write_text("q1\tann\nq2\tbob\n")
        return ["intents", folder / "topics.tsv", "--kb", folder / "people.kb", "-o", folder / "intents.tsv"]

    return of_intents(folder, tags=None, ask=ask, pipeline=pipeline, arguments=arguments, held=held)


def people(folder, records=PEOPLE):
    vbterrier.linking.build_kb(folder / "people.kb", records, id_space="people", progress=False).close()
    return folder / "people.kb"


def changed(change, folder):
    path = people(folder)
    content = change(path.read_bytes())
    path.unlink()
    path.write_bytes(content)


def statement(sql, folder):
    path = people(folder)
    with closing(sqlite3.connect(path)) as db:
        db.executescript(sql)


def of_set(folder, change):
    """A set of intents: its measure by the library and pt.Experiment, its files by the command line."""
    place = vbterrier.IntentSet.build(folder / "set", INTENTS, TAGS).path
    change(folder, place)

    def ask(folder):
        result = vbterrier.IntentSet(folder / "set")
        scores = vbterrier.score(RUN, QRELS, [result.ES @ 1], inference=Inference(n_resamples=2))
        return scores.means().iloc[0, 0]

    def pipeline(folder):
        vbterrier.IntentSet(folder / "set").ES @ 1
        return pt.Transformer.from_df(RUN)

    def arguments(folder):
        run = written(folder / "mine.run", lines("run", RUN))
        files = ["--intents", place / "intents.parquet", "--tags", place / "tags.parquet"]
        return ["score", run, *files, "-m", "ES@1", "-f", "csv", "--resamples", 2]

    return of_intents(folder, ask=ask, pipeline=pipeline, arguments=arguments)


TEXT, JUDGED = lines("run", RUN), lines("qrels", QRELS)
TWICE = pd.concat([RUN, RUN.iloc[:1].assign(score=0.1)], ignore_index=True)


def _runs():
    good = {
        "nothing wrong": RUN,
        "rows in no order": RUN.iloc[::-1],
        "infinite scores": RUN.assign(score=[math.inf, 2.0, 1.0, -math.inf, 2.0, -math.inf]),
        "a topic is missing": RUN.iloc[:4],
        "a topic too many": pd.concat([RUN, RUN.iloc[:1].assign(qid="q9")]),
        "all scores tied": RUN.assign(score=1.0),
        "a document twice": TWICE,
        "score NaN": cell(RUN, "score", 1, math.nan),
        "no column score": RUN.rename(columns={"score": "scores"}),
        "ids are numbers here, text in qrels": RUN.assign(docno=range(6)),
        "no topic in common": RUN.assign(qid="x" + RUN["qid"]),
        "ids are categories": RUN.astype({"qid": "category", "docno": "category"}),
        "no rows": RUN.iloc[:0],
        "SQL in ids": RUN.assign(docno=[*RUN["docno"][:3], "x';DROP", *RUN["docno"][4:]]),
        "HTML in ids": RUN.assign(docno=[*RUN["docno"][:3], "<script>alert(1)</script>", *RUN["docno"][4:]]),
        "an id is missing": cell(RUN, "docno", 3, None),
        "ids end with blanks": RUN.assign(docno=RUN["docno"] + " "),
        "scores that differ beyond float32": RUN.assign(score=[3.0, 3.0 + 1e-9, 1.0, 0.5, 2.0, 1.0]),
        "control characters in topics": RUN.assign(qid="q\x1b[31m" + RUN["qid"]),
    }
    files = {
        "BOM": b"\xef\xbb\xbf" + TEXT,
        "CRLF": TEXT.replace(b"\n", b"\r\n"),
        "tabs": TEXT.replace(b" ", b"\t"),
        "gzip": gzip.compress(TEXT),
        "two gzip members": gzip.compress(TEXT[:60]) + gzip.compress(TEXT[60:]),
        "gzip cut off": gzip.compress(TEXT * 40, mtime=0)[:-20],
        "bytes behind gzip": gzip.compress(TEXT) + b"junk",
        "zeros behind gzip": gzip.compress(TEXT) + bytes(512),
        "bz2": bz2.compress(TEXT),
        "xz": lzma.compress(TEXT),
        "xz cut off": lzma.compress(TEXT)[:-20],
        "zstd": pa.compress(TEXT, "zstd", asbytes=True),
        "zip": _zip(TEXT),
        "a comment first": b"# bm25\n" + TEXT,
        "three columns (MS MARCO)": b"q1 d1 1\nq1 d2 2\nq1 d3 3\nq1 d9 4\nq2 d5 1\nq2 d4 2\n",
        "three columns with scores": b"q1 d1 3.0\n",
        "JSON lines": RUN.to_json(orient="records", lines=True).encode(),
        "JSON lines without docno": b'{"qid": "q1", "score": 1}\n',
        "CSV with a header": RUN.to_csv(index=False).encode(),
        "CSV with semicolons": RUN.to_csv(index=False, sep=";").encode(),
        "CSV without a header": RUN.to_csv(index=False, header=False).encode(),
        "NUL bytes": TEXT.replace(b"d9", b"d\0"),
        "UTF-16": TEXT.decode().encode("utf-16"),
        "Latin-1": TEXT.replace(b"d9", b"d\xe9"),
        "empty file": b"",
        "header line": b"qid Q0 docno rank score tag\n" + TEXT,
        "short line": TEXT + b"q1 Q0 d8\n",
        "blank in the tag": TEXT.replace(b"tag", b"my tag"),
        "no Q0": TEXT.replace(b" Q0", b""),
        "no tag": TEXT.replace(b" tag", b""),
        "score 'abc'": TEXT.replace(b"0.5 tag", b"abc tag"),
        "score 1e400": TEXT.replace(b"3.0 tag", b"1e400 tag"),
        "id of 10 MB": TEXT.replace(b"d9", b"d" * 10_000_000),
        "10 MB without a line end": b"x" * 10_000_000,
        "quote in an id": TEXT.replace(b"d9", b'"d9'),
        "id NA": TEXT.replace(b"d9", b"NA"),
        "damaged Parquet": b"PAR1" + TEXT,
    }
    yield from ((f"run: {title}", partial(scored, run=run)) for title, run in good.items())
    yield from ((f"run file: {title}", partial(scored, run=run)) for title, run in files.items())


def _bomb(folder):
    bomb = gzip.compress(b"q1 Q0 d1 1 1.0 tag\n" * 500_000)

    def read(folder):
        return len(vbterrier.read_run(written(folder / "bomb.gz", bomb), max_bytes=1_000_000))

    frame = partial(vbterrier.read_run, max_bytes=1_000_000)
    return scored(folder, run=bomb, ask=read, pipeline=lambda folder: frame(written(folder / "bomb.gz", bomb)))


def _qrels():
    good = {
        "a judgment twice": pd.concat([QRELS, QRELS.iloc[:1]]),
        "two labels of a document": pd.concat([QRELS, QRELS.iloc[:1].assign(label=0)], ignore_index=True),
        "label 0.5": cell(QRELS, "label", 2, 0.5),
        "label '1' as text": QRELS.assign(label=QRELS["label"].astype(str)),
        "no column label": QRELS.rename(columns={"label": "lable"}),
        "an id is missing": cell(QRELS, "docno", 1, None),
        "ids are numbers here, text in the run": QRELS.assign(docno=range(5)),
        "label NaN": cell(QRELS, "label", 1, math.nan),
        "label 'good'": cell(QRELS, "label", 1, "good"),
        "label 2^63": cell(QRELS, "label", 1, 2**63),
        "negative label": QRELS.assign(label=[2, 1, -1, 1, -2]),
        "no rows": QRELS.iloc[:0],
        "diversity qrels": pd.concat([QRELS, QRELS.iloc[:1].assign(label=0)], ignore_index=True).assign(iteration="1"),
    }
    files = {
        "3 columns": JUDGED.replace(b" 0 d", b" d"),
        "label 1.5": JUDGED.replace(b"d2 1", b"d2 1.5"),
        "label 0x2": JUDGED.replace(b"d1 2", b"d1 0x2"),
        "a run": TEXT,
        "CR alone": JUDGED.replace(b"\n", b"\r"),
        "a sample of judgments": b"q1 d1 2 1 0.25\nq1 d2 1 1 0.5\n",
        "preferences": b"q1 1 1 d1 2\nq1 1 1 d2 1\n",
    }
    yield from ((f"qrels: {title}", partial(scored, qrels=qrels)) for title, qrels in good.items())
    yield from ((f"qrels file: {title}", partial(scored, qrels=qrels)) for title, qrels in files.items())


def _intents():
    probs = {"negative": -0.25, "above 1": 1.5, "NaN": math.nan, "infinite": math.inf, "huge": 1e308, "sum off": 0.5}
    good = {f"probability {title}": cell(INTENTS, "prob", 1, prob) for title, prob in probs.items()}
    good |= {
        "nothing wrong": INTENTS,
        "an intent twice": INTENTS.assign(entity_id="A"),
        "none of the topics": INTENTS.assign(qid="x" + INTENTS["qid"]),
        "a topic without": INTENTS.iloc[:2],
        "SQL in ids": INTENTS.replace("B", "'); DROP TABLE entity; --"),
        "HTML in ids": INTENTS.replace("B", "<img src=x onerror=alert(1)>"),
    }
    yield from ((f"intents: {title}", partial(of_intents, intents=intents)) for title, intents in good.items())
    weights = {"NaN": math.nan, "negative": -0.5, "above 1": 2.0, "infinite": math.inf}
    for title, weight in weights.items():
        yield f"tags: weight {title}", partial(of_intents, tags=cell(TAGS, "weight", 1, weight))
    yield "tags: no document retrieved", partial(of_intents, tags=TAGS.assign(docno="x"))
    pairs = TAGS[["docno", "entity_id"]].to_numpy().tolist()
    mentions = "".join(f"{docno}\t{place}\t{place}\t{entity}\n" for place, (docno, entity) in enumerate(pairs)).encode()
    files = {
        "mentions of neleval": mentions,
        "mentions of neleval, one cut": mentions + b"d1\t9",
        "mentions of neleval, one twice": mentions + mentions.splitlines()[0],
        "mentions of neleval, one nil": mentions + b"d1\t9\t9\tnil\n",
    }
    yield from ((f"tags file: {title}", partial(of_intents, tags=tags)) for title, tags in files.items())


def _measures():
    for text in ("BNDCG@-1", "BNDCG@0", "BNDCG@10.0", "ndcg@10", "BNDCG(priors='pool')@10", "VB(alpha=-1)@10"):
        yield f"measure {text}", partial(scored, measure=text)


def _bases():
    circle = [{"id": "A", "label": "Ann", "redirects": ["B"]}, {"id": "B", "label": "Bob", "redirects": ["A"]}]
    hostile = [
        {"id": "A'); DROP TABLE entity; --", "label": "Ann", "aliases": ["x' OR 1=1 --"]},
        {"id": "<script>alert(1)</script>", "label": "Bob"},
    ]

    def locked(folder):
        # Whoever builds writes another file; one that writes to this very file is not waited for, nor is it seen.
        path = people(folder)
        db = sqlite3.connect(path, isolation_level=None)
        db.execute("BEGIN EXCLUSIVE")
        db.execute("DELETE FROM mention")
        return db

    kinds = {
        "whole": people,
        "redirects in a circle": partial(people, records=circle),
        "SQL and HTML in ids and labels": partial(people, records=hostile),
        "missing": lambda _folder: None,
        "cut off": partial(changed, lambda content: content[:5000]),
        "empty": partial(changed, lambda _content: b""),
        "no SQLite": partial(changed, lambda _content: b"x" * 100),
        "a page overwritten": partial(changed, lambda content: content[:4096] + b"\xff" * 4096 + content[8192:]),
        "counts that are no numbers": partial(
            statement, "UPDATE meta SET value = 'many' WHERE key LIKE 'n\\_%' ESCAPE '\\'"
        ),
        "probability infinite": partial(
            statement, "UPDATE form_sense SET prob = 9e999; UPDATE mention_sense SET prob = 9e999"
        ),
        "ids that are bytes": partial(statement, "UPDATE entity SET id = x'ff' WHERE id = 'A'"),
        "redirects in a circle, written in": partial(statement, "INSERT INTO redirect VALUES ('A', 'B'), ('B', 'A')"),
        "being written to": locked,
    }
    yield from ((f"knowledge base: {title}", partial(of_kb, make=make)) for title, make in kinds.items())


def _sets():
    def moved(folder, place):
        place.rename(folder / "elsewhere")
        place.symlink_to(folder / "elsewhere")

    def linked(folder, place):
        (place / "intents.parquet").unlink()
        (place / "intents.parquet").symlink_to(folder / "gone")

    def loop(folder, place):
        (place / "intents.parquet").unlink()
        (place / "intents.parquet").symlink_to(place / "intents.parquet")

    kinds = {
        "whole": lambda _folder, _place: None,
        "a link to the folder": moved,
        "a link to nothing in it": linked,
        "a link to itself in it": loop,
        "damaged file": lambda _folder, place: (place / "intents.parquet").write_bytes(b"PAR1" + b"x" * 50),
    }
    yield from ((f"set of intents: {title}", partial(of_set, change=change)) for title, change in kinds.items())


def _both():
    """What a run and judgments are, together."""
    numbers = {"run": RUN.assign(docno=RUN["docno"].str[1:].astype(int)), "qrels": QRELS.assign(docno=range(1, 6))}
    yield "both: ids are numbers", partial(scored, **numbers)
    zeros = {"q1": "001", "q2": "1"}
    topics = {"run": RUN.replace(zeros), "qrels": QRELS.replace(zeros)}
    yield "both: topics 001 and 1", partial(scored, **topics, topics=["001", "1"])
    forms = {"run": RUN.replace("d1", "d\u00e9"), "qrels": QRELS.replace({"d1": "de\u0301"})}
    yield "both: an id in two Unicode forms", partial(scored, **forms)
    arrow = {name: frame.convert_dtypes(dtype_backend="pyarrow") for name, frame in (("run", RUN), ("qrels", QRELS))}
    yield "both: Arrow's columns", partial(scored, **arrow)
    frames = {name: pl.from_pandas(frame) for name, frame in (("run", RUN), ("qrels", QRELS))}
    topics = pd.DataFrame({"qid": ["q1", "q2"], "query": ["one", "two"]})
    (measure,) = vbterrier.measures_from(MEASURE)

    def as_pandas(_folder):
        run, qrels = (frame.to_pandas() for frame in frames.values())
        return float(pt.Experiment([run], topics, qrels, [measure])[MEASURE].item())

    polars = {**frames, "experiment": as_pandas, "arguments": lambda folder: scored(folder).command()}
    yield "both: polars frames, .to_pandas() for PyTerrier", partial(scored, **polars)
    settings = "nDCG@1 nDCG@2 BNDCG(seed=1)@2 BNDCG(prior='pool')@2"
    yield "both: two settings of one measure", partial(scored, measure=settings)
    subtopics = QRELS.assign(iteration=["1", "2", "1", "1", "2"], label=[1, 1, 0, 1, 0])
    both = pd.concat([subtopics, subtopics.iloc[:1].assign(iteration="2")], ignore_index=True)
    yield "both: diversity qrels given to nDCG", partial(scored, qrels=both, measure="nDCG@10")
    diverse = partial(scored, qrels=both, measure="alpha_nDCG@3")
    yield "both: diversity qrels", diverse
    yield "both: diversity qrels, rows in no order", partial(diverse, run=RUN.iloc[[0, 4, 1, 5, 2, 3]])
    judged_only = partial(scored, qrels=both, measure="alpha_nDCG(judged_only=True)@3")
    yield "both: diversity qrels, judged_only", judged_only
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        flat = vbterrier.frames.flatten_qrels(both)

    def condensed(_folder):
        run = pt.Transformer.from_df(RUN.assign(rank=0)) >> vbterrier.Condense(flat)
        (plain,) = vbterrier.measures_from("alpha_nDCG@3")
        return float(pt.Experiment([run], topics, both, [plain])[str(plain)].item())

    yield "both: diversity qrels, judged_only by Condense", partial(judged_only, experiment=condensed)


def _ways():
    """Parameters that ask for what is refused otherwise."""
    first = {"how": {"duplicates": "first"}, "options": ["--duplicates", "first"]}
    yield "run: a document twice, the first wanted", partial(scored, run=TWICE, **first)
    skipped = partial(of_intents, intents=INTENTS.iloc[:2], measure="ES(undefined='skip')@1")
    yield "intents: a topic without, left out", skipped
    normalised = partial(of_intents, intents=cell(INTENTS, "prob", 1, 0.5), measure="ES(normalise=True)@1")
    yield "intents: probability sum off, made 1", normalised


def _files():
    def missing(folder):
        written(folder / "mine.run", TEXT)
        return folder / "mime.run"

    yield (
        "run file: missing",
        partial(
            scored,
            ask=lambda folder: vbterrier.score(missing(folder), QRELS, [MEASURE]),
            experiment=lambda folder: vbterrier.read_run(missing(folder)),
            arguments=lambda folder: ["score", missing(folder), "-q", written(folder / "qrels", JUDGED), "-m", MEASURE],
        ),
    )
    yield "run: a generator", partial(scored, run=(row for row in RUN.to_dict("records")), is_of_python=True)


def _systems():
    def same(folder):
        files = []
        for name in ("a", "b"):
            (folder / name).mkdir(exist_ok=True)
            files.append(written(folder / name / "mine.run", TEXT))
        return files

    judged = partial(written, content=JUDGED)
    topics = pd.DataFrame({"qid": ["q1", "q2"], "query": ["one", "two"]})

    def many(folder):
        return [written(folder / f"s{number}.run", TEXT) for number in range(30)]

    def means(result):
        return ", ".join(f"{mean:.4f}" for mean in sorted(set(result)))

    as_csv = ["-m", MEASURE, "-f", "csv"]

    yield (
        "systems: two of one name",
        partial(
            scored,
            ask=lambda folder: vbterrier.score(same(folder), QRELS, [MEASURE]),
            experiment=lambda _: f"{len(pt.Experiment([RUN] * 2, topics, QRELS, [vbterrier.BNDCG @ 10]))} rows",
            arguments=lambda folder: ["score", *same(folder), "-q", judged(folder / "qrels"), "-m", MEASURE],
        ),
    )
    yield (
        "systems: thirty",
        partial(
            scored,
            ask=lambda folder: means(
                vbterrier.score(many(folder), QRELS, [MEASURE], inference=Inference(n_resamples=2)).means()[MEASURE]
            ),
            experiment=lambda _: means(
                pt.Experiment([RUN] * 30, topics, QRELS, vbterrier.measures_from(MEASURE))[MEASURE]
            ),
            arguments=lambda folder: ["score", *many(folder), "-q", judged(folder / "qrels"), *as_csv],
        ),
    )
    yield "systems: two that are the same compared", partial(scored, **_compared(topics))


def _compared(topics):
    def ask(_folder):
        pair = vbterrier.compare({"one": RUN, "other": RUN}, QRELS, [MEASURE]).pairs.iloc[0]
        return f"difference {pair['diff']:.4f}, p {pair['p_value']:.4f}"

    def experiment(_folder):
        table = pt.Experiment(
            [RUN, RUN], topics, QRELS, vbterrier.measures_from(MEASURE), names=["one", "other"], perquery=True
        )
        pair = vbterrier.compare(table).pairs.iloc[0]
        return f"difference {pair['diff']:.4f}, p {pair['p_value']:.4f}"

    def arguments(folder):
        files = [written(folder / f"{name}.run", TEXT) for name in ("one", "other")]
        return ["compare", *files, "-q", written(folder / "qrels", JUDGED), "-m", MEASURE]

    return {"ask": ask, "experiment": experiment, "arguments": arguments}


def inputs():
    """Every input: what it is called, and what makes it in a folder."""
    yield from _runs()
    yield "run file: 9 MB in 30 KB of gzip, at most 1 MB wanted", _bomb
    yield from _qrels()
    yield from _intents()
    yield from _both()
    yield from _ways()
    yield from _files()
    yield from _systems()
    yield from _measures()
    yield from _bases()
    yield from _sets()
