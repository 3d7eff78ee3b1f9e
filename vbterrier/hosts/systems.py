"""Execution of PyTerrier's pipelines in batches and plans, with their times, and files of their results."""

from __future__ import annotations

import os
import time
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyterrier as pt

from vbterrier.errors import InputError, ParameterError, choice, excerpt, nearest, warn
from vbterrier.frames.columns import RUN
from vbterrier.frames.contracts import pandas_frame
from vbterrier.frames.files.reading import read_run
from vbterrier.frames.files.writing import create_like
from vbterrier.frames.pipelines import is_pipeline, pipeline_input, require_results
from vbterrier.hosts import require_api

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

_NAMES = (
    "Compose inspect.InspectError inspect.transformer_outputs io.autoopen io.ok_filename io.read_topics "
    "io.write_results tqdm validate.InputValidationError"
)
require_api(pt, "pyterrier", "1.1.2", _NAMES.split())

PLANS = ("linear", "tree")
SAVE_MODES = ("reuse", "overwrite", "error", "warn")
VALIDATIONS = ("warn", "error", "ignore")
_MILLISECONDS = 1000.0
_EXTENSIONS = {"trec": "res.gz", "module": "mod", "pair": "custom"}


def read_pipeline_input(topics: Any) -> pd.DataFrame:
    """The input of pipelines from a frame or a path; PyTerrier reads topic files of TREC, ``<top>`` or ``<topic>``."""
    if isinstance(topics, (str, os.PathLike)) and Path(topics).is_file():
        with pt.io.autoopen(os.fspath(topics), "rb") as file:
            start = file.read(1 << 16).lower()
        if start.lstrip().startswith(b"<"):
            return pipeline_input(pt.io.read_topics(os.fspath(topics), "trec" if b"<top>" in start else "trecxml"))
    return pipeline_input(topics)


def system_results(
    systems: Sequence[Any],
    names: Sequence[Any],
    topics: pd.DataFrame,
    files: ResultFiles | None,
    *,
    batch_size: int | None,
    plan: str,
    progress: bool,
) -> tuple[list[pd.DataFrame], list[tuple[float, float]]]:
    """Return the results of all systems, each run once, and the milliseconds of the shared prefix and of the rest.

    Stages receive ``batch_size`` topics at a time. With the plan ``"prefix"``, stages with which all systems begin are
    run once; with ``"tree"``, equal stages at the beginning of several pipelines, whose time counts for each.
    """
    loaded, pipelines = dict[int, Any](), dict[int, tuple[Any, ...]]()
    for place, (system, name) in enumerate(zip(systems, names, strict=True)):
        saved = None if files is None else files.saved_results(place)
        if saved is not None:
            loaded[place] = saved
        elif is_pipeline(system):
            pipelines[place] = tuple(system) if isinstance(system, pt.Compose) else (system,)
        else:
            is_path = isinstance(system, (str, os.PathLike))
            loaded[place] = read_run(system) if is_path else pandas_frame(system, f"run {name!r}", RUN)
    batches, before, times = _batches(topics, batch_size), 0.0, dict.fromkeys(loaded, (0.0, 0.0))
    if plan == "prefix":
        n = _n_common(list(pipelines.values())) if 1 < len(pipelines) == len(systems) else 0
        if n:
            batches, before = _stage_results(next(iter(pipelines.values()))[:n], batches)
            pipelines = {place: stages[n:] for place, stages in pipelines.items()}
        else:
            warn(f"precompute_prefix: the {len(systems)} systems have no first stage in common, and each is run alone")
    groups = [pipelines] if plan == "tree" else [{place: stages} for place, stages in pipelines.items()]
    with pt.tqdm(total=len(pipelines), desc="vbterrier.Experiment", unit="system", disable=not progress) as bar:
        for group in groups:
            for place, frames, elapsed in _pipeline_results(group, batches, 0.0):
                # Without results, one empty frame keeps the columns.
                frame = pd.concat([frame for frame in frames if len(frame)] or frames[:1], ignore_index=True)
                loaded[place], times[place] = require_results(frame, names[place], topics), (before, elapsed)
                if files is not None:
                    files.save(place, frame)
                bar.update()
    ordered = range(len(systems))
    return [loaded[place] for place in ordered], [times[place] for place in ordered]


def _batches(topics: pd.DataFrame, batch_size: int | None) -> list[pd.DataFrame]:
    if batch_size is None:
        return [topics]
    number = pd.factorize(topics["qid"])[0] // batch_size
    return [batch for _, batch in topics.groupby(number, sort=True)]


def _n_common(stages: Sequence[tuple[Any, ...]]) -> int:
    n = 0
    for same in zip(*stages, strict=False):
        if any(stage != same[0] for stage in same[1:]):
            break
        n += 1
    return n


def _stage_results(stages: Sequence[Any], batches: list[pd.DataFrame]) -> tuple[list[pd.DataFrame], float]:
    """Results of stages on batches, and milliseconds."""
    pipeline = stages[0] if len(stages) == 1 else pt.Compose(*stages)
    started = time.perf_counter()
    results = [pipeline.transform(batch) for batch in batches]
    return results, (time.perf_counter() - started) * _MILLISECONDS


