"""Times of ways of doing the same, taken in turns; ratios with their spread; growth."""

import gc
import time
from dataclasses import dataclass, field

import numpy as np

# Seconds that a call may take and still be repeated.
PATIENCE = 60.0


@dataclass
class Times:
    """Seconds of each round: on processors, of this process and of those it started, and on the wall."""

    cpu: list[float] = field(default_factory=list)
    wall: list[float] = field(default_factory=list)

    def take(self, call):
        """Time one more round."""
        # What others left behind is not this one's to clean up.
        gc.collect()
        wall, cpu = time.perf_counter(), processor_seconds()
        call()
        self.cpu.append(processor_seconds() - cpu)
        self.wall.append(time.perf_counter() - wall)


def processor_seconds():
    """Seconds on processors, those of finished children included: some engines are programs of their own."""
    try:
        import resource
    except ImportError:  # where there are no such figures, as on Windows
        return time.process_time()
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def alternating(calls, rounds, *, patience=PATIENCE):
    """Times of calls, one after the other in each round, and what is wrong with those that failed.

    The order is turned by one from round to round, so that nobody always comes after the same. Everything runs once
    before: imports and the first touch of frames are nobody's cost. What then takes longer than ``patience`` seconds on
    processors is not repeated: that time is its only round.
    """
    times = {name: Times() for name in calls}
    failed = {}
    done = set()
    order = list(calls)
    for number in range(-1, rounds):
        for name in order:
            if name in failed or name in done:
                continue
            try:
                times[name].take(calls[name])
            except Exception as error:  # noqa: BLE001 - others' packages fail in their own ways; the table says how
                failed[name] = f"{type(error).__name__}: {' '.join(str(error).split())}"[:200]
            else:
                if number < 0 and times[name].cpu[0] > patience:
                    done.add(name)
                elif number < 0:
                    times[name] = Times()
        order = [*order[1:], *order[:1]]
    return {name: result for name, result in times.items() if name not in failed}, failed


def ratio(slow, fast):
    """How many times longer the one takes, round by round: the median, and the least and the most.

    Of ways with unequal rounds, those that both have.
    """
    # A clock that has not moved is one that cannot say less than a microsecond.
    each = np.array([one / max(other, 1e-6) for one, other in zip(slow, fast, strict=False)])
    return {"median": float(np.median(each)), "low": float(each.min()), "high": float(each.max())}


def slope(sizes, seconds):
    """The exponent b of ``seconds = a sizes^b``, by least squares of the logarithms."""
    x, y = np.log(np.asarray(sizes, dtype=float)), np.log(np.maximum(seconds, 1e-6))
    x = x - x.mean()
    return float((x * (y - y.mean())).sum() / (x * x).sum())


def median(values):
    """The median of some seconds."""
    return float(np.median(values))
