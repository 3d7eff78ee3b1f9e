"""Judging plans against pooling order and a bandit: ``python tests/bench/judging.py DATA``.

After judging a share of the unjudged documents, the mean width of the 90 % intervals of means, and the RMSE of topic
scores to those of complete judgments.
"""

import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from evidence import COLLECTIONS, markdown, regimes

import vbterrier
from vbterrier.frames.ranking import Run
from vbterrier.settings import Data
from vbterrier.unjudged.pool import Judgments

SHARES = (0.1, 0.25, 0.5)
# The depth of the complete judgments.
HORIZON = 100
REGIMES = ("thinned by 70%", "hidden half, depth 5", "pool of depth 3", "a group left out")


def unjudged(runs, qrels):
    """The unjudged documents of the first ten ranks: name, qid, docno, rank."""
    judgments, parts = Judgments(qrels), []
    for name, run in runs.items():
        judged = judgments.judge(Run(run), 10)
        topic, rank = np.nonzero(judged.unjudged)
        docno = judged.run.docno.take(judged.rows[topic, rank]).text.to_pylist()
        qids = [judgments.topics[place] for place in topic]
        parts.append(pd.DataFrame({"name": name, "qid": qids, "docno": docno, "rank": rank}))
    return pd.concat(parts, ignore_index=True)


def by_pooling(candidates, _, n):
    """Judge by the best rank."""
    best = candidates.sort_values(["rank", "qid", "docno"]).drop_duplicates(["qid", "docno"])
    return best.head(n)[["qid", "docno"]]


def by_bandit(candidates, truth, n):
    """Judge the next document of the run with the largest posterior mean of relevance (Losada et al. 2016)."""
    lists = {key: group.sort_values("rank") for key, group in candidates.groupby(["name", "qid"])}
    hits, seen, chosen = dict.fromkeys(lists, 1.0), dict.fromkeys(lists, 2.0), {}
    order = {key: list(zip(group["qid"], group["docno"], strict=True)) for key, group in lists.items()}
    while len(chosen) < n and order:
        key = max(order, key=lambda each: (hits[each] / seen[each], each))
        pair = order[key].pop(0)
        chosen[pair] = None
        hits[key] += truth.get(pair, 0) > 0
        seen[key] += 1
        order = {each: kept for each, pairs in order.items() if (kept := [p for p in pairs if p not in chosen])}
    return pd.DataFrame(list(chosen), columns=["qid", "docno"])


def main():
    """Print a table of regimes and shares."""
    warnings.simplefilter("ignore")
    data, rows = Path(sys.argv[1]), []
    for name in ("TREC Web 2012", "TREC DL 2019"):
        found = COLLECTIONS[name](data)
        truth = found.qrels.set_index(["qid", "docno"])["label"]
        for regime in REGIMES:
            _, qrels, *rest = next(iter(regimes(name, data, found)[regime]))
            names = list(rest[0]) if rest and rest[0] is not None else list(found.runs)[:8]
            runs = {each: found.runs[each] for each in names}
            candidates = unjudged(runs, qrels)
            total = len(candidates.drop_duplicates(["qid", "docno"]))
            known = qrels.loc[qrels["label"] > 0, "qid"].unique()
            runs = {each: run[run["qid"].isin(known)] for each, run in runs.items()}
            qrels = qrels[qrels["qid"].isin(known)]
            exact = vbterrier.score(runs, found.qrels[found.qrels["qid"].isin(known)], ["nDCG@10"]).values["value"]
            model = vbterrier.unjudged.fit(runs, qrels, horizon=HORIZON)
            for share in SHARES:
                n = max(int(share * total), 1)
                plans = {
                    "judge_next": vbterrier.judge_next(runs, qrels, n, data=Data(model=model)).frame[["qid", "docno"]],
                    "pooling": by_pooling(candidates[candidates["qid"].isin(known)], truth, n),
                    "bandit": by_bandit(candidates[candidates["qid"].isin(known)], truth, n),
                }
                row = {"collection": name, "regime": regime, "share": share, "n": n}
                for way, plan in plans.items():
                    label = [truth.get(pair, 0) for pair in zip(plan["qid"], plan["docno"], strict=True)]
                    after = pd.concat([qrels[["qid", "docno", "label"]], plan.assign(label=label)])
                    fitted = vbterrier.unjudged.fit(runs, after, horizon=HORIZON)
                    scores = vbterrier.score(runs, after, ["ENDCG@10"], data=Data(model=fitted))
                    ends = scores.intervals.query("method == 'unjudged (normal)'")
                    error = scores.values["value"].to_numpy() - exact.to_numpy()
                    row |= {f"width {way}": float((ends["high"] - ends["low"]).mean())}
                    row |= {f"RMSE {way}": float(np.sqrt((error**2).mean()))}
                rows.append(row)
                print(name, regime, share, file=sys.stderr)
    frame = pd.DataFrame(rows)
    print(markdown(frame))
    for rival in ("pooling", "bandit"):
        ratio = {
            what: np.exp(np.log(frame[f"{what} judge_next"] / frame[f"{what} {rival}"]).mean())
            for what in ("width", "RMSE")
        }
        print(f"geometric mean of the ratio to {rival}: {ratio}")


if __name__ == "__main__":
    main()
