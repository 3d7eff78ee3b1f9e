"""Tables of refusals: a call, its bad input, and what the message must name."""

import inspect

import pytest

from vbterrier.errors import InputError


def refusals(what, call, *rows, error=InputError, says="{}"):
    """Cases of one call. A row has the bad input, the error if it is not `error`, and a pattern of the message.

    Keyword-only parameters of `call` without a default are fixtures. `says` is a pattern that rows share: each gives
    the words for its braces, or nothing where it has no braces.
    """
    cases = []
    for row in rows:
        *arguments, words = row if "{}" in says else (*row, "")
        raised = (
            arguments.pop()
            if arguments and inspect.isclass(arguments[-1]) and issubclass(arguments[-1], Exception)
            else error
        )
        expected = says.replace("{}", str(words))
        cases.append(pytest.param(call, tuple(arguments), raised, expected, id=f"{what}: {expected[:80]}"))
    return cases


def _called(request, call, arguments):
    used = {
        name: request.getfixturevalue(name)
        for name, each in inspect.signature(call).parameters.items()
        if each.kind == each.KEYWORD_ONLY and each.default is each.empty
    }
    return call(*arguments, **used)


def check_refusal(request, call, arguments, error, words):
    """Assert that the call raises this error, with a message that matches the words."""
    with pytest.raises(error, match=words):
        _called(request, call, arguments)


def check_message(request, call, arguments, error, message):
    """Assert that the call raises this error, with exactly this message."""
    with pytest.raises(error) as raised:
        _called(request, call, arguments)
    assert str(raised.value) == message
