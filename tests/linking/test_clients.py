"""Clients of linking services against a local service with valid, invalid, late and endless answers."""

import dataclasses
import gzip
import html
import json
import logging
import pickle
import socket
import subprocess
import sys
import threading
import time
import traceback
import tracemalloc
import zlib
from email.utils import formatdate
from urllib.parse import quote

import pytest

from vbterrier.errors import DegenerateWarning, FileError, InputError, ParameterError, ServiceError
from vbterrier.linking.links import COLUMNS, Linker
from vbterrier.linking.services.annotators import (
    EntityFishingClient,
    RELClient,
    SpotlightClient,
    TagMeClient,
    WATClient,
)
from vbterrier.linking.services.client import AnswerCache, Client, RequestOptions
from vbterrier.linking.services.transport import Secret

TOKEN = "s3cr3t+tok/en=="
QUICK = {"timeout": 5.0, "deadline": 20.0, "backoff": 0.01}
LIMITS = {each.name for each in dataclasses.fields(RequestOptions)}


def jordan(spot="Jordan", start=0):
    """Return WAT's answer to a text that contains Jordan."""
    prior = {"prior_explanation": {"entity_mention_probability": 0.25}}
    annotation = {"start": start, "end": start + len(spot), "spot": spot, "id": 20455, "title": "Michael_Jordan"}
    return {"annotations": [annotation | {"rho": 0.5, "explanation": prior}]}


def wat(service, **options):
    limits = {name: options.pop(name) for name in LIMITS & set(options)}
    return WATClient(service.url + "/tag", options=RequestOptions(**(QUICK | limits)), **options)


def failure(client, texts=("Jordan won",)):
    with pytest.raises(ServiceError) as caught:
        client.link(list(texts))
    return caught.value


@pytest.fixture(autouse=True)
def contacted(monkeypatch):
    """Record the hosts of name look-ups and sockets, and allow only this machine."""
    hosts = []

    def watched(real, host_of):
        def call(*args, **options):
            hosts.append(host_of(args))
            assert hosts[-1] == "127.0.0.1", f"{hosts[-1]} was contacted"
            return real(*args, **options)

        return call

    for name in ("connect", "connect_ex"):
        real = getattr(socket.socket, name)
        monkeypatch.setattr(socket.socket, name, watched(real, lambda args: args[1][0]))
    monkeypatch.setattr(socket, "getaddrinfo", watched(socket.getaddrinfo, lambda args: args[0]))
    yield hosts
    assert set(hosts) <= {"127.0.0.1"}


def sample(shared_data, name):
    return json.loads((shared_data / "linker_response_samples" / name).read_text())


NOVELS = "I read all of those novels and poems, by Charles Bukowski"
BURRITOS, SENSOR, SONS = "My favourite food is... Mexican burritos", "concrete pump sensor", "Jordan & Söhne"
FISHING, PUMPS = "entity_fishing_query.verbatim_elided", ["5371", "7088907", "23617"]
NBEST = {"shortText": SENSOR, "nbest": True, "language": {"lang": "en"}}


def form(text, lang="en"):
    return {"lang": [lang], "text": [text]}


@pytest.mark.parametrize(
    ("kind", "options", "name", "text", "sent", "entities"),
    [
        (WATClient, {"lang": "de", "score": "prior"}, "wat_raw.shape", SONS, form(SONS, "de"), ["Michael_Jordan"]),
        (WATClient, {"method": "POST"}, "wat_raw.shape", "Jordan won", form("Jordan won"), ["Michael_Jordan"]),
        (TagMeClient, {"ids": "wikipedia_id"}, "tagme_tag.shape", BURRITOS, form(BURRITOS), ["18333"]),
        (RELClient, {}, "rel_api.shape", NOVELS, {"text": NOVELS, "spans": []}, ["Charles_Bukowski"]),
        (EntityFishingClient, {"short": True, "nbest": True}, FISHING, SENSOR, NBEST, PUMPS),
        (EntityFishingClient, {"lang": ""}, FISHING, SENSOR, {"text": SENSOR, "nbest": False}, PUMPS),
    ],
)
@pytest.mark.filterwarnings("ignore:TagMe. 1 mention is linked to nothing:vbterrier.errors.DegenerateWarning")
def test_services_are_asked_as_documented(service, shared_data, kind, options, name, text, sent, entities):
    service.answers(sample(shared_data, f"{name}.json"))
    links = kind(service.url + "/tag", token=TOKEN, **options).link([text])
    assert links.frame["entity_id"].tolist() == entities
    assert links.scale == ("probability" if options.get("score") == "prior" else "score")
    [request] = service.requests
    is_get = kind is WATClient and "method" not in options
    assert (request.method, request.path) == ("GET" if is_get else "POST", "/tag")
    assert (request.params or json.loads(request.body)) == sent
    header, before = kind.token_header
    assert request.headers[header] == before + TOKEN
    assert request.headers["Accept"] == "application/json"


