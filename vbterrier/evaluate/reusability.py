"""Reusability of judgments: ranks of systems without the judgments of their group."""

from __future__ import annotations

from typing import Any

import pandas as pd

from vbterrier.errors import InputError, ParameterError, agreeing, examples, nearest
from vbterrier.evaluate.collection_scores import Collection, evaluated_collection, ranked_systems
from vbterrier.evaluate.inputs import evaluation_target, input_table, quietly
from vbterrier.frames.contracts import is_frame
from vbterrier.frames.files.reading import read_groups
from vbterrier.log import tracked_items
from vbterrier.measures.unjudged import Estimated
from vbterrier.stats.comparisons import share_letter
from vbterrier.unjudged.evidence import collect_evidence
from vbterrier.unjudged.incomplete import leave_group_out
from vbterrier.unjudged.model import DEFAULT_POOL_CUTOFF
from vbterrier.unjudged.selection import pool_depth

_COLUMNS = ["group", "name", "n_runs", "n_removed", "rank", "letters", "rank_without", "low", "high", "letters_without"]
_COLUMNS += ["recovered", "covered"]


def run_groups(groups: Any, names: list[str]) -> dict[str, str]:
    """The group of each run."""
    if not hasattr(groups, "items") or is_frame(groups):
        frame = input_table(groups, "groups", read_groups, ("name", "group"))
        twice = frame["name"][frame["name"].duplicated()]
        if len(twice):
            raise InputError(f"groups: run {twice.iloc[0]!r} is duplicated; keep one row per run")
        groups = dict(zip(frame["name"], frame["group"], strict=True))
    unknown, without = [name for name in groups if name not in names], [name for name in names if name not in groups]
    if unknown:
        raise ParameterError(f"groups: no run is called {unknown[0]!r}.{nearest(str(unknown[0]), names)}")
    if without:
        raise ParameterError(
            f"groups: {agreeing(len(without), 'runs have no group')} ({examples(without)}); give each run a group"
        )
    if len(set(groups.values())) == 1:
        raise ParameterError(
            f"groups: all runs are of {next(iter(groups.values()))!r}: without it, nothing is judged; wanted two groups"
        )
    return dict(groups)


def reusability(
    collections: list[Collection],
    measure: Any,
    groups: dict[str, str] | None,
    table: pd.DataFrame,
    uncertainty: str,
    depth: int | None,
    *,
    progress: bool,
    **options: Any,
) -> pd.DataFrame:
    """Leave out the judgments that each group alone contributed, in all collections, and rank all systems again."""
    if groups is None:
        return pd.DataFrame(columns=_COLUMNS)
    members = collections[0].members
    names, system_by_run = sorted(members), {run: name for name, runs in members.items() for run in runs}
    cutoff = measure.params.get("cutoff") or DEFAULT_POOL_CUTOFF
    has_pool = isinstance(measure, Estimated) and measure.cutoff is not None
    reduced, depths = [], []
    for each in collections:
        runs = {name: each.runs[name] for name in names}
        frames = {run: each.runs[name].frame for run, name in system_by_run.items()}
        reduced.append(leave_group_out(frames, each.target.frame, groups=groups, cutoff=depth or cutoff))
        evidence = collect_evidence(runs, each.target.judgments(), cutoff, max(DEFAULT_POOL_CUTOFF, cutoff))
        depths.append(pool_depth(evidence) if has_pool else None)
    rows: list[tuple[Any, ...]] = []
    by_name = table.set_index("name")
    n_groups = len(set(groups.values()))
    for parts in tracked_items(zip(*reduced, strict=True), "groups", shown=progress, total=n_groups, unit="group"):
        without, n_removed = [], 0
        for each, part, to_depth in zip(collections, parts, depths, strict=True):
            n_removed += len(each.target.frame) - len(part.qrels)
            target = evaluation_target(part.qrels, None, None)
            kept = {name: run.only(target.topics) for name, run in each.runs.items()}
            # The complete judgments are checked; a run without judged documents is no mismatch of ids here.
            without.append(
                quietly(evaluated_collection, each.name, kept, target, measure, "all", each.labels, to_depth)
            )
        ranked_without = ranked_systems(without, names, uncertainty, **options).set_index("name")
        for name in dict.fromkeys(system_by_run[run] for run in parts[0].runs):
            without_group, row = ranked_without.loc[name], by_name.loc[name]
            low, high = without_group["rank_low"], without_group["rank_high"]
            shared = by_name["rank"][[share_letter(str(row["letters"]), other) for other in by_name["letters"]]]
            recovered = bool(shared.min() <= without_group["rank"] <= shared.max())
            ends = low, high, without_group["letters"], recovered, low <= row["rank"] <= high
            where = row["rank"], row["letters"], without_group["rank"], *ends
            rows.append((parts[0].name, name, len(parts[0].runs), n_removed, *where))
    return pd.DataFrame(rows, columns=_COLUMNS)
