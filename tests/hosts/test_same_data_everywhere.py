"""The same run and judgments at every entrance: the same warnings, once."""

import re
import warnings

import ir_measures
import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
from trectools import TrecQrel, TrecRun

import vbterrier
from vbterrier.errors import DegenerateWarning, FileError, InputError, VBTerrierError
from vbterrier.evaluate import diagnose, leaderboard, release_gate
from vbterrier.settings import Execution, Inference

FEW = Inference(n_resamples=20)
TO_IR_MEASURES = {"qid": "query_id", "docno": "doc_id", "label": "relevance"}


def topics_of(run):
    return pd.DataFrame({"qid": run["qid"].unique(), "query": "words"})


def files_of(run, qrels, folder):
    vbterrier.frames.write_run(run, folder / "a.run", "a")
    vbterrier.frames.write_qrels(qrels, folder / "qrels.txt")
    return str(folder / "a.run"), str(folder / "qrels.txt")


def scored(runs, qrels, measure, **options):
    return vbterrier.score(runs, qrels, [measure], inference=FEW, **options).means().iloc[0, 0]


def by_pyterrier(run, qrels, measure):
    return pt.Experiment([run], topics_of(run), qrels, vbterrier.measures_from(measure)).iloc[0, 1]


def by_ir_measures(run, qrels, measure):
    (parsed,) = vbterrier.measures_from(measure)
    return ir_measures.calc_aggregate(
        [parsed], qrels.rename(columns=TO_IR_MEASURES), run.rename(columns=TO_IR_MEASURES)
    )[parsed]


# A run, its judgments, a measure and a folder for files -> the mean.
HOSTS = {
    "score": lambda run, qrels, measure, _: scored({"a": run}, qrels, measure),
    "score of files": lambda run, qrels, measure, folder: scored(*files_of(run, qrels, folder), measure),
    "memory": lambda run, qrels, measure, folder: scored(
        *files_of(run, qrels, folder), measure, execution=Execution(memory="1 GiB")
    ),
    "n_jobs": lambda run, qrels, measure, folder: scored(
        *files_of(run, qrels, folder), measure, execution=Execution(n_jobs=2)
    ),
    "Experiment": lambda run, qrels, measure, _: vbterrier.Experiment([run], topics_of(run), qrels, [measure]).iloc[
        0, 1
    ],
    "pt.Experiment": lambda run, qrels, measure, _: by_pyterrier(run, qrels, measure),
    "ir_measures": lambda run, qrels, measure, _: by_ir_measures(run, qrels, measure),
    "VBTrecEval": lambda run, qrels, measure, _: vbterrier.VBTrecEval.from_frames(run, qrels).get(measure),
    "VBTrecEval of files": lambda run, qrels, measure, folder: vbterrier.VBTrecEval(
        *(kind(path) for kind, path in zip((TrecRun, TrecQrel), files_of(run, qrels, folder), strict=True))
    ).get(measure),
}
OTHERS = {
    "compare": lambda run, qrels: vbterrier.compare({"a": run, "b": run.iloc[::-1]}, qrels, ["BNDCG@5"], inference=FEW),
    "rank_systems": lambda run, qrels: vbterrier.rank_systems({"a": run, "b": run}, qrels, "BNDCG@5"),
    "gate": lambda run, qrels: release_gate({"a": run}, qrels, "nDCG@5", baseline={"b": run}, margin=0.1),
    "leaderboard": lambda run, qrels: leaderboard({"a": run, "b": run}, qrels, "nDCG@5"),
}