SEAL = "Seal sang"
FISHED = {
    "entities": [
        {"rawName": "Seal", "offsetStart": 0, "offsetEnd": 4, "wikipediaExternalRef": "7", "nerd_score": "0.5"}
    ]
}
CANDIDATES = [
    {"@uri": "Seal_(singer)", "@finalScore": "0.75", "@priorScore": "2.5E-1"},
    {"@uri": "Seal_(animal)", "@finalScore": "0.25", "@priorScore": "5.0E-1"},
]


def candidates(resource):
    """Return Spotlight's answer with one mention, which is then no list."""
    return {"annotation": {"@text": SEAL, "surfaceForm": {"@name": "Seal", "@offset": "0", "resource": resource}}}


ANNOTATED = {
    "Resources": [{"@URI": "http://dbpedia.org/resource/Seal_(singer)", "@surfaceForm": "Seal", "@offset": "0"}]
}
ANNOTATED["Resources"][0]["@similarityScore"] = "0.75"


@pytest.mark.parametrize(
    ("kind", "path", "options", "answer", "sent", "rows", "scale"),
    [
        (WATClient, "/tag", {"score": "prior"}, jordan("Seal"), form(SEAL), [("Michael_Jordan", 0.25)], "probability"),
        (TagMeClient, "/tag", {"ids": "wikipedia_id"}, jordan("Seal"), form(SEAL), [("20455", 0.5)], "score"),
        (
            RELClient,
            "/",
            {},
            [[0, 4, "Seal", "Seal_(singer)", 0.5, 0.75, "PER"]],
            {"text": SEAL, "spans": []},
            [("Seal_(singer)", 0.5)],
            "score",
        ),
        (
            EntityFishingClient,
            "/",
            {"short": True, "nbest": True},
            FISHED,
            {"shortText": SEAL, "nbest": True, "language": {"lang": "en"}},
            [("7", 0.5)],
            "score",
        ),
        (EntityFishingClient, "/", {"lang": ""}, FISHED, {"text": SEAL, "nbest": False}, [("7", 0.5)], "score"),
        (
            SpotlightClient,
            "/annotate",
            {"confidence": 0.3, "support": 5},
            ANNOTATED,
            {"text": [SEAL], "confidence": ["0.3"], "support": ["5"]},
            [("Seal_(singer)", 0.75)],
            "score",
        ),
        (SpotlightClient, "/annotate", {}, {"@text": SEAL}, None, [], "score"),
        (
            SpotlightClient,
            "/candidates",
            {},
            candidates(CANDIDATES),
            None,
            [("Seal_(singer)", 0.75), ("Seal_(animal)", 0.25)],
            "probability",
        ),
        (
            SpotlightClient,
            "/candidates",
            {"score": "priorScore"},
            candidates(CANDIDATES[1]),
            None,
            [("Seal_(animal)", 0.5)],
            "score",
        ),
    ],
)
def test_services_are_asked_and_their_answers_read(service, kind, path, options, answer, sent, rows, scale):
    """Invented answers in the documented formats: numbers as text, one object instead of a list, nothing found."""
    service.answers(answer)
    links = kind(service.url + path, **options).link([SEAL])
    assert list(links.frame[["entity_id", "score"]].itertuples(index=False, name=None)) == rows
    assert links.frame["mention"].tolist() == ["Seal"] * len(rows)
    assert links.scale == scale
    [request] = service.requests
    assert (request.method, request.path) == ("GET" if kind is WATClient else "POST", path)
    assert sent is None or (request.params or json.loads(request.body)) == sent


def test_endpoints_and_scores_of_spotlight_are_checked(service):
    service.answers(candidates(CANDIDATES))
    links = SpotlightClient(service.url + "/candidates/", edition="nl").link([SEAL])
    assert (links.id_space, links.scale) == ("dbpedia:nl", "probability")
    with pytest.raises(ParameterError, match=r"ends in /annotate or /candidates"):
        SpotlightClient(service.url + "/rest")
    with pytest.raises(ParameterError, match="score='similarityScore': wanted one of 'finalScore'"):
        SpotlightClient(service.url + "/candidates", score="similarityScore")


def test_a_probability_above_1_is_refused(service):
    service.answers(candidates(CANDIDATES[0] | {"@finalScore": "1.5"}))
    message = r"wanted a probability as finalScore, 0 to 1 \(it is 1\.5\)"
    with pytest.raises(ServiceError, match=message):
        SpotlightClient(service.url + "/candidates").link([SEAL])


def test_warnings_are_given_once_a_client(service):
    service.answers({"annotations": [{"start": 0, "end": 1, "spot": "a", "id": 0, "rho": 0.1}]})
    client = TagMeClient(service.url + "/tag")
    for copy in (client, pickle.loads(pickle.dumps(client))):
        with pytest.warns(DegenerateWarning, match="TagMe: 1 mention is linked to nothing") as record:
            results = [copy.link(texts).frame for texts in (["a"], ["a b"], ["a"])]
        assert all(frame.empty for frame in results)
        assert len(record) == 1


