"""Fingerprints of what a stage was trained with: texts and vectors of entities, and an encoder."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np

from vbterrier.errors import InputError, examples, warn
from vbterrier.frames.id_spaces import keys_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import pandas as pd

# Texts whose vectors identify an encoder: its weights, its tokenizer, its pooling, and the length at which it cuts.
PROBES = (
    "capital of France",
    "The Nile (النيل) flows 6,650 km north-wards; its source was long disputed.",
    "B2B",
    "river " * 600,
)
# Entities of a training whose texts and vectors are compared, and the largest relative difference of vectors between
# machines that round differently.
_N_ENTITIES, _VECTOR_TOLERANCE = 64, 1e-4


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=8).hexdigest()


def sample_ids(ids: Iterable[str]) -> list[str]:
    """Return the 64 ids with the lowest digests: the same sample in any order."""
    return sorted(set(ids), key=lambda each: (_digest(each.encode()), each))[:_N_ENTITIES]


def of_texts(texts: Mapping[str, str] | None, ids: Sequence[str]) -> dict[str, str] | None:
    """Return the digests of the texts of entities by id, ``None`` without texts."""
    return None if texts is None else {each: _digest(str(texts[key]).encode()) for each, key in _keys(texts, ids)}


def of_vectors(vectors: Mapping[str, Any] | None, ids: Sequence[str]) -> dict[str, str] | None:
    """Return the digests of the vectors of entities by id, in single precision, ``None`` without vectors."""
    if vectors is None:
        return None
    return {each: _digest(np.asarray(vectors[key], dtype="<f4").tobytes()) for each, key in _keys(vectors, ids)}


def _keys(table: Mapping[str, Any], ids: Sequence[str]) -> list[tuple[str, str]]:
    """Return the ids that a table has, as themselves, an address or a name, each with its key there."""
    return [(each, key) for each, key in zip(ids, keys_in(table, ids), strict=True) if key in table]


def of_links(links: pd.DataFrame, docnos: Iterable[str] | None = None) -> dict[str, str]:
    """Return the digests of the distinct entities of some documents, of a sample without ``docnos``, by docno."""
    kept = links[links["docno"].isin(sample_ids(links["docno"].unique()) if docnos is None else list(docnos))]
    entities = kept.drop_duplicates().sort_values(["docno", "entity_id"]).groupby("docno")["entity_id"].agg("\0".join)
    return {str(docno): _digest(text.encode()) for docno, text in entities.items()}


def warn_of_other_links(stage: str, saved: Mapping[str, str], given: Mapping[str, str]) -> None:
    """Warn of documents of the training whose links are others now, as those of another linker."""
    changed = [docno for docno, digest in given.items() if saved[docno] != digest]
    if changed:
        warn(
            f"{stage}: links are not those of the training: {len(changed)} of {len(given)} documents of the training "
            f"have others ({examples(changed)}); use the same linker, or train the stage on these links"
        )


def of_encoder(encode: Callable[[str], Any]) -> list[list[float]]:
    """Return the number of the vectors of each probe, their mean, and the mean of their products with their position.

    Positions are shares of the number of vectors, so that vectors in another order have another fingerprint.
    """
    made = []
    for text in PROBES:
        tokens = np.asarray(encode(text), dtype=np.float64)
        n = len(tokens)
        position = np.arange(1, n + 1)[:, None] / max(n, 1)
        means = [tokens.mean(axis=0), (position * tokens).mean(axis=0)] if n else []
        made.append([float(n), *np.round(np.concatenate(means) if n else [], 6).tolist()])
    return made


def require_same_inputs(stage: str, saved: Mapping[str, Any], current: Mapping[str, Any]) -> None:
    """Refuse inputs other than those of the training.

    Tables of entities are compared on the entities that both have: a table for other documents may have others.
    """
    for name, before in saved.items():
        now = current.get(name)
        if (before is None) != (now is None):
            state = "without" if before is None else "with"
            raise InputError(f"{stage}: trained {state} {name}=; load it {state} {name}= as well")
        if isinstance(before, dict) and isinstance(now, dict):
            common = [each for each in before if each in now]
            changed = [each for each in common if before[each] != now[each]]
            if changed or (before and not common):
                which = f"{changed[0]!r} has another one" if changed else "none of the entities of the training has one"
                raise InputError(
                    f"{stage}: {name}= are not those of the training: of {len(before)} entities, {which}; load the "
                    f"stage with the {name} it was trained with"
                )
        elif before is not None and not _close(before, now):
            raise InputError(
                f"{stage}: {name}= is not that of the training: it gives other vectors for {PROBES[0]!r}; load the "
                f"stage with the {name} it was trained with"
            )


def _close(before: Any, now: Any) -> bool:
    """Return True for the same numbers of vectors, and means that differ by rounding alone."""
    if not isinstance(before, list) or not all(isinstance(each, list) for each in before):
        return False
    if [[len(each), *each[:1]] for each in before] != [[len(each), *each[:1]] for each in now]:
        return False
    # The numbers of vectors would set the scale of the means.
    one, other = (np.concatenate([np.asarray(each[1:], dtype=np.float64) for each in rows]) for rows in (before, now))
    return bool(np.abs(one - other).max(initial=0) <= _VECTOR_TOLERANCE * np.abs(one).max(initial=0))
