"""Fuzz targets: every reader returns a valid result or raises an error of this package for any bytes.

A target takes a folder to write to and the bytes. For binary formats (Parquet, SQLite) the bytes change a valid file:
lines ``OFFSET HEX`` replace bytes, and ``cut N`` truncates it, so that all stored inputs are text.
"""

import json
import math
import sqlite3
import tempfile
import warnings
from contextlib import closing, suppress
from functools import cache, partial
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pandas as pd

import vbterrier
from vbterrier.errors import DegenerateWarning, FileError, InputError, VBTerrierError
from vbterrier.execution.checkpoint import Journal
from vbterrier.frames import columns
from vbterrier.frames.files.reading import read_answers, read_mentions, read_subtopics, read_values
from vbterrier.linking.services.annotators import REL, WAT, EntityFishing, SpotlightAnnotate, SpotlightCandidates, TagMe
from vbterrier.linking.services.client import AnswerCache
from vbterrier.settings import Inference

MAX_BYTES = 1 << 20
MODES = ("exact", "normalised", "fuzzy")
MENTIONS = ["jordan", "Michael Jordan", "mj", "", "x' OR 1=1 --"]


def check(name, folder, data):
    """Pass bytes to a target; any exception is a defect."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DegenerateWarning)
        error = None
        try:
            TARGETS[name](Path(folder), data)
        except VBTerrierError as refused:
            error = refused
    if error is not None:
        assert 0 < len(str(error)) < 4000, f"a message of {len(str(error))} letters"
        assert "please report" not in str(error), "a fault that no line shows"
        assert name in ANY_ERROR or isinstance(error, FileError), f"no file is named: {error!r}"


# Text and JSON lines.


def table(read, text, numbers, folder, data):
    """Check columns: ids are non-empty text, numbers are not NaN, and a second read returns the same frame."""
    path = written(folder, data)
    frame = read(path, max_bytes=MAX_BYTES)
    for name in text:
        assert all(isinstance(value, str) for value in frame[name]), name
        assert frame[name].str.len().gt(0).all() or name not in {"qid", "docno", "entity_id"}, name
    for name in numbers:
        assert frame[name].dtype in (np.float64, np.int64), name
        assert not frame[name].isna().any(), name
    pd.testing.assert_frame_equal(frame, read(path, max_bytes=MAX_BYTES))
    return frame


def trec(read, names, data_types, folder, data):
    """Compare files with fields separated by white space with a simple reader."""
    frame = table(read, [name for name, kind in data_types.items() if kind is str], [], folder, data)
    if data.startswith((b"PAR1", b"\x1f\x8b")):
        return
    rows = [line.split() for line in data.removeprefix(b"\xef\xbb\xbf").splitlines() if line.strip()]
    if {"qid", "docno"} <= set(columns.RUN.standard_names([word.decode() for word in rows[0]])):
        # A header.
        rows.pop(0)
    assert len(rows) == len(frame)
    if rows and len(rows[0]) == len(names):
        for name, kind in data_types.items():
            plain = [kind(row[names.index(name)].decode()) for row in rows]
            assert frame[name].tolist() == plain, name


def jsonl(read, folder, data):
    """Check the links of a linker's output file."""
    frame = read(written(folder, data), max_bytes=MAX_BYTES)
    for name in ("docno", "entity_id", "name"):
        assert all(isinstance(value, str) for value in frame[name]), name
    assert np.isfinite(frame["weight"]).all()


def services(_folder, data):
    """Read answers of linking services, with and without the text."""
    with suppress(ValueError, RecursionError):
        answer = json.loads(data)
        for kind in (EntityFishing, REL, SpotlightAnnotate, SpotlightCandidates, TagMe, WAT):
            for texts in (None, ["Michael Jordan 🐂 plays"]):
                with suppress(InputError):
                    kind().links([answer], texts)


def calibration(folder, data):
    from vbterrier import Calibrate

    stage = Calibrate.load(written(folder, data))
    scores = pd.DataFrame({"qid": "q1", "entity_id": ["A", "B"], "score": [0.25, -1.0]})
    prob = stage.transform(scores)["prob"]
    assert (prob >= 0).all()
    assert math.isclose(prob.sum(), 1, abs_tol=1e-9)


def answer_cache(folder, data):
    path = written(folder, data)
    cache = AnswerCache(path)
    cache.add("new", "{}")
    assert len(AnswerCache(path)) == len(cache)


def journal(folder, data):
    path = written(folder, data)
    result = Journal(path, "inputs")
    result.add("new", 1.5)
    assert Journal(path, "inputs").done == result.done


# Knowledge bases.