def test_spotlight_gives_one_entity_or_candidates_as_the_endpoint_does(service, shared_data):
    brazil = sample(shared_data, "spotlight_annotate.brazil.verbatim.json")
    delft = sample(shared_data, "spotlight_candidates.single_surfaceform.verbatim.json")
    service.answers(brazil, delft)
    links = SpotlightClient(service.url + "/rest/annotate", confidence=0.3, support=5).link([brazil["@text"]])
    assert links.frame["entity_id"].tolist() == ["Brazil", "Petrobras"]
    assert (links.id_space, links.scale) == ("dbpedia", "score")
    [request] = service.requests
    assert (request.method, request.path) == ("POST", "/rest/annotate")
    assert request.params == {"text": [brazil["@text"]], "confidence": ["0.3"], "support": ["5"]}
    text = delft["annotation"]["@text"]
    links = SpotlightClient(service.url + "/candidates/").link([text])
    assert links.frame["entity_id"].tolist() == ["Technische_Universiteit_Delft", "Delft_University_of_Technology"]
    assert links.scale == "probability"
    by_prior = SpotlightClient(service.url + "/candidates", score="priorScore", edition="nl").link([text])
    assert (by_prior.scale, by_prior.id_space) == ("score", "dbpedia:nl")
    with pytest.raises(ParameterError, match=r"ends in /annotate or /candidates"):
        SpotlightClient(service.url + "/rest")
    with pytest.raises(ParameterError, match="score='similarityScore': wanted one of 'finalScore'"):
        SpotlightClient(service.url + "/candidates", score="similarityScore")


@pytest.mark.parametrize("kind", [WATClient, TagMeClient, RELClient, EntityFishingClient])
def test_clients_are_linkers_and_constructing_one_opens_nothing(kind, contacted, monkeypatch):
    monkeypatch.setattr(socket, "socket", lambda *_args, **_kwargs: pytest.fail("a socket was made"))
    client = kind("https://linker.example.org/tag", token=TOKEN)
    assert isinstance(client, Linker)
    assert isinstance(client, Client)
    assert repr(client) == f"{kind.__name__}('https://linker.example.org/tag', token=***)"
    assert client == kind("https://linker.example.org/tag", token=TOKEN)
    assert hash(client) == hash(kind("https://linker.example.org/tag", token=TOKEN))
    assert client != kind("https://linker.example.org/tag")
    assert contacted == []
    # Empty and blank texts open no connection either.
    for texts in ([], ["", " \n"]):
        links = client.link(texts)
        assert links.frame.columns.tolist() == list(COLUMNS)
        assert len(links.frame) == 0
    client.close()
    assert contacted == []
    with pytest.raises(TypeError, match="endpoint"):
        kind()


def test_texts_go_one_by_one_in_order_each_once_over_one_connection(service):
    service.answers(jordan(), jordan("Ann", 2), {"annotations": []})
    texts = ["Jordan won", "", "x Ann", "Jordan won", "nobody"]
    links = wat(service).link(texts)
    assert service.texts() == ["Jordan won", "x Ann", "nobody"]
    assert links.frame["text"].tolist() == [0, 2, 3]
    assert links.frame["mention"].tolist() == ["Jordan", "Ann", "Jordan"]
    assert len({request.port for request in service.requests}) == 1


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ("Jordan won", "wanted a sequence of texts, found one text"),
        (["a", 3], "wanted text, found int at 1"),
        (["a", None], "wanted text, found NoneType at 1"),
        (["a", "b\ud800"], "text 1 contains half of a surrogate pair"),
    ],
)
def test_what_is_no_text_is_refused_before_anything_is_sent(service, texts, message):
    with pytest.raises(InputError, match=message):
        wat(service).link(texts)
    assert service.requests == []


ENDPOINTS = {
    "wanted https://host/path or http://host/path, with a host": ["wat.example.org/tag", "ftp://example.org/tag"],
    "wanted https": ["https:///tag", "https://example.org:99999/", "https://[::1/"],
    "ASCII without blanks": ["https://exa mple.org/", "https://example.org/\n", "", None],
    "without user, password, query": [
        f"https://{rest}" for rest in ("me:hunter2@e.org/", "e.org/?k=hunter2", "e/#hunter2")
    ],
}


@pytest.mark.parametrize(
    ("endpoint", "message"), [(one, message) for message, endpoints in ENDPOINTS.items() for one in endpoints]
)
def test_endpoints_are_checked_and_their_secrets_not_repeated(endpoint, message):
    with pytest.raises(ParameterError, match=message) as caught:
        WATClient(endpoint)
    assert "hunter2" not in str(caught.value)
    if endpoint:
        with pytest.raises(ParameterError, match=f"proxy: .*{message}"):
            RequestOptions(proxy=endpoint)


