"""Settings of calls: one object each, with the same name and the same fields everywhere."""

import inspect
import pickle
import re
from dataclasses import fields

import pytest

import vbterrier
from vbterrier.errors import ParameterError
from vbterrier.settings import TESTS, UNSET, Data, Execution, Inference, Options, with_defaults
from vbterrier.stats import paired_tests

KINDS = {"data": Data, "inference": Inference, "execution": Execution}
LEGAL = {
    "interval": "normal",
    "level": 0.5,
    "test": "t",
    "correction": "holm",
    "family": "all",
    "margin": 0.1,
    "memory": "1 GiB",
    "on_topics": "all",
    "system": "none",
    "duplicates": "first",
}


def public_callables():
    """All functions and classes of the package and its public namespaces, by name."""
    every = {}
    for name in vbterrier.__all__:
        value = getattr(vbterrier, name)
        if inspect.ismodule(value):
            every |= {f"{name}.{inner}": getattr(value, inner) for inner in value.__all__}
        else:
            every[name] = value
    return {name: value for name, value in every.items() if inspect.isfunction(value) or inspect.isclass(value)}


CALLS = {name: value for name, value in public_callables().items() if inspect.isfunction(value)}
WITH_SETTINGS = {name: call for name, call in CALLS.items() if set(KINDS) & set(inspect.signature(call).parameters)}


def used(call):
    """The settings that a call uses, and their defaults, by the name of its argument."""
    parameters = inspect.signature(call).parameters
    return {
        name: part.default.explicit_settings() for name, part in parameters.items() if isinstance(part.default, Options)
    }


def test_the_refusal_of_queries_names_all_calls_that_honour_them():
    calls = {name.rpartition(".")[2] for name, call in WITH_SETTINGS.items() if "queries" in used(call).get("data", {})}
    with pytest.raises(ParameterError) as refused:
        vbterrier.evaluate.leaderboard({}, None, ["P@1"], data=Data(queries="traffic.csv"))
    named = str(refused.value).partition("weights, clusters and segments are for ")[2]
    assert set(named.split(", ")) == calls
    assert len(calls) > 3


def stated(call, argument):
    """The settings and defaults that the documentation of a call states."""
    entry = re.search(
        rf"\n    {argument}\n        An? :class:`vbterrier\.[\w.]+`: (.*?)\.(?:\s|$)", call.__doc__, re.DOTALL
    )
    listed = re.findall(r"``(\w+)``(?: \((?:``)?\"?([^()]*?)\"?(?:``)?[;)])?", " ".join(entry[1].split()))
    return {name: default.partition("``")[0].strip('"') for name, default in listed}


def text(default):
    return "" if default is None else f"{default:,}" if type(default) is int else str(default)


@pytest.mark.parametrize("name", WITH_SETTINGS)
def test_calls_refuse_settings_that_they_do_not_use(name):
    call = WITH_SETTINGS[name]
    required = [part for part in inspect.signature(call).parameters.values() if part.default is part.empty]
    arguments = {part.name: "." if part.name == "path" else None for part in required}
    refused = 0
    for argument, kind in KINDS.items():
        if argument not in inspect.signature(call).parameters:
            continue
        for field in {field.name for field in fields(kind)} - set(used(call).get(argument, ())):
            value = LEGAL.get(field, 2)
            if used(call).get(argument) is None:
                continue
            with pytest.raises(ParameterError, match=rf"{kind.__name__}\({field}=.* has no effect; leave {field} out"):
                call(**arguments, **{argument: kind(**{field: value})})
            refused += 1
    assert refused or name == "write_report"


@pytest.mark.parametrize("name", WITH_SETTINGS)
def test_documentation_states_the_settings_and_defaults_that_calls_use(name):
    call = WITH_SETTINGS[name]
    for argument, defaults in used(call).items():
        # Options state their defaults themselves.
        expected = {field: text(default) if argument in KINDS else "" for field, default in defaults.items()}
        assert stated(call, argument) == expected, argument


def test_settings_are_refused_if_they_are_another_object():
    with pytest.raises(ParameterError, match=r"score: wanted settings as Inference\(\.\.\.\), found dict"):
        vbterrier.score({}, inference={"level": 0.9})


