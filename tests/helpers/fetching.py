"""Public collections that tests read: where they are looked for, the manifest, and how they are fetched.

Downloads are untrusted: https alone, limits of size and time, no path outside the cache, and a checksum of the unpacked
content before a file replaces another.
"""

import argparse
import gzip
import hashlib
import io
import os
import re
import tempfile
import time
import zlib
from collections import defaultdict
from pathlib import Path, PurePosixPath

from making import MAKERS

MANIFEST = Path(__file__).parents[1] / "data" / "collections.toml"
BESIDE = Path(__file__).resolve().parents[3] / "shared" / "data"
# Most bytes of a download that another file is made from; files taken as they are have their own size.
LARGEST = 1 << 26
SECONDS = 300
_LOCAL = ("localhost", "127.0.0.1", "::1")
_REQUIRED, _OPTIONAL = {"name", "at", "size", "sha256"}, {"make", "guessed"}


class FetchError(Exception):
    """A file that cannot be fetched, or a manifest that cannot be used."""


def cache_folder():
    """Return the folder that collections are fetched into: VBTERRIER_DATA, else one of the user's caches."""
    named = os.environ.get("VBTERRIER_DATA")
    return Path(named) if named else Path.home() / ".cache" / "vbterrier" / "collections"


def data_folder():
    """Return the folder that tests read collections from, or None: beside the repository, VBTERRIER_DATA, the cache."""
    user_cache = Path.home() / ".cache" / "vbterrier" / "collections"
    return next((folder for folder in (BESIDE, cache_folder(), user_cache) if folder.is_dir()), None)


def read_manifest(path=MANIFEST):
    """Read and check a manifest: collection -> source, licence, files and what cannot be fetched."""
    try:
        import tomllib
    except ImportError:
        raise FetchError("the manifest is TOML, which Python reads from 3.11 on: use a later Python") from None
    try:
        collections = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise FetchError(f"{path}: {error}") from None
    for name, collection in collections.items():
        for file in collection.get("files", []):
            _check_file(f"{path}: collection {name!r}, file {file.get('name')!r}", name, file)
            at = [file["at"]] if isinstance(file["at"], str) else file["at"]
            file["at"] = [address if "://" in address else collection["base"] + address for address in at]
            for address in file["at"]:
                if not address.startswith("https://") and not _is_local(address):
                    raise FetchError(f"{path}: collection {name!r}: {address} is not an https address")
    return collections


def _check_file(place, collection, file):
    if not _REQUIRED <= file.keys() <= _REQUIRED | _OPTIONAL:
        keys = f"{sorted(_REQUIRED)}, and may be {sorted(_OPTIONAL)}"
        raise FetchError(f"{place}: keys are {sorted(file)}; they must be {keys}")
    if not re.fullmatch("[0-9a-f]{64}", file["sha256"]) or not 0 <= file["size"] <= LARGEST:
        raise FetchError(f"{place}: sha256 must be 64 hexadecimal digits, and size a number up to {LARGEST}")
    maker = file.get("make", "").split(" ")[0]
    if maker and maker not in MAKERS:
        raise FetchError(f"{place}: {maker!r} is no way of making a file; those are {sorted(MAKERS)}")
    for part in (collection, file["name"]):
        if part != str(PurePosixPath(part)) or re.search(r"^/|(^|/)\.|[\\:\0]", part):
            raise FetchError(f"{place}: {part!r} is no path below the cache (no part begins with a dot)")


def _is_local(address):
    from urllib.parse import urlsplit

    parts = urlsplit(address)
    return parts.scheme == "http" and parts.hostname in _LOCAL


def download(address, limit, seconds=SECONDS):
    """Return the bytes at an address; refuse more than ``limit`` bytes, more than ``seconds`` and partial answers."""
    from http.client import HTTPException
    from urllib.request import HTTPRedirectHandler, Request, build_opener

    class Redirects(HTTPRedirectHandler):
        def redirect_request(self, request, file, code, message, headers, target):
            if not (target.startswith("https://") or (_is_local(request.full_url) and _is_local(target))):
                raise FetchError(f"{address} redirects to {target}, which is not an https address")
            return super().redirect_request(request, file, code, message, headers, target)

    end, content = time.monotonic() + seconds, bytearray()
    try:
        request = Request(address, headers={"User-Agent": "vbterrier-tests"})
        with build_opener(Redirects).open(request, timeout=min(seconds, 30)) as response:
            stated = response.headers.get("Content-Length", "")
            while chunk := response.read1(1 << 16):
                content += chunk
                if len(content) > limit:
                    raise FetchError(f"{address} has more than the {limit:,} bytes that the manifest allows")
                if time.monotonic() > end:
                    raise FetchError(f"{address} sent {len(content):,} bytes in {seconds} s; try again later")
    except (OSError, HTTPException) as error:
        raise FetchError(f"{address}: {error}") from error
    if stated.isdigit() and len(content) < int(stated):
        raise FetchError(f"{address} ended after {len(content):,} of {stated} bytes; try again")
    return bytes(content)


