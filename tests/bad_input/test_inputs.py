"""Input validation: the right number, or an error that names the place, what was wanted and the remedy.

Line by line of the specification's table, by every way in: the library's calls, ir_measures, pt.Experiment and the
command line. nDCG@10 of the specification's data is 0.815. How files are parsed is tested with the readers.
"""

import math

import ir_measures
import pandas as pd
import pyarrow as pa
import pyterrier as pt
import pytest
import pytrec_eval

import vbterrier
from vbterrier import BNDCG, score
from vbterrier.errors import DegenerateWarning, FileError, InputError, ParameterError
from vbterrier.frames.ranking import ranked
from vbterrier.settings import Data, Inference
from vbterrier.unjudged.distribution import bootstrap_distribution

QRELS = pd.DataFrame(
    {"qid": ["q1", "q1", "q1", "q2", "q2"], "docno": ["d1", "d2", "d3", "d4", "d5"], "label": [2, 1, 0, 1, 0]}
)
RUN = pd.DataFrame(
    {
        "qid": ["q1"] * 4 + ["q2"] * 2,
        "docno": ["d1", "d2", "d3", "d9", "d5", "d4"],
        "score": [3.0, 2.0, 1.0, 0.5, 2.0, 1.0],
    }
)
RIGHT = (1 + 1 / math.log2(3)) / 2
TO_IR_MEASURES = {"qid": "query_id", "docno": "doc_id", "label": "relevance"}


MEASURE = BNDCG @ 10

# The ways in: each gives the mean of this measure, which is nDCG@10 on these data.


def by_score(run, qrels):
    return (
        score({"mine": run}, qrels, [MEASURE], data=Data(on_topics="all"), inference=Inference(n_resamples=2))
        .means()
        .loc["mine", str(MEASURE)]
    )


def by_engine(run, qrels):
    return (
        score({"mine": run}, qrels, ["nDCG@10"], data=Data(on_topics="all"), inference=Inference(n_resamples=2))
        .means()
        .loc["mine", "nDCG@10"]
    )


def by_distribution(run, qrels):
    return bootstrap_distribution(run, qrels).mean.mean()


def by_ir_measures(run, qrels):
    run, qrels = run.rename(columns=TO_IR_MEASURES), qrels.rename(columns=TO_IR_MEASURES)
    return ir_measures.calc_aggregate([MEASURE], qrels, run)[MEASURE]


def by_experiment(run, qrels):
    topics = pd.DataFrame({"qid": ["q1", "q2"], "query": ["one", "two"]})
    return pt.Experiment([run], topics, qrels, [MEASURE], names=["mine"])[str(MEASURE)].item()


LIBRARY = {"score": by_score, "engine": by_engine, "distribution": by_distribution, "ir_measures": by_ir_measures}
ALL = {**LIBRARY, "experiment": by_experiment}

in_library = pytest.mark.parametrize("evaluated", LIBRARY.values(), ids=LIBRARY)
everywhere = pytest.mark.parametrize("evaluated", ALL.values(), ids=ALL)


@pytest.fixture
def stored(tmp_path):
    """Write frames, lines or bytes to files; their paths."""

    def write(**data):
        paths = []
        for name, rows in data.items():
            if isinstance(rows, pd.DataFrame):
                rows = (run_lines if "score" in rows else qrels_lines)(rows)  # noqa: PLW2901
            paths.append(tmp_path / (f"{name}.txt" if name == "qrels" else f"{name}.run"))
            paths[-1].write_bytes(rows if isinstance(rows, bytes) else "".join(rows).encode())
        return paths

    return write


@pytest.fixture
def scored(command, stored):
    """Score files of these rows with the command line: exit code, mean, lines of errors and warnings."""

    def run(run=RUN, qrels=QRELS, *options, measure=str(MEASURE)):
        mine, judgments = stored(mine=run, qrels=qrels)
        arguments = ["score", mine, "--qrels", judgments, "-m", measure, "-f", "csv", "--resamples", 2, *options]
        code, out, err = command(*arguments)
        return code, float(out.splitlines()[1].split(",")[2]) if code == 0 else out, err.splitlines()

    return run


def run_lines(run):
    return [f"{qid} Q0 {docno} 1 {score} tag\n" for qid, docno, score in run.itertuples(index=False)]


def qrels_lines(qrels):
    rows = qrels.assign(iteration="0")[["qid", "iteration", "docno", "label"]]
    return [" ".join(map(str, row)) + "\n" for row in rows.itertuples(index=False)]


