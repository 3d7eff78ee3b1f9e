"""Spreadsheets that were made to harm: small files of huge sheets, document types, formulas, parts that are missing."""

import time
import zipfile
from xml.sax.saxutils import quoteattr

import pytest

from vbterrier import read_run
from vbterrier.errors import FileError
from vbterrier.frames.files import spreadsheets

pytest.importorskip("openpyxl")

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml"
PARTS = {
    "[Content_Types].xml": (
        f'<Types xmlns="{PACKAGE}/content-types"><Default Extension="xml" ContentType="application/xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{TYPE}.sheet.main+xml"/>'
        f'<Override PartName="/xl/worksheets/sheet1.xml" ContentType="{TYPE}.worksheet+xml"/>'
        f'<Override PartName="/xl/sharedStrings.xml" ContentType="{TYPE}.sharedStrings+xml"/></Types>'
    ),
    "_rels/.rels": (
        f'<Relationships xmlns="{PACKAGE}/relationships"><Relationship Id="a" Type="{OFFICE}/officeDocument" '
        'Target="xl/workbook.xml"/></Relationships>'
    ),
    "xl/workbook.xml": (
        f'<workbook xmlns="{MAIN}" xmlns:r="{OFFICE}">'
        '<sheets><sheet name="S" sheetId="1" r:id="a"/></sheets></workbook>'
    ),
    "xl/_rels/workbook.xml.rels": (
        f'<Relationships xmlns="{PACKAGE}/relationships"><Relationship Id="a" Type="{OFFICE}/worksheet" '
        f'Target="worksheets/sheet1.xml"/><Relationship Id="b" Type="{OFFICE}/sharedStrings" '
        'Target="sharedStrings.xml"/></Relationships>'
    ),
}


def text(word):
    return f'<c t="inlineStr"><is><t>{word}</t></is></c>'


def row(*cells, at=None):
    place = "" if at is None else f" r={quoteattr(str(at))}"
    return f"<row{place}>{''.join(cells)}</row>"


HEAD, SCORE = row(text("qid"), text("docno"), text("score")), "<c><v>2</v></c>"
DOCUMENT = row(text("q1"), text("d1"), SCORE)


def spreadsheet(folder, rows, *, before="", after="", strings="", **parts):
    path = folder / "g.xlsx"
    sheet = f'{before}<worksheet xmlns="{MAIN}"><sheetData>{rows}</sheetData>{after}</worksheet>'
    members = {"xl/worksheets/sheet1.xml": sheet, "xl/sharedStrings.xml": f'<sst xmlns="{MAIN}">{strings}</sst>'}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in (PARTS | members | parts).items():
            archive.writestr(name, content)
    return path


@pytest.mark.parametrize(
    ("entity", "use"),
    [
        ('<!ENTITY x SYSTEM "file://{folder}/secret">', "&x;"),
        ('<!ENTITY x SYSTEM "http://127.0.0.1:9/">', "&x;"),
        ('<!ENTITY % p SYSTEM "file://{folder}/secret"> %p;', "d1"),
        ('<!ENTITY a "aaaaaaaaaa"><!ENTITY x "&a;&a;&a;&a;">', "&x;"),
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_document_types_are_refused_before_anything_is_read(tmp_path, entity, use, encoding):
    (tmp_path / "secret").write_text("SECRET")
    doctype = f"<?xml version='1.0' encoding='{encoding}'?><!-- {'x' * 5000} --><!DOCTYPE w [{entity}]>"
    rows = HEAD + row(text("q1"), text(use), SCORE)
    path = spreadsheet(tmp_path, rows, before=doctype.format(folder=tmp_path))
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name).decode() for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content.encode(encoding if "sheet1" in name else "utf-8"))
    with pytest.raises(FileError, match=r"has a document type in 'xl/worksheets/sheet1.xml'") as caught:
        read_run(path)
    assert "SECRET" not in str(caught.value)


def test_formulas_have_their_saved_values_and_are_not_computed(tmp_path):
    saved = row(text("q1"), '<c t="str"><f>HYPERLINK("http://x")</f><v>d9</v></c>', SCORE)
    assert read_run(spreadsheet(tmp_path, HEAD + saved)).values.tolist() == [["q1", "d9", 2.0]]
    unsaved = row(text("q1"), '<c><f>WEBSERVICE("http://127.0.0.1:9")</f></c>', SCORE)
    with pytest.raises(FileError, match=r"g.xlsx:2: docno is empty"):
        read_run(spreadsheet(tmp_path, HEAD + unsaved))


