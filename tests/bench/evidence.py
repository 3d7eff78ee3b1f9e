"""Errors and coverage of estimates on real collections: ``python tests/bench/evidence.py DATA [--only NAME]``.

DATA is the folder of the collections that ``tests/data`` reads. Every regime reduces the judgments of a collection, and
true scores are those of the complete judgments. B are bootstrapped measures of a topic's run and judgments, E is the
model of all evidence. Prints the tables of ``docs/explanation/evidence*.md``, and
``--write`` replaces them.
"""

import argparse
import re
import sys
import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

import vbterrier
from vbterrier.settings import Data, Inference
from vbterrier.unjudged.incomplete import (
    budget_pool,
    hidden_runs,
    leave_group_out,
    one_kind_pools,
    shallow_pool,
    subsample_qrels,
    subsample_topics,
)

CUTOFF = 10
# The estimators of the tables. E is also fitted to each evaluated run alone.
ESTIMATORS = {
    "non-relevant": "nDCG@10",
    "condensed": "nDCG(judged_only=True)@10",
    "authors": "BNDCG(stat='mode',compat='ecir23',method='mc')@10",
    "B, pool": "BNDCG(prior='pool')@10",
    "B": "BNDCG@10",
    "E": "ENDCG@10",
}
ALONE = "E, one run"
# Other measures: the true one, those of reduced judgments, B with the priors pool and pool+run, and E.
MEASURES = {
    "P": {
        "truth": "P@10",
        "non-relevant": "P@10",
        "condensed": "P(judged_only=True)@10",
        "B, pool": "BP(prior='pool')@10",
        "B": "BP@10",
        "E": "EP@10",
    },
    "Q": {"truth": "BQ@10", "B, pool": "BQ(prior='pool')@10", "B": "BQ@10", "E": "EQ@10"},
    "ERR": {"truth": "BERR@10", "B, pool": "BERR(prior='pool')@10", "B": "BERR@10", "E": "EERR@10"},
}
# Regimes that other measures are evaluated on.
OTHER_REGIMES = ("a group left out", "thinned by 30%", "judged by topic", "hidden half, depth 10")
# Regimes that average precision is evaluated on.
AP_REGIMES = (*OTHER_REGIMES, "thinned by 70%", "pool of depth 5")
# The lowest and the highest score of bootstrapped nDCG.
RANGE = (ESTIMATORS["B"], "BNDCG(stat='q0')@10", "BNDCG(stat='q100')@10")
SEEDS = (0, 1)
DOCS = Path(__file__).parents[2] / "docs"
LEVELS = (0.5, 0.8, 0.9, 0.95)
LABELLERS = ("llama3-70b-criteria", "llama3-8b-criteria", "llama3-8b-direct", "flan-t5-large-criteria")


class Collection(NamedTuple):
    """Runs whose judged documents define true scores, complete judgments, and the group and the kind of each run."""

    runs: dict[str, pd.DataFrame]
    qrels: pd.DataFrame
    groups: dict[str, str]
    # Kinds of systems, if names tell them.
    kinds: dict[str, str] | None = None


def trec_web(data):
    """TREC Web 2012: four runs, each a group."""
    folder = data / "trec_web_diversity"
    qrels = vbterrier.frames.flatten_qrels(vbterrier.read_qrels(folder / "qrels.2012.diversity.gz"))
    qrels["label"] = qrels["label"].clip(lower=0)
    paths = sorted((folder / "runs").glob("*2012*"))
    runs = {path.name.split(".2012")[0]: vbterrier.read_run(path) for path in paths}
    return Collection(_condensed(runs, qrels), qrels, {name: name for name in runs})


def trec_dl19(data):
    """TREC Deep Learning 2019: 37 runs of which the first ten documents are judged; groups are teams."""
    folder = data / "trec_dl19"
    qrels = vbterrier.read_qrels(folder / "qrels.nist.txt.gz")
    runs = _named(folder, qrels)
    # The submissions describe the first and the third run of srchvrs as classic retrieval.
    kinds = {name: "lexical" if re.search("bm25|srchvrs_ps_run[13]", name) else "neural" for name in runs}
    return Collection(runs, qrels, {name: re.match("[A-Za-z]+", name)[0] for name in runs}, kinds)