def messages_of(call, *arguments):
    """The result and the warnings of this package."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", DegenerateWarning)
        result = call(*arguments)
    return result, [str(each.message) for each in caught]


def collection(n_topics=12, n_judged=30):
    """Rankings of 20 documents, of which 97 of the first 120 are judged."""
    draw, topics = np.random.default_rng(0), [f"t{topic}" for topic in range(n_topics)]
    judged = [(topic, f"D{place}", int(draw.integers(0, 3))) for topic in topics for place in range(n_judged)]
    ranked = [
        (topic, f"D{place}", 20.0 - rank) for topic in topics for rank, place in enumerate(draw.permutation(40)[:20])
    ]
    return pd.DataFrame(ranked, columns=["qid", "docno", "score"]), pd.DataFrame(
        judged, columns=["qid", "docno", "label"]
    )


# Documents and topics of another id space.

SPACES = {
    "passages": (lambda docno: f"{docno}#3", None, "without suffixes such as '#3', 97 of 120 ids of the run"),
    "prefix": (lambda docno: f"msmarco_{docno}", None, "without the prefix 'msmarco_', 97 of 120 ids of the run"),
    "judged passages": (None, lambda docno: f"{docno}-7", "without suffixes such as '-7'"),
    "other collection": (lambda docno: f"X{docno[1:]}", None, "another collection"),
}


def in_space(space):
    run, qrels = collection()
    of_run, of_qrels, words = SPACES[space]
    if of_run:
        run = run.assign(docno=run["docno"].map(of_run))
    if of_qrels:
        qrels = qrels.assign(docno=qrels["docno"].map(of_qrels))
    return run, qrels, words


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("host", HOSTS)
def test_documents_of_another_id_space_are_reported_once(host, space, tmp_path):
    run, qrels, words = in_space(space)
    _, messages = messages_of(HOSTS[host], run, qrels, "BNDCG@10", tmp_path)
    (message,) = [message for message in messages if "documents" in message]
    assert "0 of the first 120 documents of 12 topics are judged" in message
    assert words in message
    assert all(repr(ids.iloc[0]) in message for ids in (qrels["docno"],))


@pytest.mark.parametrize("call", OTHERS)
def test_each_run_of_another_id_space_is_reported_once(call):
    run, qrels, words = in_space("passages")
    _, messages = messages_of(OTHERS[call], run, qrels)
    assert [message[:8] for message in messages if words in message] == ["run 'a':", "run 'b':"]


def test_the_command_line_reports_documents_of_another_id_space_once(command, tmp_path):
    run, qrels, words = in_space("passages")
    paths = files_of(run, qrels, tmp_path)
    for options in ([], ["--memory", "1 GiB"]):
        _, out, err = command("score", paths[0], "-q", paths[1], "-m", "BNDCG@10", *options)
        # Warnings are caveats.
        assert out.count(words) == out.lower().count("caveat:") == 1
        assert err == ""
    _, out, _ = command("doctor", paths[0], "-q", paths[1])
    assert words in out
    assert "missing at random" not in out


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("n_judged", [0, 1, 2])
def test_the_share_of_judged_documents_decides(host, n_judged, tmp_path):
    """Of 12 x 10 documents, 1.2 are 1 %."""
    run, qrels = collection()
    odd = run.assign(docno="X" + run["docno"])
    first = qrels.groupby("qid")["docno"].first().to_dict()
    for place, topic in enumerate(run["qid"].unique()[:n_judged]):
        odd.loc[20 * place, "docno"] = first[topic]
    _, messages = messages_of(HOSTS[host], odd, qrels, "BNDCG@10", tmp_path)
    assert len([message for message in messages if "of the first 120 documents" in message]) == (n_judged < 2)


@pytest.mark.parametrize("host", HOSTS)
def test_judged_runs_are_not_reported(host, tmp_path):
    assert messages_of(HOSTS[host], *collection(), "BNDCG@10", tmp_path)[1] == []


@pytest.mark.parametrize("host", HOSTS)
def test_topics_of_another_id_space_are_refused_with_the_prefix(host, tmp_path):
    run, qrels = collection()
    run = run.assign(qid="2021_" + run["qid"])
    # PyTerrier refuses them itself.
    with pytest.raises((InputError, ValueError), match=r"without the prefix '2021_'|no overlap between the qids"):
        messages_of(HOSTS[host], run, qrels, "BNDCG@10", tmp_path)


@pytest.mark.parametrize("host", [host for host in HOSTS if host != "pt.Experiment"])
def test_most_topics_of_another_id_space_are_reported_with_the_prefix(host, tmp_path):
    run, qrels = collection()
    run = run.assign(qid=run["qid"].where(run["qid"] == "t3", "2021_" + run["qid"]))
    _, messages = messages_of(HOSTS[host], run, qrels, "BNDCG@10", tmp_path)
    (message,) = [message for message in messages if "11 topics are not in" in message]
    assert re.search("without the prefix '2021_', 11 of 11 ids of (the run|topics)", message)


def test_doctor_separates_runs_of_another_id_space():
    run, qrels, words = in_space("passages")
    diagnosis = diagnose({"odd": run, "good": collection()[0]}, qrels)
    assert [note for note in diagnosis.serious if words in note] == [note for note in diagnosis.notes if words in note]
    assert diagnosis.notes[0].startswith("run 'odd'") or any(note.startswith("run 'odd'") for note in diagnosis.notes)
    assert not any(words in note for note in diagnose({"good": collection()[0]}, qrels).notes)
    assert diagnosis.answer().verdict == (
        "Hardly a document of 'odd' is judged, which no measure can make up for: give runs whose document ids are "
        "those of the judgments."
    )
    # The other run decides which measures suit.
    bare = diagnose({"good": collection()[0]}, qrels)
    assert diagnosis.support == bare.support
    assert bare.answer().verdict.startswith("19.2% of the first 10 documents are unjudged: compare by ENDCG@10")
    alone = diagnose({"odd": run}, qrels).answer()
    assert (alone.verdict, alone.reason, alone.next) == (diagnosis.answer().verdict, "", "")


# Half a run.

# Hosts that compute nDCG(judged_only=True) here, not with engines of ir_measures.
OURS = [host for host in HOSTS if host not in ("pt.Experiment", "ir_measures")]


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize(("n_missing", "is_reported"), [(0, False), (1, False), (6, True)])
def test_a_run_of_half_the_topics_is_reported_once(host, n_missing, is_reported, tmp_path):
    run, qrels = collection()
    half = run[~run["qid"].isin([f"t{topic}" for topic in range(n_missing)])].reset_index(drop=True)
    # Experiment restricts the judgments to its topics, of which the run has a part.
    if host == "Experiment":
        messages = messages_of(
            lambda: vbterrier.Experiment([half], topics_of(run), qrels, ["BNDCG@10"], filter_by_topics=False)
        )
        assert any("6 of 12 topics" in note for note in messages[0].attrs["notes"]) == is_reported
    elif host == "pt.Experiment":
        messages = messages_of(pt.Experiment, [half], topics_of(run), qrels, vbterrier.measures_from("BNDCG@10"))
    else:
        messages = messages_of(HOSTS[host], half, qrels, "BNDCG@10", tmp_path)
    assert len([message for message in messages[1] if "no documents for 6 of 12 topics" in message]) == is_reported


def test_a_run_of_half_the_topics_is_named_where_scores_are_printed(command, tmp_path):
    run, qrels = collection()
    half = run[~run["qid"].isin([f"t{topic}" for topic in range(6)])]
    scores, _ = messages_of(lambda: vbterrier.score({"a": half}, qrels, ["BNDCG@10"], inference=FEW))
    assert any("run 'a': no documents for 6 of 12 topics" in note for note in scores.notes)
    assert "no documents for 6 of 12 topics" in str(scores)
    paths = files_of(half, qrels, tmp_path)
    _, out, err = command("score", paths[0], "-q", paths[1], "-m", "BNDCG@10")
    # The warning is a caveat, serious for half of the topics.
    assert out.count("6 of 12 topics") == 1
    assert "\nSerious caveat: Empty topics: Run 'a': no documents for 6 of 12 topics" in out
    assert "times)" not in out
    assert err == ""


# Ranks in the opposite order of scores, and tables that may hold several systems.


def of_table(host, table, qrels, measure, folder):
    """A host's mean of a run with further columns, which hosts that read files find there."""
    if "files" not in host and host not in ("memory", "n_jobs"):
        return HOSTS[host](table, qrels, measure, folder)
    paths = files_of(table[["qid", "docno", "score"]], qrels, folder)
    columns = table.assign(Q0="Q0", tag="t")[["qid", "Q0", "docno", "rank", "score", "tag"]]
    columns.to_csv(paths[0], sep=" ", header=False, index=False)
    if host == "VBTrecEval of files":
        return vbterrier.VBTrecEval(TrecRun(paths[0]), TrecQrel(paths[1])).get(measure)
    execution = {"memory": Execution(memory="1 GiB"), "n_jobs": Execution(n_jobs=2)}.get(host, Execution())
    return scored(*paths, measure, execution=execution)


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize(("sign", "n_warnings"), [(1, 0), (-1, 1)])
def test_ranks_that_contradict_scores_are_reported_once(host, sign, n_warnings, tmp_path):
    """Distances given as scores: 12 of 12 topics."""
    run, qrels = collection()
    table = run.assign(rank=run.groupby("qid").cumcount() + 1, score=run["score"] * sign)
    value, messages = messages_of(of_table, host, table, qrels, "BNDCG@10", tmp_path)
    assert len([each for each in messages if "ranks contradict scores in 12 of 12 topics" in each]) == n_warnings
    assert len(messages) == n_warnings
    assert value == pytest.approx(scored({"a": table.drop(columns="rank")}, qrels, "BNDCG@10"))


