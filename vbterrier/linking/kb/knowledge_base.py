"""Knowledge base with look-up by alias, by id and by similar name."""

from __future__ import annotations

import json
import math
from functools import cached_property, partial
from io import BytesIO
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyterrier as pt

from vbterrier.errors import FileError, InputError, ParameterError, choice, excerpt, module_of_extra, path_parameter
from vbterrier.frames.files.source import is_there, require_regular
from vbterrier.frames.id_spaces import id_in
from vbterrier.frames.names import normal_forms
from vbterrier.hosts.pyterrier import META_FILE
from vbterrier.kernels.tolerances import REPLICA_ROUNDING, WHOLE_ROUNDING
from vbterrier.linking.kb.sqlite import ARTIFACT, FACTS, IN_FOLDER, MAX_COMPARED_NAMES, KBConnection, lexicon_path
from vbterrier.linking.kb.staging import text_fault
from vbterrier.linking.links import BLOCK_CELLS, COLUMNS, Links, positive

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Sequence

    from typing_extensions import Self

    from vbterrier.annotations import Ints
    from vbterrier.linking.lexicon import Lexicon


# The number of names of a large knowledge base that are compared with a mention, and the number of index entries that
# may be read to find them.
_N_CANDIDATES, _N_POSTINGS = 1000, 60_000
# Mentions whose trigrams are looked up together.
_BLOCK_MENTIONS = 1000
# RapidFuzz rounds cutoffs.
_CUTOFF_TOLERANCE = 1e-6

_MODES = ("exact", "normalised", "fuzzy")
_COLUMNS = ("text", "mention", "alias", "entity_id", "score", "name")
_SENSES = """
SELECT k.{key}, s.rank, s.prob, m.text, e.id, e.name, e.place
FROM {keys} AS k JOIN {senses} AS s ON s.key = k.place
JOIN entity AS e ON e.place = s.entity JOIN mention AS m ON m.place = s.mention
WHERE k.{key} IN ({{}}) AND s.rank < {limit}
"""
_FIELDS = ("key", "rank", "score", "alias", "entity_id", "name", "place")
_NO_LIMIT = 2**62


