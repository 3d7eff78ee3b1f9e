"""Bad aliases, answers, links and parameters of linkers, and what the messages name: one table."""
# ruff: noqa: E501 - rows of clients have the message on one line, as users see it.

import gzip
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
from refusals import check_message, check_refusal, refusals

from vbterrier.errors import FileError, InputError, ParameterError
from vbterrier.frames.entity_answers import Gold, answers
from vbterrier.linking.aliases import AliasFrame
from vbterrier.linking.dictionary import DictionaryLinker
from vbterrier.linking.links import Links, links_frame
from vbterrier.linking.services.annotators import (
    REL,
    WAT,
    EntityFishing,
    SpotlightAnnotate,
    SpotlightCandidates,
    SpotlightClient,
    TagMe,
    WATClient,
)
from vbterrier.linking.services.client import AnswerCache, RequestOptions
from vbterrier.linking.services.json_answers import Node, dbpedia_id
from vbterrier.linking.wrappers import RetrieverLinker

ROWS = pd.DataFrame(
    {
        "alias": ["Jordan", "Jordan", "His Airness", "007"],
        "entity_id": ["Q41421", "Q810", "Q41421", "007"],
        "score": [0.25, 0.75, 1.0, 0.5],
    }
)
PARIS = pd.DataFrame({"alias": ["Paris"], "entity_id": ["Q90"]})
GOLD = pd.DataFrame({"qid": [*"abcd"], "entity_id": ["Q1", "Q2", "NIL", "NIL"]})
ROW = (0, 5, 9, "York", "Q42462", 0.75, "York")
NO_RESOURCES = [
    "nl.dbpedia.org/resource/Apen",
    "example.org/dbpedia.org/resource/Apen",
    "dbpedia.org/page/Apen",
    "dbpedia.org/resource/",
    "dbpedia.org/resource/Caf%E9",
]


def dictionary(options):
    return DictionaryLinker(PARIS, id_space="k", **options)


def retrieved(rows, texts=("x",), **options):
    """Links of texts by a retriever of these results."""
    results = pd.DataFrame(rows, columns=["qid", "docno", "score"])
    return RetrieverLinker(pt.apply.generic(lambda _: results), id_space="k", **options).link(texts)


def annotated(changes):
    """Links of one annotation of WAT with these members; `...` leaves one out."""
    result = {"start": 0, "end": 6, "spot": "Jordan", "id": 20455, "title": "Michael_Jordan", "rho": 0.61} | changes
    return WAT().links([{"annotations": [{key: value for key, value in result.items() if value is not ...}]}])


NO_ANSWERS = [
    (GOLD.assign(entity_id=["Q1", None, "NIL", "NIL"]), r"row 1 \(query 'b'\) has no entity_id; write 'NIL' if"),
    (GOLD.assign(entity_id=["Q1", np.nan, "NIL", "NIL"]), r"row 1 \(query 'b'\) has no entity_id"),
    (GOLD.assign(docno="d"), "found both entity_id and docno"),
    (GOLD.rename(columns={"entity_id": "entity"}), "wanted columns qid, entity_id; missing entity_id"),
    (GOLD.drop(columns="qid"), "missing qid"),
    (GOLD.assign(qid=[1.0, 2.0, 3.0, 4.0]), "column 'qid': wanted ids as text"),
    ([("a", "Q1")], "wanted a data frame, found list"),
]


