"""Classic measures beside ir_measures, pytrec_eval, ranx, Polars and DuckDB: ``python tests/bench/classic.py FOLDER``.

Writes classic.json and classic.md. All tools alternate in one process with one thread. Each starts from its own data:
dictionaries for pytrec_eval, tables for Polars and DuckDB, frames of pandas for the others. Before anything is timed,
the values of all topics are compared: peers must agree with ``vbterrier.score`` to ten digits.
"""

import gc
import json
import os
import subprocess
import sys
import tempfile
from datetime import datetime, timezone
from functools import partial
from importlib import metadata
from pathlib import Path

os.environ.setdefault("POLARS_MAX_THREADS", "1")

import ir_measures
import numpy as np
import polars as pl
import pyarrow as pa
from suite.engines import _dictionaries
from suite.memory import peak_above
from suite.suite import machine, versions
from suite.synthetic import Collection, Shape
from suite.timing import alternating, median, ratio

import vbterrier

OURS, IN_BLOCKS, IR_MEASURES = "vbterrier.score", "vbterrier.score, memory='64 MiB'", "ir_measures"
SIZES = {(50, 100): 15, (250, 1000): 5, (1000, 1000): 3, (6980, 1000): 1}
# Measures of whole rankings that ir_measures evaluates with trec_eval.
WHOLE = ("RR", "R@1000", "Rprec", "nDCG", "Bpref", "Judged@1000")
_TREC_EVAL = {"nDCG@10": "ndcg_cut_10", "AP": "map"}
_RANX = {"nDCG@10": "ndcg@10", "AP": "map"}
_KEYS = ["qid", "docno"]


def polars_values(measure, run, qrels):
    """Values by topic, with ties ordered as by trec_eval: the plainest expressions of Polars."""
    run = run.select("qid", "docno", pl.col("score").cast(pl.Float32))
    rank = pl.int_range(pl.len()).over("qid")
    ordered = run.sort(["qid", "score", "docno"], descending=[False, True, True]).with_columns(rank=rank)
    if measure == "AP":
        relevant = qrels.filter(pl.col("label") > 0)
        hits = ordered.join(relevant, on=_KEYS, maintain_order="left").with_columns(
            precision=(pl.int_range(pl.len()).over("qid") + 1) / (pl.col("rank") + 1)
        )
        sums, n = hits.group_by("qid").agg(pl.col("precision").sum()), relevant.group_by("qid").agg(n=pl.len())
        results = n.join(sums, on="qid", how="left").select("qid", value=pl.col("precision").fill_null(0) / pl.col("n"))
    else:
        discount = 1 / (pl.col("rank") + 2).log(2)
        gain = (pl.col("label").clip(0) * discount).sum()
        hits = ordered.filter(pl.col("rank") < 10).join(qrels, on=_KEYS)
        ideal = qrels.sort(["qid", "label"], descending=[False, True]).with_columns(rank=rank)
        sums = hits.group_by("qid").agg(dcg=gain)
        best = ideal.filter(pl.col("rank") < 10).group_by("qid").agg(ideal=gain)
        results = best.join(sums, on="qid", how="left").select(
            "qid", value=pl.col("dcg").fill_null(0) / pl.col("ideal")
        )
    return dict(results.fill_nan(0).iter_rows())


_RANKED = """
with ranked as (
  select qid, docno,
    row_number() over (partition by qid order by score::float desc, docno desc) as place
  from run)
"""
_SQL = {
    "nDCG@10": _RANKED
    + """
, gains as (
  select qid, sum(greatest(label, 0) / log2(place + 1)) as dcg
  from ranked join qrels using (qid, docno) where place <= 10 group by qid)
, best as (
  select qid, sum(greatest(label, 0) / log2(place + 1)) as ideal from (
    select qid, label, row_number() over (partition by qid order by label desc) as place from qrels)
  where place <= 10 group by qid)
select qid, case when ideal > 0 then coalesce(dcg, 0) / ideal else 0 end from best left join gains using (qid)
""",
    "AP": _RANKED
    + """
, hits as (
  select qid, row_number() over (partition by qid order by place) / place as precision
  from ranked join qrels using (qid, docno) where label > 0)
, sums as (select qid, sum(precision) as total from hits group by qid)
, counts as (select qid, count(*) as n from qrels where label > 0 group by qid)
select qid, coalesce(total, 0) / n from counts left join sums using (qid)
""",
}


