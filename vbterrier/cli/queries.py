"""The command group ``queries``: samples, profiles and power analysis."""

from __future__ import annotations

import shlex
from dataclasses import replace as changed
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from vbterrier.cli import options as option
from vbterrier.cli.commands import Command, CommandGroup, help_example, with_common_options
from vbterrier.cli.options import Format, Output
from vbterrier.cli.output import deliver, frame_answer, require_format, show
from vbterrier.errors import InputError, ParameterError, printable, warn
from vbterrier.settings import Data, Inference

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pandas as pd


def sample(
    mentions: Annotated[
        Path, Argument(help="Mentions: docno, mention[, entity_id, ...]; TSV, CSV or Parquet, also .gz.")
    ],
    n: Annotated[int, Option("--number", "-n", help="Number of queries to draw.", min=1, metavar="N")],
    output: option.Listing = None,
    method: Annotated[
        str,
        Option(
            autocompletion=option.value_completer(("random-document", "random-mention", "uniform", "weighted")),
            help="random-document (a document, then one of its mentions), random-mention (a mention, then one of its "
            "documents), uniform or weighted.",
        ),
    ] = "random-document",
    replace: Annotated[bool, Option("--replace", help="Draw with replacement.")] = False,
    strata: Annotated[str | None, Option(help="Strata: a column, or a number of bins of mention frequency.")] = None,
    allocation: Annotated[
        str, Option(help="Allocation to strata: proportional, equal, neyman, or 'rare=50,frequent=20'.")
    ] = "proportional",
    variances: Annotated[
        str | None, Option(help="With neyman: variance of each stratum, as 'rare=0.2,frequent=0.1'.")
    ] = None,
    weights: Annotated[str | None, Option(help="With weighted: the column of weights.")] = None,
    style: Format = "table",
    seed: option.SeedOfDraws = 0,
) -> None:
    """Draw queries, with their sampling probabilities."""
    from vbterrier.design.sampling import sample_queries
    from vbterrier.frames.files.writing import write_queries
    from vbterrier.frames.notebook import count_text

    require_format(style)
    sizes: Any = allocation
    if "=" in allocation:
        # The sampler refuses sizes that are not integers.
        numbers = _numbers("--allocation", allocation)
        sizes = {name: int(size) if size.is_integer() else size for name, size in numbers.items()}
    options: dict[str, Any] = {"method": method, "replace": replace, "weights": weights, "seed": seed}
    options["strata"] = int(strata) if strata is not None and strata.isdecimal() else strata
    options["variances"] = None if variances is None else _numbers("--variances", variances)
    sampled = sample_queries(mentions, n, allocation=sizes, **options)
    answer = sampled.answer()
    if output is not None:
        write_queries(sampled, output)
        following = ["vbterrier", "queries", "profile", str(output), "--mentions", str(mentions)]
        answer = changed(answer, next=shlex.join(following))
        show(answer, f"{output}: {count_text(len(sampled), 'query')}", rows=sampled.queries)
        return
    shown = sampled.queries if style in ("csv", "json") else sampled.queries.rename(columns={"n_draws": "times drawn"})
    caption = [] if style == "table" else [repr(sampled)]
    deliver(shown, style, answer=answer, rows=sampled.queries, caption=caption, label="tab:sample")


def traffic(
    queries: Annotated[Path, Argument(help="All queries with their traffic: query, weight; TSV, CSV or xlsx.")],
    n: Annotated[
        int, Option("--number", "-n", help="Number of queries for certain and draws together.", min=2, metavar="N")
    ],
    style: Format = "table",
    seed: option.SeedOfDraws = 0,
    output: Output = None,
) -> None:
    """Draw queries to rate by their traffic, for `vbterrier gate --queries`."""
    from vbterrier.design.sampling import sample_by_traffic

    style = require_format(style, output)
    sampled = sample_by_traffic(queries, n, seed=seed)
    certain = int((sampled["drawn"] == 0).sum())
    others = f"{len(sampled) - certain} in {n - certain} draws by weight (seed {seed})"
    caption = [
        f"{len(sampled)} queries to rate: the {certain} heaviest for certain, {others}.",
        "weight: share of the estimated mean; drawn: number of draws, 0 if taken for certain.",
    ]
    answer = frame_answer(caption[0])
    caption = caption[1:] if style == "table" else caption
    deliver(sampled, style, output, answer=answer, rows=sampled, digits=6, caption=caption, label="tab:traffic")