def _pipeline_results(
    stages: Mapping[int, tuple[Any, ...]], batches: list[pd.DataFrame], elapsed: float
) -> Iterator[tuple[int, list[pd.DataFrame], float]]:
    """Yield the results of pipelines on what the stages before them returned; a group shares its first stages."""
    groups: list[dict[int, tuple[Any, ...]]] = []
    for number, stages_left in stages.items():
        if not stages_left:
            yield number, batches, elapsed
            continue
        # Stages are compared, not hashed: equal stages may have no hash.
        same_start = next((group for group in groups if next(iter(group.values()))[0] == stages_left[0]), None)
        if same_start is None:
            groups.append({number: stages_left})
        else:
            same_start[number] = stages_left
    for group in groups:
        n = _n_common(list(group.values()))
        results, spent = _stage_results(next(iter(group.values()))[:n], batches)
        yield from _pipeline_results(
            {number: stages_left[n:] for number, stages_left in group.items()}, results, elapsed + spent
        )


def validate(systems: Iterable[tuple[Any, Any]], topics: pd.DataFrame, columns: Sequence[str], policy: str) -> None:
    """Warn of pipelines that do not fit their input or lack columns that the measures read, or raise InputError.

    Columns of pipelines are those that ``pt.inspect`` finds; a pipeline that it cannot inspect is never an error.
    """
    choice("validate", policy, VALIDATIONS)
    if policy == "ignore":
        return
    wrong, unknown, available = [], [], list(topics.columns)
    for name, system in systems:
        if isinstance(system, (str, os.PathLike)):
            # Files are checked as they are read.
            continue
        try:
            output_columns = list(getattr(system, "columns", ()))
            if is_pipeline(system):
                output_columns = pt.inspect.transformer_outputs(system, input_columns=available)
        except pt.inspect.InspectError:
            unknown.append(repr(name))
            continue
        except pt.validate.InputValidationError as error:
            wrong.append(f"{name!r}: its stages do not fit each other or the topics ({error})")
            continue
        missing = [column for column in columns if column not in output_columns]
        if missing:
            wrong.append(f"{name!r}: no column {', '.join(missing)}; found {', '.join(map(str, output_columns))}")
    if wrong and policy == "error":
        raise InputError(f"systems that cannot be evaluated: {'; '.join(wrong)}")
    if policy == "warn" and (wrong or unknown):
        report = [f"systems that may not be evaluated: {'; '.join(wrong)}"] if wrong else []
        report += [f"systems whose columns PyTerrier cannot find out: {', '.join(unknown)}"] if unknown else []
        warn(f"{'. '.join(report)}. If they work, ask for validate='ignore'")


class ResultFiles:
    """Files of the results of systems in a folder, named after the systems."""

    def __init__(self, folder: str | os.PathLike[str], names: Sequence[Any], mode: str, file_format: Any) -> None:
        self.folder = Path(folder)
        if not self.folder.is_dir():
            what = "is no folder" if self.folder.exists() else "does not exist"
            raise ParameterError(f"save_dir={str(folder)!r}: {what}; wanted an existing folder")
        choice("save_mode", mode, SAVE_MODES)
        bad = [name for name in names if not (isinstance(name, str) and name and pt.io.ok_filename(name))]
        if bad:
            raise ParameterError(f"save_dir: {bad[0]!r} cannot be the name of a file; give other names=")
        self._read, self._write, extension = _reader_and_writer(file_format)
        self.paths = [self.folder / f"{name}.{extension}" for name in names]
        existing = [path for path in self.paths if path.exists()]
        if existing and mode in ("warn", "error"):
            message = (
                f"save_dir: {existing[0]} exists already: ask for save_mode='reuse' to evaluate the saved results "
                "without running the system, or for 'overwrite'"
            )
            if mode == "error":
                raise InputError(message)
            warn(f"{message} without this warning")
        self.reused = set(existing) if mode == "reuse" else set()

    def saved_results(self, number: int) -> pd.DataFrame | None:
        """Return the results of a system that are reused, ``None`` if it has to be run."""
        path = self.paths[number]
        return self._read(path) if path in self.reused else None

    def save(self, number: int, results: pd.DataFrame) -> None:
        """Write the results of a system; the file replaces an older one when it is complete."""
        path = self.paths[number]
        part = path.with_name(f".part.{path.name}")
        part.unlink(missing_ok=True)
        try:
            create_like(part, path)
            self._write(results, part)
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)


def _reader_and_writer(
    file_format: Any,
) -> tuple[Callable[[Path], pd.DataFrame], Callable[[pd.DataFrame, Path], None], str]:
    """Return the functions that read and write files of a format, and the extension of their names."""
    if file_format == "trec":
        return read_run, _write_trec, _EXTENSIONS["trec"]
    if isinstance(file_format, ModuleType) and hasattr(file_format, "load") and hasattr(file_format, "dump"):
        read, write, kind = file_format.load, file_format.dump, "module"
    elif isinstance(file_format, tuple) and len(file_format) == 2 and all(map(callable, file_format)):  # noqa: PLR2004
        (read, write), kind = file_format, "pair"
    else:
        raise ParameterError(
            f"save_format={excerpt(file_format)}: wanted 'trec', a module with load and dump, as pickle, or a pair of "
            f"functions that read and write.{nearest(file_format, ['trec']) if isinstance(file_format, str) else ''}"
        )

    def load(path: Path) -> pd.DataFrame:
        with path.open("rb") as file:
            results: pd.DataFrame = read(file)
        return results

    def dump(results: pd.DataFrame, path: Path) -> None:
        with path.open("wb") as file:
            write(results, file)

    return load, dump, _EXTENSIONS[kind]


def _write_trec(results: pd.DataFrame, path: Path) -> None:
    missing = [column for column in ("qid", "docno", "score", "rank") if column not in results.columns]
    if missing:
        raise InputError(
            f"save_dir: results without the column {missing[0]!r} are no TREC run; give save_format=, as pickle"
        )
    pt.io.write_results(results, str(path))