def duckdb_values(measure, connection):
    """Values by topic, with ties ordered as by trec_eval: window functions over two tables."""
    return dict(connection.execute(_SQL[measure]).fetchall())


def connected(run, qrels):
    """A database in memory with both tables."""
    import duckdb

    connection = duckdb.connect(config={"threads": 1})
    for name, frame in (("run", run[[*_KEYS, "score"]]), ("qrels", qrels[[*_KEYS, "label"]])):
        connection.register("arrow", pa.Table.from_pandas(frame, preserve_index=False))
        connection.execute(f"create table {name} as select * from arrow")
    return connection


def tools(measure, run, qrels):
    """The calls that return values by topic, each from data of its own kind."""
    import pytrec_eval
    import ranx

    theirs = {"qid": "query_id", "docno": "doc_id", "label": "relevance"}
    host = run.rename(columns=theirs), qrels.rename(columns=theirs)
    parsed = ir_measures.parse_measure(measure)
    dictionaries = _dictionaries(qrels, "label"), _dictionaries(run, "score")
    evaluator = pytrec_eval.RelevanceEvaluator(dictionaries[0], {_TREC_EVAL[measure].replace("_cut_", "_cut.")})
    names = {"q_id_col": "qid", "doc_id_col": "docno"}
    objects = dict.fromkeys(_KEYS, object)
    labels = qrels.assign(label=qrels["label"].clip(lower=0)).astype(objects)
    judged = ranx.Qrels.from_df(labels, **names, score_col="label")
    ranked = ranx.Run.from_df(run.astype(objects), **names, score_col="score")
    tables = pl.from_pandas(run[[*_KEYS, "score"]]), pl.from_pandas(qrels[[*_KEYS, "label"]])
    connection = connected(run, qrels)

    def scored():
        values = vbterrier.score({"run": run}, qrels, [measure]).values
        return dict(zip(values["qid"], values["value"], strict=True))

    def through_trec_eval():
        return {qid: values[_TREC_EVAL[measure]] for qid, values in evaluator.evaluate(dictionaries[1]).items()}

    def through_ranx():
        values = ranx.evaluate(judged, ranked, _RANX[measure], return_mean=False, make_comparable=True)
        return dict(zip(judged.keys(), np.asarray(values).tolist(), strict=True))

    return {
        OURS: scored,
        "ir_measures": lambda: {one.query_id: one.value for one in ir_measures.iter_calc([parsed], host[1], host[0])},
        "pytrec_eval": through_trec_eval,
        "ranx": through_ranx,
        "Polars": partial(polars_values, measure, *tables),
        "DuckDB": partial(duckdb_values, measure, connection),
    }


def require_equal(values):
    """The largest difference of a peer's value of a topic, by tool; an error above ten digits."""
    ours = values[OURS]
    apart = {}
    for tool, theirs in values.items():
        others = {qid: theirs.get(qid, 0.0) for qid in ours}
        apart[tool] = max(abs(value - others[qid]) for qid, value in ours.items())
        if not apart[tool] < 1e-10:
            raise SystemExit(f"{tool} differs from {OURS} by {apart[tool]:.3g}")
    return apart