def kb_of_lines(build, folder, data):
    """Build a knowledge base from any bytes, and use all its methods."""
    with closing(build(folder / "built.kb", written(folder, data), progress=False)) as kb:
        assert len(kb)
        ask(kb)


def kb_of_rel(folder, data):
    """Cells of REL's table: ``word<tab>p_e_m<tab>freq`` a line; the second is coded unless it begins with ``=``."""
    rows = [[*line.split("\t"), "", ""][:3] for line in data.decode(errors="replace").splitlines()]
    cells = [(word, text[1:] if text.startswith("=") else coded(text), plain(n)) for word, text, n in rows]
    source = database(folder, "CREATE TABLE wiki (word, p_e_m, lower, freq)", "wiki(word, p_e_m, freq)", cells)
    with closing(vbterrier.linking.kb_from_rel(folder / "built.kb", source, progress=False)) as kb:
        ask(kb)


def kb_of_wikimapper(folder, data):
    """Cells of wikimapper's table, ``id<tab>title<tab>item`` a line; an empty cell is NULL."""
    rows = [[*line.split("\t"), "", ""][:3] for line in data.decode(errors="replace").splitlines()]
    columns = "mapping(wikipedia_id, wikipedia_title, wikidata_id)"
    source = database(folder, f"CREATE TABLE {columns}", columns, [tuple(map(plain, row)) for row in rows])
    for space in ("wikidata", "wikipedia_title"):
        with (
            suppress(VBTerrierError),
            closing(vbterrier.linking.kb_from_wikimapper(folder / space, source, id_space=space, progress=False)) as kb,
        ):
            ask(kb)


def kb_bytes(folder, data):
    """Change any bytes of a built file."""
    with closing(vbterrier.linking.KnowledgeBase(written(folder, patched(base() / "base.kb", data)))) as kb:
        ask(kb)


def kb_content(folder, data):
    """Change a built file with SQL statements."""
    path = written(folder, (base() / "base.kb").read_bytes())
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.set_authorizer(lambda action, *_: sqlite3.SQLITE_DENY if action in REFUSED else sqlite3.SQLITE_OK)
        db.set_progress_handler(lambda: 1, 200_000)
        if hasattr(db, "setlimit"):
            db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_BYTES)
        for statement in data.decode(errors="replace").split(";"):
            with suppress(sqlite3.Error, sqlite3.Warning, ValueError):
                db.execute(statement).fetchmany(10)
    with closing(vbterrier.linking.KnowledgeBase(path)) as kb:
        ask(kb)


def ask(kb):
    """Call all methods of a knowledge base; each may raise an error of this package."""
    questions = [
        lambda: (len(kb), kb.n_aliases, kb.id_space, kb.has_priors, repr(kb), hash(kb)),
        *(partial(kb.lookup, MENTIONS, how=how) for how in MODES),
        lambda: kb.names(["E1", "R1", "?"]),
        lambda: kb.resolve(["E1", "R1", "?"]),
        lambda: kb.attributes(["E1", "R1", "?"]),
        kb.attribute_names,
        kb.alias_table,
        lambda: vbterrier.linking.DictionaryLinker(kb).link(["Michael Jordan and jordan"]),
        lambda: kb.link(MENTIONS),
    ]
    for question in questions:
        with suppress(VBTerrierError):
            result = question()
            if isinstance(result, pd.DataFrame) and "score" in result.columns:
                assert result["score"].between(0, 1 + 1e-9).all(), result


# Parquet.


def parquet(name, read, folder, data):
    read(written(folder, patched(base() / name, data)), max_bytes=MAX_BYTES)


def artifact(folder, data):
    """Change the files of a set of intents; an empty line separates the changes of two files."""
    parts = data.split(b"\n\n", 2)
    place = folder / "set"
    place.mkdir(exist_ok=True)
    for number, name in enumerate(("pt_meta.json", "intents.parquet", "tags.parquet")):
        change = parts[number] if number < len(parts) else b""
        (place / name).write_bytes(patched(base() / "set" / name, change))
    result = vbterrier.IntentSet(place)
    result.intents(), result.tags()
    run = pd.DataFrame({"qid": "q1", "docno": ["d1", "d2"], "score": [2.0, 1.0]})
    result.VB @ 10
    scores = vbterrier.score(
        run, None, ["ES@10", "VB@10"], intents=result.intents(), tags=result.tags(), inference=Inference(n_resamples=2)
    )
    assert scores.values["value"].between(0, 1 + 1e-9).all()


# Helpers.