@pytest.mark.parametrize("value", [3, True, b"answers.jsonl", "", "a\0b", ["a"]])
def test_a_cache_of_requests_is_the_name_of_a_file(value):
    with pytest.raises(ParameterError, match=r"^cache=.*: wanted"):
        RequestOptions(cache=value)


def test_options_of_clients_are_options_of_requests_and_part_of_their_identity():
    with pytest.raises(ParameterError, match=r"options: wanted settings as RequestOptions\(\.\.\.\), found dict"):
        RELClient("http://localhost:5555", options={"timeout": 5})
    patient, other = (RELClient("http://localhost:5555", options=RequestOptions(timeout=n)) for n in (60, 30))
    assert patient != other
    assert patient == pickle.loads(pickle.dumps(patient))
    assert hash(patient) == hash(pickle.loads(pickle.dumps(patient)))
    assert "options=RequestOptions(timeout=60, deadline=60.0" in repr(patient)


PROXY = RequestOptions(proxy="http://127.0.0.1:2")


def test_tokens_go_over_https_or_to_this_machine_alone():
    for endpoint in ("https://example.org", "http://127.0.0.1:1", "http://[::1]:1", "http://localhost/x"):
        WATClient(endpoint, token=TOKEN)
    for endpoint in ("http://example.org", "http://127.example.org", "http://10.0.0.1"):
        with pytest.raises(ParameterError, match="a token would be sent unencrypted"):
            WATClient(endpoint, token=TOKEN)
        WATClient(endpoint)
    WATClient("https://example.org", token=TOKEN, options=PROXY)
    with pytest.raises(ParameterError, match=r"proxy='http://127.0.0.1:2': would read the token"):
        WATClient("http://127.0.0.1:1", token=TOKEN, options=PROXY)


def test_tokens_are_in_no_message_log_state_or_cache(service, caplog, tmp_path):
    caplog.set_level(logging.DEBUG)
    echo = service.send(f"no such token: {TOKEN} or s3cr3t%2Btok%2Fen%3D%3D {'x' * 300}", status=403)
    service.answers(jordan(), echo, service.hang_up(b""), service.send("", 302, Location=f"/login?{TOKEN}"))
    client = wat(service, token=TOKEN, retries=0, cache=tmp_path / "answers.jsonl")
    client.link(["Jordan won"])
    shown = [repr(client), repr(vars(client)), str(dataclasses.asdict(client)), caplog.text]
    for message in (r"no such token: \*\*\* or \*\*\* xxx", "could not be reached", "answered 302"):
        with pytest.raises(ServiceError, match=message) as caught:
            client.link(["Jordan lost"])
        assert caught.value.__cause__ is None
        assert caught.value.__context__ is None
        shown.append("".join(traceback.TracebackException.from_exception(caught.value, capture_locals=True).format()))
    shown += [caplog.text, (tmp_path / "answers.jsonl").read_text()]
    assert all(request.headers["gcube-token"] == TOKEN for request in service.requests)
    assert not [text for text in shown if "s3cr3t" in text]


@pytest.mark.parametrize(
    "spelt",
    [r"s3cr3t+tok\/en==", r"s3cr3t\u002Btok\u002fen\u003d=", "s3cr3t%2btok%2Fen==", "s3cr3t&#43;tok&#x2f;en&#061;="],
)
def test_tokens_are_hidden_in_any_spelling(service, spelt):
    service.answers(service.send(f'{{"error": "no such token: {spelt}!"}}', status=401))
    assert "no such token: ***!" in str(failure(wat(service, token=TOKEN)))
    for signs in ("a&b<c>d", 'a"b\\c', "$^.*+?()[]{}|"):
        secret = Secret(signs)
        for spelling in (signs, json.dumps(signs)[1:-1], quote(signs, safe=""), html.escape(signs)):
            assert secret.hide(f"<{spelling}>") == "<***>"
            assert secret.hide(spelling[:-1]) != "***"


@pytest.mark.parametrize(
    "answer",
    [
        {TOKEN: 1},
        {"annotations": TOKEN},
        # The message is cut in the middle of the token.
        {"annotations": "x" * 55 + TOKEN},
    ],
)
def test_answers_that_repeat_the_token_are_not_quoted(service, answer):
    service.answers(answer)
    error = str(failure(wat(service, token=TOKEN)))
    assert "answered in another format: not shown because the answer repeats the token" in error
    assert "s3c" not in error
    assert "found " in str(failure(wat(service, token="another")))