@pytest.mark.parametrize("host", ["score", "Experiment", "VBTrecEval"])
def test_a_column_that_may_name_systems_is_refused_by_its_name(host, tmp_path):
    """Topics of one system are not those of the other, so that nothing repeats."""
    run, qrels = collection()
    table = run.assign(model=np.where(run["qid"] < "t5", "A", "B"))
    with pytest.raises(InputError, match=r"^run.{0,11}: column 'model' has 2 values \('A', 'B'\)") as refused:
        HOSTS[host](table, qrels, "BNDCG@10", tmp_path)
    assert "\n" not in str(refused.value)
    bare = table.assign(model="A")
    assert HOSTS[host](bare, qrels, "BNDCG@10", tmp_path) == scored({"a": run}, qrels, "BNDCG@10")


def test_reading_a_table_that_may_hold_several_systems_warns(tmp_path):
    """PyTerrier and ir_measures would evaluate them as one run."""
    run, _ = collection()
    run.assign(model=np.where(run["docno"] < "D2", "A", "B")).to_csv(tmp_path / "two.csv", index=False)
    with pytest.warns(DegenerateWarning, match=r"two\.csv: column 'model' has 2 values .* evaluate it as one run"):
        vbterrier.read_run(tmp_path / "two.csv")


@pytest.mark.parametrize("filtered", [False, True])
def test_topics_without_judgments_are_counted_by_experiment(filtered):
    run, qrels = collection()
    judged = qrels[qrels["qid"] != "t3"]
    table, messages = messages_of(
        lambda: vbterrier.Experiment([run], topics_of(run), judged, ["P@1"], filter_by_qrels=filtered)
    )
    assert (
        messages == [] if filtered else messages == ["topics: 1 topic is not in qrels and is left out of means ('t3')"]
    )
    assert table.iloc[0, 1] == scored({"a": run[run["qid"] != "t3"]}, judged, "P@1")