@pytest.mark.parametrize(
    ("kind", "setting", "message"),
    [
        (Inference, {"interval": "percentil"}, "Did you mean percentile"),
        (Inference, {"level": 95}, "did you mean 0.95, 95 per cent"),
        (Inference, {"n_resamples": 0}, "n_resamples=0: wanted a whole number of at least 1"),
        (Inference, {"n_draws": 1.5}, "n_draws=1.5: wanted a whole number"),
        (Inference, {"seed": -1}, "seed=-1: wanted a whole number of at least 0"),
        (Inference, {"seed": True}, "seed=True: wanted a whole number of at least 0"),
        (Inference, {"test": "T"}, "Did you mean t"),
        (Inference, {"correction": "holms"}, "Did you mean holm"),
        (Inference, {"family": "each"}, "family='each'"),
        (Inference, {"margin": 0}, "margin=0: wanted a number above 0"),
        (Execution, {"memory": "1 GB of"}, "memory='1 GB of': wanted a number of bytes"),
        (Execution, {"n_jobs": 0}, "n_jobs=0: wanted a whole number of at least 1, or -1"),
        (Execution, {"n_jobs": 2, "client": "tcp://a:1"}, "n_jobs=2 and client=: wanted one of them"),
        (Execution, {"resume": " "}, "resume=' ': wanted a folder"),
        (Data, {"on_topics": "each"}, "on_topics='each'"),
        (Data, {"pool_cutoff": 0}, "pool_cutoff=0"),
    ],
)
def test_illegal_settings_are_refused_where_they_are_made(kind, setting, message):
    with pytest.raises(ParameterError, match=re.escape(message)):
        kind(**setting)


def test_words_of_settings_are_those_of_the_tests():
    assert set(TESTS) == set(paired_tests.TESTS)


def test_help_shows_the_settings_and_defaults_of_a_call():
    signature = str(inspect.signature(vbterrier.compare))
    assert "inference: 'Inference' = Inference(interval='unseen', level=0.95, n_resamples=2000, seed=0, " in signature
    assert "test='moderated', correction='auto', family='measure', margin=None)" in signature
    assert "data: 'Data' = Data(labels=None, subtopics=None, queries=None, topics=None, on_topics='same'" in signature


@pytest.mark.parametrize("name", WITH_SETTINGS)
def test_defaults_of_settings_are_in_the_signature(name):
    assert {kind for kind in KINDS if kind in inspect.signature(WITH_SETTINGS[name]).parameters} <= set(
        used(WITH_SETTINGS[name])
    )


@with_defaults
def shown(*, inference: Inference = Inference(level=0.95, margin=None, seed=0)):
    return inference


def test_settings_left_out_have_the_defaults_of_the_call():
    assert shown() == Inference(level=0.95, margin=None, seed=0)
    assert shown(inference=Inference(seed=3)) == Inference(level=0.95, margin=None, seed=3)
    assert shown(inference=Inference(margin=0.1)).margin == pytest.approx(0.1)


def test_settings_are_keywords_of_calls():
    with pytest.raises(TypeError, match="of_old: parameters of settings are keyword-only"):

        @with_defaults
        def of_old(inference: Inference = Inference(level=0.95)):
            return inference


def test_settings_have_no_default_of_their_own():
    assert all(field.default is UNSET for kind in KINDS.values() for field in fields(kind))
    assert repr(Inference(level=0.9)) == "Inference(level=0.9)"
    assert pickle.loads(pickle.dumps(Inference(level=0.9))) == Inference(level=0.9)


# The parameters of pt.Experiment, and the inputs of eight models in two variants.
LONG = {"Experiment": 24, "Data": 12, "entities.NeuralReranker": 14, "entities.LinkedPool": 11}


def test_calls_have_at_most_ten_parameters():
    calls = {name: call for name, call in public_callables().items() if not name.endswith(("Error", "Warning"))}
    many = {name: len(inspect.signature(call).parameters) for name, call in calls.items()}
    assert {name: n for name, n in many.items() if n > LONG.get(name, 10)} == {}
