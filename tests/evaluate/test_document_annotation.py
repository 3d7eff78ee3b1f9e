"""A few annotated documents: draws, sheets, and scores under gold tags."""

import numpy as np
import pandas as pd
import pytest

import vbterrier
from vbterrier.errors import DegenerateWarning, FileError, InputError, ParameterError
from vbterrier.evaluate import annotate_documents, annotated_scores
from vbterrier.evaluate.ambiguous_documents import ambiguous_documents
from vbterrier.settings import Inference

MEANINGS = {"a": "river bank water", "b": "money bank loan", "c": "bank holiday rest"}


class Bank:
    """Forty queries of three meanings, eight documents each, three systems."""

    def __init__(self):
        rng = np.random.default_rng(11)
        self.topics = pd.DataFrame([(f"q{n:02}", "bank") for n in range(40)], columns=["qid", "query"])
        rows = [
            (qid, entity, p, f"{MEANINGS[entity]}")
            for qid in self.topics["qid"]
            for entity, p in zip("abc", (0.5, 0.3, 0.2), strict=True)
        ]
        self.intents = pd.DataFrame(rows, columns=["qid", "entity_id", "prob", "name"])
        gold, tags, text, runs = [], [], [], {"first": [], "mixed": [], "random": []}
        for qid in self.topics["qid"]:
            about = rng.choice(["a", "b", "c", "NIL"], 8, p=[0.4, 0.3, 0.2, 0.1])
            docnos = [f"{qid}-{n}" for n in range(8)]
            for docno, one in zip(docnos, about, strict=True):
                gold.append((qid, docno, one))
                tags.append((docno, one if rng.random() < 0.6 else rng.choice(["a", "b", "c"])))
                text.append((docno, " ".join(rng.choice(MEANINGS.get(one, "other words here").split(), 4))))
            orders = {"first": np.argsort(about, kind="stable"), "mixed": np.arange(8), "random": rng.permutation(8)}
            for name, order in orders.items():
                runs[name] += [(qid, docnos[place], -rank) for rank, place in enumerate(order)]
        self.gold = pd.DataFrame(gold, columns=["qid", "docno", "entity_id"])
        self.tags = pd.DataFrame(tags, columns=["docno", "entity_id"]).query("entity_id != 'NIL'")
        self.documents = pd.DataFrame(text, columns=["docno", "text"])
        self.runs = {name: pd.DataFrame(run, columns=["qid", "docno", "score"]) for name, run in runs.items()}

    @property
    def inputs(self):
        return {"intents": self.intents, "documents": self.documents, "tags": self.tags}

    def drawn(self, n, **options):
        return annotate_documents(self.runs, self.topics, n=n, **self.inputs, **options)

    def annotated(self, items, **columns):
        """Rows with gold annotations where there are none."""
        gold = items[["qid", "docno"]].merge(self.gold, how="left")["entity_id"].to_numpy()
        return items.assign(annotation=np.where(items["annotation"] == "", gold, items["annotation"]), **columns)

    def scored(self, annotations, **options):
        return annotated_scores(self.runs, self.topics, annotations=annotations, **self.inputs, **options)

    @property
    def truth(self):
        tags = self.gold[self.gold["entity_id"] != "NIL"]
        measures = ["ES@3", "ES@5", "VB@3", "VB@5"]
        result = vbterrier.score(
            self.runs, measures=measures, intents=self.intents[["qid", "entity_id", "prob"]], tags=tags,
            inference=Inference(n_resamples=10),
        )  # fmt: skip
        return result.means()


@pytest.fixture(scope="module")
def bank():
    return Bank()


@pytest.mark.parametrize("design", ["topics", "documents"])
def test_all_documents_annotated_give_the_scores_of_gold_tags(bank, design):
    result = bank.scored(bank.annotated(bank.drawn(10_000, design=design).items))
    made = result.intervals.pivot(index="name", columns="measure", values="value")
    truth = bank.truth
    assert made.loc[truth.index, truth.columns].to_numpy() == pytest.approx(truth.to_numpy(), abs=1e-6)
    assert (result.intervals["high"] - result.intervals["low"]).max() < 1e-3
    assert result.n_annotated == result.n_documents
    assert vbterrier.score(
        bank.runs, measures=["ES@3"], intents=bank.intents[["qid", "entity_id", "prob"]], tags=result.tags
    ).means()["ES@3"].tolist() == pytest.approx(truth["ES@3"].tolist())  # fmt: skip