# Labels below 0.


@pytest.mark.parametrize("host", OURS)
def test_condensed_lists_name_both_treatments_of_labels_below_zero(host, tmp_path):
    qrels = pd.DataFrame({"qid": "q1", "docno": ["d1", "d2", "d3"], "label": [-2, 1, 0]})
    run = pd.DataFrame({"qid": "q1", "docno": ["d1", "d2", "d3"], "score": [3.0, 2.0, 1.0]})
    value, messages = messages_of(HOSTS[host], run, qrels, "nDCG(judged_only=True)@10", tmp_path)
    (message,) = [message for message in messages if "label below 0" in message]
    assert round(value, 4) == 0.6309
    if host not in ("memory", "n_jobs"):
        assert "0.6309 and 1.0000 of " in message
    assert by_ir_measures(run, qrels, "nDCG(judged_only=True)@10") == 1.0
    kept = vbterrier.Condense(qrels)(run)
    assert by_ir_measures(kept, qrels, "nDCG@10") == pytest.approx(value)


@pytest.mark.parametrize("host", OURS)
def test_condensed_lists_without_labels_below_zero_have_no_warning(host, tmp_path):
    run, qrels = collection()
    value, messages = messages_of(HOSTS[host], run, qrels, "nDCG(judged_only=True)@10", tmp_path)
    assert messages == []
    assert value == pytest.approx(by_ir_measures(run, qrels, "nDCG(judged_only=True)@10"))