@pytest.mark.parametrize(
    ("far", "message"),
    [
        (row('<c r="XFD3"><v>1</v></c>', at=3), r"g.xlsx:3: has 16,384 columns, wanted at most 10,000"),
        (row('<c r="XFD1000"><v>1</v></c>', at=1000), r"g.xlsx:1000: has 16,384 columns, wanted at most 10,000"),
        (row("<c><v>1</v></c>", at=10**12), r"has a sheet of 5,001 rows and 3 columns or more, too many"),
        (row('<c r="ALL9"><v>1</v></c>', at=9) + row(text("q"), at=2000), r"has a sheet of 2,000 rows and 1,000 "),
        (row('<c r="ZZZZ3"><v>1</v></c>', at=3), r"is not a readable spreadsheet \('ZZZZ' is not a valid column"),
    ],
)
def test_cells_far_away_do_not_fill_the_memory_with_empty_ones(tmp_path, monkeypatch, far, message):
    monkeypatch.setattr(spreadsheets, "_MAX_ROWS", 5000)
    monkeypatch.setattr(spreadsheets, "_MAX_CELLS", 1_999_999)
    started = time.process_time()
    with pytest.raises(FileError, match=message):
        read_run(spreadsheet(tmp_path, HEAD + DOCUMENT + far))
    assert time.process_time() - started < 5


@pytest.mark.slow
def test_rows_of_empty_cells_and_merged_cells_add_nothing(tmp_path):
    merged = '<mergeCells count="1"><mergeCell ref="A1:XFD1048576"/></mergeCells>'
    rows = HEAD + DOCUMENT + row("<c/>" * 20_000) + row(at=400)
    assert read_run(spreadsheet(tmp_path, rows, after=merged)).values.tolist() == [["q1", "d1", 2.0]]
    below = HEAD + DOCUMENT + row('<c r="B3" t="inlineStr"><is><t>d2</t></is></c>', '<c r="C3"><v>1</v></c>', at=3)
    with pytest.raises(FileError, match=r"g.xlsx:3: qid is empty"):
        read_run(spreadsheet(tmp_path, below, after=merged))


def test_texts_that_cells_share_count_as_often_as_they_are_used(tmp_path):
    shared = row(text("q1"), '<c t="s"><v>0</v></c>', SCORE)
    path = spreadsheet(tmp_path, HEAD + shared * 50, strings=f"<si><t>{'x' * 100_000}</t></si>")
    assert path.stat().st_size < 10_000
    with pytest.raises(FileError, match=r"holds more than 1,000,000 bytes when unpacked"):
        read_run(path, max_bytes=1_000_000)


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("<c><v>1e999</v></c>", r"g.xlsx:2: column 3 is inf, wanted a finite number"),
        ("<c><v>NaN</v></c>", r"is not a readable spreadsheet \(.*NaN"),
        ('<c t="s"><v>99</v></c>', r"is not a readable spreadsheet \(list index out of range\)"),
        ('<c t="e"><v>#N/A</v></c>', r"g.xlsx:2: score must be a number, found ''"),
    ],
)
def test_cells_without_a_number_are_errors(tmp_path, cell, message):
    with pytest.raises(FileError, match=message):
        read_run(spreadsheet(tmp_path, HEAD + row(text("q1"), text("d1"), cell)))


def test_parts_with_names_of_other_folders_are_not_written(tmp_path):
    path = spreadsheet(tmp_path, HEAD + DOCUMENT, **{"../../evil": "x", "/evil": "x"})
    assert read_run(path).values.tolist() == [["q1", "d1", 2.0]]
    assert [result.name for result in tmp_path.parent.rglob("evil")] == []
    with pytest.raises(FileError, match="is not a readable spreadsheet"):
        read_run(spreadsheet(tmp_path, HEAD, **{"xl/workbook.xml": f'<workbook xmlns="{MAIN}"><sheets/></workbook>'}))


def test_parts_of_one_name_and_parts_without_number_are_refused(tmp_path):
    """Of two sheets of one name, each program reads another one."""
    path = spreadsheet(tmp_path, HEAD + DOCUMENT)
    with pytest.warns(UserWarning, match="Duplicate name"), zipfile.ZipFile(path, "a") as archive:
        archive.writestr("xl/workbook.xml", "<workbook/>")
    with pytest.raises(FileError, match="more than spreadsheets have, or two of one name"):
        read_run(path)
    path = spreadsheet(tmp_path, HEAD + DOCUMENT, **{f"part{n}": "" for n in range(8_200)})
    with pytest.raises(FileError, match=r"has 8,2\d\d parts, more than spreadsheets have"):
        read_run(path)