def trec_covid(data):
    """TREC-COVID: two runs with the judgments of 2021."""
    folder = data / "trec-covid"
    runs = {name: vbterrier.read_run(folder / f"run.{name}.top100.txt.gz") for name in ("ance", "BBGhelani2")}
    return Collection(runs, vbterrier.read_qrels(folder / "qrels.complete.txt.gz"), {name: name for name in runs})


def codec(data):
    """CODEC: eight runs, each a group."""
    qrels = vbterrier.read_qrels(data / "codec" / "qrels.txt.gz")
    runs = _named(data / "codec", qrels)
    kinds = {name: "neural" if re.search("ance|t5", name) else "lexical" for name in runs}
    return Collection(runs, qrels, {name: name for name in runs}, kinds)


def robust03(data):
    """TREC Robust 2003: 17 runs of 16 teams; InexpC2 and Sel50 are of one."""
    qrels = vbterrier.read_qrels(data / "robust03" / "qrels.txt.gz")
    runs = _named(data / "robust03", qrels)
    return Collection(runs, qrels, {name: "InexpC2" if name == "Sel50" else name for name in runs})


def ehealth18(data):
    """CLEF eHealth 2018: 24 runs; groups are teams, and the engines of the baselines."""
    qrels = vbterrier.read_qrels(data / "ehealth18" / "qrels.final.txt.gz")
    runs = _named(data / "ehealth18", qrels)
    groups = {name: re.search("(?:baselines__)?([A-Za-z]+)", name)[1] for name in runs}
    return Collection(runs, qrels, groups)


COLLECTIONS = {
    "TREC Web 2012": trec_web,
    "TREC DL 2019": trec_dl19,
    "TREC-COVID": trec_covid,
    "CODEC": codec,
    "Robust 2003": robust03,
    "eHealth 2018": ehealth18,
}


def _named(folder, qrels):
    paths = sorted((folder / "runs").glob("run.*.gz"))
    return _condensed({path.name[4:-3]: vbterrier.read_run(path) for path in paths}, qrels)


def _condensed(runs, qrels):
    condense = vbterrier.Condense(qrels)
    return {name: condense(run.assign(rank=0)) for name, run in runs.items()}


def deeply_judged(collection):
    """The collection without unjudged documents of its runs, which those of TREC-COVID have below rank 10."""
    return collection._replace(runs=_condensed(collection.runs, collection.qrels))


def regimes(name, data, collection):
    """The reduced judgments of each regime, as ``simulate`` takes them."""
    runs, qrels, groups, kinds = collection
    left = list(leave_group_out(runs, qrels, groups=groups))
    made = {
        "a group left out": left,
        "a group left out, its runs alone": [(one.name, one.qrels, one.runs, one.runs) for one in left],
        "a group left out, thinned by 30%": [
            (one.name, subsample_qrels(one.qrels, 0.3, 0), one.runs) for one in left if len(one.qrels)
        ],
        **{
            f"thinned by {share:.0%}": [(f"seed {seed}", subsample_qrels(qrels, share, seed)) for seed in SEEDS]
            for share in (0.3, 0.7)
        },
        "judged by topic": [(f"seed {seed}", subsample_topics(qrels, 0.3, 0.8, seed)) for seed in SEEDS],
        **{f"pool of depth {depth}": [("all", shallow_pool(runs, qrels, cutoff=depth))] for depth in (3, 5)},
        "a budget of 20 documents": [("all", budget_pool(runs, qrels, budget=20))],
        **{
            f"hidden half, depth {depth}": list(
                hidden_runs(runs, qrels, groups=groups, cutoff=depth, n_replicas=len(SEEDS))
            )
            for depth in (5, 10)
        },
    }
    if kinds:
        made["a pool of one kind"] = list(one_kind_pools(runs, qrels, kinds=kinds))
    if name == "TREC-COVID":
        made["really missing"] = [
            ("2020", vbterrier.read_qrels(data / "trec-covid" / "qrels.incomplete.txt.gz"), ["ance"])
        ]
    if name == "eHealth 2018":
        made["judged by topic"] = [("partial", vbterrier.read_qrels(data / "ehealth18" / "qrels.partial.txt.gz"))]
    return made