@pytest.mark.parametrize("design", ["topics", "documents"])
@pytest.mark.slow
def test_a_third_of_the_documents_gives_intervals_that_cover_and_orders(bank, design):
    truth, inside, wrong, n_ordered = bank.truth, [], 0, 0
    for seed in range(12):
        result = bank.scored(bank.annotated(bank.drawn(100, design=design, seed=seed).items), level=0.9)
        assert result.reason == ""
        ends = result.intervals.groupby(result.intervals["measure"].str[:2])[["low", "high"]].agg(["min", "max"])
        assert (ends["low"]["min"] >= [0, (1 - 2**0.5) / 2 - 1e-9]).all()
        assert (ends["high"]["max"] <= 1).all()
        exact = np.array(
            [truth.loc[name, measure] for name, measure in result.intervals[["name", "measure"]].to_numpy()]
        )
        inside += ((result.intervals["low"] <= exact) & (exact <= result.intervals["high"])).tolist()
        pairs = result.comparisons[result.comparisons["ordered"]]
        real = [truth.loc[a, m] - truth.loc[b, m] for a, b, m in pairs[["name_a", "name_b", "measure"]].to_numpy()]
        wrong, n_ordered = wrong + int((np.sign(real) != np.sign(pairs["diff"])).sum()), n_ordered + len(pairs)
    assert 0.8 < np.mean(inside) <= 1
    assert n_ordered > 10
    assert wrong <= 0.1 * n_ordered


def test_topics_are_drawn_whole_unless_they_are_large_or_few(bank):
    topics, documents = bank.drawn(100), bank.drawn(30)
    assert topics.items["design"].unique().tolist() == ["topics"]
    assert documents.items["design"].unique().tolist() == ["documents"]
    assert len(documents.items) == 30
    n_topics = topics.items["qid"].nunique()
    assert topics.items["inclusion"].unique() == pytest.approx([n_topics / 40])
    assert topics.items.groupby("qid").size().sum() == len(topics.items)
    # Those that a system shows among its first five.
    shown = pd.concat([run[run["score"] > -5] for run in bank.runs.values()])[["qid", "docno"]].drop_duplicates()
    assert topics.n_documents == documents.n_documents == len(shown)
    every = bank.drawn(320, design="documents").items
    assert every["inclusion"].tolist() == [1.0] * len(shown)


def test_inclusion_probabilities_are_those_of_the_draws(bank):
    result = ambiguous_documents(bank.runs, bank.topics, **bank.inputs, cutoffs=(3,))
    samples = [result.sample("documents", 60, seed) for seed in range(1000)]
    share, stated = np.mean([sample.drawn for sample in samples], axis=0), samples[0].inclusion
    # Documents that more systems show are drawn more often.
    levels = np.unique(stated.round(9))
    assert levels / levels[0] == pytest.approx(np.sqrt([1, 2, 3]))
    assert [share[stated.round(9) == level].mean() for level in levels] == pytest.approx(levels, abs=0.005)


@pytest.mark.slow
def test_further_draws_extend_the_sample(bank):
    for design in ("topics", "documents"):
        first = bank.annotated(bank.drawn(100, design=design, seed=4).items)
        task = bank.drawn(60, annotations=first, seed=4)
        assert task.n_new == len(task.items) - len(first)
        kept = task.items[task.items["annotation"] != ""]
        assert set(map(tuple, kept[["qid", "docno"]].to_numpy())) == set(map(tuple, first[["qid", "docno"]].to_numpy()))
        once = bank.drawn(len(first) + 60, design=design, seed=4).items
        assert task.items[["qid", "docno", "inclusion"]].equals(once[["qid", "docno", "inclusion"]])
        assert bank.scored(bank.annotated(task.items)).n_annotated == len(task.items)
        with pytest.raises(InputError, match="not those of a draw with seed=5"):
            bank.drawn(60, annotations=first, seed=5)
        both = [first, bank.annotated(task.items)]
        assert bank.scored(both).intervals.equals(bank.scored(both[::-1]).intervals)
        assert bank.scored(both).n_annotated == len(task.items)


def test_annotations_of_another_draw_are_refused(bank):
    first = bank.annotated(bank.drawn(100, design="documents", seed=4).items)
    fewer = {name: run for name, run in bank.runs.items() if name != "random"}
    with pytest.raises(InputError, match=r"is not among the first 5 documents|has the inclusion probability"):
        annotated_scores(fewer, bank.topics, annotations=first, **bank.inputs)
    with pytest.raises(InputError, match="of several draws the last sheet"):
        bank.scored(first.iloc[:80])


