"""Each remedy that a message names, run as it is named: by a call, by a command, and where neither has it."""

import re
import warnings
from pathlib import Path

import pandas as pd
import pyterrier as pt
import pytest

import vbterrier
from vbterrier import Data, remedies
from vbterrier.errors import InputError, VBTerrierError
from vbterrier.evaluate import diagnose, release_gate
from vbterrier.frames import ranked
from vbterrier.frames.ranking import Run
from vbterrier.stats.comparisons import comparisons

QRELS = pd.DataFrame({"qid": ["q1", "q1", "q2"], "docno": ["a", "b", "a"], "label": [1, 0, 1]})
WHOLE = pd.DataFrame({"qid": ["q1", "q1", "q2"], "docno": ["a", "b", "a"], "score": [2.0, 1.0, 1.0]})
PART = WHOLE[WHOLE["qid"] == "q1"].reset_index(drop=True)
TWICE = pd.concat([WHOLE, WHOLE.tail(1)], ignore_index=True)
VALUES = pd.DataFrame({"name": [*"aaabb"], "qid": [*"12312"], "measure": "AP", "value": [0.5, 0.2, 0.4, 0.1, 0.3]})
TEN = [f"q{topic}" for topic in range(10)]
FILES = {
    "qrels.csv": QRELS,
    "negative.csv": QRELS.assign(label=[1, -1, 1]),
    "fractions.csv": QRELS.assign(label=[0.5, 0.0, 1.0]),
    "twofold.csv": pd.concat([QRELS, QRELS.head(1).assign(label=2)]),
    "aspects.csv": pd.DataFrame({"qid": "q1", "iteration": ["1", "3"], "docno": ["a", "b"], "label": 1}),
    "ten.csv": pd.DataFrame({"qid": TEN, "docno": "a", "label": 1}),
    "whole.csv": WHOLE,
    "part.csv": PART,
    "twice.csv": TWICE,
    "systems.csv": pd.concat([WHOLE, WHOLE.assign(docno=["c", "d", "e"])]).assign(tag=[*"AAABBB"]),
    "all.csv": pd.DataFrame({"qid": TEN, "docno": "a", "score": 1.0}),
    "half.csv": pd.DataFrame({"qid": TEN[:5], "docno": "a", "score": 1.0}),
    "values.csv": VALUES,
}
SUBTOPICS = "".join(f'<subtopic number="{number}"/>' for number in range(1, 5))


@pytest.fixture
def in_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, frame in FILES.items():
        frame.to_csv(name, index=False)
    (tmp_path / "topics.xml").write_text(f'<w><topic number="q1">{SUBTOPICS}</topic></w>')


def scoring(*runs, qrels="qrels.csv", measure="nDCG@2"):
    """The same problem for a call and a command."""
    return (
        lambda qrels=qrels, **options: vbterrier.score([*runs], qrels, [measure], **options),
        ("score", *runs, "-q", qrels, "-m", measure),
    )


def gating(qrels):
    return (
        lambda **options: release_gate(
            {"a": "whole.csv"}, qrels, "nDCG@2", baseline={"b": "whole.csv"}, margin=0.1, **options
        ),
        ("gate", "new=whole.csv", "-b", "old=whole.csv", "-q", qrels, "-m", "nDCG@2", "--margin", "0.1"),
    )


CONDENSED = "nDCG(judged_only=True)@2"
# The remedy, its value if messages leave it to users, a call and a command with the problem.
PROBLEMS = {
    "system": ("SYSTEM", "tag", *scoring("systems.csv")),
    "one system": ("ONE_SYSTEM", None, *scoring("systems.csv")),
    "duplicates": ("FIRST_DUPLICATE", None, *scoring("twice.csv")),
    "common topics": ("COMMON_TOPICS", None, *scoring("whole.csv", "part.csv")),
    "all topics": ("ALL_TOPICS", None, *scoring("whole.csv", "part.csv")),
    "half a run": ("COMMON_TOPICS", None, *scoring("half.csv", qrels="ten.csv")),
    "values": ("COMMON_TOPICS", None, lambda **options: vbterrier.compare(VALUES, **options), None),
    "subtopics": ("SUBTOPICS", "topics.xml", *scoring("part.csv", qrels="aspects.csv", measure="ES@2")),
    "negative": ("NEGATIVE", None, *scoring("whole.csv", qrels="negative.csv", measure=CONDENSED)),
    "contradictions": ("FIRST_LABEL", None, *scoring("whole.csv", qrels="twofold.csv")),
    "fractions": ("UNIT", 0.5, *scoring("whole.csv", qrels="fractions.csv")),
    "fractions of a gate": ("UNIT", 0.5, *gating("fractions.csv")),
    "size": (
        "MAX_BYTES",
        10**6,
        lambda max_bytes=9: vbterrier.read_run("whole.csv", max_bytes=max_bytes),
        ("score", "whole.csv", "-q", "qrels.csv", "-m", "nDCG@2", "--max-bytes", "9"),
    ),
    "pipeline": (
        "TOPICS",
        pd.DataFrame({"qid": ["q1"], "query": "words"}),
        lambda **options: vbterrier.score(
            {"a": pt.Transformer.from_df(PART)}, PART.assign(label=1), ["nDCG@2"], **options
        ),
        None,
    ),
}