@pytest.mark.parametrize("token", [TOKEN, "AbC9-Token"])
@pytest.mark.parametrize("start", ["", "x" * 35, "x" * 60])
def test_headers_and_members_named_as_the_token_are_not_shown(service, token, start):
    twice = json.dumps(start + token)
    for reply in (
        service.send("{}", Content_Encoding=start + token),
        service.send(f"{{{twice}: 1, {twice}: 2}}"),
        service.send(f"{start}{token}"),
        service.send(f"{start}{token}", 500),
        service.send("", 302, Location=f"//{start}{token}/"),
    ):
        service.answers(reply)
        error = failure(wat(service, token=token, retries=0))
        shown = f"{error} {error!r} {vars(error)}".casefold()
        assert not any(token[:n].casefold() in shown for n in range(3, len(token) + 1))


def test_a_client_with_a_token_is_not_pickled_and_one_without_is(service):
    service.answers(jordan())
    client = wat(service)
    client.link(["Jordan won"])
    copy = pickle.loads(pickle.dumps(client))
    assert copy == client
    assert len(copy.link(["Jordan won"]).frame) == 1
    with pytest.raises(TypeError, match="a token is not pickled"):
        pickle.dumps(wat(service, token=TOKEN))
    with pytest.raises(TypeError, match="a token is not pickled"):
        pickle.dumps(Secret(TOKEN))


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize(
    ("location", "shown"),
    [
        ("https://user:pw@evil.example.org/tag?text=Jordan", "to https://evil.example.org/tag; not followed"),
        ("file:///etc/passwd", "to file:///etc/passwd; not"),
        ("//evil.example.org/tag", "to ://evil.example.org/tag; not"),
        ("gopher://evil.example.org:70/x?key=hunter2#hunter2", "to gopher://evil.example.org:70/x; not"),
        ("/tag", "to :///tag; not"),
        ("http://[", "to an invalid address; not"),
        ("", "to ://; not"),
    ],
)
def test_no_redirect_leads_anywhere_nor_in_a_circle(service, status, location, shown):
    service.answers(service.send("", status, Location=location))
    error = failure(wat(service))
    assert (error.status, error.endpoint) == (status, service.url + "/tag")
    assert f"answered {status} " in str(error)
    assert shown in str(error)
    assert not [secret for secret in ("hunter2", "pw@", "text=") if secret in str(error)]
    assert len(service.requests) == 1


def test_bodies_of_redirects_are_not_read(service):
    service.answers(service.send(gzip.compress(b" " * 20_000_000), 307, Location="/else", Content_Encoding="gzip"))
    assert failure(wat(service)).status == 307
    assert len(service.requests) == 1


def test_the_environment_changes_nothing(service, monkeypatch, tmp_path):
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login me password hunter2\n")
    monkeypatch.setenv("NETRC", str(netrc))
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://proxy.example.org:3128")
    service.answers(service.send(json.dumps(jordan()), Set_Cookie="session=1"), jordan())
    wat(service).link(["Jordan won", "Jordan lost"])
    assert [{"Authorization", "Cookie"} & set(request.headers) for request in service.requests] == [set(), set()]


def test_a_proxy_that_is_named_is_gone_through(service):
    service.answers(jordan(), service.drip)
    client = WATClient("http://linker.example.org/tag", options=RequestOptions(proxy=service.url))
    assert len(client.link(["Jordan won"]).frame) == 1
    assert service.requests[0].headers["Host"] == "linker.example.org"
    late = WATClient("http://linker.example.org/tag", options=RequestOptions(proxy=service.url, deadline=0.3))
    assert "did not end its answer in time" in str(failure(late))


def test_a_proxy_to_an_https_endpoint_sees_no_token_and_meets_the_deadline(service):
    service.answers(service.silent)
    options = RequestOptions(proxy=service.url, deadline=0.4)
    client = WATClient("https://linker.example.org/tag", token=TOKEN, options=options)
    assert "did not end its answer in time" in str(failure(client))
    [request] = service.requests
    assert request.method == "CONNECT"
    assert "s3cr3t" not in repr(request)


@pytest.mark.slow
def test_silence_times_out_and_is_tried_again_until_it_ends(service):
    service.answers(service.silent, jordan())
    assert len(wat(service, timeout=0.5).link(["Jordan won"]).frame) == 1
    assert len(service.requests) == 2
    service.answers(service.silent)
    error = failure(wat(service, timeout=0.1, retries=1))
    assert "sent nothing for 0.1 s; raise RequestOptions(timeout=) if it is slow (2 tries)" in str(error)
    assert error.status is None


SLOW = ["drip", "drip_chunk", "drip_headers", "drip_trailers", "drip_continue", "drip_unstated"]


@pytest.mark.parametrize("how", SLOW)
@pytest.mark.slow
def test_a_server_that_sends_any_part_slowly_is_stopped_at_the_deadline_of_one_text(service, how):
    service.answers(jordan(), getattr(service, how), jordan())
    client = wat(service, deadline=0.8)
    client.link(["Jordan won"])
    started = time.monotonic()
    assert "did not end its answer in time" in str(failure(client, ["Jordan lost"]))
    # Half of the minute for which the server goes on, and many times the deadline, for a machine with much else to do.
    assert time.monotonic() - started < 30
    assert len(service.requests) == 2
    assert len(client.link(["Jordan lost"]).frame) == 1