def timed(size, rounds):
    """Records of one size: tool, measure, kind of columns, seconds."""
    results = []
    for text in ("str", "object"):
        made = Shape("judged", *size, ids="clueweb", text=text).made()
        # Tools order ties in different ways, and scores are ties in single precision for trec_eval alone.
        run, qrels = made["run"].assign(score=1000.0 - made["run"]["rank"]), made["qrels"]
        for measure in ("nDCG@10", "AP"):
            calls = tools(measure, run, qrels)
            if text == "object":
                calls = {name: calls[name] for name in (OURS, "ir_measures")}
            apart = require_equal({name: call() for name, call in calls.items()})
            results += records(size, text, measure, calls, rounds, apart)
        if text == "str":
            shuffled = run.sample(frac=1, random_state=0).reset_index(drop=True)
            orders = {
                "sorted rows": partial(vbterrier.score, {"run": run}, qrels, ["nDCG@10"]),
                "shuffled rows": partial(vbterrier.score, {"run": shuffled}, qrels, ["nDCG@10"]),
            }
            results += records(size, text, "nDCG@10 by order", orders, rounds)
        if text == "str" and size[0] < 1000:
            results += of_calls(size, run, qrels, rounds)
        if size == (250, 1000):
            for measure in WHOLE:
                calls = whole(measure, run, qrels)
                apart = require_equal({name: call() for name, call in calls.items()})
                results += records(size, text, measure, calls, rounds, apart)
    return results


def whole(measure, run, qrels):
    """``score`` and ir_measures alone."""
    theirs = {"qid": "query_id", "docno": "doc_id", "label": "relevance"}
    host, parsed = (run.rename(columns=theirs), qrels.rename(columns=theirs)), ir_measures.parse_measure(measure)

    def scored():
        values = vbterrier.score({"run": run}, qrels, [measure]).values
        return dict(zip(values["qid"], values["value"], strict=True))

    return {
        OURS: scored,
        "ir_measures": lambda: {one.query_id: one.value for one in ir_measures.iter_calc([parsed], host[1], host[0])},
    }


def of_calls(size, run, qrels, rounds):
    """Each call that README recommends, of two runs and nDCG@10 (the default measures where intents need them)."""
    draw = np.random.default_rng(0)
    other = run.assign(score=run["score"] + draw.normal(0, 1, len(run)))
    runs, topics = {"a": run, "b": other}, run[["qid"]].drop_duplicates().assign(query="")
    # Three intents a topic, and one tag of each of its first 20 documents.
    n, first = len(topics), run[run["rank"] < 20]
    intents = topics.loc[topics.index.repeat(3), ["qid"]].assign(entity_id=["x", "y", "z"] * n, prob=1 / 3)
    names = np.array(["x", "y", "z"])[draw.integers(0, 3, len(first))]
    tags = first[["docno"]].assign(entity_id=names, weight=1.0).drop_duplicates("docno")
    folder = tempfile.mkdtemp(prefix="vbterrier-bench-")
    calls = {
        "score": partial(vbterrier.score, runs, qrels, ["nDCG@10"]),
        "Experiment": partial(vbterrier.Experiment, runs, topics, qrels, ["nDCG@10"]),
        "compare": partial(vbterrier.compare, runs, qrels, ["nDCG@10"]),
        "rank_systems": partial(vbterrier.rank_systems, runs, qrels, "ENDCG@10"),
        "evaluate_intents": partial(vbterrier.evaluate_intents, runs, topics, intents=intents, tagger=tags),
        "write_report": partial(vbterrier.write_report, runs, qrels, ["nDCG@10"], path=Path(folder, "report.html")),
        "release_gate": partial(vbterrier.evaluate.release_gate, run, qrels, "nDCG@10", baseline=other, margin=0.02),
    }
    return records(size, "str", "two runs, nDCG@10", calls, rounds)


def of_file(tool, measure, run, qrels):
    """The values of a run in a file."""
    if tool == IR_MEASURES:
        judged, rows = ir_measures.read_trec_qrels(str(qrels)), ir_measures.read_trec_run(str(run))
        return list(ir_measures.iter_calc([ir_measures.parse_measure(measure)], judged, rows))
    memory = "64 MiB" if tool == IN_BLOCKS else None
    return vbterrier.score({"run": run}, qrels, [measure], execution=vbterrier.Execution(memory=memory))