def test_only_people_are_gold(bank):
    items = bank.drawn(100, seed=1).items
    by_model = bank.annotated(items, source="model:gpt")
    result = bank.scored(by_model)
    assert (result.reason, result.n_annotated) == ("no annotations by people", 0)
    assert result.intervals["low"].isna().all()
    assert not result.comparisons["ordered"].any()
    assert "tags are mostly guesses: systems are not ordered" in repr(result)
    wrong = items.assign(annotation="c", source="model")
    by_people = bank.annotated(items, source="person:ann")
    for order in ([wrong, by_people], [by_people, wrong]):
        both = bank.scored(order)
        assert both.n_annotated == len(items)
        alone = both.tags.merge(bank.gold, on=["qid", "docno"], suffixes=("", "_gold"))
        alone = alone.merge(items[["qid", "docno"]])
        assert (alone["entity_id"] == alone["entity_id_gold"]).all()
    other = by_people.assign(annotation=np.where(by_people.index == 3, "NIL", by_people["annotation"]))
    other = other.assign(annotation=np.where(other.index == 4, "b;c", other["annotation"]))
    with pytest.raises(InputError, match="two annotations by people that differ"):
        bank.scored([by_people, other])


@pytest.mark.slow
def test_annotations_without_a_design_train_the_model_without_intervals(bank):
    items = bank.annotated(bank.drawn(160, design="documents").items)
    convenient = bank.scored(items[["qid", "docno", "annotation"]])
    assert convenient.reason == "the annotated documents are no random sample"
    assert convenient.intervals["high"].isna().all()
    truth = bank.truth["ES@3"]

    def error(result):
        made = result.intervals[result.intervals["measure"] == "ES@3"].set_index("name")["value"]
        return float(np.abs(made - truth).max())

    assert error(convenient) < error(bank.scored(None))
    few = bank.scored(bank.annotated(bank.drawn(59, design="documents").items))
    assert few.reason == "fewer than 60 annotated documents"
    some = bank.scored(bank.annotated(bank.drawn(50, design="topics").items))
    assert some.reason == "fewer than 8 annotated topics"


@pytest.mark.parametrize("text", ["1", " A ", "river bank water", "a"])
def test_candidates_are_named_by_number_id_or_name(bank, text):
    items = bank.drawn(160, design="documents").items
    assert items["candidates"].iloc[0] == "1 = river bank water (a); 2 = money bank loan (b); 3 = bank holiday rest (c)"
    rows = bank.annotated(items)
    rows.loc[rows.index[0], "annotation"] = text if text != " A " else " RIVER BANK WATER "
    tags = bank.scored(rows).tags
    first = tags[(tags["docno"] == rows["docno"].iloc[0]) & (tags["weight"] == 1)]
    assert first["entity_id"].tolist() == ["a"]


def test_several_candidates_and_none(bank):
    rows = bank.annotated(bank.drawn(160, design="documents").items)
    rows.loc[rows.index[:2], "annotation"] = ["1; c", "nil"]
    tags = bank.scored(rows).tags
    assert sorted(tags[tags["docno"] == rows["docno"].iloc[0]]["entity_id"]) == ["a", "c"]
    assert not (tags["docno"] == rows["docno"].iloc[1]).any()


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("annotation", "d", "annotation 'd' names no candidate of the query; wanted the number, id or name of one of"),
        ("annotation", "4", "annotation '4' names no candidate"),
        ("annotation", "a;NIL", "wanted candidates, or NIL alone"),
        ("annotation", ";", "wanted candidates, or NIL alone"),
        ("source", "robot", "source 'robot'; wanted person or model"),
        ("design", "clusters", "design 'clusters'; wanted topics or documents"),
        ("inclusion", "2", "inclusion '2'; wanted a probability above 0"),
        ("inclusion", "0.9", "has the inclusion probability 0.9, and"),
        ("docno", "nothing", "is not among the first 5 documents of a system"),
        ("qid", "q99", "is not among the first 5 documents of a system"),
    ],
)
def test_a_wrong_cell_is_named_with_its_row(bank, column, value, message):
    rows = bank.annotated(bank.drawn(80, design="documents").items).astype({"inclusion": str})
    rows.loc[rows.index[2], column] = value
    with pytest.raises(InputError, match=r"^annotations") as caught:
        bank.scored(rows)
    assert message in str(caught.value)


def test_a_number_that_is_the_id_of_another_candidate_is_refused(bank):
    intents = bank.intents.replace({"entity_id": {"a": "2", "b": "7", "c": "9"}})
    inputs = {**bank.inputs, "intents": intents, "tags": None}
    items = annotate_documents(bank.runs, bank.topics, n=80, design="documents", **inputs).items
    with pytest.raises(InputError, match="annotation '2' names several candidates"):
        annotated_scores(bank.runs, bank.topics, annotations=items.assign(annotation="2"), **inputs)


