"""Pairs of calls that a target compares: ``ours`` and ``other``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from suite.synthetic import Collection

    Calls = dict[str, Callable[[], object]]

_COLUMNS = ["qid", "Q0", "docno", "rank", "score", "name"]
N_SYSTEMS = 5
# The measure of the targets: the default prior fits a model, which other packages have not.
POOL = "BNDCG(prior='pool')@10"


def readings(collection: Collection) -> Calls:
    """A run's file, read with all its checks; and by pyarrow, without."""
    import pyarrow as pa
    import pyarrow.csv as pacsv

    from vbterrier.frames.files.reading import read_run

    path = collection.file("run")
    text = dict.fromkeys(("qid", "Q0", "docno", "name"), pa.string())

    def bare() -> Any:
        return pacsv.read_csv(
            path,
            pacsv.ReadOptions(column_names=_COLUMNS),
            pacsv.ParseOptions(delimiter=" ", quote_char=False),
            pacsv.ConvertOptions(column_types=text),
        )

    return {"ours": lambda: read_run(path), "other": bare}


def commands(collection: Collection) -> Calls:
    """nDCG@10 of a run's file: through ``score``."""
    from vbterrier.evaluate.scores import score

    run, qrels = collection.file("run"), collection.file("qrels")
    return {"ours": lambda: score({"run": run}, qrels, ["nDCG@10"])}


def five_systems(collection: Collection) -> Calls:
    """``score`` of five runs, against one."""
    from vbterrier.evaluate.scores import score

    run, qrels = collection.frames["run"], collection.frames["qrels"]
    runs = {f"run {shift}": run.assign(score=run["score"] + shift) for shift in range(N_SYSTEMS)}
    return {
        "ours": lambda: score(runs, qrels, [POOL]),
        "other": lambda: score({"run": run}, qrels, [POOL]),
    }


def experiments(collection: Collection) -> Calls:
    """``pt.Experiment`` with nDCG@10 and :data:`POOL`, against nDCG@10 alone."""
    import ir_measures
    import pyterrier as pt

    run, qrels = collection.frames["run"], collection.frames["qrels"]
    topics = run[["qid"]].drop_duplicates().assign(query="")

    def experiment(*measures: Any) -> Callable[[], object]:
        system = pt.Transformer.from_df(run)
        return lambda: pt.Experiment([system], topics, qrels, list(measures))

    return {
        "ours": experiment(ir_measures.nDCG @ 10, ir_measures.parse_measure(POOL)),
        "other": experiment(ir_measures.nDCG @ 10),
    }