def profile(
    queries: Annotated[Path, Argument(help="A sample or a corpus: docno, mention[, entity_id]; TSV, CSV or Parquet.")],
    mentions: Annotated[Path | None, Option(help="The corpus of the sample, for its profile.")] = None,
    nil: Annotated[list[str] | None, Option(help="A spelling of NIL [NIL]; repeatable.")] = None,
    level: option.Level = 0.95,
    style: Format = "table",
    output: Output = None,
) -> None:
    """Describe queries: shares of links, NIL, rare, frequent and ambiguous mentions."""
    from vbterrier.design.profile import query_profile

    style = require_format(style, output)
    table = query_profile(queries, mentions, nil=nil or "NIL", level=level)
    shown = table if style in ("csv", "json") else table.drop(columns="level").dropna(axis="columns", how="all")
    caption = [f"Profile of queries, with {100 * level:g}% Wilson intervals of shares of draws."]
    if mentions is not None:
        caption.append(
            "uniform, random_document, random_mention: expected values of draws from the corpus by each method "
            "(counts of the corpus)."
        )
    answer = frame_answer(*_profile_sentences(table, level))
    deliver(shown, style, output, answer=answer, rows=table, digits=3, caption=caption, label="tab:profile")


def _profile_sentences(table: pd.DataFrame, level: float) -> Iterator[str]:
    """Sentences on the queries: their number, the shares of NIL and of ambiguous mentions, with intervals."""
    from vbterrier.frames.notebook import count_text

    rows = {(row["part"], row["item"]): row for row in table.to_dict("records")}
    counts = {item: int(row["n"]) for (part, item), row in rows.items() if part == "count"}
    shares: list[str] = []
    for key, text in ((("entity", "NIL"), "are NIL"), (("ambiguity", "2+"), "have an ambiguous mention")):
        if key in rows:
            ends = f"{rows[key]['low']:.1%} to {rows[key]['high']:.1%}"
            shares.append(f"{rows[key]['value']:.1%} ({'' if shares else f'{100 * level:g}% interval '}{ends}) {text}")
    yield (
        f"Of {count_text(counts['draws'], 'draw')}, {' and '.join(shares)}."
        if shares
        else f"{count_text(counts['draws'], 'draw')}."
    )
    yield f"They are {count_text(counts['queries'], 'query')} from {count_text(counts['documents'], 'document')}."