def messages(call, **options):
    """The error and the warnings of a call as text."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            call(**options)
        except VBTerrierError as error:
            return str(error)
    return "\n".join(str(each.message) for each in caught)


def test_each_remedy_has_a_problem():
    names = {name for name, value in vars(remedies).items() if isinstance(value, remedies.Remedy)}
    # Intents replace an argument, and are tested below.
    assert names == {remedy for remedy, *_ in PROBLEMS.values()} | {"INTENTS"}


@pytest.mark.parametrize("problem", PROBLEMS)
def test_a_call_takes_the_remedies_that_it_names(problem, in_files):
    remedy, value, call, _ = PROBLEMS[problem]
    name, legal = getattr(remedies, remedy).name, getattr(remedies, remedy).value
    before = messages(call)
    (place,) = {
        place
        for place, expected in re.findall(rf"(data=Data\(|read_qrels\(path, |){name}=(?:'([\w.]+)')?", before)
        if expected == (legal or (value if isinstance(value, str) and expected else ""))
    } or {None}
    assert place is not None, before
    setting = {name: legal or value}
    if place.startswith("data"):
        after = messages(call, data=Data(**setting))
    elif place:
        qrels = re.search(r"\w+\.csv", str(call.__defaults__))[0]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            read = vbterrier.read_qrels(qrels, **setting)
        after = messages(call, qrels=read)
    else:
        after = messages(call, **setting)
    assert f"{name}=" not in after, after


@pytest.mark.parametrize("problem", [name for name, (*_, command) in PROBLEMS.items() if command])
def test_a_command_takes_the_remedies_that_it_names(problem, in_files, command):
    remedy, value, _, arguments = PROBLEMS[problem]
    legal = getattr(remedies, remedy).value
    option = f"--{getattr(remedies, remedy).name.replace('_', '-')}"

    def output_of(*words):
        # Warnings are caveats of a table; the next step repeats options.
        _, out, err = command(*words)
        return err + out.partition("\nNext: ")[0]

    before = output_of(*arguments)
    assert re.search(rf"{option}(?![\w=-])" + (f" {legal}" if legal else ""), before), before
    after = output_of(*arguments, option, legal or value)
    assert "error" not in after
    assert option not in after


@pytest.mark.filterwarnings("ignore::vbterrier.errors.DegenerateWarning")
def test_doctor_names_calls_and_commands_that_take_the_remedy(in_files, command):
    for runs in (["whole.csv", "part.csv"], ["whole.csv", "twice.csv"]):
        notes = " ".join(diagnose({path: vbterrier.read_run(path) for path in runs}, QRELS).notes)
        ((call, name, value),) = re.findall(r"vbterrier\.(\w+)\(\.\.\., data=Data\((\w+)='(\w+)'\)\)", notes)
        assert getattr(vbterrier, call)(runs, QRELS, ["nDCG@2"], data=Data(**{name: value})) is not None
        _, out, _ = command("doctor", *runs, "-q", "qrels.csv")
        ((call, option, value),) = re.findall(r"vbterrier (\w+) (--[\w-]+) (\w+)", " ".join(out.split()))
        assert command(call, *runs, "-q", "qrels.csv", "-m", "nDCG@2", option, value)[0] == 0


def test_values_of_different_topics_name_the_comparison_of_common_ones():
    with pytest.raises(InputError, match=re.escape("vbterrier.compare(values, data=Data(on_topics='common'))")):
        comparisons(VALUES)
    assert len(vbterrier.compare(VALUES, data=Data(on_topics="common")).pairs) == 1


def test_commands_without_an_option_name_the_conversion_that_has_it(in_files, command):
    arguments = ["gate", "new=whole.csv", "-b", "old=whole.csv", "-m", "nDCG@2", "--margin", "0.1", "-q"]
    code, _, err = command(*arguments, "twofold.csv")
    assert code != 0
    remedy = re.search(r"vbterrier (convert FILE -o NEW --kind qrels --to trec --contradictions first)", err)[1]
    words = {"FILE": "twofold.csv", "NEW": "new.txt"}
    assert command(*" ".join(words.get(word, word) for word in remedy.split()).split())[0] == 0
    assert "error" not in command(*arguments, "new.txt")[2]


def test_a_remedy_that_a_call_has_not_is_replaced_by_one_that_any_caller_has():
    with pytest.raises(
        InputError, match=r"keep the best rank with vbterrier\.frames\.ranked\(run, duplicates='first'\)"
    ):
        Run(TWICE)
    with pytest.warns(vbterrier.errors.DegenerateWarning, match="1 repeated documents dropped"):
        assert len(ranked(TWICE, duplicates="first")) == len(WHOLE)


def test_intents_that_were_given_as_judgments_are_intents(in_files, command):
    Path("intents.tsv").write_text("qid\tentity_id\tprob\nq1\tParis\t1\n")
    tags = pd.DataFrame({"docno": PART["docno"], "entity_id": "Paris"})
    call, (*words, _, _, _, _) = scoring("part.csv", qrels="intents.tsv", measure="ES@2")
    assert "these are candidate intents: give them as intents=" in messages(call)
    assert "intents=" not in messages(call, qrels=None, intents="intents.tsv", tags=tags)
    tags.to_csv("tags.csv", index=False)
    assert "give them as --intents" in command(*words, "-q", "intents.tsv", "-m", "ES@2")[2]
    code, out, _ = command(*words, "--intents", "intents.tsv", "--tags", "tags.csv", "-m", "ES@2")
    assert (code, "ES@2" in out) == (0, True)