def added(frame, **row):
    """A frame and one more row: the first with some cells replaced."""
    return pd.concat([frame, frame.iloc[:1].assign(**row)], ignore_index=True)


def replaced(frame, column, row, value):
    return frame.assign(**{column: [value if place == row else cell for place, cell in enumerate(frame[column])]})


def renamed(frame, old, new):
    """The run and the qrels, one of them with another name of a column."""
    return (
        data.rename(columns={old: new}) if name == frame else data for name, data in (("run", RUN), ("qrels", QRELS))
    )


# Right numbers.


def with_ids(columns, change):
    return [frame.assign(**{column: change(frame[column]) for column in columns}) for frame in (RUN, QRELS)]


def as_integers(column):
    """Ids q1, d1 as the numbers 1, 1."""
    return column.str[1:].astype(int)


GOOD = {
    "of the specification": (RUN, QRELS),
    "infinite scores": (RUN.assign(score=[math.inf, 2.0, 1.0, -math.inf, 2.0, -math.inf]), QRELS),
    "scores as text": (RUN.astype({"score": str}), QRELS),
    "negative labels": (RUN, QRELS.assign(label=[2, 1, -1, 1, -2])),
    **{
        f"rows in order {seed}": (RUN.sample(frac=1, random_state=seed), QRELS.sample(frac=1, random_state=seed + 9))
        for seed in range(5)
    },
    **{f"labels as {dtype}": (RUN, QRELS.astype({"label": dtype})) for dtype in (str, float, "Int64", "category")},
}
STORAGES = {
    "categorical": "category",
    "object": object,
    "string": "string",
    "string of Arrow": "string[pyarrow]",
    "ArrowDtype": pd.ArrowDtype(pa.string()),
}
for name, storage in STORAGES.items():
    stored_run, stored_qrels = (frame.astype({"qid": storage, "docno": storage}) for frame in (RUN, QRELS))
    GOOD[f"ids as {name}"] = (stored_run, stored_qrels)
    GOOD[f"ids of the qrels as {name}"] = (RUN, stored_qrels)
    GOOD[f"ids of the run as {name}"] = (stored_run, QRELS)
# Frames that PyTerrier changes.
GOOD_IN_LIBRARY = {
    **{f"numbers as {columns}": with_ids(columns, as_integers) for columns in (["qid"], ["docno"], ["qid", "docno"])},
    "blanks and accents": with_ids(["qid", "docno"], lambda column: " " + column + " é"),
}


@everywhere
@pytest.mark.parametrize(("run", "qrels"), GOOD.values(), ids=GOOD)
def test_good_frames_give_the_right_number(evaluated, run, qrels):
    assert pytest.approx(0.8155, abs=5e-5) == RIGHT
    assert evaluated(run, qrels) == pytest.approx(RIGHT, abs=1e-12)


@in_library
@pytest.mark.parametrize(("run", "qrels"), GOOD_IN_LIBRARY.values(), ids=GOOD_IN_LIBRARY)
def test_good_frames_give_the_right_number_in_the_library(evaluated, run, qrels):
    assert evaluated(run, qrels) == pytest.approx(RIGHT, abs=1e-12)


def test_numbers_become_text():
    run, qrels = with_ids(["qid"], as_integers)
    assert score(run, qrels, ["BNDCG@10"]).values["qid"].tolist() == ["1", "2"]
    assert bootstrap_distribution(run, qrels).topics == ["1", "2"]


def test_arrow_tables_give_the_right_number():
    run, qrels = pa.Table.from_pandas(RUN), pa.Table.from_pandas(QRELS)
    assert by_score(run, qrels) == by_distribution(run, qrels) == pytest.approx(RIGHT, abs=1e-12)


def test_polars_frames_give_the_right_number_or_an_error_with_the_remedy_in_ir_measures():
    polars = pytest.importorskip("polars")
    run, qrels = polars.from_pandas(RUN), polars.from_pandas(QRELS)
    assert by_score(run, qrels) == by_distribution(run, qrels) == pytest.approx(RIGHT, abs=1e-12)
    renamed = [frame.rename({k: v for k, v in TO_IR_MEASURES.items() if k in frame.columns}) for frame in (qrels, run)]
    with pytest.raises(InputError, match=r"convert polars frames with \.to_pandas\(\), or use vbterrier\.score"):
        ir_measures.calc_aggregate([MEASURE], *renamed)


@everywhere
def test_a_topic_that_a_run_lacks_scores_zero(evaluated):
    assert evaluated(RUN.iloc[:4], QRELS) == pytest.approx(0.5, abs=1e-12)