class Names:
    """The normal forms of a knowledge base, for approximate matching."""

    def __init__(self, connection: KBConnection, n_forms: int, *, has_trigrams: bool) -> None:
        self.connection, self.n_forms, self.has_trigrams = connection, n_forms, has_trigrams

    def like(self, forms: Sequence[str], min_similarity: float) -> pd.DataFrame:
        """Return pairs of a form (``key``) and the place of a name (``form``) with at least a ``similarity``."""
        forms = sorted((form for form in forms if form), key=len)
        if self.has_trigrams:
            parts = list(self._trigram_matches(forms, min_similarity))
        elif self.n_forms <= MAX_COMPARED_NAMES:
            parts = list(self._all(forms, min_similarity))
        else:
            fault = f"has {self.n_forms:,} names but no index of trigrams, which fuzzy look-ups need"
            raise FileError(self.connection.path, f"{fault}; build it again with SQLite 3.34 or later")
        columns = {"key": object, "form": np.int64, "similarity": np.float64}
        return pd.concat([pd.DataFrame([], columns=list(columns)).astype(columns), *parts], ignore_index=True)

    @cached_property
    def _lengths(self) -> tuple[Ints, Ints]:
        """The lengths of names in ascending order, and the first place of each."""
        rows = self.connection.rows("SELECT n_letters, first FROM form_length ORDER BY n_letters")
        lengths, first = zip(*rows, strict=True) if rows else ((), ())
        return np.array(lengths, dtype=np.int64), np.array(first, dtype=np.int64)

    def _range(self, n_letters: int, min_similarity: float) -> tuple[int, int]:
        """Return the range of places of names whose length allows the similarity, half-open.

        ``s = 2 LCS / (m + n) ≤ 2 min(m, n) / (m + n)``, so ``m c / (2 - c) ≤ n ≤ m (2 - c) / c``.
        """
        lengths, first = self._lengths
        shortest = math.ceil(n_letters * min_similarity / (2 - min_similarity) - WHOLE_ROUNDING)
        longest = math.floor(n_letters * (2 - min_similarity) / min_similarity + WHOLE_ROUNDING)
        ends = np.append(first, self.n_forms + 1)
        low, high = np.searchsorted(lengths, [shortest, longest + 1])
        return int(ends[low]), int(ends[high])

    @cached_property
    def _texts(self) -> list[str]:
        return [text for (text,) in self.connection.rows("SELECT text FROM form ORDER BY place")]

    def _all(self, forms: list[str], min_similarity: float) -> Iterator[pd.DataFrame]:
        for n_letters, group in groupby(forms, key=len):
            same = list(group)
            low, high = self._range(n_letters, min_similarity)
            names = self._texts[low - 1 : high - 1]
            step = max(1, BLOCK_CELLS // max(1, len(names)))
            for begin in range(0, len(same), step):
                yield _similar(same[begin : begin + step], names, np.arange(low, high), min_similarity)

    def _trigram_matches(self, forms: list[str], min_similarity: float) -> Iterator[pd.DataFrame]:
        for begin in range(0, len(forms), _BLOCK_MENTIONS):
            some = forms[begin : begin + _BLOCK_MENTIONS]
            trigrams = [_trigrams(form) for form in some]
            every = sorted(set().union(*trigrams))
            counts = dict(self.connection.batched_rows("SELECT text, n FROM trigram WHERE text IN ({})", every))
            for form, of_form in zip(some, trigrams, strict=True):
                near = self._sharing(
                    form, {trigram: counts[trigram] for trigram in of_form & counts.keys()}, min_similarity
                )
                texts = dict(
                    self.connection.batched_rows("SELECT place, text FROM form WHERE place IN ({})", near.tolist())
                )
                yield _similar([form], [texts[place] for place in near.tolist()], near, min_similarity)

    def _sharing(self, form: str, trigrams: dict[str, int], min_similarity: float) -> Ints:
        """Return the names that share the most of the rarest trigrams of a form; ties: the nearest in length."""
        low, high = self._range(len(form), min_similarity)
        postings = [np.empty(0, dtype=np.int64)]
        left = _N_POSTINGS * self.n_forms
        for trigram in sorted(trigrams, key=lambda text: (trigrams[text], text)):
            left -= trigrams[trigram] * (high - low)
            if left < 0 and len(postings) > 1:
                break
            postings.append(self._having(trigram, low, high))
        places, n_shared = np.unique(np.concatenate(postings), return_counts=True)
        lengths, first = self._lengths
        off = np.abs(lengths[np.searchsorted(first, places, side="right") - 1] - len(form))
        return np.sort(places[np.lexsort((places, off, -n_shared))[:_N_CANDIDATES]])

    def _having(self, trigram: str, low: int, high: int) -> Ints:
        """Return the places of the names with a trigram, within a range."""
        quoted = '"' + trigram.replace('"', '""') + '"'
        # One string of numbers is five times as fast as one row per number.
        ((places,),) = self.connection.rows(
            "SELECT coalesce(group_concat(rowid), '') FROM form_trigram "
            "WHERE form_trigram MATCH ? AND rowid >= ? AND rowid < ?",
            (quoted, low, high),
        )
        return np.fromstring(places, dtype=np.int64, sep=",")


def _trigrams(form: str) -> set[str]:
    """Return the trigrams of a form with a blank before and after it, as in the index."""
    padded = f" {form} "
    return {padded[start : start + 3] for start in range(len(padded) - 2)}


def _similar(forms: list[str], names: list[str], places: Ints, min_similarity: float) -> pd.DataFrame:
    """Return pairs of a form and a name with ``s = 1 - insertions and deletions / letters of both`` above a minimum."""
    process = module_of_extra("rapidfuzz.process", "linkers")
    indel = module_of_extra("rapidfuzz.distance", "linkers").Indel
    # With a lower threshold, because RapidFuzz can miss pairs whose similarity equals it.
    least = max(min_similarity - _CUTOFF_TOLERANCE, 0.0)
    cells: Any = process.cdist(forms, names, scorer=indel.normalized_similarity, score_cutoff=least, dtype=np.float64)
    form, name = np.nonzero(cells >= min_similarity)
    return pd.DataFrame(
        {"key": np.array(forms, dtype=object)[form], "form": places[name], "similarity": cells[form, name]}
    )


class KnowledgeBase(pt.Artifact):  # type: ignore[misc]
    """Entities with names, aliases, attributes and redirects, read from one file.

    A built knowledge base never changes, takes no locks, and may be used by any number of threads and processes. It is
    pickled as its path, and as a PyTerrier artifact packed, shared (``to_hf``, ``to_zenodo``) and loaded
    (``pt.Artifact.load``). As a linker it treats each text as one mention. Knowledge bases are equal if their contents
    (by a digest in the file) and their look-ups are, independent of the paths.

    Parameters
    ----------
    path
        A file from :func:`build_kb` or another builder, or the folder of an unpacked artifact.
    how
        The look-up for linking: ``"exact"``, ``"normalised"`` or ``"fuzzy"``, see :meth:`lookup`.

    Raises
    ------
    ParameterError
        An unknown look-up.
    FileError
        The file is missing, or not a complete knowledge base of this format. Only the header is checked.

    Notes
    -----
    ``score`` of an exact look-up is ``p(e|m)``, the probability of the entity given the mention: the prior in the
    source divided by the sum of the priors of the mention, or ``1/n`` over its n entities without priors. If only some
    entities have a prior, the other entities share the rest of 1 equally. A normalised look-up merges the aliases m of
    a normal form f: ``p(e|f) = Σ w_m p(e|m) / Σ w_m`` with the frequency of each alias (default 1). In a knowledge base
    without priors it is ``1/n`` over the entities of all aliases.

    Examples
    --------
    >>> import tempfile
    >>> from vbterrier.linking.kb import build_kb
    >>> people = [
    ...     {"id": "E1", "label": "Ralph Waldo Emerson", "aliases": ["Emerson"], "attributes": {"born": 1803}},
    ...     {"id": "E2", "label": "Roy Emerson", "aliases": ["Emerson"], "redirects": ["E3"]},
    ... ]
    >>> with build_kb(f"{tempfile.mkdtemp()}/people.kb", people, id_space="people") as kb:
    ...     kb.lookup(["EMERSON"])[["mention", "alias", "entity_id", "score"]].values.tolist()
    ...     kb.names(["E3", "E9"]), kb.resolve(["E3", "E9"]), kb.attributes(["E1"]).values.tolist()
    [['EMERSON', 'Emerson', 'E1', 0.5], ['EMERSON', 'Emerson', 'E2', 0.5]]
    (['Roy Emerson', ''], ['E2', 'E9'], [['E1', 'born', '1803', 'number']])
    """

    ARTIFACT_TYPE = ARTIFACT["type"]
    ARTIFACT_FORMAT = ARTIFACT["format"]
    ARTIFACT_PACKAGE_HINT = ARTIFACT["package_hint"]

    def __init__(self, path: str | os.PathLike[str], *, how: str = "normalised") -> None:
        super().__init__(path_parameter("path", path))
        self.how = choice("how", how, _MODES)
        self._file = self.path / IN_FOLDER if is_there(self.path / IN_FOLDER) else self.path
        require_regular(self._file)
        self._connection = KBConnection(self._file)
        # Read the metadata to check the file now and not at the first look-up.
        self._meta  # noqa: B018

    @cached_property
    def _meta(self) -> dict[str, str]:
        return self._connection.facts(FACTS)

    @cached_property
    def _names(self) -> Names:
        return Names(self._connection, int(self._meta["n_forms"]), has_trigrams=self._meta["has_trigrams"] == "1")

    @property
    def id_space(self) -> str:
        """The name of the id space."""
        return self._meta["id_space"]

    @property
    def has_priors(self) -> bool:
        """True if any alias has a prior."""
        return self._meta["has_priors"] == "1"

    @property
    def counts_are_of_entities(self) -> bool:
        """True if the priors follow from counts of entities, which do not add up over their aliases."""
        return self._meta["counts_are_of_entities"] == "1"

    @property
    def n_aliases(self) -> int:
        """Number of distinct aliases."""
        return int(self._meta["n_aliases"])

    @property
    def digest(self) -> str:
        """Digest of the contents, independent of the time and the source of the build; 32 hex digits."""
        return self._meta["digest"]

    def __len__(self) -> int:
        """Return the number of entities."""
        return int(self._meta["n_entities"])

    def link(self, texts: Sequence[str]) -> Links:
        """Link each text, treated as one mention; scale ``"probability"``, or ``"score"`` of a fuzzy look-up."""
        table = self.lookup(texts, how=self.how)
        table["start"], table["end"] = np.int64(0), table["mention"].str.len().astype(np.int64)
        return Links(table[list(COLUMNS)], self.id_space, "score" if self.how == "fuzzy" else "probability")

    def lookup(
        self,
        mentions: Sequence[str],
        *,
        how: str = "normalised",
        limit: int | None = None,
        min_similarity: float = 0.85,
    ) -> pd.DataFrame:
        """Look up the candidate entities of mentions.

        Parameters
        ----------
        mentions
            The mentions; an unknown one has no rows.
        how
            ``"exact"`` for the same alias; ``"normalised"`` for aliases with the same
            :func:`~vbterrier.frames.names.normal_form`; ``"fuzzy"`` for aliases with a similar normal form.
        limit
            The maximum number of entities of a mention; all by default.
        min_similarity
            The minimum similarity of a fuzzy look-up, above 0, at most 1.

        Returns
        -------
        pandas.DataFrame
            Columns ``text`` (index of the mention, from 0), ``mention``, ``alias`` (that matches), ``entity_id``,
            ``score`` and ``name``; by text, then score descending, then entity_id. The score is ``p(e|mention)``, or in
            a fuzzy look-up ``s(mention, alias)``, RapidFuzz's ``ratio`` of the normal forms in [0, 1] (1 - insertions
            and deletions / letters of both), times ``p(e|alias)`` if the knowledge base has priors; the largest over
            the aliases of an entity.

        Raises
        ------
        InputError, ParameterError
            One text instead of a list, an item that is not text, or half a surrogate pair; an invalid parameter.
        ModuleNotFoundError
            A fuzzy look-up without the extra ``linkers``.

        Notes
        -----
        A fuzzy look-up compares a mention with all normal forms if there are at most 250,000. Otherwise it compares the
        1,000 forms of suitable length that share the most of the mention's rarest trigrams, which can miss names with
        several wrong letters (``tests/bench/test_kb.py`` measures how many).
        """
        texts = _texts(mentions)
        choice("how", how, _MODES)
        limit = None if limit is None else positive("limit", limit)
        if not 0 < min_similarity <= 1:
            raise ParameterError(f"min_similarity={excerpt(min_similarity)}: wanted a number above 0 and at most 1")
        keys = texts if how == "exact" else normal_forms(texts)
        table = pd.DataFrame({"text": np.arange(len(texts)), "mention": texts, "key": keys}, dtype=object)
        distinct = list(dict.fromkeys(keys))
        if how == "fuzzy":
            senses = self._fuzzy(distinct, min_similarity, limit)
        else:
            senses = self._senses("mention" if how == "exact" else "form", "text", distinct, limit)
        rows = table.merge(senses, on="key").sort_values(["text", "rank"], ignore_index=True)
        kinds = dict.fromkeys(_COLUMNS, "str") | {"text": "int64", "score": "float64"}
        return rows[list(_COLUMNS)].astype(kinds)

    def names(self, ids: Sequence[str]) -> list[str]:
        """Return the name of each entity, after redirects; empty if unknown."""
        ends = self.resolve(ids)
        rows = self._connection.batched_rows("SELECT id, name FROM entity WHERE id IN ({})", list(dict.fromkeys(ends)))
        names = dict(rows)
        return [names.get(entity, "") for entity in ends]

    def attributes(self, ids: Sequence[str]) -> pd.DataFrame:
        """Return the attributes of entities: columns ``entity_id``, ``attribute``, ``value``, ``type``, all text.

        There is one row per value; distinct entities in the order given, values in the order of the source. The id is
        the given one, and the values are those of the entity that it redirects to. ``type`` is text, number, year or
        boolean ("true" or "false").
        """
        entities = list(dict.fromkeys(_texts(ids, "ids")))
        sql = "SELECT e.id, a.place, a.name, a.value, a.type FROM entity e JOIN attribute a ON a.entity = e.place "
        sql += "WHERE e.id IN ({})"
        ends = pd.DataFrame(
            {"entity_id": entities, "place": range(len(entities)), "end": self.resolve(entities)}, dtype=object
        )
        fields = ["end", "nth", "attribute", "value", "type"]
        rows = list(self._connection.batched_rows(sql, ends["end"].drop_duplicates().tolist()))
        facts = ends.merge(pd.DataFrame(rows, columns=fields, dtype=object), on="end")
        facts = facts.sort_values(["place", "nth"], ignore_index=True)
        return facts[["entity_id", "attribute", "value", "type"]].astype("str")

    def attribute_names(self) -> list[str]:
        """Return the sorted names of all attributes; this reads every attribute."""
        return [name for (name,) in self._connection.rows("SELECT DISTINCT name FROM attribute ORDER BY name")]

    def attribute_values(self, name: str) -> list[str]:
        """Return the sorted distinct values of an attribute; this reads every attribute."""
        sql = "SELECT DISTINCT value FROM attribute WHERE name = ? ORDER BY value"
        return [value for (value,) in self._connection.rows(sql, (name,))]

    def spellings(self) -> dict[str, dict[str, list[str]]]:
        """Return the names of values by attribute and value, such as ``{"state": {"NY": ["New York"]}}``."""
        names: dict[str, dict[str, list[str]]] = {}
        sql = "SELECT attribute, value, name FROM spelling ORDER BY attribute, value, place"
        for attribute, value, name in self._connection.rows(sql):
            names.setdefault(attribute, {}).setdefault(value, []).append(name)
        return names

    def resolve(self, ids: Sequence[str]) -> list[str]:
        """Return the target of each id after redirects; unknown ids are unchanged, in the spelling of the id space."""
        entities = [self._plain(entity) for entity in _texts(ids, "ids")]
        sql = "SELECT source, target FROM redirect WHERE source IN ({})"
        ends = dict(self._connection.batched_rows(sql, list(dict.fromkeys(entities))))
        return [ends.get(entity, entity) for entity in entities]

    def _plain(self, entity: str) -> str:
        try:
            return id_in(entity, self.id_space)
        except ValueError:
            # It is unknown here.
            return entity

    def alias_table(self) -> pd.DataFrame:
        """Return all aliases: columns ``alias``, ``entity_id``, ``score``, ``weight``; by alias, then as look-ups.

        The score is ``p(e|alias)``; the weight is the frequency of the alias, the sum of its counts, or else 1.
        """
        rows = self._connection.rows(
            "SELECT m.text, e.id, s.prob, m.weight FROM mention_sense AS s JOIN mention AS m ON m.place = s.key "
            "JOIN entity AS e ON e.place = s.entity ORDER BY s.key, s.rank"
        )
        kinds = {"alias": "str", "entity_id": "str", "score": "float64", "weight": "float64"}
        table = pd.DataFrame(rows, columns=list(kinds))
        self._require_probabilities(table["score"])
        return table.astype(kinds)

    def lexicon(self) -> Lexicon | None:
        """Return the names as :class:`~vbterrier.linking.DictionaryLinker` reads them, mapped from the file beside.

        ``None`` if there is no such file: only a knowledge base of more than 100,000 aliases has one.

        Raises
        ------
        FileError
            The file belongs to another knowledge base, or is damaged.
        """
        from vbterrier.linking.lexicon import Lexicon

        path = lexicon_path(self._file)
        return Lexicon.load(path, self.digest, self._aliases, self.n_aliases) if path.exists() else None

    def _aliases(self, places: Ints) -> list[str]:
        """Return the aliases with these numbers, in the order of :meth:`alias_table`."""
        sql = "SELECT place, text FROM mention WHERE place IN ({})"
        aliases = dict(self._connection.batched_rows(sql, (places + 1).tolist()))
        return [aliases.get(place + 1, "") for place in places.tolist()]

    def close(self) -> None:
        """Close the file; the next query opens it again."""
        self._connection.close()

    def _senses(self, kind: str, key: str, values: Sequence[Any], limit: int | None) -> pd.DataFrame:
        """Return the entities of mentions or forms, which are given by their text or place."""
        sql = _SENSES.format(keys=kind, senses=f"{kind}_sense", key=key, limit=_NO_LIMIT if limit is None else limit)
        senses = pd.DataFrame(self._connection.batched_rows(sql, values), columns=list(_FIELDS), dtype=object)
        self._require_probabilities(senses["score"])
        return senses

    def _require_probabilities(self, column: pd.Series[Any]) -> None:
        try:
            prob = column.to_numpy(dtype=np.float64)
        except ValueError as error:
            raise self._connection.damage_error(error) from error
        if not ((prob >= 0) & (prob <= 1 + REPLICA_ROUNDING)).all():
            raise self._connection.damage_error("a probability outside 0 to 1")

    def _fuzzy(self, forms: Sequence[str], min_similarity: float, limit: int | None) -> pd.DataFrame:
        """Return the entities of the names similar to each form."""
        pairs = self._names.like(forms, min_similarity)
        senses = self._senses("form", "place", pairs["form"].drop_duplicates().tolist(), limit)
        matches = pairs.merge(senses.rename(columns={"key": "form"}), on="form")
        matches["score"] = matches["similarity"] * (matches["score"].astype(np.float64) if self.has_priors else 1.0)
        matches = matches.sort_values(["key", "score", "place", "alias"], ascending=[True, False, True, True])
        matches = matches.drop_duplicates(["key", "place"])
        matches["rank"] = matches.groupby("key").cumcount()
        return matches if limit is None else matches[matches["rank"] < limit]

    def _package_files(self) -> Iterator[tuple[str, str | BytesIO]]:
        """Yield the files of a package, also if the knowledge base is no folder: PyTerrier's interface."""
        yield IN_FOLDER, str(self._file)
        if lexicon_path(self._file).exists():
            yield lexicon_path(Path(IN_FOLDER)).name, str(lexicon_path(self._file))
        yield META_FILE, BytesIO(json.dumps(ARTIFACT).encode())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if "_connection" in self.__dict__:
            self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(KnowledgeBase, how=self.how), (str(self.path.absolute()),)

    def __repr__(self) -> str:
        # Without the folder, so that results that name their linker do not depend on it.
        how = "" if self.how == "normalised" else f", how={self.how!r}"
        return f"KnowledgeBase({self.path.name!r}, {self.digest[:8]}{how})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KnowledgeBase) and (self.digest, self.how) == (other.digest, other.how)

    def __hash__(self) -> int:
        return hash((self.digest, self.how))


def _texts(texts: Sequence[str], what: str = "mentions") -> list[str]:
    """Check that texts are a list of texts that can be encoded as UTF-8."""
    if isinstance(texts, str):
        raise InputError(f"{what}: wanted a list of texts, found one text; pass [text]")
    checked = list(texts)
    for place, text in enumerate(checked):
        if not isinstance(text, str) or not text.isascii():
            fault = "" if isinstance(text, str) and text.isspace() else text_fault(text, len(str(text)))
            if fault and fault != "contains a NUL":
                raise InputError(f"{what}: place {place} {fault}: {str(text)!a}; repair it, or pass '' for none")
    return checked