REFUSALS = [
    # Names
    *refusals(
        "aliases",
        lambda changes: AliasFrame(ROWS.assign(**changes), "people"),
        ({"score": [0.25, 1.5, 1, 1]}, r"row 1 \(alias 'Jordan', entity 'Q810'\) has score 1.5, wanted a probability"),
        ({"score": [0.25, -0.1, 1, 1]}, "has score -0.1, wanted a probability in 0 to 1; divide counts by their sum"),
        ({"score": [0.25, None, 1, 1]}, "aliases column 'score': row 1 holds nan, wanted a number"),
        ({"weight": [2, 3, 1, 1]}, r"row 1 \(alias 'Jordan'\) has weight 3, wanted a finite number above 0, the freq"),
        ({"weight": [2, 2, 0, 1]}, r"row 2 \(alias 'His Airness'\) has weight 0, wanted a finite number above 0"),
        ({"weight": [2, 2, 1, None]}, "aliases column 'weight': row 3 holds nan, wanted a number"),
        ({"alias": ["Jordan", None, "b", "c"]}, "aliases column 'alias': row 1 has no id"),
        ({"entity_id": ["Q1", "Q1", "Q1", "c"]}, "alias 'Jordan' of entity 'Q1' is in rows 0 and 1; keep one"),
        ({"entity_id": [1.0, 2.0, 3.0, 4.0]}, "aliases column 'entity_id': wanted ids as text, found float64"),
    ),
    *refusals(
        "columns of aliases",
        lambda column: AliasFrame(ROWS.drop(columns=column), "people"),
        ("alias", "alias"),
        ("entity_id", "entity_id"),
        says="aliases: wanted columns alias, entity_id; missing {}",
    ),
    *refusals(
        "parameters of a dictionary",
        dictionary,
        ({"case": "lower"}, "case='lower': wanted one of 'auto', 'ignore', 'exact'"),
        ({"ambiguous": "skipp"}, "ambiguous='skipp': wanted one of 'skip', 'truncate'. Did you mean skip"),
        ({"max_candidates": 0}, "max_candidates=0: wanted a whole number, 1 or more"),
        ({"min_length": 1.5}, "min_length=1.5: wanted a whole number"),
        ({"stop_aliases": "the"}, "stop_aliases='the': wanted a list of names, or None"),
        error=ParameterError,
    ),
    *refusals(
        "a dictionary and its texts",
        lambda call: call(),
        (lambda: DictionaryLinker(PARIS), ParameterError, "id_space: wanted the name"),
        (
            lambda: DictionaryLinker(PARIS[:0], id_space="k"),
            "aliases: no rows; a linker needs at least one alias",
        ),
        (lambda: dictionary({}).link("Paris"), "found one text"),
    ),
    # Answers
    *refusals(
        "the word for no entity",
        lambda nil: Gold(GOLD, nil=nil),
        *((nil,) for nil in ("", None, 0)),
        error=ParameterError,
        says="wanted the string that means no entity, such as 'NIL'",
    ),
    *refusals("gold answers", Gold, *NO_ANSWERS, says="gold.*{}"),
    *refusals("answers of a system", answers, *NO_ANSWERS, says="run.*{}"),
    # Links and services
    *refusals(
        "links",
        lambda frame, scale: Links(frame, "wikidata", scale),
        (links_frame([ROW]), "percent", ParameterError, "scale='percent': wanted one of 'probability', 'score'"),
        (pd.DataFrame({"text": [0]}), "score", InputError, "missing start, end, mention, entity_id, score, name"),
        (links_frame([(*ROW[:5], 1.5, "")]), "probability", InputError, "'Q42462' of mention 'York' has score 1.5"),
        (links_frame([(*ROW[:5], float("nan"), "")]), "probability", InputError, "wanted 0 to 1"),
        (links_frame([(*ROW[:5], float("nan"), "")]), "score", InputError, "wanted a number"),
    ),
    *refusals(
        "results of a retriever",
        retrieved,
        ([("0", "a", float("nan"))], "results of the retriever column 'score': row 0 holds nan"),
        ([("0", None, 1.0)], "results of the retriever column 'docno': row 0 has no id"),
        ([("0", "a", 1.0), ("0", "a", 2.0)], "document 'a' is duplicated for query '0'"),
    ),
    *refusals(
        "a retriever as a linker",
        lambda call: call(),
        (lambda: retrieved([("7", "a", 1.0)]), "query '7' was not asked"),
        (
            lambda: RetrieverLinker(lambda frame: frame, id_space="k"),
            ParameterError,
            "retriever: wanted a PyTerrier transformer, found function",
        ),
        (lambda: retrieved([], cutoff=0), ParameterError, "cutoff=0: wanted a whole number, 1 or more"),
        (lambda: retrieved([], "x"), "found one text"),
    ),
    *refusals(
        "an annotation of REL",
        lambda fields: REL(score="conf_md").links([[fields]]),
        ([0, 3, "Fox", "Fox", 0.5, 0.5], r"text 0: \[0\]: wanted 7 fields: .*found a list of 6"),
        ([0, 3, "Fox", "Fox", 0.5, "ORG", "ORG"], r"text 0: \[0\]\[5\]: wanted a number, found 'ORG'"),
        ([0, 3, "Fox", "Fox", 0.5, 0.5, 0.5], r"text 0: \[0\]\[5\]: wanted text, found 0.5"),
        ([0, -3, "Fox", "Fox", 0.5, 0.5, "ORG"], r"text 0: \[0\]: wanted a mention with 0 <= start .* at 0 to -3"),
        ([0.5, 3, "Fox", "Fox", 0.5, 0.5, "ORG"], r"\[0\]\[0\]: wanted a whole number, found 0.5"),
    ),
    *refusals(
        "an annotation of WAT",
        annotated,
        ({"start": "x"}, r"annotations\[0\]\.start: wanted a whole number, found 'x'"),
        ({"start": 1.5}, r"\.start: wanted a whole number, found 1.5"),
        ({"start": True}, r"\.start: wanted a whole number, found True"),
        ({"start": ...}, r"annotations\[0\]: wanted an object with 'start', found an object with end, spot, id"),
        ({"start": 7}, r"annotations\[0\]: wanted a mention with 0 <= start <= end .* at 7 to 6"),
        ({"start": -2}, r"annotations\[0\]: wanted a mention with 0 <= start <= end"),
        ({"end": 10**4000}, r"\.end: wanted a whole number, found an integer of more than 18 digits"),
        ({"spot": 7}, r"\.spot: wanted text, found 7"),
        ({"title": ["x"]}, r"\.title: wanted text, found a list of 1"),
        ({"title": "a\ud800"}, r"\.title: wanted text"),
        ({"rho": "NaN"}, r"\.rho: wanted a number, found 'NaN'"),
        ({"rho": float("inf")}, r"\.rho: wanted a number, found inf"),
        ({"rho": 10**400}, r"\.rho: wanted a number, found an integer of more than 18 digits"),
        ({"rho": None}, r"annotations\[0\]: wanted an object with 'rho'"),
        ({"rho": True}, r"\.rho: wanted a number, found True"),
        ({"rho": {}}, r"\.rho: wanted a number, found an empty object"),
        ({"rho": "x" * 500}, r"\.rho: wanted a number, found 'x{50,60}\.\.\.'$"),
        ({"rho": "\x1b[31m"}, r"\.rho: wanted a number, found '\\x1b\[31m'"),
    ),
    *refusals(
        "an address of DBpedia",
        lambda uri: dbpedia_id(Node(uri, "answer")),
        *((uri,) for uri in (*(f"http://{address}" for address in NO_RESOURCES), "", None, "x\ud800")),
        says="answer: wanted",
    ),
    *refusals(
        "the number of answers",
        lambda n: WAT().links([{"annotations": []}] * n, ["a", "b"]),
        (1, 1),
        (3, 3),
        says="WAT: {} answers to 2 texts; wanted one each, in order",
    ),
    *refusals(
        "an answer of another service",
        lambda kind, answer: kind().links([None, answer]),
        *(
            (kind, answer)
            for kind in (WAT, TagMe, REL, SpotlightAnnotate, SpotlightCandidates, EntityFishing)
            for answer in (3, "no", {}, {"error": "quota"}, [3], [[]], True, {"annotations": {}})
        ),
        says=r"answer to text 1(: [\w\[\]]+)?: wanted .*, found",
    ),
]