def joint_coverage(collection, parts, pool_cutoff):
    """The share of 90 % intervals of means over topics, and of differences, that contain the true value."""
    of_means, of_pairs = [], []
    for _, qrels, *rest in parts:
        names = set(rest[0] if rest and rest[0] is not None else collection.runs)
        model = vbterrier.unjudged.fit(collection.runs, qrels, pool_cutoff=pool_cutoff)
        data = Data(model=model, on_topics="common")
        ranks = vbterrier.rank_systems(
            collection.runs, qrels, ESTIMATORS["E"], data=data, inference=Inference(n_draws=1000)
        )
        # Topics that lost all relevant documents have no estimate.
        kept = collection.qrels[collection.qrels["qid"].isin(qrels.loc[qrels["label"] > 0, "qid"])]
        truth = vbterrier.score(collection.runs, kept, [f"nDCG@{CUTOFF}"], data=Data(on_topics="common")).means()[
            f"nDCG@{CUTOFF}"
        ]
        systems, pairs = (frame[frame["high"] > frame["low"]] for frame in (ranks.systems, ranks.pairs))
        systems = systems[systems["name"].isin(names)]
        pairs = pairs[pairs["name_a"].isin(names) | pairs["name_b"].isin(names)]
        mean, first, second = (
            names.map(truth).astype(float) for names in (systems["name"], pairs["name_a"], pairs["name_b"])
        )
        gap = first - second
        of_means += systems["low"].le(mean).mul(mean.le(systems["high"])).tolist()
        of_pairs += pairs["low"].le(gap).mul(gap.le(pairs["high"])).tolist()
    return {"means": float(pd.Series(of_means).mean()), "differences": float(pd.Series(of_pairs).mean())}


def ideal_dcg(qrels):
    """IDCG@10 of the judged documents of each topic."""
    ranked = qrels.assign(label=qrels["label"].clip(lower=0)).sort_values("label", ascending=False)
    rank = ranked.groupby("qid").cumcount()
    return ranked["label"].div(np.log2(rank + 2)).where(rank < CUTOFF, 0).groupby(ranked["qid"]).sum()


def of_pool(collection, qrels, parts):
    """The result with DCG(true labels) / IDCG(pool of the reduced judgments) as the truth."""
    complete = ideal_dcg(qrels)
    ratio = pd.concat({name: complete / ideal_dcg(reduced) for name, reduced, *_ in parts})

    def scaled(frame):
        key = pd.MultiIndex.from_frame(frame[["simulation", "qid"]])
        return frame.assign(truth=frame["truth"] * ratio.reindex(key).to_numpy())

    return replace(collection, estimates=scaled(collection.estimates), intervals=scaled(collection.intervals))


def coverage(result):
    """Coverage and width of intervals over run-topics with something unjudged, by estimator and level."""
    actual = result.coverage().query("topics == 'unjudged'")
    return actual.set_index("estimator").pivot(columns="level", values=["covered", "width"])


def measured(actual, parts, estimators, *, pooled):
    """Errors, tau of run means and coverage of estimators, a row per estimator.

    ``pooled``: the runs of all parts have one ranking, as when each part evaluates one group.
    """
    truth = f"nDCG@{CUTOFF}"
    result = vbterrier.simulate(
        actual.runs, actual.qrels, incomplete=parts, measure=truth, estimators=estimators, levels=LEVELS
    )
    relative = of_pool(result, actual.qrels, parts)
    open_topics = (each.unjudged().errors().set_index("estimator") for each in (result, relative))
    frame, of_ideal = (each[["n", "rmse", "bias"]] for each in open_topics)
    frame = frame.join(of_ideal[["rmse", "bias"]], rsuffix="_pool")
    frame["tau"] = np.nan
    if len(actual.runs) > 2:
        # Parts that are named "PART, RUN" evaluate one run each.
        ranked = result.labelled(part=lambda name: name.split(",")[0])
        by = () if pooled else "part"
        frame["tau"] = ranked.correlations(by=by).groupby("estimator")["tau"].mean()
    levels, of_pools = coverage(result), coverage(relative)
    for level in LEVELS:
        frame[f"covered {level:.0%}"] = levels["covered", level]
    frame["reached"] = of_pools["covered"].get(1.0, np.nan)
    return frame.assign(width=levels["width", 0.9], covered_pool=of_pools["covered", 0.9]).reset_index()