def test_rows_left_empty_are_reported(bank):
    rows = bank.annotated(bank.drawn(120, design="documents").items)
    rows.loc[rows.index[::10], "annotation"] = ""
    with pytest.warns(DegenerateWarning, match="12 of 120 drawn documents have no annotation"):
        result = bank.scored(rows)
    assert result.n_annotated == 108
    rows = bank.annotated(bank.drawn(120, design="topics").items)
    rows.loc[rows.index[0], "annotation"] = ""
    with pytest.warns(DegenerateWarning, match="1 of 16 drawn topics have documents without an annotation"):
        result = bank.scored(rows)
    assert result.n_annotated == len(rows) - 8


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl"])
def test_sheets_are_written_and_read_back(bank, tmp_path, suffix):
    task = bank.drawn(100)
    about = task.write(tmp_path / f"sheet{suffix}")
    assert about.name == "sheet.instructions.txt"
    rows = vbterrier.frames.files.reading.read_document_annotations(tmp_path / f"sheet{suffix}")
    assert rows[["qid", "docno"]].to_numpy().tolist() == task.items[["qid", "docno"]].to_numpy().tolist()
    done = tmp_path / "done.csv"
    bank.annotated(rows.assign(annotation="")).to_csv(done, index=False)
    assert bank.scored(done).intervals.equals(bank.scored(bank.annotated(task.items)).intervals)
    with pytest.raises(FileError, match="exists already, perhaps with annotations"):
        task.write(tmp_path / f"sheet{suffix}")


def test_the_number_of_further_documents_follows_the_half_width(bank):
    result = bank.scored(bank.annotated(bank.drawn(100, design="documents").items))
    es = result.intervals[result.intervals["measure"].str.startswith("ES")]
    half = float((es["high"] - es["low"]).max() / 2)
    assert result.more(half) == 0
    n, total = result.n_annotated, result.n_documents
    assert result.more(half / 2) == int(np.ceil(total / (1 + (total / n - 1) / 4))) - n
    assert result.more(1e-6) == total - n
    with pytest.raises(ParameterError, match="half_width"):
        result.more(2)
    with pytest.raises(InputError, match="no annotations by people"):
        bank.scored(None).more(0.1)


def test_probability_of_nil_is_never_covered(bank):
    intents = pd.concat(
        [bank.intents.assign(prob=bank.intents["prob"] * 0.8),
         pd.DataFrame({"qid": bank.topics["qid"], "entity_id": "NIL", "prob": 0.2, "name": "none"})]
    )  # fmt: skip
    rows = bank.annotated(bank.drawn(10_000).items)
    inputs = {**bank.inputs, "intents": intents}
    table = annotated_scores(bank.runs, bank.topics, annotations=rows, **inputs)
    values = table.intervals[table.intervals["measure"] == "ES@3"].set_index("name")["value"]
    assert values.to_dict() == pytest.approx((0.8 * bank.truth["ES@3"]).to_dict(), abs=1e-6)


def test_queries_without_results_score_zero(bank):
    runs = {name: run[run["qid"] != "q00"] for name, run in bank.runs.items()}
    items = annotate_documents(runs, bank.topics, n=1000, **bank.inputs).items
    table = annotated_scores(runs, bank.topics, annotations=bank.annotated(items), **bank.inputs)
    kept = vbterrier.score(
        runs, measures=["ES@3"], tags=bank.gold.query("entity_id != 'NIL'"),
        intents=bank.intents.query("qid != 'q00'")[["qid", "entity_id", "prob"]],
    ).means()["ES@3"]  # fmt: skip
    values = table.intervals[table.intervals["measure"] == "ES@3"].set_index("name")["value"]
    assert values.to_dict() == pytest.approx((kept * 39 / 40).to_dict(), abs=1e-6)


def test_probabilities_of_intents_follow_the_annotations(bank):
    result = bank.scored(bank.annotated(bank.drawn(10_000).items))
    shown = pd.concat([run[run["score"] > -5] for run in bank.runs.values()])[["qid", "docno"]].drop_duplicates()
    counts = shown.merge(bank.gold).groupby(["qid", "entity_id"]).size()
    for qid, part in list(result.intents.groupby("qid"))[:5]:
        n = [counts.get((qid, entity), 0) for entity in part["entity_id"]]
        assert part["estimate"].tolist() == pytest.approx((4 * part["prob"] + n) / (4 + sum(n)))
        assert part["estimate"].sum() == pytest.approx(1)
