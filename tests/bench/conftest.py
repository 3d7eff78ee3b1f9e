"""What benchmarks share: ``--once`` runs each of them a single time, to see that it still runs; results are printed."""

from functools import partial

import pytest


def pytest_addoption(parser):
    parser.addoption("--once", action="store_true", help="benchmarks in rounds: one of them, and no warm-up")


def _once(pedantic, target, args=(), kwargs=None, **options):
    return pedantic(target, args, kwargs, **{**options, "rounds": 1, "warmup_rounds": 0})


@pytest.fixture
def benchmark(benchmark, request):
    # Known only where these benchmarks were asked for by their folder.
    if request.config.getoption("--once", default=False):
        benchmark.pedantic = partial(_once, benchmark.pedantic)
    yield benchmark
    print(request.node.name, benchmark.extra_info)