def table(name, data, *, joint):
    """Errors, tau of run means and coverage of each estimator, by regime."""
    collection = COLLECTIONS[name](data)
    frames = []
    for regime, parts in regimes(name, data, collection).items():
        started = time.process_time()
        pooled = "group" in regime
        # Each evaluated run as the only evidence.
        alone = [
            (f"{part}, {run}", qrels, (run,), (run,))
            for part, qrels, *rest in parts
            for run in (rest[0] if rest and rest[0] is not None else collection.runs)
        ]
        both = [
            measured(collection, parts, {**ESTIMATORS, "range": RANGE}, pooled=pooled),
            measured(collection, alone, {ALONE: ESTIMATORS["E"]}, pooled=pooled),
        ]
        frame = pd.concat(both).assign(collection=name, regime=regime)
        in_range = frame["estimator"] == "range"
        frame = frame[~in_range].assign(reached=frame.loc[in_range, "reached"].item())
        if joint and name != "TREC-COVID" and "alone" not in regime:
            of_e = frame["estimator"] == "E"
            for kind, share in joint_coverage(collection, parts, 100).items():
                frame.loc[of_e, kind] = share
        frames.append(frame)
        print(f"{name}, {regime}: {time.process_time() - started:.0f} s", file=sys.stderr)
    return pd.concat(frames, ignore_index=True)


def wide(frame, column, keys=("collection", "regime", "n")):
    """One column of the results with a column for each estimator."""
    table = frame.pivot(index=list(keys), columns="estimator", values=column)
    return table.reindex(frame.set_index(list(keys)).index.unique())[[*ESTIMATORS, ALONE]].reset_index()


def summary(frame):
    """The results by regime: geometric means of RMSE, means of tau, and the lowest and the highest coverage."""
    shares = frame.groupby(["regime", "estimator"], sort=False)
    for column in ("rmse", "rmse_pool"):
        geometric = shares[column].agg(lambda values: np.exp(np.log(values).mean()))
        yield f"{column}, geometric mean of collections", wide(geometric.reset_index(), column, ("regime",))
    yield "tau, mean", wide(shares["tau"].mean().reset_index(), "tau", ("regime",))


def print_tables(frame):
    """Print all tables of results as Markdown."""
    for title, column in (
        ("RMSE to the nDCG@10 of complete judgments", "rmse"),
        ("RMSE to DCG(true labels)/IDCG(pool)", "rmse_pool"),
        ("Kendall's tau of run means", "tau"),
        ("Coverage of 90 % intervals of DCG(true labels)/IDCG(pool)", "covered_pool"),
        ("Coverage of 90 % intervals of the nDCG@10 of complete judgments", "covered 90%"),
        ("Mean width of 90 % intervals", "width"),
    ):
        print(f"{title}\n\n{markdown(wide(frame, column))}\n")
    named = frame[frame["estimator"].isin(["B", "E", ALONE])]
    print(markdown(named.drop(columns=["rmse", "rmse_pool"])), end="\n\n")
    for title, part in summary(frame):
        print(f"{title}\n\n{markdown(part)}\n")


def label_table(data):
    """Leaving out groups of TREC DL 2019 with the labels of each language model as evidence."""
    collection = trec_dl19(data)
    parts = list(leave_group_out(collection.runs, collection.qrels, groups=collection.groups))
    labels = {name: vbterrier.frames.read_labels(data / "trec_dl19" / f"labels.{name}.txt.gz") for name in LABELLERS}
    rows = []
    estimators = {"E": ESTIMATORS["E"]}
    for name, labels_of_judges in {
        "none": None,
        **{name: {name: labels[name]} for name in labels},
        "all four": labels,
    }.items():
        result = vbterrier.simulate(
            collection.runs,
            collection.qrels,
            incomplete=parts,
            estimators=estimators,
            levels=LEVELS,
            data=Data(labels=labels_of_judges),
        ).unjudged()
        covered = result.coverage().query("topics == 'unjudged'").set_index("level")["covered"]
        shares = {f"{k:.0%}": v for k, v in covered.items()}
        rows.append({"labels": name, **result.errors().iloc[0][["n", "rmse", "bias"]], **shares})
    return pd.DataFrame(rows)