def stopped_at_the_deadline(service, client):
    started = time.monotonic()
    assert "did not end its answer in time" in str(failure(client, ["Jordan lost"]))
    assert time.monotonic() - started < 30


@pytest.mark.slow
def test_a_slow_look_up_of_the_host_ends_at_the_deadline(service, monkeypatch):
    getaddrinfo = socket.getaddrinfo

    def slow(*arguments):
        service.over.wait(60)
        return getaddrinfo(*arguments)

    service.answers(jordan())
    client = wat(service, deadline=0.8)
    with monkeypatch.context() as patched:
        patched.setattr(socket, "getaddrinfo", slow)
        stopped_at_the_deadline(service, client)
    assert not service.requests
    assert len(client.link(["Jordan lost"]).frame) == 1


@pytest.mark.parametrize("how", ["drip", "drip_headers", "silent"])
@pytest.mark.slow
def test_several_addresses_end_at_the_deadline(service, monkeypatch, how):
    getaddrinfo = socket.getaddrinfo
    with socket.socket() as busy:
        busy.bind(("127.0.0.1", 0))
        # Further connections to a full queue wait.
        busy.listen(0)
        waiting = [socket.socket() for _ in range(4)]
        for each in waiting:
            each.setblocking(False)
            each.connect_ex(busy.getsockname())

        def several(*arguments):
            (family, kind, protocol, name, address), *_ = getaddrinfo(*arguments)
            return [(family, kind, protocol, name, at) for at in (*[busy.getsockname()] * 3, address)]

        service.answers(getattr(service, how), jordan())
        client = wat(service, timeout=0.5, deadline=1.0, retries=0)
        with monkeypatch.context() as patched:
            patched.setattr(socket, "getaddrinfo", several)
            stopped_at_the_deadline(service, client)
        # The connection to the last address is closed after the deadline, and no request goes through it.
        for thread in threading.enumerate():
            if thread.name == "vbterrier-request":
                thread.join(30)
        assert not service.requests
        for each in waiting:
            each.close()


class Clock:
    """A clock that only the waits of a client move."""

    def __init__(self):
        self.waits = []

    def sleep(self, seconds):
        self.waits.append(seconds)

    def monotonic(self):
        return sum(self.waits)


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr("vbterrier.linking.services.client.time", made)
    return made


def test_waits_double_and_end_with_the_deadline(service, clock):
    service.answers(service.send("", 503))
    assert "(5 tries)" in str(failure(wat(service, retries=4, backoff=0.25, deadline=60.0)))
    assert clock.waits == [0.25, 0.5, 1.0, 2.0]
    clock.waits.clear()
    error = failure(wat(service, retries=4, backoff=4.0, deadline=20.0))
    assert "(3 tries; the next would be in 16 s, beyond the deadline of 20 s)" in str(error)
    assert clock.waits == [4, 8]


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize("form", ["seconds", "date"])
def test_retry_after_is_respected_within_the_deadline(service, clock, monkeypatch, status, form):
    monkeypatch.setattr("urllib3.util.retry.time.time", lambda: 1e9)
    header = {"seconds": str, "date": lambda n: formatdate(1e9 + n, usegmt=True)}[form]
    service.answers(service.send("", status, Retry_After=header(7)), service.send("", status, Retry_After=header(3600)))
    error = failure(wat(service, deadline=60.0))
    assert len(service.requests) == 2
    assert clock.waits == [7]
    assert "beyond the deadline of 60 s" in str(error)


@pytest.mark.parametrize("header", ["soon", "-5", "1e9", "²", "Mon, 99 Foo"])
def test_a_retry_after_that_says_nothing_is_passed_over(service, header):
    service.answers(service.send("", 503, Retry_After=header.encode().decode("latin1")), jordan())
    assert len(wat(service).link(["Jordan won"]).frame) == 1


def test_errors_of_the_service_are_tried_again_and_end_with_a_remedy(service):
    service.answers(service.send("out of\nmemory\x1b[31m", 500))
    error = failure(wat(service), ["fine", "Jordan won"])
    assert (error.endpoint, error.status) == (service.url + "/tag", 500)
    assert str(error) == (
        f"WAT at {service.url}/tag: text 0 ('fine'): answered 500 Internal Server Error: out of memory\\x1b[31m; try "
        "later, or ask the operator of the service (3 tries); 0 of 2 answers arrived and are kept: the same call "
        "requests the rest"
    )
    assert len(service.requests) == 3
    service.answers(service.send("oops", 500), service.send("oops", 502), jordan())
    assert len(wat(service).link(["Jordan won"]).frame) == 1
    assert len(service.requests) == 6