def test_a_topic_that_a_run_lacks_is_counted_in_the_output(command, stored):
    run, qrels = stored(mine=RUN.iloc[:4], qrels=QRELS)
    arguments = "score", run, "--qrels", qrels, "-m", str(MEASURE)
    head, row = (line.split(",") for line in command(*arguments, "-f", "csv")[1].splitlines()[:2])
    assert row[head.index("n_missing")] == "1"
    # Verdict, empty line, header, rule, row.
    lines = command(*arguments)[1].splitlines()
    assert lines[2].split()[-1] == "missing"
    assert lines[4].split()[-1] == "1"
    assert sum("mine retrieved nothing for 1 of 2 topics" in line for line in lines) == 1
    assert score(RUN.iloc[:4], QRELS, ["BNDCG@10"]).missing["n_missing"].tolist() == [1]


# Warnings.


def of_trec_eval(run, qrels):
    nested = {qid: dict(zip(rows["docno"], rows["label"].tolist(), strict=True)) for qid, rows in qrels.groupby("qid")}
    ranking = {qid: dict(zip(rows["docno"], rows["score"], strict=True)) for qid, rows in run.groupby("qid")}
    result = pytrec_eval.RelevanceEvaluator(nested, {"ndcg_cut_10"}).evaluate(ranking)
    return sum(values["ndcg_cut_10"] for values in result.values()) / len(nested)


TIED = {
    "all tied": RUN.assign(score=1.0),
    "tied beyond float32": RUN.assign(score=[1.0 + 1e-9, 1.0, 1.0 - 1e-9, 0.5, 1.0 + 1e-12, 1.0]),
}
DEGENERATE = {
    "judgments twice": (
        RUN,
        pd.concat([QRELS, QRELS.iloc[[0, 0, 4]]], ignore_index=True),
        "qrels: 3 repeated judgments with the same label count once",
    ),
    "topics without judgments": (
        pd.concat([RUN, RUN.iloc[:2].assign(qid="q8"), RUN.iloc[:1].assign(qid="q9")], ignore_index=True),
        QRELS,
        r"run( 'mine')?: 2 topics are not in qrels and are left out \('q8', 'q9'\)",
    ),
    **{name: (run, QRELS, r"run( 'mine')?: \d+% of the first 4 places are tied") for name, run in TIED.items()},
}


@everywhere
@pytest.mark.parametrize(("run", "qrels", "words"), DEGENERATE.values(), ids=DEGENERATE)
def test_degenerate_frames_are_warned_of_once(evaluated, run, qrels, words):
    is_tied = "tied" in words
    expected = of_trec_eval(run, QRELS) if is_tied else RIGHT
    assert not is_tied or abs(expected - RIGHT) > 0.01
    with pytest.warns(DegenerateWarning, match=words) as warned:
        assert evaluated(run, qrels) == pytest.approx(expected, abs=1e-9 if is_tied else 1e-12)
    assert len(warned) == 1


@in_library
def test_an_empty_run_scores_zero_and_warns_once(evaluated):
    with pytest.warns(DegenerateWarning, match=r"run( 'mine')?: empty; all 2 topics score 0") as warned:
        assert evaluated(RUN.iloc[:0], QRELS) == 0.0
    assert len(warned) == 1


def test_a_few_ties_are_not_worth_a_warning():
    docnos = [f"d{i:02}" for i in range(40)]
    qrels = pd.DataFrame({"qid": "q1", "docno": docnos, "label": [i % 2 for i in range(40)]})
    run = pd.DataFrame({"qid": "q1", "docno": docnos, "score": [0.0, 0.0, *range(-1, -39, -1)]})
    assert bootstrap_distribution(run, qrels, 40).mean[0] > 0.5
    run["score"] = [0.0, 0.0, 0.0, *range(-1, -38, -1)]
    with pytest.warns(DegenerateWarning, match="8% of the first 40 places are tied"):
        bootstrap_distribution(run, qrels, 40)


@pytest.mark.parametrize(
    ("run", "qrels", "message"),
    [
        (
            TIED["tied beyond float32"],
            QRELS,
            [
                "Caveat: Run 'mine': 83% of the top 10 documents are tied",
                "Caveat: Run 'mine': 3 adjacent scores differ only beyond 32-bit precision",
            ],
        ),
        (RUN, QRELS.assign(label=[2, 1, -1, 1, -2]), ["2 (count as 0)"]),
    ],
    ids=["ties and float32", "negative labels"],
)
def test_the_doctor_says_what_is_odd(command, stored, run, qrels, message):
    mine, judgments = stored(mine=run, qrels=qrels)
    code, out, err = command("doctor", mine, "--qrels", judgments)
    assert (code, err) == (0, "")
    assert all(words in out for words in message)