# Labels that are no grades.

MASKS = {
    "leading zeros": (["01", "11", "10"], "leading zeros, as '01'"),
    "large": (["1", "11000", "0"], "labels up to 11,000"),
}


@pytest.mark.parametrize("kind", MASKS)
@pytest.mark.parametrize("host", [*HOSTS, "Parquet", "JSON lines"])
def test_bit_masks_of_aspects_are_reported_once(host, kind, tmp_path):
    labels, words = MASKS[kind]
    qrels = pd.DataFrame({"qid": "q1", "docno": ["d1", "d2", "d3"], "label": labels, "iteration": "0"})
    run = pd.DataFrame({"qid": "q1", "docno": ["d1", "d2", "d3"], "score": [3.0, 2.0, 1.0]})
    paths = files_of(run, qrels.assign(label=1), tmp_path)
    (tmp_path / "qrels.txt").write_text("".join(f"q1 0 d{n} {label}\n" for n, label in enumerate(labels, 1)))
    qrels.to_parquet(tmp_path / "q.parquet")
    qrels.to_json(tmp_path / "q.jsonl", orient="records", lines=True)
    files = {
        "score of files": lambda: scored(*paths, "BNDCG@2"),
        "memory": lambda: scored(*paths, "BNDCG@2", execution=Execution(memory="1 GiB")),
        "n_jobs": lambda: scored(*paths, "BNDCG@2", execution=Execution(n_jobs=2)),
        "VBTrecEval of files": lambda: vbterrier.VBTrecEval(TrecRun(paths[0]), TrecQrel(paths[1])).get("BNDCG@2"),
        "Parquet": lambda: scored(paths[0], tmp_path / "q.parquet", "BNDCG@2"),
        "JSON lines": lambda: scored(paths[0], tmp_path / "q.jsonl", "BNDCG@2"),
    }
    _, messages = messages_of(files.get(host, lambda: HOSTS[host](run, qrels, "BNDCG@2", tmp_path)))
    assert len([message for message in messages if words in message]) == 1


@pytest.mark.parametrize("host", HOSTS)
def test_labels_as_text_are_not_reported(host, tmp_path):
    run, qrels = collection()
    _, messages = messages_of(HOSTS[host], run, qrels.assign(label=qrels["label"].astype(str)), "BNDCG@2", tmp_path)
    assert messages == []


# Contradicting judgments and topics.

LABELS = pd.DataFrame({"qid": "q1", "docno": ["a", "b", "a", "a", "b"], "label": [1, 0, 2, 0, 0], "iteration": "0"})


@pytest.mark.parametrize("host", HOSTS)
def test_contradicting_judgments_are_counted_and_refused(host, tmp_path):
    run = pd.DataFrame({"qid": "q1", "docno": ["a", "b"], "score": [2.0, 1.0]})
    of_file = host in ("score of files", "memory", "n_jobs")
    first, second = (str(tmp_path / f"qrels.txt:{line}") if of_file else f"row {line - 1}" for line in (1, 3))
    with pytest.raises(InputError) as refused:
        messages_of(HOSTS[host], run, LABELS, "BNDCG@10", tmp_path)
    assert f"labels 1 ({first}) and 2 ({second}); keep one judgment a document; 1 document has" in str(refused.value)


LINES = {
    "comments.txt": ("# 2 topics\n\nq1 0 a 1\nq1 0 aa 1\n\nq1 0 a 2\n", ":3", ":6"),
    "table.csv": ("qid,docno,label\nq1,a,1\nq2,a,0\nq1,a,2\n", ":2", ":4"),
    "lines.jsonl": ('{"qid": "q1", "docno": "a", "label": 1}\n{"qid": "q1", "docno": "a", "label": 2}\n', ":1", ":2"),
    # Both rows are those of one line.
    "nested.json": ('[{"qid": "q1", "docno": "a", "label": 1}, {"qid": "q1", "docno": "a", "label": 2}]', "", ""),
}