REFUSALS = {400: "correct the request", 401: "pass the service's token", 403: "pass a token that may use the service"}
REFUSALS |= {404: "correct the path of the endpoint", 414: "method='POST'", 499: "no known status"}


@pytest.mark.parametrize("status", REFUSALS)
def test_refusals_are_not_tried_again(service, status):
    service.answers(service.send("<html>secret</html>", status))
    error = failure(wat(service))
    assert error.status == status
    assert REFUSALS[status] in str(error)
    assert "html" not in str(error)
    assert len(service.requests) == 1


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "answered with invalid JSON"),
        (b'{"annotations": [', "answered with invalid JSON (Expecting value"),
        (b'{"annotations": [{"rho": NaN}]}', "answered with invalid JSON (NaN is not JSON)"),
        (b"[" * 100_000, "answered with invalid JSON"),
        (b"9" * 5_000, "answered with invalid JSON"),
        (b"\n<!DOCTYPE html><html><p>Log in</p></html>", "answered with HTML; check the path of the endpoint"),
        ('{"annotations": [], "note": "é"}'.encode("latin1"), "answered with invalid UTF-8 (byte 29)"),
        ('{"annotations": []}'.encode("utf-16"), "answered with invalid UTF-8 (byte 0)"),
        (b'{"error": "quota"}', "answer: wanted an object with 'annotations', found an object with error"),
        (b"[]", "answer: wanted an object, found a list of 0"),
        (b'{"annotations": [{"start": 9}]}', "annotations[0]: wanted an object with 'rho'"),
    ],
)
def test_what_is_no_answer_is_not_tried_again_nor_kept(service, body, message):
    service.answers(service.send(body))
    client = wat(service)
    assert message in str(failure(client))
    assert len(service.requests) == 1
    service.answers(jordan())
    assert len(client.link(["Jordan won"]).frame) == 1


def test_a_mention_that_stands_elsewhere_is_an_error_or_unplaced(service):
    service.answers(jordan(start=3))
    assert "wanted the mention 'Jordan' at 3 to 9 of the text" in str(failure(wat(service)))
    links = wat(service, misplaced="unplaced").link(["Jordan won"])
    assert links.frame[["start", "end", "mention"]].to_numpy().tolist() == [[-1, -1, "Jordan"]]


def test_bytes_beyond_the_limit_are_not_read(service):
    # The declared content type has no meaning.
    service.answers(service.send(json.dumps(jordan()) + " " * 2000, Content_Type="text/html; charset=utf-16"))
    assert len(wat(service, max_bytes=2300).link(["Jordan won"]).frame) == 1
    assert "sent more than 2,000 bytes; raise RequestOptions(max_bytes=)" in str(failure(wat(service, max_bytes=2000)))
    pack = zlib.compressobj(wbits=31)
    start = pack.compress(b"") + pack.flush(zlib.Z_FULL_FLUSH)
    nothing = b"\x00\x00\x00\xff\xff" * 10_000
    assert zlib.decompressobj(wbits=31).decompress(start + nothing) == b""
    for endless in ([b" " * 65536], [nothing, b"Content-Encoding: gzip\r\n", start]):
        service.answers(service.endless(*endless))
        assert "sent more than 1,000,000 bytes" in str(failure(wat(service, max_bytes=1_000_000)))
        # Sockets hold some more pieces than the client reads.
        assert service.n_pieces < 500


def test_packed_answers_are_read_and_bombs_are_not(service):
    packed = gzip.compress(json.dumps(jordan()).encode())
    service.answers(service.send(packed, Content_Encoding="gzip"))
    assert len(wat(service).link(["Jordan won"]).frame) == 1
    bomb = gzip.compress(b" " * 50_000_000)
    assert len(bomb) < 100_000
    service.answers(service.send(bomb, Content_Encoding="gzip"))
    tracemalloc.start()
    assert "sent more than 100,000 bytes" in str(failure(wat(service, max_bytes=100_000)))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10_000_000
    assert len(service.requests) == 2


@pytest.mark.parametrize(
    ("packed", "coding", "message"),
    [
        (b"no gzip at all", "gzip", "sent a damaged gzip stream (3 tries)"),
        (gzip.compress(b'{"annotations": []}')[:-6], "gzip", "sent a truncated gzip stream (3 tries)"),
        (b"x", "br", "encoded its answer as 'br', wanted plain or gzip"),
    ],
    ids=["none", "half", "brotli"],
)
def test_damaged_packing_is_told(service, packed, coding, message):
    service.answers(service.send(packed, Content_Encoding=coding))
    assert message in str(failure(wat(service)))


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n",
        b'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"annotations": []}',
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{}",
        b"garbage\r\n\r\n",
    ],
)
def test_connections_closed_early_are_tried_again(service, sent):
    service.answers(service.hang_up(sent), jordan())
    assert len(wat(service).link(["Jordan won"]).frame) == 1
    service.answers(service.hang_up(sent))
    error = str(failure(wat(service)))
    assert "(3 tries)" in error
    assert "closed the connection before its answer ended" in error or "could not be reached" in error


