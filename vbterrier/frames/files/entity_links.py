"""Linked mentions with ids of one space."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from vbterrier.errors import FileError, ParameterError
from vbterrier.frames.files.json_tables import is_json, outline
from vbterrier.frames.files.kinds import ANSWERS, REDIRECTS, TAGS
from vbterrier.frames.files.linked import LAYOUTS, link_layout
from vbterrier.frames.files.loading import load
from vbterrier.frames.files.mentions import in_one_space, linked_rows
from vbterrier.frames.files.source import MAX_BYTES, Source, parse_json, quoted_text
from vbterrier.frames.id_spaces import is_no_entity, normalised_ids

if TYPE_CHECKING:
    import pandas as pd

    from vbterrier.annotations import StrPath


def read_entity_links(
    path: StrPath,
    *,
    ids: str | None = None,
    mapping: Any = None,
    redirects: Any = None,
    max_bytes: int | None = MAX_BYTES,
) -> pd.DataFrame:
    r"""Read linked mentions: neleval, TAC KBP, HIPE, CoNLL-AIDA, NIF (Turtle), and the JSON of linkers.

    The content decides. :func:`vbterrier.read_tags`, :func:`read_answers`, :func:`read_mentions` and the commands read
    these files, too; this function also applies mappings and redirects.

    ===========  ===================================================================  =========================
    layout       recognised by                                                        offsets in the file
    ===========  ===================================================================  =========================
    neleval      docno, start, end[, entity[, score[, type]]]; further such triples   end of the last character
    TAC KBP      eight columns, the fourth ``docno:start-end``                        end of the last character
    TAC 2014     query, entity, type (PER, ...)[, score]                              none
    HIPE         columns TOKEN, NE-COARSE-LIT and NEL-LIT                             words
    CoNLL-AIDA   ``-DOCSTART-``; word, B or I, mention, entity, address, page id      words
    NIF          Turtle or N-Triples with ``nif:isString``, ``itsrdf:taIdentRef``     half-open
    REL          ``{docno: [[start, length, mention, title, score, score, type]]}``   start and length
    ELQ          ``pred_triples``, or ``label_id`` and ``tokenized_mention_idxs``     words of the model, half-open
    BLINK        ``context_left``, ``mention`` and ``label_id``                       none
    TagMe, WAT   ``annotations`` with ``spot``, ``id``, ``title`` and ``rho``         half-open
    WAT corpus   ``entities`` with ``wikipedia_title``, ``wikipedia_id``, ``rho``     half-open
    ReFinED      ``spans`` with ``text``, ``start``, ``ln``, ``predicted_entity``     start and length
    spaCy        ``ents`` with ``start``, ``end`` and ``kb_id``                       half-open
    Spotlight    ``Resources``; ``annotation`` with ``surfaceForm`` (candidates)      start
    fishing      ``entities`` of entity-fishing, with ``rawName`` (candidates)        half-open
    MMEAD        ``passage``, ``query`` or ``title``, ``headings``, ``body``          half-open, of each part
    Nordlys      ``processed_query`` and ``results`` (candidates)                     none
    Babelfy      lists of ``charFragment``, ``DBpediaURL`` and ``score``              end of the last character
    GENRE        ``{docno: [[start, length, title]]}``, also of the server of EntQA   start and length
    ELEVANT      ``entity_mentions``, ``predictions`` or ``labels`` with spans        half-open
    OpenTapioca  ``annotations`` with ``best_qid`` and ``tags`` (candidates)          half-open
    Ambiverse    ``matches`` with ``charOffset`` and ``charLength``                   start and length
    Azure        ``entities`` with ``url`` and ``matches``                            start and length
    Google       ``entities`` with ``metadata`` and ``mentions``                      start
    ExtEnD       ``disambiguated_entities`` with ``char_start`` and ``char_end``      half-open
    BELA         lists ``offsets``, ``lengths``, ``entities``, ``el_scores``          start and length
    Bootleg      lists ``char_spans``, ``qids``, ``cands``, ``cand_probs``            half-open, of each sentence
    ZELDA        lists ``index``, ``wikipedia_titles``, ``wikipedia_ids``             half-open
    CREL         ``annotations`` of objects with ``speaker`` and ``utterance``        start and length, of each turn
    Wikifier     ``annotations`` with ``url``, ``support`` and ``pageRank``           end of the last character
    CoreNLP      ``sentences`` with ``entitymentions`` and ``entitylink``             half-open
    Rosette      ``entities`` with ``mentionOffsets`` and ``entityId``                half-open
    Watson       ``entities`` with ``mentions`` and ``disambiguation``                half-open
    LELA         ``entities`` with ``entity_id`` and ``entity_title``                 half-open
    ReLiK        ``text``, and ``spans`` of start, end, label and text                half-open
    mGENRE       ``{qid: [{"id", "texts", "score"}]}`` or ``"text": "title >> it"``   none
    KILT         ``input``, ``meta`` and ``output``, also of ExtEnD's predictions     none
    links        ``links``: ``[[start, end, entity]]`` or with a fourth, the mention  half-open
    ===========  ===================================================================  =========================

    Parameters
    ----------
    path, max_bytes
        As in :func:`vbterrier.read_run`. NIF is read up to 256 MiB; nothing is fetched.
    ids
        The id space of the result: ``"wikidata"`` (Q90), ``"dbpedia"`` (names), ``"wikipedia_title"`` (with
        underscores) or ``"wikipedia_id"``, or the edition of a language, as ``"dbpedia:de"``; ``None`` for ids as in
        the file. Addresses lose their prefix and percent signs. An id of another space is an error, since ids of
        different spaces are different entities, unless ``mapping`` has it.
    mapping, redirects
        With ``ids``: targets of ids of other spaces, and of ids within the space (chains are followed to their end): a
        mapping, a frame with columns entity_id and target, or the path of such a table.

    Returns
    -------
    pandas.DataFrame
        One row per candidate: ``qid``, ``docno``, ``start``, ``end`` (half-open, -1 without offsets), ``mention``
        (empty if the file has no texts), ``entity_id`` (``"NIL"`` for none, in any spelling of the layout; TAC's
        clusters keep their numbers) and ``score`` (NaN if there is none). The qid is ``docno:start-end`` for offsets of
        characters, ``docno:wstart-end`` for words, and the query of files without offsets.

    Raises
    ------
    FileError
        The file has no such layout, or a line does not fit: cut lines, a mention beyond its text, a mention that occurs
        twice, another spelling of NIL.
    InputError
        An id of another space, redirects in a circle.
    ParameterError
        ``mapping`` or ``redirects`` without ``ids``.

    Warns
    -----
    DegenerateWarning
        Mentions of NIF without ``itsrdf:taIdentRef``, or whose text differs from that at their offsets; mentions of
        HIPE without a link, or with several.

    Notes
    -----
    A file of neleval is recognised by its first line with an entity, which must not be a number: a number there means
    TREC qrels of entities. Answers of the linkers from TagMe on are objects, one in each line or in a list, with the id
    of the document as ``docno``, ``doc_id``, ``docid``, ``pid``, ``qid``, ``doc`` or ``id``, or one object of answers
    by docno. Offsets of TagMe, WAT, Spotlight and entity-fishing may be in UTF-16 units. Answers of AIDA, TextRazor,
    Falcon, ConEL, Diffbot, Dexter, MeaningCloud, the Illinois Wikifier, EntQA's reader (spans of windows) and Bootleg's
    annotator, and those that do not name their document, are refused by name. ``Doc.to_json()`` of spaCy has no links:
    add ``kb_id``. Titles of mGENRE become addresses of their edition of Wikipedia. For ReLiK, use
    ``annotation_type="char"``.
    Turtle needs ``rdflib`` (``pip install 'vbterrier[rdf]'``).

    Mentions of HIPE are those of HIPE-scorer: links between ``|`` are candidates, the first is the answer; a mention
    whose words have different links is divided where the link changes (as gold of :func:`.mention_report`, it keeps the
    link of its first word); words without a link (``_``) are no part of a mention, and a word with a link outside of
    the column of tags is one.

    References
    ----------
    Usbeck et al., GERBIL, WWW 2015. Hachey et al., Cheap and easy entity evaluation (neleval), ACL 2014. Ehrmann et
    al., HIPE-2022, CLEF 2022. Hoffart et al., Robust disambiguation of named entities in text (AIDA), EMNLP 2011.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "gold.tsv")
    >>> _ = path.write_text("d1\t0\t4\thttp://dbpedia.org/resource/Paris\nd1\t12\t17\tNIL01\n")
    >>> read_entity_links(path, ids="wikidata", mapping={"Paris": "Q90"})[["qid", "entity_id"]].values.tolist()
    [['d1:0-5', 'Q90'], ['d1:12-18', 'NIL01']]
    """
    if ids is None and (mapping is not None or redirects is not None):
        raise ParameterError("mapping and redirects apply to ids of one space: wanted ids=, too")
    return linked_mentions(path, ids=ids, mapping=mapping, redirects=redirects, max_bytes=max_bytes)


def linked_mentions(
    path: StrPath,
    *,
    is_gold: bool = False,
    ids: str | None = None,
    mapping: Any = None,
    redirects: Any = None,
    max_bytes: int | None = MAX_BYTES,
) -> pd.DataFrame:
    """Return the frame of :func:`read_entity_links`; ``is_gold`` applies where gold standards differ from answers."""
    source = Source.at(path, max_bytes)
    layout = None if source.is_parquet or source.is_workbook else link_layout(source)
    if layout is None:
        every = ", ".join(dict.fromkeys(each.name.partition(" (")[0] for each in LAYOUTS))
        message = f"is not recognised as linked mentions; found {_content_summary(source)}; wanted one of {every}"
        raise FileError(source.path, message)
    tables = _redirect_table(mapping, max_bytes), _redirect_table(redirects, max_bytes)
    frame = in_one_space(source, layout, ids, *tables, is_gold=is_gold)
    return frame[["qid", "docno", "start", "end", "mention", "entity_id", "score"]]


def _content_summary(source: Source) -> str:
    """The members of JSON by level, the first line of text, or the kind of a binary file."""
    if source.is_parquet or source.is_workbook:
        return "Parquet" if source.is_parquet else "a spreadsheet"
    _, line = source.first()
    if not is_json(line):
        return quoted_text(line)
    try:
        # The first of several lines, or the whole.
        return outline(parse_json(line if line.rstrip().endswith((b"}", b"]")) else source.text()))
    except (ValueError, RecursionError):
        return quoted_text(line)


def converted_tags(
    path: StrPath, *, ids: str | None = None, mapping: Any = None, redirects: Any = None
) -> pd.DataFrame:
    """Return the tags of linked mentions, or of a table, in one id space: the best mention of each document and entity.

    Columns docno, entity_id and, if a file has scores, weight; parameters as of :func:`read_entity_links`.
    """
    source, tables = Source.at(path, None), (_redirect_table(mapping, None), _redirect_table(redirects, None))
    layout = None if source.is_parquet or source.is_workbook else link_layout(source)
    if layout is None:
        tags = in_space(load(path, None, TAGS).frame, ids, *tables, name=str(path))
        tags = tags[tags["entity_id"].map(lambda entity: not is_no_entity(entity))]
    else:
        tags = linked_rows(source, layout, "tags", ids, *tables)
    kept = ["docno", "entity_id", *(["weight"] if (tags["weight"] != 1).any() else [])]
    return tags.sort_values("weight", ascending=False, kind="stable")[kept].drop_duplicates(kept[:2]).sort_index()


def converted_answers(
    path: StrPath, *, ids: str | None = None, mapping: Any = None, redirects: Any = None
) -> pd.DataFrame:
    """Return the answers of linked mentions, or of a table, in one id space; see :func:`read_entity_links`."""
    source = Source.at(path, None)
    is_linked = not (source.is_parquet or source.is_workbook) and link_layout(source) is not None
    answers = None if is_linked else load(path, None, ANSWERS).frame
    if answers is None or "label" in answers:
        # Judgments of entities are no answers.
        return read_entity_links(path, ids=ids, mapping=mapping, redirects=redirects)
    return in_space(answers, ids, _redirect_table(mapping, None), _redirect_table(redirects, None), name=str(path))


def in_space(frame: pd.DataFrame, ids: str | None, mapping: Any, redirects: Any, *, name: str) -> pd.DataFrame:
    """Return a table with its column entity_id in one id space."""
    if ids is None:
        return frame
    entities = frame["entity_id"].astype(str).tolist()
    spaces = [""] * len(entities)
    return frame.assign(
        entity_id=normalised_ids(entities, spaces, ids, mapping=mapping, redirects=redirects, name=name)
    )


def _redirect_table(redirects: Any, max_bytes: int | None) -> Any:
    return load(redirects, max_bytes, REDIRECTS).frame if isinstance(redirects, (str, os.PathLike)) else redirects