def power(
    values: Annotated[
        Path | None,
        Argument(
            help="Scores of a pilot: name, qid, measure, value; CSV, TSV or Parquet. Without it, standard deviations "
            "of --measure in TREC collections."
        ),
    ] = None,
    delta: Annotated[
        float | None, Option(help="The difference to detect; positive if the first run of a pair is better.")
    ] = None,
    number: Annotated[
        list[int] | None,
        Option(
            "--number",
            "-n",
            help="Instead: number of queries whose detectable difference is wanted; repeatable.",
            min=2,
        ),
    ] = None,
    margin: Annotated[
        float | None,
        Option(help="Instead: the largest loss that `vbterrier gate` accepts; --delta: the true difference [0]."),
    ] = None,
    worst_loss: Annotated[
        float | None, Option(help="With --margin: no query counts for a larger loss [the range of the measure].")
    ] = None,
    queries: Annotated[Path | None, Option(help="Weights of the pilot's queries: query, weight, cluster.")] = None,
    power: Annotated[float, Option(help="Probability of detecting the difference, or of PASS.")] = 0.8,
    assurance: Annotated[
        float | None,
        Option(help="Probability that the plan reaches this power [0.8 with a pilot]; 0.5: by the pilot's variance."),
    ] = None,
    systems: Annotated[int, Option(help="Number of systems that will be compared.", min=2, metavar="N")] = 2,
    against_baseline: Annotated[
        bool, Option("--against-baseline", help="Plan comparisons of each system with a baseline, not of all pairs.")
    ] = False,
    test: Annotated[
        str,
        Option(
            autocompletion=option.value_completer(("moderated", "t", "randomisation")),
            help="The test: moderated (t), t or randomisation.",
        ),
    ] = "moderated",
    correction: Annotated[
        str, Option(help="Correction for the number of tests: auto, bonferroni, max-t, holm or none.")
    ] = "auto",
    baseline: option.Baseline = None,
    measure: Annotated[
        str | None,
        Option(
            "--measure", "-m", autocompletion=option.completed_measures, help="The measure, if the pilot has several."
        ),
    ] = None,
    level: Annotated[float, Option(help="Level of the test and of the intervals.")] = 0.95,
    curve: Annotated[bool, Option("--curve", help="With --delta: show power by number of queries.")] = False,
    simulations: Annotated[
        int | None,
        Option(
            help="Number of simulated query sets of each size [10,000; with weights or a margin 1,000].",
            min=1,
            metavar="N",
        ),
    ] = None,
    style: Format = "table",
    seed: Annotated[int, Option(help="Seed of the simulations.", min=0, metavar="N")] = 0,
    output: Output = None,
) -> None:
    """Estimate how many queries are needed to detect a difference, from the scores of a pilot."""
    from vbterrier.design.pilot import pilot_pairs
    from vbterrier.design.planning import MOST_OF_MARGIN, PlanOptions
    from vbterrier.frames.files.reading import read_values

    style = require_format(style, output)
    if bool(number) == (delta is not None or margin is not None):
        raise ParameterError("wanted either --delta, the difference to detect, --margin, or --number of queries")
    if number and (curve or assurance is not None):
        raise ParameterError(f"{'--curve' if curve else '--assurance'} applies to a difference: wanted --delta")
    options: dict[str, Any] = {"power": power, "n_simulations": simulations, "data": Data(queries=queries)}
    options["inference"] = Inference(level=level, seed=seed, test=test, correction=correction, margin=margin)
    options["options"] = PlanOptions(n_systems=systems, baseline=against_baseline, worst_loss=worst_loss)
    if not number:
        options |= {"delta": delta, "assurance": assurance}
    if values is None:
        plans, curves = _plan_without_pilot(measure, **options)
    else:
        scores = read_values(values)
        pairs = pilot_pairs(scores, option.only("--baseline", baseline), measure)
        plans, curves = _plans(scores, pairs, number or [], **options)
    rows = frame = curves if curve else plans
    about = frame.iloc[0]
    sure = about["assurance"] if not number and values is not None else None
    sentences = list(_plan_sentences(plans, power, margin, by_size=bool(number)))
    notes = _caveats(sure, detectable=frame["delta"] if number else None)
    if style not in ("csv", "json"):
        shared = ["level", "test", "correction", "n_systems", "assurance", "n_simulations", "seed"]
        frame = frame.drop(columns=[*shared, *([] if curve else ["power"])], errors="ignore")
        frame = frame.rename(columns={"n_qids": "queries", "n_pilot": "queries of the pilot"})
    among = f" among {systems} systems ({about['correction']})" if systems > 2 else ""  # noqa: PLR2004 - a pair
    how = f"power {power:g}, {about['test']} test at {1 - level:.2g}{among}"
    if values is None:
        how += (
            ", without a pilot; interval: from the TREC collection with the smallest variance to that with the largest."
        )
    else:
        ends = f"{100 * level:g}%, from the uncertain standard deviation of the pilot."
        how += f", {about['n_simulations']:,} simulations, seed {seed}; interval: {ends}"
    caption = ["Detectable differences." if number else "Queries needed.", f"{how[0].upper()}{how[1:]}", *notes]
    if margin is not None and "high" in frame.columns and (frame["high"] >= MOST_OF_MARGIN).any():
        caption.append(f"{MOST_OF_MARGIN:,}: with so large a standard deviation, no number of queries suffices.")
    deliver(frame, style, output, answer=frame_answer(*sentences), rows=rows, caption=caption, label="tab:power")