def test_closed_ports_and_servers_without_https_are_reported(service):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        error = failure(WATClient(f"http://127.0.0.1:{taken.getsockname()[1]}/tag", options=RequestOptions(**QUICK)))
    assert "could not be reached (Connection refused); check that it is up, and the host (3 tries)" in str(error)
    assert error.status is None
    service.answers(jordan())
    error = failure(WATClient(service.url.replace("http:", "https:"), options=RequestOptions(**QUICK)))
    assert "has no trusted certificate" in str(error)


def test_a_file_of_answers_outlives_the_client(service, tmp_path):
    path = tmp_path / "answers.jsonl"
    service.answers(jordan(), jordan(), service.send("", 500))
    texts = ["Jordan a", "Jordan b", "Jordan c"]
    assert "2 of 3 answers arrived and are kept" in str(failure(wat(service, retries=0, cache=path), texts))
    assert len(path.read_text().splitlines()) == 2
    service.answers(jordan())
    first = wat(service, cache=path).link(texts).frame
    assert service.texts() == ["Jordan a", "Jordan b", "Jordan c", "Jordan c"]
    # Another score uses the cached answers; another language needs new requests.
    other = wat(service, cache=path, score="prior", timeout=9, token=TOKEN)
    assert other.link(texts).frame["score"].tolist() == [0.25] * 3
    assert len(service.requests) == 4
    wat(service, cache=path, lang="de").link(texts)
    assert len(service.requests) == 7
    assert first["score"].tolist() == [0.5] * 3


LINE = '{"key": "k", "answer": {"a": "é"}}\n'


# Of two answers in one line, Python's parser keeps the last.
TWICE = b'{"key": "k", "answer": {"a": 1}, "answer": {"a": 2}}\n'


@pytest.mark.parametrize("content", [b"my notes", b'{"qid": 1}', gzip.compress(LINE.encode()), TWICE])
def test_other_files_are_refused_and_left_unchanged(tmp_path, content):
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    with pytest.raises(FileError, match=r"notes\.txt:\d+: wanted .*; name a cache of answers"):
        AnswerCache(path)
    assert path.read_bytes() == content
    path.write_text(LINE)
    assert json.loads(AnswerCache(path)["k"]) == {"a": "é"}
    with pytest.raises(FileError, match="is no regular file"):
        AnswerCache(tmp_path)
    with pytest.raises(FileError, match="cannot be written"):
        AnswerCache(tmp_path / "none" / "x.jsonl").add("k", "{}")


@pytest.mark.parametrize("whole", ["", '{"key": "a", "answer": 1}\n'])
@pytest.mark.parametrize("half", ["", "{", '{"key": "', '{"key": "k", "answer": {"a'])
def test_half_a_line_of_a_killed_run_is_cut_off(tmp_path, whole, half):
    path = tmp_path / "answers.jsonl"
    path.write_text(whole + half)
    AnswerCache(path).add("k", "{}")
    assert path.read_text() == whole + '{"key": "k", "answer": {}}\n'


def test_clients_that_share_a_file_keep_all_answers_and_pay_once(service, tmp_path):
    path = tmp_path / "answers.jsonl"
    service.answers(*[jordan()] * 9)
    first, second = wat(service, cache=path), wat(service, cache=path)
    for number, client in enumerate((first, second, second, first)):
        client.link(["Jordan", f"Jordan {number}"])
    # The second client, which read the file before the first answer, takes it from there.
    assert service.texts() == ["Jordan", "Jordan 0", "Jordan 1", "Jordan 2", "Jordan 3"]
    assert len(AnswerCache(path)) == 5


WRITER = """
import sys
from vbterrier.linking.services.client import AnswerCache
cache = AnswerCache(sys.argv[1])
for number in range(300):
    cache.add(f"{sys.argv[2]} {number}", '{"text": "%s"}' % ("x" * number))
"""


@pytest.mark.slow
def test_processes_that_share_a_file_keep_all_answers(tmp_path):
    path = tmp_path / "answers.jsonl"
    processes = [subprocess.Popen([sys.executable, "-c", WRITER, str(path), name]) for name in "abc"]
    assert [process.wait(100) for process in processes] == [0, 0, 0]
    cache = AnswerCache(path)
    assert {f"{name} {number}" for name in "abc" for number in range(300)} == set(cache._answers)
    assert len(path.read_text().splitlines()) == 900


def test_a_file_that_was_removed_meanwhile_is_started_again(tmp_path):
    path = tmp_path / "answers.jsonl"
    cache = AnswerCache(path)
    cache.add("a", "1")
    path.unlink()
    cache.add("b", "2")
    assert path.read_text() == '{"key": "b", "answer": 2}\n'
