"""Linked pools and trained stages in folders that PyTerrier saves, loads and shares."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyterrier as pt

from vbterrier.entities.learners import FORMAT, STAGE_TYPE, metadata, read_saved_stage
from vbterrier.entities.neural.entity_ranker import NeuralEntityRanker
from vbterrier.entities.neural.reranker import NeuralReranker
from vbterrier.entities.pool import read_links, write_links
from vbterrier.entities.rankers.selector import EntitySelector
from vbterrier.entities.stage import pool_of_links
from vbterrier.errors import FileError, path_parameter
from vbterrier.frames.files.source import parse_json, read_content, require_regular
from vbterrier.frames.files.writing import new_folder
from vbterrier.hosts.pyterrier import META_FILE

if TYPE_CHECKING:
    from vbterrier.annotations import StrPath
    from vbterrier.frames.linked_pool import LinkedPool


_LINKS = "links.parquet"
# A file of metadata has a few hundred bytes.
_MAX_META_BYTES = 1 << 16


class _Folder(pt.Artifact):  # type: ignore[misc]
    """Base class of artifacts: a folder with a file of metadata."""

    ARTIFACT_TYPE: str
    ARTIFACT_FORMAT = ARTIFACT_PACKAGE_HINT = FORMAT

    def __init__(self, path: StrPath) -> None:
        super().__init__(path_parameter("path", path))
        try:
            meta = parse_json(read_content(self.path / META_FILE, _MAX_META_BYTES))
        except (OSError, ValueError, RecursionError) as error:
            raise FileError(self.path, f"has no {META_FILE} that can be read ({error})") from error
        identity = {"type": self.ARTIFACT_TYPE, "format": FORMAT}
        if not isinstance(meta, dict) or {name: meta.get(name) for name in identity} != identity:
            raise FileError(self.path / META_FILE, f"wanted {identity}, found {meta!r:.200}; use pt.Artifact.load")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.path)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and bool(self.path == other.path)

    def __hash__(self) -> int:
        return hash(self.path)


class LinkSet(_Folder):
    """A linked pool in a folder, as an artifact of PyTerrier; all stages take it as ``links``.

    Parameters
    ----------
    path
        A folder created by :meth:`build`.

    Raises
    ------
    FileError
        A missing folder, or a folder with other content.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import pandas as pd
    >>> from vbterrier.entities import link_pool
    >>> from vbterrier.entities.rankers.consensus import ConsensusEntities
    >>> run = pd.DataFrame({"qid": "q1", "docno": ["d1", "d2"], "score": [2.0, 1.0]})
    >>> pool = link_pool(run, pd.DataFrame({"docno": ["d1", "d2"], "entity_id": "Paris"}))
    >>> links = LinkSet.build(pathlib.Path(tempfile.mkdtemp(), "links"), pool)
    >>> ConsensusEntities(links)(run)["docno"].tolist()
    ['Paris']
    """

    ARTIFACT_TYPE = "linked_pool"

    @classmethod
    def build(cls, path: StrPath, pool: Any) -> LinkSet:
        """Save a linked pool, or the pool of a K frame, in a new folder, which is created atomically.

        Raises
        ------
        InputError
            Tags instead of a pool.
        FileError
            The path exists, or the folder cannot be written.
        """
        pool = pool_of_links(pool, "LinkSet.build")
        with new_folder(path_parameter("path", path)) as part:
            write_links(pool, part / _LINKS)
            (part / META_FILE).write_text(metadata(cls.ARTIFACT_TYPE), encoding="utf-8")
        return cls(path)

    @cached_property
    def pool(self) -> LinkedPool:
        """The linked pool, which is read once."""
        require_regular(self.path / _LINKS)
        return read_links(self.path / _LINKS)


class TrainedStage(_Folder):
    """A trained stage in a folder, as an artifact of PyTerrier; the folder is that of ``save`` of the stage.

    Parameters
    ----------
    path
        A folder that ``save`` of :class:`~vbterrier.entities.NeuralReranker`,
        :class:`~vbterrier.entities.NeuralEntityRanker` or :class:`~vbterrier.entities.EntitySelector` wrote.

    Raises
    ------
    FileError
        A missing folder, or a folder with other content.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import pandas as pd
    >>> from vbterrier.entities import link_pool
    >>> from vbterrier.entities.rankers.selector import EntitySelector
    >>> rows = [(f"q{q}", f"d{q}.{d}", -d, f"E{d // 2}_{q}", int(d > 1)) for q in range(40) for d in range(4)]
    >>> pool = pd.DataFrame(rows, columns=["qid", "docno", "score", "entity_id", "label"])
    >>> links = link_pool(pool, pool[["docno", "entity_id"]])
    >>> run = pd.DataFrame({"qid": pool["qid"], "docno": pool["entity_id"], "score": 1.0}).drop_duplicates()
    >>> selector = EntitySelector(links, features=["rank_support"], rounds=5)
    >>> selector.fit(run, pool[["qid", "docno", "label"]]).save(folder := pathlib.Path(tempfile.mkdtemp()))
    >>> TrainedStage(folder).stage(links) == selector
    True
    """

    ARTIFACT_TYPE = STAGE_TYPE

    def stage(self, *inputs: Any, **options: Any) -> Any:
        """Return the stage; links, entities, texts and other inputs are given again, as in ``load`` of the stage."""
        kinds: dict[str, Any] = {kind.__name__: kind for kind in (EntitySelector, NeuralEntityRanker, NeuralReranker)}
        name = read_saved_stage(self.path)["stage"]
        if name not in kinds:
            raise FileError(self.path, f"holds a stage {name!r}; there are {', '.join(kinds)}")
        return kinds[name].load(self.path, *inputs, **options)