@cache
def base():
    """Return a folder of valid files."""
    folder = Path(tempfile.mkdtemp(prefix="vbterrier-fuzz-"))
    people = [
        {"id": "E1", "label": "Michael Jordan", "aliases": [["MJ", 0.75], "Jordan"], "attributes": {"born": 1963}},
        {"id": "E2", "label": "Jordan", "aliases": [["MJ", 0.25]], "redirects": ["R1"]},
    ]
    with patch("vbterrier.linking.kb.building.MAX_COMPARED_NAMES", 2):
        # Build an index of trigrams, as for a large knowledge base.
        vbterrier.linking.build_kb(folder / "base.kb", people, id_space="people", progress=False).close()
    run = pd.DataFrame({"qid": "q1", "docno": ["d1", "d2"], "score": [2.0, 1.0], "rank": [0, 1], "name": "x"})
    run.to_parquet(folder / "run.parquet", index=False)
    intents = pd.DataFrame({"qid": "q1", "entity_id": ["A", "B"], "prob": [0.75, 0.25], "name": ["a", "b"]})
    tags = pd.DataFrame({"docno": ["d1", "d2"], "entity_id": ["A", "B"], "weight": [1.0, 0.5]})
    vbterrier.IntentSet.build(folder / "set", intents, tags)
    vbterrier.entities.write_links(vbterrier.entities.link_pool(run, tags), folder / "links.parquet")
    return folder


def written(folder, data):
    path = folder / "input"
    path.write_bytes(data)
    return path


def patched(path, data):
    """Return the bytes of a file with the changes given by lines."""
    content = bytearray(path.read_bytes())
    for line in data.splitlines():
        where, _, what = line.partition(b" ")
        with suppress(ValueError):
            if where == b"cut":
                del content[int(what) :]
            elif 0 <= (start := int(where)) < len(content):
                utf8_bytes = bytes.fromhex(what.decode())
                content[start : start + len(utf8_bytes)] = utf8_bytes
    return bytes(content)


def coded(text):
    """Encode text as in REL."""
    return " ".join(format(ord(sign), "b") for sign in text)


def plain(cell):
    with suppress(ValueError, OverflowError):
        return int(cell) if -(2**63) <= int(cell) < 2**63 else float(cell)
    return cell or None


def database(folder, schema, columns, rows):
    path = folder / "source.sqlite"
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as db:
        db.execute(schema)
        db.executemany(f"INSERT INTO {columns} VALUES (?, ?, ?)", rows)
        db.commit()
    return path


REFUSED = {sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH, sqlite3.SQLITE_PRAGMA}
# The errors of these targets do not name a file.
ANY_ERROR = {"artifact", "services", "calibration", "kb-rel", "kb-wikimapper", "kb-file", "kb-wikidata"}
RUN = {"qid": str, "docno": str, "rank": int, "score": float}
QRELS = {"qid": str, "iteration": str, "docno": str, "label": int}
TARGETS = {
    "run": partial(trec, vbterrier.read_run, ["qid", "Q0", "docno", "rank", "score", "name"], RUN),
    "qrels": partial(trec, vbterrier.read_qrels, list(QRELS), QRELS),
    "topics": partial(table, vbterrier.read_topics, ["qid", "query"], []),
    "documents": partial(table, vbterrier.read_documents, ["docno"], []),
    "intents": partial(table, vbterrier.read_intents, ["qid", "entity_id"], ["prob"]),
    "tags": partial(table, vbterrier.read_tags, ["docno", "entity_id"], ["weight"]),
    "answers": partial(table, read_answers, ["qid", "entity_id"], []),
    "subtopics": partial(table, read_subtopics, ["qid", "entity_id"], []),
    "values": partial(table, read_values, ["name", "qid", "measure"], ["value"]),
    "mentions": partial(table, read_mentions, ["docno", "mention"], []),
    "wat": partial(jsonl, vbterrier.linking.read_wat_corpus),
    "mmead": partial(jsonl, vbterrier.linking.read_mmead),
    "spans": partial(jsonl, vbterrier.linking.read_spans),
    "elevant": partial(jsonl, vbterrier.linking.read_elevant),
    "rel": partial(jsonl, vbterrier.linking.read_rel),
    "services": services,
    "calibration": calibration,
    "answer-cache": answer_cache,
    "journal": journal,
    "kb-file": partial(kb_of_lines, partial(vbterrier.linking.kb_from_file, id_space="own")),
    "kb-wikidata": partial(kb_of_lines, partial(vbterrier.linking.kb_from_wikidata, properties=["P569", "P17"])),
    "kb-rel": kb_of_rel,
    "kb-wikimapper": kb_of_wikimapper,
    "kb-bytes": kb_bytes,
    "kb-content": kb_content,
    "run-parquet": partial(parquet, "run.parquet", vbterrier.read_run),
    "links-parquet": partial(parquet, "links.parquet", vbterrier.entities.read_links),
    "artifact": artifact,
}