def _plan_sentences(plans: pd.DataFrame, power: float, margin: float | None, *, by_size: bool) -> Iterator[str]:
    """The number of queries that a plan needs, of several pairs the largest; or the differences that sizes detect."""
    from vbterrier.frames.notebook import count_text

    for _, rows in plans.groupby("n_qids") if by_size else [(0, plans)]:
        row = rows.sort_values("delta" if by_size else "n_qids", kind="stable").iloc[-1]
        pair = f" between {printable(row['name_a'])} and {printable(row['name_b'])}" if "name_a" in rows else ""
        pair += f", the largest of {len(rows)} pairs," if len(rows) > 1 else ""
        level = f"{100 * row['level']:g}% interval" if row["n_pilot"] else "by TREC collection"
        ends = f"({level} {row['low']:{'.4f' if by_size else ',.0f'}} to {row['high']:{'.4f' if by_size else ',.0f'}})"
        difference = f"a difference of {row['delta']:.4g} in {row['measure']}{pair} with power {power:g}"
        if by_size:
            yield f"{count_text(int(row['n_qids']), 'query')} detect {difference} {ends}."
        elif margin is None:
            yield f"Detecting {difference} takes {count_text(int(row['n_qids']), 'query')} {ends}."
        else:
            gate = f"Passing `vbterrier gate` with the margin {margin:g} in {row['measure']}{pair}"
            yield f"{gate} with probability {power:g} takes {count_text(int(row['n_qids']), 'query')} {ends}."


def _caveats(assurance: float | None, detectable: pd.Series[float] | None) -> list[str]:
    """Sentences about the probability that plans reach their power, and about numbers that detect nothing."""
    if detectable is not None and not (detectable < float("inf")).all():
        return ["inf: so few sign flips are never significant at this level."]
    if assurance == 0.5:  # noqa: PLR2004 - the standard deviation of the pilot itself
        return ["More than half of such plans fall short of the power; --assurance 0.8 asks for more queries."]
    return [] if assurance is None else [f"The power is reached with probability {assurance:g}."]


def _plan_without_pilot(measure: str | None, **options: Any) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the plan by the standard deviations of TREC collections, and its power curve."""
    from vbterrier.design.planning import queries_needed

    if measure is None or "delta" not in options:
        raise ParameterError("without scores of a pilot: wanted --measure, and --delta or --margin")
    plan = queries_needed(None, measure=measure, **options)
    plans, curve = plan.to_frame(), plan.curve.copy()
    for table in (plans, curve):
        table.insert(0, "measure", measure)
    return plans, curve


def _plans(
    values: pd.DataFrame, pairs: Iterable[tuple[str, str, str]], numbers: list[int], **options: Any
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return one row for each pair and plan, and the power curves; a warning names pairs without a plan."""
    import pandas as pd

    from vbterrier.design.planning import detectable_difference, queries_needed

    parts, curves = {}, {}
    for name, one, other in pairs:
        about: dict[str, Any] = {"pair": (one, other), "measure": name, **options}
        try:
            if numbers:
                parts[one, other, name] = curves[one, other, name] = detectable_difference(values, numbers, **about)
            else:
                plan = queries_needed(values, **about)
                parts[one, other, name], curves[one, other, name] = plan.to_frame(), plan.curve
        except InputError as error:
            warn(f"{one} and {other}, {name}: left out: {error}")
    if not parts:
        raise InputError("values: no pair of systems allows a plan")
    names = ["name_a", "name_b", "measure"]
    plans, of_curves = (pd.concat(one, names=names).droplevel(-1).reset_index() for one in (parts, curves))
    return plans, of_curves


def _numbers(option: str, text: str) -> dict[str, float]:
    """Return numbers by name from ``name=number,name=number``; a name may contain ``=``."""
    pairs = [part.rpartition("=") for part in text.split(",")]
    try:
        return {name: float(value) for name, _, value in pairs}
    except ValueError as error:
        raise ParameterError(f"{option} {text}: wanted strata and numbers, as rare=50,frequent=20") from error


app = typer.Typer(
    name="queries",
    cls=CommandGroup,
    rich_markup_mode=None,
    help="Sample queries from a corpus of mentions or by traffic, describe them, and plan their number.",
    epilog=help_example("queries power"),
    no_args_is_help=True,
    add_completion=False,
)
for command in (sample, traffic, profile, power):
    app.command(cls=Command, epilog=help_example(f"queries {command.__name__}"))(
        with_common_options(command, answers=True)
    )