# Errors.

TWICE = {
    "below": (added(RUN, score=0.1), r"document 'd1' is duplicated for query 'q1', at ranks 1 and 5"),
    "tied": (added(RUN), r"document 'd1' is duplicated for query 'q1', at ranks 1 and 2"),
    "above": (added(RUN, score=9.0), r"document 'd1' is duplicated for query 'q1', at ranks 1 and 2"),
}
INVALID = {
    **{
        f"document twice, {name}": (run, QRELS, rf"^RUN: {words} .*keep the best rank with .*duplicates='first'")
        for name, (run, words) in TWICE.items()
    },
    "two labels": (RUN, added(QRELS, label=0),
        r"qrels: document 'd1' of query 'q1' has the labels 2 \(row 0\) and 0 \(row 5\); keep one judgment"),
    "no score": (replaced(RUN, "score", 1, math.nan), QRELS,
        "RUN column 'score': row 1 .*nan.* wanted a number; repair or drop"),
    "no label": (RUN, replaced(QRELS, "label", 1, math.nan),
        "qrels column 'label': row 1 .*nan.* wanted a number; repair or drop"),
    **{
        f"no {column} in the run": (
            replaced(RUN, column, 4, None),
            QRELS,
            f"RUN column '{column}': row 4 has no id; repair or drop",
        )
        for column in ("qid", "docno")
    },
    **{
        f"column {wrong}": (
            *renamed(frame, right, wrong),
            (
                rf"{frame.replace('run', 'RUN')}: wanted columns qid, docno, {'score' if frame == 'run' else 'label'}; "
                rf"missing {right}; found .*{wrong}.* Did you mean {wrong}\?"
            ),
        )
        for frame, right, wrong in (
            ("run", "score", "scores"),
            ("run", "docno", "docnum"),
            ("qrels", "label", "labels"),
            ("qrels", "docno", "docs"),
        )
    },
    "label that is not whole": (RUN, QRELS.assign(label=[2, 1, 0.5, 1, 0]),
        r"qrels column 'label': row 2 .*0\.5.* wanted a whole number; map graded or fractional judgments"),
    "label that is no number": (RUN, QRELS.assign(label=["2", "good", "0", "1", "0"]),
        "qrels column 'label': row 1 .*'good'.* wanted a number"),
    "no topic in common": (
        pd.DataFrame({"qid": list("uvwx"), "docno": "d1", "score": 1.0}),
        pd.DataFrame({"qid": ["q1", "q2", "q3", "q4"], "docno": "d1", "label": 1}),
        r"no topic in common: RUN has 'u', 'v', 'w', \.\.\.; qrels has 'q1', 'q2'(, 'q3', \.\.\.)?; look for",
    ),
    **{
        name: (run, QRELS, "without (the prefix|suffixes)|trailing blanks or another Unicode form")
        for name, run in {
            "trailing blank": RUN.assign(qid=RUN["qid"] + " "),
            "another Unicode form": RUN.assign(qid=RUN["qid"].str.replace("q", "q\u0301")),
            "another prefix": RUN.assign(qid="topic-" + RUN["qid"]),
            "capitals": RUN.assign(qid=RUN["qid"].str.upper()),
        }.items()
    },
}  # fmt: skip
INVALID_IN_LIBRARY = {
    **{
        f"no {column} in qrels": (
            RUN,
            replaced(QRELS, column, 4, None),
            f"qrels column '{column}': row 4 has no id; repair or drop",
        )
        for column in ("qid", "docno")
    },
    "no judgments": (RUN, QRELS.iloc[:0], "qrels: no rows; a run is evaluated over the topics of this frame"),
}
for column in ("qid", "docno"):
    (run, qrels), (number_run, number_qrels) = (
        with_ids([column], change) for change in (lambda column: column.str[1:], as_integers)
    )
    for side, *frames, kinds in (
        ("RUN", number_run, qrels, ("text", "integers")),
        ("qrels", run, number_qrels, ("integers", "text")),
    ):
        INVALID_IN_LIBRARY[f"numbers in {side}, {column}"] = (
            *frames,
            (
                rf"qrels column '{column}' holds {kinds[0]}, RUN column '{column}' holds {kinds[1]}: they can never "
                rf"match; cast {side} column '{column}' with .astype\(str\)"
            ),
        )