def every_regime(frame):
    """Two tables, a row per collection and regime: E and the best other; E with one run, and the order of systems."""
    estimates, alone = [], []
    for (collection, regime), part in frame.groupby(["collection", "regime"], sort=False):
        by = part.set_index("estimator")
        others = by.drop(index=["E", ALONE])
        e, one, best = by.loc["E"], by.loc[ALONE], others["rmse"].idxmin()
        row = {"collection": collection, "judgments missing": regime}
        estimates.append(
            {
                **row,
                "n": str(e["n"]),
                "RMSE": short(e["rmse"], 3),
                "best other": f"{short(others['rmse'].min(), 3)} ({best})",
                "bias": short(e["bias"], 3),
                "covered": short(e["covered 90%"]),
                "width": short(e["width"], 3),
                "means": short(e["means"]),
                "differences": short(e["differences"]),
            }
        )
        alone.append(
            {
                **row,
                "RMSE, one run": short(one["rmse"], 3),
                "covered, one run": short(one["covered 90%"]),
                "tau, one run": short(one["tau"]),
                "tau, E": short(e["tau"]),
                "tau, best other": short(others["tau"].max()),
            }
        )
    return pd.DataFrame(estimates), pd.DataFrame(alone)


def other_measures(data, names, n_parts):
    """A row per measure, collection and regime of some samples: RMSE of each estimator, bias and coverage of E."""
    rows = []
    for name in names:
        collection = COLLECTIONS[name](data)
        for regime, parts in regimes(name, data, collection).items():
            if regime not in OTHER_REGIMES:
                continue
            for measure, each in MEASURES.items():
                estimators = {estimator: text for estimator, text in each.items() if estimator != "truth"}
                result = vbterrier.simulate(
                    collection.runs,
                    collection.qrels,
                    incomplete=parts[:n_parts],
                    measure=each["truth"],
                    estimators=estimators,
                ).unjudged()
                errors = result.errors().set_index("estimator")
                if errors.empty:
                    continue
                row = {"measure": measure, "collection": name, "judgments missing": regime, "n": errors.loc["E", "n"]}
                covered = coverage(result)["covered", 0.9]
                rows.append({**row, **errors["rmse"], "bias of E": errors.loc["E", "bias"], "E covers": covered["E"]})
        print(f"{name}: other measures", file=sys.stderr)
    return pd.DataFrame(rows)