@pytest.mark.parametrize(("call", "arguments", "error", "words"), REFUSALS)
def test_bad_input_is_refused_by_name(request, call, arguments, error, words):
    check_refusal(request, call, arguments, error, words)


# Clients of services, with their complete messages.
LINE = '{"key": "k", "answer": {"a": "é"}}\n'
PROXY = RequestOptions(proxy="http://127.0.0.1:2")


def cached(content):
    Path("notes.txt").write_bytes(content)
    return AnswerCache("notes.txt")


# fmt: off
CLIENTS = [
    *refusals(
        "limits of requests",
        lambda options: RequestOptions(**options),
        ({"timeout": 0}, "timeout=0: wanted a number above 0"),
        ({"timeout": -1}, "timeout=-1: wanted a number above 0"),
        ({"timeout": math.nan}, "timeout=nan: wanted a number above 0"),
        ({"deadline": math.inf}, "deadline=inf: wanted a finite number above 0"),
        ({"deadline": "60"}, "deadline='60': wanted a number above 0"),
        ({"max_bytes": 0}, "max_bytes=0: wanted a whole number of at least 1"),
        ({"retries": -1}, "retries=-1: wanted a whole number of at least 0"),
        ({"retries": True}, "retries=True: wanted a whole number of at least 0"),
        ({"backoff": -0.1}, "backoff=-0.1: wanted a number of at least 0"),
        error=ParameterError,
    ),
    *refusals(
        "parameters of a client",
        lambda options: WATClient("https://example.org/tag", **options),
        ({"misplaced": "guess"}, "WAT: misplaced='guess': wanted one of 'error', 'unplaced'"),
        ({"score": "probability"}, "WAT: score='probability': wanted one of 'rho', 'prior'"),
        ({"ids": "wikidata"}, "WAT: ids='wikidata': wanted one of 'wikipedia_title', 'wikipedia_id'"),
        ({"method": "PUT"}, "method='PUT': wanted 'GET' or 'POST'"),
        ({"options": {"timeout": 5}}, "options: wanted settings as RequestOptions(...), found dict"),
        error=ParameterError,
    ),
    *refusals(
        "thresholds of Spotlight",
        lambda options: SpotlightClient("https://example.org/rest/annotate", **options),
        ({"confidence": 50}, "confidence=50: wanted a number of at least 0 and at most 1; did you mean 0.5, 50 per cent?"),
        ({"confidence": -0.1}, "confidence=-0.1: wanted a number of at least 0 and at most 1"),
        ({"support": 0.5}, "support=0.5: wanted a whole number of at least 0"),
        error=ParameterError,
    ),
    *refusals(
        "a token",
        lambda token: WATClient("https://example.org", token=token),
        *((token, "token: wanted printable ASCII text without blanks") for token in ("", "two words", "line\nbreak", "é", 7)),
        error=ParameterError,
    ),
    *refusals(
        "a place that must not see the token",
        lambda endpoint, options: WATClient(endpoint, token="secret", options=options),
        *(
            (f"http://{host}", RequestOptions(), f"endpoint='http://{host}': a token would be sent unencrypted; use https, or no token")
            for host in ("example.org", "127.example.org", "10.0.0.1")
        ),
        ("http://127.0.0.1:1", PROXY, "proxy='http://127.0.0.1:2': would read the token, which goes unencrypted to http://127.0.0.1:1; use an https endpoint, or no proxy"),
        error=ParameterError,
    ),
    *refusals(
        "a line of a cache",
        lambda line: cached((LINE + line + "\n").encode()),
        ("{}", 'notes.txt:2: wanted {"key": ..., "answer": ...}; name a cache of answers or a new file'),
        ("no json", 'notes.txt:2: wanted {"key": ..., "answer": ...}; name a cache of answers or a new file'),
        ("[1]", 'notes.txt:2: wanted {"key": ..., "answer": ...}; name a cache of answers or a new file'),
        ('{"key": 1, "answer": {}}', 'notes.txt:2: wanted {"key": ..., "answer": ...}; name a cache of answers or a new file'),
        ("", 'notes.txt:2: wanted {"key": ..., "answer": ...}; name a cache of answers or a new file'),
        ("[" * 100_000, 'notes.txt:2: wanted {"key": ..., "answer": ...}; name a cache of answers or a new file'),
        error=FileError,
    ),
    *refusals(
        "a file that is no cache",
        cached,
        (b"my notes", 'notes.txt:1: wanted {"key": ..., "answer": ...}; name a cache of answers or a new file'),
        (b'{"qid": 1}', 'notes.txt:1: wanted {"key": ..., "answer": ...}; name a cache of answers or a new file'),
        (gzip.compress(LINE.encode(), mtime=0), 'notes.txt:1: wanted {"key": ..., "answer": ...}; name a cache of answers or a new file'),
        error=FileError,
    ),
]
# fmt: on


@pytest.mark.parametrize(("call", "arguments", "error", "message"), CLIENTS)
def test_clients_refuse_with_this_message(request, call, arguments, error, message, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    check_message(request, call, arguments, error, message)