def of_files(size, rounds):
    """Records of a file of text and one of Parquet, read whole and in blocks, with peaks of memory."""
    results = []
    with tempfile.TemporaryDirectory(prefix="vbterrier-bench-") as folder:
        collections = {}
        for name, shape in {"small": (3, 20), "large": size}.items():
            Path(folder, name).mkdir()
            collections[name] = Collection(Shape("judged", *shape, ids="numbers"), Path(folder, name))
            collections[name].keep()
        files = {
            kind: [
                (made.file("run") if kind == "text" else made.folder / "run.parquet", made.file("qrels"))
                for made in collections.values()
            ]
            for kind in ("text", "Parquet")
        }
        collections.clear()
        for measure in ("nDCG@10", "AP"):
            for kind, (small, large) in files.items():
                tools_of_kind = (OURS, IN_BLOCKS, IR_MEASURES) if kind == "text" else (OURS, IN_BLOCKS)
                calls = {tool: partial(of_file, tool, measure, *large) for tool in tools_of_kind}
                rows = records(size, kind, f"{measure} of a file", calls, rounds)
                results += [row | {"peak": peak_of(row["tool"], measure, *small, *large)} for row in rows]
    return results


def peak_of(*words):
    """The peak of memory of one call in MiB, in a separate process."""
    command = [sys.executable, __file__, "peak", *map(str, words)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def records(size, text, measure, calls, rounds, apart=None):
    times, failed = alternating(calls, rounds)
    if failed:
        raise SystemExit(f"{measure}, {size}: {failed}")
    head = {"n_queries": size[0], "depth": size[1], "text": text, "measure": measure}
    return [head | {"tool": name, "cpu": took.cpu, "apart": (apart or {}).get(name)} for name, took in times.items()]


def page(results):
    """The page of the records."""
    made = ", ".join(f"{name} {version}" for name, version in results["versions"].items())
    parts = [
        "# Classic measures beside other tools",
        (
            "Made by `python tests/bench/classic.py docs/developers`, written from its JSON. All tools alternate in "
            "one process with one thread. Each starts from data of its own kind: dictionaries of pytrec_eval, objects "
            "of ranx, tables of Polars and DuckDB, whose conversion is not counted, and frames of pandas for "
            "ir_measures and `vbterrier.score`, which also checks ids and computes an interval. Scores have no ties. "
            "Milliseconds are medians of processor time; ratios are those of the same rounds, above 1 where "
            "`vbterrier.score` is faster. "
            f"Values of all topics agree to {results['apart']:.1g}."
        ),
        (
            f"{results['made']}; {results['machine']['n_processors']} x {results['machine']['processor']}; {made}. "
            f"{results['note']}"
        ),
    ]
    for title, wanted in (
        ("nDCG@10 and AP", ("nDCG@10", "AP")),
        ("Measures of whole rankings, 250 x 1,000", WHOLE),
    ):
        parts += [f"## {title}", table([row for row in results["records"] if row["measure"] in wanted])]
        if title == "nDCG@10 and AP":
            parts.append(slower(results["records"]))
    for title, measure in (("Order of rows", "nDCG@10 by order"), ("Calls of two runs", "two runs, nDCG@10")):
        rows = [row for row in results["records"] if row["measure"] == measure]
        parts += [f"## {title}", beside(rows)]
        if title == "Order of rows" and results.get("bounds"):
            # Written into the JSON by hand, for these results alone.
            parts.append(results["bounds"])
    if rows := [row for row in results["records"] if row["measure"].endswith("of a file")]:
        parts += ["## File of seven million rows", file_table(rows)]
    return "\n\n".join(parts) + "\n"


def file_table(rows):
    """A row for each case and tool, with its peak of memory and its time relative to other tools."""
    lines = [f"| measure | file | tool | CPU s | peak MiB | {OURS} is times faster | time / whole |", "|:---" * 7 + "|"]
    for (_, kind, measure), of_tools in by_case(rows).items():
        own = of_tools[OURS]["cpu"]
        for tool, row in of_tools.items():
            share = f"{ratio(row['cpu'], own)['median']:.2g}"
            cells = [measure.partition(" ")[0], kind, tool, f"{median(row['cpu']):.2g}", f"{row['peak']:.0f}"]
            cells += [share * (tool == IR_MEASURES), share * (tool == IN_BLOCKS)]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def by_case(rows):
    """Records by size, kind of columns and measure."""
    cases = {}
    for row in rows:
        key = f"{row['n_queries']:,} x {row['depth']:,}", row["text"], row["measure"]
        cases.setdefault(key, {})[row["tool"]] = row
    return cases


def table(rows):
    """A row for each case, a column for each peer."""
    cases = by_case(rows)
    peers = list(dict.fromkeys(tool for tools_of_case in cases.values() for tool in tools_of_case if tool != OURS))
    lines = [f"| topics x documents | columns | measure | {OURS}, ms | {' | '.join(peers)} |"]
    lines.append("|:---" * (len(peers) + 4) + "|")
    for (size, text, measure), of_tools in cases.items():
        own = of_tools[OURS]["cpu"]
        ratios = [f"{ratio(of_tools[peer]['cpu'], own)['median']:.2g}" if peer in of_tools else "" for peer in peers]
        lines.append(f"| {size} | {text} | {measure} | {1000 * median(own):.1f} | {' | '.join(ratios)} |")
    return "\n".join(lines)


def slower(rows):
    """The peers that are ahead, by case."""
    ahead = []
    for (size, text, measure), of_tools in by_case(row for row in rows if row["measure"] in _TREC_EVAL).items():
        own = of_tools[OURS]["cpu"]
        faster = [tool for tool, row in of_tools.items() if tool != OURS and ratio(row["cpu"], own)["median"] < 1]
        if faster:
            ahead.append(f"- {size}, {measure}, columns of {text}: {', '.join(faster)}")
    if not ahead:
        return "No tool is ahead of `vbterrier.score` in a row of this table."
    return "Ahead of `vbterrier.score`:\n\n" + "\n".join(ahead)


def beside(rows):
    """A row for each case, milliseconds by call."""
    cases = by_case(rows)
    names = list(next(iter(cases.values())))
    lines = [f"| topics x documents | {' | '.join(f'{name}, ms' for name in names)} | {names[1]} / {names[0]} |"]
    lines.append("|:---" * (len(names) + 2) + "|")
    for (size, *_), of_tools in cases.items():
        cells = [f"{1000 * median(of_tools[name]['cpu']):.1f}" for name in names]
        share = ratio(of_tools[names[1]]["cpu"], of_tools[names[0]]["cpu"])["median"]
        lines.append(f"| {size} | {' | '.join(cells)} | {share:.2g} |")
    return "\n".join(lines)


def main(folder, note=""):
    rows = []
    # Collections of garbage between calls need not visit what the tools imported.
    gc.collect()
    gc.freeze()
    for size, rounds in SIZES.items():
        print(f"classic: {size}", file=sys.stderr, flush=True)
        rows += timed(size, rounds)
        if size == (6980, 1000):
            rows += of_files(size, rounds=3)
        results = {
            "made": datetime.now(timezone.utc).isoformat(timespec="seconds"),
            "machine": machine(),
            "versions": versions() | {name: metadata.version(name) for name in ("polars", "duckdb", "ranx")},
            "note": note,
            "apart": max(row.get("apart") or 0.0 for row in rows),
            "records": rows,
        }
        (folder / "classic.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
        (folder / "classic.md").write_text(page(results), encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1] == "peak":
        tool, measure, *files = sys.argv[2:]
        # Imports are no part of the peak.
        of_file(tool, measure, *files[:2])
        print(json.dumps(peak_above(partial(of_file, tool, measure, *files[2:]))))
    else:
        main(Path(sys.argv[1]), *sys.argv[2:])