def average_precision(data, names, n_parts):
    """RMSE of AP@100 and of EAP@100, bias and coverage of EAP, a row per collection and regime of some samples."""
    rows = []
    for name in names:
        collection = deeply_judged(COLLECTIONS[name](data))
        for regime, parts in regimes(name, data, collection).items():
            if regime not in AP_REGIMES:
                continue
            result = vbterrier.simulate(
                collection.runs,
                collection.qrels,
                incomplete=parts[:: max(len(parts) // n_parts, 1)][:n_parts],
                measure="AP@100",
                estimators={"AP": "AP@100", "E": "EAP@100"},
            ).unjudged()
            errors = result.errors().set_index("estimator")
            if errors.empty:
                continue
            row = {"collection": name, "regime": regime, "n": errors.loc["E", "n"], **errors["rmse"]}
            rows.append({**row, "bias": errors.loc["E", "bias"], "covered": coverage(result)["covered", 0.9]["E"]})
        print(f"{name}: average precision", file=sys.stderr)
    return pd.DataFrame(rows)


def ap_by_regime(frame):
    """A row per regime and a cell per collection: RMSE of AP and of EAP; bias and coverage of EAP. The mean coverage
    has its standard error over collections.
    """
    rows = []
    for regime, part in frame.groupby("regime", sort=False):
        row = {"judgments missing": regime, "n": str(part["n"].sum())}
        for one in part.itertuples():
            row[one.collection] = f"{short(one.AP, 3)} {short(one.E, 3)}; {short(one.bias, 3)}; {short(one.covered)}"
        row["ratio of RMSE"] = short(np.exp(np.log(part["E"] / part["AP"]).mean()))
        error = part["covered"].std(ddof=1) / np.sqrt(len(part))
        rows.append({**row, "covered": f"{short(part['covered'].mean())} ({short(error)})"})
    return pd.DataFrame(rows).fillna("")


def by_measure(frame):
    """A row per measure: how often E has the smallest error, its ratio to the best other, and coverage."""
    rows = []
    for measure, part in frame.groupby("measure", sort=False):
        best = part[["non-relevant", "condensed", "B, pool", "B"]].min(axis=1)
        ratio = np.log(part["E"] / best)
        largest = part.loc[ratio.idxmax()]
        rows.append(
            {
                "measure": measure,
                "settings": str(len(part)),
                "E smallest": str((ratio <= 0).sum()),
                "E at most B, pool": str((part["E"] <= part["B, pool"]).sum()),
                "ratio to the best other": short(np.exp(ratio.mean())),
                "largest": f"{short(np.exp(ratio.max()))} ({largest['collection']}, {largest['judgments missing']})",
                "covered": short(part["E covers"].mean()),
                "covered .85 or more": str((part["E covers"] >= 0.85).sum()),
            }
        )
    return pd.DataFrame(rows)


def short(value, digits=2):
    """A number without the zero before its point; empty for NaN."""
    shown = "" if np.isnan(value) else f"{value:.{digits}f}"
    return re.sub(r"^(-?)0\.", r"\1.", shown)


def write_table(path, name, text):
    """Replace the text between the comments ``<!-- NAME -->`` and ``<!-- end of NAME -->`` of a page."""
    page = path.read_text(encoding="utf-8")
    first, last = f"<!-- {name} -->", f"<!-- end of {name} -->"
    before, rest = page.split(first)
    path.write_text(f"{before}{first}\n\n{text}\n\n{last}{rest.split(last)[1]}", encoding="utf-8")


def markdown(frame):
    """A frame as a Markdown table."""
    rows = [frame.columns, ["---"] * len(frame.columns), *frame.itertuples(index=False)]
    cells = [[_text(cell) for cell in row] for row in rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in cells)


def _text(cell):
    if isinstance(cell, float):
        return "" if np.isnan(cell) else f"{cell:.3f}"
    return str(cell)


def main():
    """Print all tables as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--only", choices=[*COLLECTIONS, "labels", "measures", "AP"])
    parser.add_argument("--joint", action="store_true", help="also coverage of means and differences (minutes)")
    parser.add_argument("--csv", type=Path, help="the file of the results, which is read if it exists")
    parser.add_argument("--parts", type=int, default=2, help="samples of each regime for other measures (2)")
    parser.add_argument("--write", action="store_true", help="replace the tables of the pages")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    names = [name for name in COLLECTIONS if arguments.only in (None, name)]
    pages = DOCS / "explanation"
    if names:
        if arguments.csv and arguments.csv.exists():
            frame = pd.read_csv(arguments.csv)
        else:
            frame = pd.concat([table(name, arguments.data, joint=arguments.joint) for name in names], ignore_index=True)
        if arguments.csv:
            frame.to_csv(arguments.csv, index=False)
        print_tables(frame)
        if arguments.write:
            estimates, one_run = every_regime(frame)
            write_table(pages / "evidence.md", "estimates", markdown(estimates))
            write_table(pages / "evidence-one-run.md", "one run", markdown(one_run))
    given = arguments.data, COLLECTIONS, arguments.parts
    others = {
        "measures": ("evidence-measures.md", "other measures", lambda: by_measure(other_measures(*given))),
        "AP": ("evidence-measures.md", "average precision", lambda: ap_by_regime(average_precision(*given))),
        "labels": ("evidence-labels.md", "labels of language models", lambda: label_table(arguments.data)),
    }
    for only, (page, name, made) in others.items():
        if arguments.only in (None, only):
            text = markdown(made())
            print(text)
            if arguments.write:
                write_table(pages / page, name, text)


if __name__ == "__main__":
    main()