@pytest.mark.parametrize("name", LINES)
def test_contradicting_judgments_are_named_by_file_and_line(name, tmp_path):
    text, *lines = LINES[name]
    (tmp_path / name).write_text(text)
    first, second = (str(tmp_path / name) + line if line else f"row {n}" for n, line in enumerate(lines))
    run = pd.DataFrame({"qid": "q1", "docno": ["a"], "score": [1.0]})
    with pytest.raises(InputError) as refused:
        vbterrier.score({"a": run}, tmp_path / name, ["P@1"])
    assert f"labels 1 ({first}) and 2 ({second})" in str(refused.value)


@pytest.mark.parametrize(("rule", "expected"), [("first", [1, 0]), ("last", [0, 0]), ("max", [2, 0])])
def test_a_rule_chooses_one_of_contradicting_judgments(command, rule, expected, tmp_path):
    run = pd.DataFrame({"qid": "q1", "docno": ["b", "a"], "score": [2.0, 1.0]})
    paths = files_of(run, LABELS, tmp_path)
    with pytest.warns(DegenerateWarning, match=f"3 judgments are repeated and dropped: the {rule} label counts"):
        qrels = vbterrier.read_qrels(paths[1], contradictions=rule)
    assert qrels.sort_values("docno")["label"].tolist() == expected
    _, out, _ = command("score", paths[0], "-q", paths[1], "-m", "P@2", "--contradictions", rule, "-f", "csv")
    assert f",P@2,{0.5 if expected[0] else 0.0}" in out


def test_topics_with_two_texts_are_refused_with_and_without_pipelines(tmp_path):
    run, qrels = collection()
    topics = pd.DataFrame({"qid": ["t0", "t0", "t1"], "query": ["a", "b", "c"]})
    data = vbterrier.Data(topics=topics)
    for runs in ({"a": run}, {"a": pt.Transformer.from_df(run)}):
        with pytest.raises(InputError, match="query 't0' is duplicated"):
            vbterrier.score(runs, qrels, ["P@1"], data=data)
    with pytest.raises(InputError, match="query 't0' is duplicated"):
        vbterrier.Experiment([run], topics, qrels, ["P@1"])
    for name, content in (
        ("t.csv", topics.to_csv(index=False)),
        ("t.jsonl", topics.to_json(orient="records", lines=True)),
    ):
        (tmp_path / name).write_text(content)
        with pytest.raises(FileError, match="query 't0' is duplicated; keep one row per query"):
            vbterrier.read_topics(tmp_path / name)
    # The input of a reranker has rows of several documents for a topic.
    topics.assign(docno=["a", "b", "a"]).to_csv(tmp_path / "t.csv", index=False)
    assert len(vbterrier.read_topics(tmp_path / "t.csv")) == 3


# Runs without rows.


@pytest.mark.parametrize("options", [(), ("--memory", "1 GiB")])
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("empty.txt", ""),
        ("blank.txt", "\n\n"),
        ("comment.txt", "# a run\n"),
        ("header.csv", "qid,docno,score\n"),
        ("header.tsv", "qid\tdocno\tscore\n"),
        ("lines.jsonl", ""),
        ("nested.json", "{}"),
        ("queries.json", '{"t0": {}, "t1": {}}'),
    ],
)
def test_files_of_runs_without_rows_are_refused_with_their_name(command, name, text, options, tmp_path):
    run, qrels = collection()
    paths = files_of(run, qrels, tmp_path)
    (tmp_path / name).write_text(text)
    code, out, err = command("score", tmp_path / name, "-q", paths[1], "-m", "nDCG@10", *options)
    assert (code, out) == (1, "")
    assert name in err.splitlines()[-1]


def test_a_parquet_run_without_rows_is_refused(tmp_path):
    run, qrels = collection()
    run.iloc[:0].to_parquet(tmp_path / "none.parquet")
    for execution in (Execution(), Execution(memory="1 GiB")):
        with pytest.raises(VBTerrierError, match=r"none\.parquet"):
            vbterrier.score({"a": tmp_path / "none.parquet"}, qrels, ["nDCG@10"], execution=execution)
