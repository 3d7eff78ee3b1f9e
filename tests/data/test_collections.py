"""The command that fetches public collections, against a server of this process with invented collections."""

import gzip
import hashlib
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

pytest.importorskip("tomllib", reason="the manifest is TOML, which Python reads from 3.11 on")

import fetching
from making import MAKERS, first_documents, head

RUN = b"b Q0 d1 1 2.0 old\na Q0 d2 1 1.0 old\na Q0 d3 2 1.00000001 old\na Q0 d4 3 7e-1 old\n"
RUN += b"10 Q0 d5 1 1 old\n9 Q0 d5 1 1 old\n"
CUT = b"10 Q0 d5 1 2 new\n9 Q0 d5 1 2 new\na Q0 d3 1 2 new\na Q0 d2 2 1 new\nb Q0 d1 1 2 new\n"


class Server(ThreadingHTTPServer):
    """Answers by path; counts the requests."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files, self.requests = {}, []


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *arguments):
        """Print nothing."""

    def do_GET(self):
        self.server.requests.append(self.path)
        content = self.server.files.get(self.path)
        if content is None:
            self.send_error(404)
        elif isinstance(content, str):
            self.send_response(302)
            self.send_header("Location", content)
            self.end_headers()
        else:
            n_bytes = len(content) + (self.path == "/interrupted") * 100
            self.send_response(200)
            if self.path != "/endless":
                self.send_header("Content-Length", str(n_bytes))
            self.end_headers()
            for begin in range(0, len(content), 1000):
                self.wfile.write(content[begin : begin + 1000])
                time.sleep(0.05 * (self.path == "/slow"))


@pytest.fixture(scope="module")
def running():
    server = Server()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def server(running):
    running.files, running.requests = {}, []
    return running


def entry(name, at, content, **others):
    stated = {"name": name, "at": at, "size": len(content), "sha256": hashlib.sha256(content).hexdigest(), **others}
    return "{ " + ", ".join(f"{key} = {value!r}" for key, value in stated.items()) + " }"


@pytest.fixture
def run(server, tmp_path, capsys):
    """Run the command with files of one collection: exit code, output."""

    def call(*entries, arguments=(), collection="small", base=None, seconds=5):
        base = base or f"http://127.0.0.1:{server.server_port}/"
        path = tmp_path / "manifest.toml"
        path.write_text(
            f"['{collection}']\nsource = 'invented'\nlicence = 'none'\nbase = '{base}'\ntried = false\n"
            f'files = [{", ".join(entries)}]\nunavailable = {{ notes = "made by hand" }}\n'
        )
        try:
            code = fetching.main(["--cache", str(tmp_path / "cache"), *arguments], manifest=path, seconds=seconds)
        except SystemExit as stop:
            code = stop.code
        captured = capsys.readouterr()
        return code, captured.out + captured.err

    return call


def files_below(folder):
    return sorted(path.relative_to(folder).as_posix() for path in Path(folder).rglob("*") if path.is_file())


def test_files_are_fetched_made_and_not_fetched_again(server, run, tmp_path):
    server.files = {"/q": b"a 0 d1 1\n", "/r": RUN, "/r.gz": gzip.compress(RUN)}
    entries = [
        entry("qrels.txt.gz", "q", b"a 0 d1 1\n"),
        entry("runs/one.gz", "r", CUT, make="cut 2 new"),
        entry("runs/two", "r.gz", CUT, make="cut 2 new"),
    ]
    code, output = run(*entries)
    assert code == 0
    assert "small: 3 fetched, 0 present, 0 failed" in output
    assert "have not been tried" in output
    assert "not fetched: notes: made by hand" in output
    cache = tmp_path / "cache"
    assert files_below(cache) == ["small/qrels.txt.gz", "small/runs/one.gz", "small/runs/two"]
    assert gzip.decompress((cache / "small/runs/one.gz").read_bytes()) == CUT == (cache / "small/runs/two").read_bytes()
    n_requests = len(server.requests)
    assert "0 fetched, 3 present" in run(*entries)[1]
    assert len(server.requests) == n_requests == 3
    (cache / "small/qrels.txt.gz").write_bytes(b"damaged")
    assert "1 fetched, 2 present" in run(*entries)[1]
    assert gzip.decompress((cache / "small/qrels.txt.gz").read_bytes()) == b"a 0 d1 1\n"


@pytest.mark.parametrize(
    ("path", "content", "message"),
    [
        ("other", b"abc", "the content of one has 3 bytes and the checksum ba7816bf"),
        ("large", b"x" * 5000, "has more than the 3 bytes"),
        ("endless", b"x" * 5000, "has more than the 3 bytes"),
        ("bomb.gz", gzip.compress(b"x" * 5000), "unpacks to more than 3 bytes"),
        ("text.gz", b"abc", "is no gzip file"),
        ("interrupted", b"ab", "ended after 2 of 102 bytes"),
        ("missing", None, "HTTP Error 404"),
        ("redirect", "ftp://example.org/x", "redirects to ftp://example.org/x, which is not an https address"),
        ("file", "file:///etc/passwd", "Redirection to url 'file:///etc/passwd' is not allowed"),
    ],
)
def test_a_bad_download_leaves_the_cache_as_it_was(server, run, tmp_path, path, content, message):
    server.files = {f"/{path}": content, "/good": b"xyz"}
    kept = tmp_path / "cache" / "small" / "one"
    kept.parent.mkdir(parents=True)
    kept.write_bytes(b"old")
    code, output = run(entry("one", path, b"xyz"), entry("two", "good", b"xyz"))
    assert code == 1
    assert message in output
    assert "1 fetched, 0 present, 1 failed" in output
    assert kept.read_bytes() == b"old"
    assert files_below(tmp_path / "cache") == ["small/one", "small/two"]


def test_a_slow_server_is_left(server, run, tmp_path):
    server.files = {"/slow": b"x" * 20000}
    code, output = run(entry("one", "slow", b"x" * 20000), seconds=0.1)
    assert code == 1
    assert "bytes in 0.1 s" in output
    assert files_below(tmp_path / "cache") == []


def test_a_folder_of_runs_appears_when_it_is_complete(server, run, tmp_path):
    server.files = {"/r": RUN}
    entries = [entry("runs/one", "r", RUN), entry("runs/two", "later", RUN)]
    assert run(*entries)[0] == 1
    assert not (tmp_path / "cache" / "small").exists()
    server.files["/later"] = RUN
    code, output = run(*entries)
    assert (code, server.requests) == (0, ["/r", "/later", "/later"])
    assert "1 fetched, 1 present" in output
    assert files_below(tmp_path / "cache") == ["small/runs/one", "small/runs/two"]


@pytest.mark.parametrize("name", ["../out", "/out", "a/../../out", "a\\out", "c:out", ".partial/a", "a//b", ""])
def test_paths_out_of_the_cache_are_refused(server, run, tmp_path, name):
    server.files = {"/a": b"abc"}
    for file, collection in ((name, "small"), ("one", name)):
        code, output = run(entry(file, "a", b"abc"), collection=collection)
        assert code == 2
        assert "is no path below the cache" in output
    assert server.requests == []


def test_links_out_of_the_cache_are_refused(server, run, tmp_path):
    server.files = {"/a": b"abc"}
    outside, cache = tmp_path / "outside", tmp_path / "cache"
    outside.mkdir()
    cache.mkdir()
    (cache / "small").symlink_to(outside)
    code, output = run(entry("one", "a", b"abc"))
    assert code == 1
    assert "leads out of the cache" in output
    assert files_below(outside) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"base": "http://example.org/"}, "http://example.org/a is not an https address"),
        ({"base": "file:///"}, "file:///a is not an https address"),
        ({"make": "evaluate x"}, "'evaluate' is no way of making a file"),
        ({"sha256": "abc"}, "sha256 must be 64 hexadecimal digits"),
        ({"size": 1 << 40}, "size a number up to"),
        ({"maker": "cut"}, "keys are ['at', 'maker', 'name', 'sha256', 'size']"),
        ({"make": "] ["}, "is no way"),
    ],
)
def test_a_wrong_manifest_fetches_nothing(server, run, change, message):
    base = change.pop("base", None)
    code, output = run(entry("one", "a", b"abc") if base else entry("one", "a", b"abc", **change), base=base)
    assert code == 2
    assert message in output
    assert server.requests == []


def test_a_manifest_that_is_no_toml_is_refused(server, run):
    code, output = run("{")
    assert code == 2
    assert "manifest.toml: Invalid" in output


def test_names_choose_collections_and_a_list_fetches_nothing(server, run):
    code, output = run(entry("one", "a", b"abc", guessed=1), arguments=["--list", "small"])
    assert (code, server.requests) == (0, [])
    assert "small: 1 files, 0.0 MB; addresses not tried, 1 guessed\n  invented; licence: none\n" in output
    code, output = run(entry("one", "a", b"abc"), arguments=["large"])
    assert code == 2
    assert "no collection is called large; the manifest has small" in output


def test_cut_takes_the_first_documents_as_trec_eval_orders_them():
    # 1.00000001 is 1 as float32: the larger docno first.
    assert first_documents(RUN, "2", "new") == CUT
    assert first_documents(b"10 Q0 a 1 1 x\n9 Q0 a 1 1 x\n", "1", "y", "numbers") == b"9 Q0 a 1 1 y\n10 Q0 a 1 1 y\n"
    assert head(RUN, "2", "new").splitlines()[1:3] == [b"a Q0 d2 1 1.0 new", b"a Q0 d3 2 1.00000001 new"]
    with pytest.raises(ValueError, match="line 2 is not"):
        first_documents(b"a Q0 d 1 1 x\na d\n", "1", "y")


def test_an_original_of_another_kind_is_refused(server, run):
    server.files = {"/a": b"a d 1\n"}
    code, output = run(entry("one", "a", b"abc", make="cut 2 new"))
    assert code == 1
    assert "not what 'cut 2 new' is made from: line 1 is not" in output


@pytest.mark.slow
def test_the_manifest_states_what_tests_read(shared_data):
    """Every file has the stated content, and what is derived from originals that are here comes out byte for byte."""
    folder, contents, n_derived = Path(shared_data), {}, 0
    for name, collection in fetching.read_manifest().items():
        originals = {}
        for file in collection.get("files", []):
            path = folder / name / file["name"]
            content = path.read_bytes()
            content = gzip.decompress(content) if path.name.endswith(".gz") else content
            assert (len(content), hashlib.sha256(content).hexdigest()) == (file["size"], file["sha256"]), path
            contents[name, file["name"]] = content
            if not file.get("make"):
                originals[tuple(file["at"])] = content
            elif all((at,) in originals for at in file["at"]):
                maker, *words = file["make"].split(" ")
                assert MAKERS[maker](*(originals[at,] for at in file["at"]), *words) == content, path
                n_derived += 1
    assert n_derived == 6
