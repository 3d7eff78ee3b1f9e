"""Folders of resume= that somebody else wrote into: refused, and nothing outside of them is read or removed."""

import json

import pandas as pd
import pytest

from vbterrier.errors import FileError
from vbterrier.evaluate.scores import score

ROWS = [(f"q{t}", f"d{d}", 9.0 - d) for t in range(6) for d in range(4)]
QRELS = pd.DataFrame({"qid": [f"q{t}" for t in range(6)], "docno": "d1", "label": 1})


@pytest.fixture(params=["grouped", "apart"])
def kept(request, tmp_path):
    """A call that has finished, and a way to change what it wrote down."""
    rows = ROWS if request.param == "grouped" else sorted(ROWS, key=lambda row: row[1])
    path, folder = tmp_path / "mine.run", tmp_path / "done"
    path.write_text("".join(f"{qid} Q0 {docno} 1 {score} tag\n" for qid, docno, score in rows))

    def call():
        return score(path, QRELS, ["AP", "BNDCG@2"], memory="64 MiB", resume=folder)

    call()
    (own,) = folder.iterdir()
    journal = own / "journal.jsonl"

    def changed(kind, change):
        lines = [json.loads(line) for line in journal.read_text().splitlines()]
        for line in lines:
            if str(line.get("name")).startswith(kind):
                line["result"] = change(line["result"])
        journal.write_text("".join(json.dumps(line) + "\n" for line in lines))

    return call, own, changed, "place " if request.param == "grouped" else "topics "


@pytest.mark.parametrize("name", ["../there.arrow", "/etc/passwd", "..", "", ".", "a/b", "a\\b", "a\0b", 7, None])
def test_names_of_files_are_those_of_the_folder(kept, name):
    call, _, changed, kind = kept
    changed(kind, lambda result: result | {"file": name})
    with pytest.raises(FileError, match=r"journal\.jsonl: names the file .*, wanted a file of this folder"):
        call()


@pytest.mark.parametrize("kept", ["apart"], indirect=True)
@pytest.mark.parametrize("name", ["../../there", "/there", ".."])
def test_names_that_rows_are_parted_into_are_too_and_nothing_is_removed(kept, name, tmp_path):
    call, own, changed, _ = kept
    (own / "there").write_text("kept")
    (tmp_path / "there").write_text("kept")
    changed("split ", lambda _: {name: 1})
    with pytest.raises(FileError, match="names the file"):
        call()
    assert (own / "there").exists()
    assert (tmp_path / "there").exists()


PARTS = {
    "no mapping": lambda _: ["a"],
    "no values": lambda result: result | {"values": None},
    "values of no measure": lambda result: result | {"values": {}},
    "values of text": lambda result: result | {"values": {"AP": {"q1": "1"}}},
    "a number below 0": lambda result: result | {"n_dropped": -1},
    "no ties": lambda result: result | {"tied": [1]},
    "nothing told": lambda result: result | {"told": [1]},
    "nowhere": lambda result: result | {"behind": {"file": 0, "offset": -5, "row": 0}},
}


@pytest.mark.parametrize("change", PARTS.values(), ids=PARTS)
def test_parts_are_looked_at_first(kept, change):
    call, _, changed, kind = kept
    changed(kind, change)
    with pytest.raises(FileError, match="holds something else in place of a part"):
        call()


def test_rows_that_are_gone_damaged_or_of_something_else_are_told_of(kept):
    call, own, _, kind = kept
    file = min((own / "kept").glob(f"{kind.strip()}*"))
    whole = file.read_bytes()
    for content in (b"", whole[:-40], b"ARROW1"):
        file.write_bytes(content)
        with pytest.raises(FileError, match=r"cannot be read .*remove the folder, and call again"):
            call()
    file.unlink()
    with pytest.raises(FileError, match="cannot be read"):
        call()


def test_folders_that_lead_elsewhere_are_refused(kept, tmp_path):
    call, own, _, _ = kept
    (own / "kept").rename(tmp_path / "elsewhere")
    (own / "kept").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FileError, match="is a link; wanted a folder of its own"):
        call()