def _unpack_member(content, limit, place):
    try:
        unpacked = gzip.GzipFile(fileobj=io.BytesIO(content)).read(limit + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise FetchError(f"{place} is no gzip file: {error}") from error
    if len(unpacked) > limit:
        raise FetchError(f"{place} unpacks to more than {limit:,} bytes")
    return unpacked


def _is_present(path, file):
    """Whether a file has the content that the manifest states."""
    if not path.is_file():
        return False
    try:
        content = path.read_bytes()
        content = _unpack_member(content, file["size"], path) if path.name.endswith(".gz") else content
    except FetchError:
        return False
    return hashlib.sha256(content).hexdigest() == file["sha256"]


def _content(file, downloads, seconds):
    """Download what a file is made from, make it and check it: the unpacked content."""
    maker, *words = file.get("make", "").split(" ")
    limit = LARGEST if maker else file["size"]
    originals = []
    for address in file["at"]:
        if address not in downloads:
            packed = address.endswith(".gz")
            original = download(address, LARGEST if packed else limit, seconds)
            downloads[address] = _unpack_member(original, limit, address) if packed else original
        originals.append(downloads[address])
    try:
        content = MAKERS[maker](*originals, *words) if maker else originals[0]
    except (ValueError, KeyError, LookupError, OverflowError) as error:
        raise FetchError(f"{', '.join(file['at'])}: not what {file['make']!r} is made from: {error}") from error
    checksum = hashlib.sha256(content).hexdigest()
    if checksum != file["sha256"]:
        raise FetchError(
            f"{', '.join(file['at'])}: the content of {file['name']} has {len(content):,} bytes and the checksum "
            f"{checksum}; the manifest states {file['size']:,} bytes and {file['sha256']}: another version, or the "
            "manifest needs a correction"
        )
    return content


def _write(path, content):
    """Write a file (packed if its name ends in .gz) that replaces another in one step."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".", delete=False) as file:
        try:
            file.write(gzip.compress(content, mtime=0) if path.name.endswith(".gz") else content)
            file.close()
            Path(file.name).replace(path)
        except BaseException:
            file.close()
            Path(file.name).unlink()
            raise


def _check_inside(path, cache):
    if not path.resolve().is_relative_to(cache.resolve()):
        raise FetchError(f"{path} leads out of the cache {cache}, through a symbolic link: remove the link")


def fetch(name, collection, cache, *, seconds=SECONDS):
    """Fetch the files of a collection: yield (file name, "present", "fetched" or a FetchError).

    A folder within a collection appears when it is complete: tests read all runs that a folder holds.
    """
    downloads, folders, cache = {}, defaultdict(list), Path(cache).expanduser()
    for file in collection.get("files", []):
        folders[str(PurePosixPath(file["name"]).parent)].append(file)
    for folder, files in folders.items():
        final = target = cache / name / folder
        if folder != "." and not final.is_dir():
            target = cache / ".partial" / name / folder
        complete = True
        for file in files:
            path = target / PurePosixPath(file["name"]).name
            try:
                _check_inside(path, cache)
                if _is_present(path, file):
                    yield file["name"], "present"
                else:
                    _write(path, _content(file, downloads, seconds))
                    yield file["name"], "fetched"
            except FetchError as error:
                complete = False
                yield file["name"], error
        if complete and target != final:
            final.parent.mkdir(parents=True, exist_ok=True)
            target.replace(final)


def _describe(name, collection):
    """Lines of ``--list``."""
    files = collection.get("files", [])
    size = sum(file["size"] for file in files) / 1e6
    state = "" if collection.get("tried", True) else "; addresses not tried"
    guessed = sum(file.get("guessed", False) for file in files)
    state += f", {guessed} guessed" if guessed else ""
    yield f"{name}: {len(files)} files, {size:.1f} MB{state}"
    yield f"  {collection['source']}; licence: {collection['licence']}"
    for part, reason in collection.get("unavailable", {}).items():
        yield f"  not fetched: {part}: {reason}"


def main(arguments=None, *, manifest=MANIFEST, seconds=SECONDS):
    """Run the command: exit code 1 if a file is missing afterwards, 2 if the manifest or an argument is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.data", description="Fetch public collections for tests.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="collections; all without a name")
    parser.add_argument("--cache", type=Path, default=cache_folder(), help="their folder (default: %(default)s)")
    parser.add_argument("--list", action="store_true", help="print sources and licences, and fetch nothing")
    options = parser.parse_args(arguments)
    try:
        collections = read_manifest(manifest)
    except FetchError as error:
        parser.error(str(error))
    if unknown := sorted(set(options.names) - collections.keys()):
        parser.error(f"no collection is called {', '.join(unknown)}; the manifest has {', '.join(collections)}")
    chosen = {name: collections[name] for name in options.names or collections}
    if options.list:
        print("\n".join(line for name, collection in chosen.items() for line in _describe(name, collection)))
        return 0
    untried = [name for name, collection in chosen.items() if not collection.get("tried", True)]
    if untried:
        print(f"The addresses of {', '.join(untried)} have not been tried: an error may be one of the manifest.")
    n_failed = 0
    for name, collection in chosen.items():
        results = list(fetch(name, collection, options.cache, seconds=seconds))
        errors = [f"{file}: {result}" for file, result in results if isinstance(result, FetchError)]
        n_failed += len(errors)
        n_fetched = sum(result == "fetched" for _, result in results)
        print(f"{name}: {n_fetched} fetched, {len(results) - n_fetched - len(errors)} present, {len(errors)} failed")
        for line in errors + [f"not fetched: {part}: {why}" for part, why in collection.get("unavailable", {}).items()]:
            print(f"  {line}")
    return 1 if n_failed else 0