def require_error(evaluated, run, qrels, words):
    """The words call the run RUN, which has the name 'mine' where names are given."""
    with pytest.raises(InputError, match=words.replace("RUN", "run( 'mine')?")):
        evaluated(run, qrels)


@everywhere
@pytest.mark.parametrize(("run", "qrels", "words"), INVALID.values(), ids=INVALID)
@pytest.mark.filterwarnings("ignore:Experiment Pipeline Validation Report:UserWarning")
@pytest.mark.filterwarnings("ignore:.*judged documents have grade 0")
def test_invalid_frames_are_an_error_with_the_place_and_the_remedy(evaluated, run, qrels, words):
    require_error(evaluated, run, qrels, words)


@in_library
@pytest.mark.parametrize(("run", "qrels", "words"), INVALID_IN_LIBRARY.values(), ids=INVALID_IN_LIBRARY)
def test_invalid_frames_are_an_error_in_the_library(evaluated, run, qrels, words):
    require_error(evaluated, run, qrels, words)


@pytest.mark.parametrize(("run", "words"), TWICE.values(), ids=TWICE)
def test_first_keeps_the_best_rank_gives_the_right_number_and_warns_once(scored, run, words):
    with pytest.warns(DegenerateWarning, match="run 'mine': 1 repeated documents dropped") as warned:
        averages = score({"mine": run}, QRELS, [MEASURE], data=Data(duplicates="first")).means()
    assert len(warned) == 1
    assert averages.loc["mine", str(MEASURE)] == pytest.approx(RIGHT, abs=1e-12)
    code, value, message = scored(run, QRELS, "--duplicates", "first")
    assert (code, value) == (0, pytest.approx(RIGHT, abs=1e-12))
    assert message == ["vbterrier: warning: run 'mine': 1 repeated documents dropped, each at its lower rank"]


def test_a_run_of_ranks_alone_is_in_the_order_of_its_ranks():
    run = pd.DataFrame({"qid": "q1", "docno": ["a", "b", "c"], "rank": [3, 1, 2]})
    assert ranked(run)["docno"].tolist() == ["b", "c", "a"]
    with pytest.raises(InputError, match="wanted columns qid, docno, score; missing score; found qid, docno"):
        ranked(run.drop(columns="rank"))


# Several measures, diversity, generators.


SUBTOPICS = pd.DataFrame(
    {"qid": "q1", "iteration": ["1", "2", "2", "3"], "docno": ["d1", "d1", "d2", "d3"], "label": [1, 0, 1, 1]}
)
ONE = RUN.iloc[:4]


@pytest.mark.filterwarnings("ignore:an interval over topics:vbterrier.errors.DegenerateWarning")
@pytest.mark.filterwarnings("ignore:.*judged documents have grade 0")
def test_diversity_judgments_for_adhoc_measures_are_an_error_with_the_remedy():
    words = (
        r"document 'd1' of query 'q1' has the labels 1 \(row 0\) and 0 \(row 1\); .*vbterrier\.frames\.flatten_qrels"
    )
    for name, evaluated in ALL.items():
        if name != "engine":
            with pytest.raises(InputError, match=words):
                evaluated(ONE, SUBTOPICS)
    assert by_score(ONE, vbterrier.frames.flatten_qrels(SUBTOPICS)) == pytest.approx(1.0)


@pytest.mark.filterwarnings("ignore:an interval over topics:vbterrier.errors.DegenerateWarning")
def test_diversity_judgments_given_to_ndcg_are_warned_of_once_with_what_to_use():
    with pytest.warns(
        DegenerateWarning, match="only the last one would count; flatten them with .*flatten_qrels, or use"
    ) as record:
        score(ONE, SUBTOPICS, ["nDCG@10"])
    assert len([item for item in record if "flatten" in str(item.message)]) == 1


def test_generators_of_rows_are_read_once_for_all_measures_of_a_call_in_ir_measures():
    run = (ir_measures.ScoredDoc(*row) for row in RUN.itertuples(index=False))
    qrels = (ir_measures.Qrel(*row) for row in QRELS.itertuples(index=False))
    measures = [MEASURE, MEASURE(stat="median"), ir_measures.nDCG @ 10]
    assert list(ir_measures.calc_aggregate(measures, qrels, run).values()) == pytest.approx([RIGHT] * 3)


# Measures and their parameters.

MISTAKES = {
    "BNDCG@10.0": "wanted a whole number",
    "nDCG@0": "cutoff 0: wanted a whole number of at least 1",
    "bndcg@10": "no measure is called 'bndcg'. Did you mean BNDCG?",
    "BNDCG(priors='pool')@10": "Did you mean prior?",
    "nDCG(gain='log2')@10": "Did you mean gains?",
    "BNDCG(stat='average')@10": "'mode', 'std', 'lo', 'hi', 'variance_part', or a percentile such as 'q5'",
    "BNDCG@10@5": "a measure is written as Name, Name@10 or Name(parameter=value,...)@10",
    "": "a measure is written as",
    "BNDCG(prior=pool)@10": "values are numbers, quoted texts, True or False",
}


@pytest.mark.parametrize(("text", "words"), MISTAKES.items(), ids=MISTAKES)
def test_a_measure_that_does_not_exist_is_a_usage_error_with_what_is_legal(text, words, scored):
    with pytest.raises(ParameterError) as refused:
        score(RUN, QRELS, [text])
    assert words in str(refused.value)
    assert isinstance(refused.value, ValueError)
    code, out, message = scored(RUN, QRELS, measure=text)
    assert (code, out, len(message)) == (2, "", 1)
    assert message[0].startswith("vbterrier: error: ")
    assert words in message[0]


# Priors.

PRIORS = {
    "sums to more": ({0: 0.5, 1: 0.6}, "sum to 1, found 1.1"),
    "sums to less": ({0: 0.5, 1: 0.25}, "sum to 1, found 0.75"),
    "off by more than rounding": ({0: 0.5, 1: 0.50001}, "sum to 1"),
    "empty": ({}, "sum to 1, found 0"),
    "a grade the pool lacks": ({0: 0.5, 3: 0.5}, "prior names grades that qrels lacks: 3; it has 0, 1, 2"),
    "a grade the pool lacks, worth nothing": ({0: 1.0, 9: 0.0}, "prior names grades that qrels lacks: 9"),
}


@pytest.mark.parametrize(("prior", "words"), PRIORS.values(), ids=PRIORS)
def test_a_prior_that_is_no_distribution_over_the_grades_is_an_error(prior, words, scored):
    with pytest.raises(InputError) as refused:
        bootstrap_distribution(RUN, QRELS, prior=prior)
    assert words in str(refused.value)
    for call in (
        lambda: score(RUN, QRELS, [BNDCG(prior=prior) @ 10]),
        lambda: ir_measures.calc_aggregate(
            [BNDCG(prior=prior) @ 10], QRELS.rename(columns=TO_IR_MEASURES), RUN.rename(columns=TO_IR_MEASURES)
        ),
    ):
        with pytest.raises(InputError) as refused:
            call()
        assert words in str(refused.value)
    code, _, message = scored(RUN, QRELS, measure=f"BNDCG(prior={prior})@10")
    assert (code, len(message)) == (1, 1)
    assert words in message[0]


def test_a_prior_that_sums_to_one_but_for_rounding_is_silently_made_to():
    exact = bootstrap_distribution(RUN, QRELS, prior={0: 0.5, 1: 0.5})
    rounded = bootstrap_distribution(RUN, QRELS, prior={0: 0.5, 1: 0.5000005})
    assert rounded.prob.sum(axis=1) == pytest.approx(1.0, abs=1e-15)
    assert rounded.mean == pytest.approx(exact.mean, abs=1e-6)


# Probabilities of intents.


def test_topics_without_intents_are_an_error_that_lists_them_unless_asked_otherwise(command, stored, tmp_path):
    run, qrels, intents, tags = stored(mine=RUN, qrels=QRELS, intents="q1\tA\t1.0\n", tags="d1\tA\n")

    def es(undefined):
        measure = f"ES(intents='{intents}',tags='{tags}'{undefined})@1"
        return command("score", run, "-q", qrels, "-f", "csv", "-m", measure, "--resamples", 2)

    code, _, err = es("")
    assert code == 1
    assert "is undefined for 1 topic ('q2'); ask for undefined='zero' or 'skip'" in err
    for undefined, expected in (("zero", 0.5), ("skip", 1.0)):
        code, out, _ = es(f",undefined='{undefined}'")
        assert code == 0
        assert f'@1",{expected},' in out or f"@1,{expected}," in out


def test_errors_are_values_errors_so_that_anybody_can_catch_them():
    for error in (InputError, ParameterError, FileError):
        assert issubclass(error, ValueError)
        assert issubclass(error, vbterrier.errors.VBTerrierError)
