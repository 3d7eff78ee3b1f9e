"""Optional columns under another name: refused, because a column that is not read would change nothing."""

import pandas as pd
import pytest

import vbterrier
from vbterrier.entities.rankers.base import QueryEntities
from vbterrier.errors import FileError, InputError
from vbterrier.frames.entities import TagFrame
from vbterrier.frames.files.reading import read_subtopics, read_tags
from vbterrier.intents.sources import from_diversity, to_diversity
from vbterrier.linking import DictionaryLinker
from vbterrier.settings import Data

pytestmark = pytest.mark.filterwarnings("ignore::vbterrier.errors.DegenerateWarning")
SHARES = ("prior", "score", "probability", "prob", "p", "Confidence")
ALIASES = pd.DataFrame({"alias": ["fox", "fox"], "entity_id": ["animal", "channel"]})
TAGS = pd.DataFrame({"docno": ["d1", "d2"], "entity_id": ["E1", "E2"]})
QRELS = pd.DataFrame({"qid": "q", "iteration": ["1", "2"], "docno": ["a", "b"], "label": 1})


def test_the_prior_of_an_alias_is_not_ignored():
    priors = [0.1, 0.9]
    for name in ("prior", "probability", "p", "Score"):
        with pytest.raises(InputError, match=f"aliases: column '{name}' is not read; .* rename it to 'score'"):
            DictionaryLinker(ALIASES.assign(**{name: priors}), id_space="x")
    counted = DictionaryLinker(ALIASES.assign(count=[1, 3]), id_space="x").link(["fox"]).frame
    # One more for each candidate of an alias, the default of smoothing: (1 + 1)/(4 + 2).
    assert counted.set_index("entity_id")["score"].to_dict() == pytest.approx({"animal": 1 / 3, "channel": 2 / 3})
    linker = DictionaryLinker(ALIASES.assign(score=priors, prior="of the encyclopedia"), id_space="x")
    assert linker.link(["fox"]).frame.set_index("entity_id")["score"].to_dict() == {"animal": 0.1, "channel": 0.9}


@pytest.mark.parametrize("name", SHARES)
def test_the_weight_of_a_tag_is_not_ignored(tmp_path, name):
    tags = TAGS.assign(**{name: [0.5, 0.25]})
    intents = pd.DataFrame({"qid": "q", "entity_id": ["E1", "E2"], "prob": 0.5})
    run = pd.DataFrame({"qid": "q", "docno": ["d1", "d2"], "score": [2.0, 1.0]})
    expected = f"column '{name}' is not read; if it is the weight, rename it to 'weight'"
    with pytest.raises(InputError, match=f"tags: {expected}"):
        vbterrier.score(run, None, ["ES@5"], intents=intents, tags=tags)
    tags.to_csv(tmp_path / "tags.tsv", sep="\t", index=False)
    tags.to_parquet(tmp_path / "tags.parquet")
    for path in ("tags.tsv", "tags.parquet"):
        with pytest.raises(FileError, match=rf"{path}: {expected}"):
            read_tags(tmp_path / path)
    right = tags.rename(columns={name: "weight"})
    assert vbterrier.score(run, None, ["ES@5"], intents=intents, tags=right).means().iloc[0, 0] == 0.375
    right.to_csv(tmp_path / "tags.tsv", sep="\t", index=False)
    assert read_tags(tmp_path / "tags.tsv")["weight"].tolist() == [0.5, 0.25]


HEADS = {
    "capitals": ["DOCNO", "ENTITY_ID", "WEIGHT", "QID", "TIED", "N_ABSTAINED"],
    "words": ["Doc ID", "Entity", "Weight_", "Qid", "Tied", "N Abstained"],
}


@pytest.mark.parametrize("heads", HEADS)
@pytest.mark.parametrize("form", ["frame", "csv", "tsv", "jsonl", "parquet", "registered"])
def test_columns_of_tags_are_known_in_any_case(tmp_path, heads, form):
    """A weight that is not read would be 1, a flag that is not read would not count."""
    tags = TAGS.assign(weight=[0.5, 0.25], qid="q", tied=[1, 0], n_abstained=[0, 3])
    named = tags.set_axis(HEADS[heads], axis=1)
    path = tmp_path / f"tags.{form}"
    if form == "parquet":
        named.to_parquet(path)
    elif form == "jsonl":
        named.to_json(path, orient="records", lines=True)
    elif form in ("csv", "tsv"):
        named.to_csv(path, sep="," if form == "csv" else "\t", index=False)
    if form == "registered":
        path = f"tags of {heads}"
        vbterrier.register_tags(path, named, replace=True)
    source = named if form == "frame" else path
    table = TagFrame(named if form in ("frame", "registered") else read_tags(path))
    assert (table.weight.tolist(), table.topics, table.tied.tolist(), table.n_abstained.tolist()) == (
        [0.5, 0.25],
        ["q"],
        [True, False],
        [0, 3],
    )
    intents = pd.DataFrame({"qid": "q", "entity_id": ["E1", "E2"], "prob": 0.5})
    run = pd.DataFrame({"qid": "q", "docno": ["d1", "d2"], "score": [2.0, 1.0]})
    assert vbterrier.score(run, None, ["ES@5"], intents=intents, tags=source).means().iloc[0, 0] == 0.375


def test_tags_in_capitals_are_converted_and_linked():
    named = TAGS.assign(weight=[1.0, 0.0]).set_axis(["DOCNO", "Entity", "Weight"], axis=1)
    intents = pd.DataFrame({"qid": "q", "entity_id": ["E1", "E2"]})
    rows = to_diversity(intents, named).values.tolist()
    assert rows == [["q", "E1", "d1", 1], ["q", "E2", "-", 0]]
    pool = pd.DataFrame({"qid": "q", "docno": ["d1", "d2"], "score": [2.0, 1.0]})
    links = vbterrier.entities.link_pool(pool, named).to_frame()
    assert links[["docno", "entity_id", "weight"]].values.tolist() == [["d1", "E1", 1.0], ["d2", "E2", 0.0]]


def test_other_columns_pass_through(tmp_path):
    other = TAGS.assign(mention="Fox", start=3, name="x", mentions=2, query="about foxes")
    assert TagFrame(other).weight.tolist() == [1.0, 1.0]
    assert TagFrame(other.assign(weight=0.5, score=9.0)).weight.tolist() == [0.5, 0.5]
    # A ranked list with tags has the scores of its documents.
    ranked = TAGS.assign(qid="q1", score=7.0, rank=0)
    assert TagFrame(ranked).weight.tolist() == [1.0, 1.0]
    other.to_csv(tmp_path / "tags.tsv", sep="\t", index=False)
    assert read_tags(tmp_path / "tags.tsv")["mention"].tolist() == ["Fox", "Fox"]


@pytest.mark.parametrize("name", ["weight", "score", "Probability", "prior"])
def test_probabilities_of_entities_and_subtopics_are_not_ignored(tmp_path, name):
    entities = pd.DataFrame({"qid": "q", "entity_id": ["1", "2"], name: [0.9, 0.1]})
    expected = f"column '{name}' is not read; if it is the prob, rename it to 'prob'"
    for call in (
        lambda: QueryEntities(entities, name="seeds"),
        lambda: from_diversity(QRELS.assign(**{name: [0.9, 0.1]})),
        lambda: from_diversity(QRELS, subtopics=entities),
    ):
        with pytest.raises(InputError, match=expected):
            call()
    entities.to_csv(tmp_path / "s.csv", index=False)
    with pytest.raises(FileError, match=expected):
        read_subtopics(tmp_path / "s.csv")
    run = pd.DataFrame({"qid": ["q"], "docno": ["a"], "score": [1.0]})
    with pytest.raises(InputError, match=expected):
        vbterrier.score(run, QRELS.assign(**{name: [0.9, 0.1]}), ["ES@5"])


def test_traffic_of_queries_is_not_ignored():
    qrels = pd.DataFrame({"qid": ["q1", "q2", "q3"], "docno": "d1", "label": 1})
    run = qrels[["qid", "docno"]].assign(score=1.0)
    traffic = pd.DataFrame({"qid": ["q1", "q2", "q3"], "probability": [1, 2, 3]})
    for frame in (traffic, traffic.assign(segment="x")):
        with pytest.raises(InputError, match="queries: column 'probability' is not read; if it is the weight"):
            vbterrier.evaluate.release_gate(run, qrels, "nDCG@10", baseline=run, margin=0.1, data=Data(queries=frame))
    with pytest.raises(InputError, match="queries: wanted a column weight, cluster, segment, drawn or covariate"):
        vbterrier.evaluate.release_gate(
            run,
            qrels,
            "nDCG@10",
            baseline=run,
            margin=0.1,
            data=Data(queries=traffic.rename(columns={"probability": "x"})),
        )


def test_priors_of_a_knowledge_base_are_not_attributes(tmp_path):
    entity = {"id": "Q1", "label": "Fox", "alias": "fox", "prior": 0.5}
    with pytest.raises(InputError, match=r"number 0: key 'alias' of 'Q1': wanted aliases, a list of texts or of pairs"):
        vbterrier.linking.build_kb(tmp_path / "x.kb", [entity], id_space="x")
    del entity["alias"]
    with pytest.raises(InputError, match=r"key 'prior' of 'Q1': wanted aliases with their priors"):
        vbterrier.linking.build_kb(tmp_path / "x.kb", pd.DataFrame([entity]), id_space="x")
    (tmp_path / "kb.tsv").write_text("id\tlabel\talias\tprobability\nQ1\tFox\tfox\t0.5\n")
    with pytest.raises(FileError, match="column 'probability' is not read; if it is the prior, rename it to 'prior'"):
        vbterrier.linking.kb_from_file(tmp_path / "x.kb", tmp_path / "kb.tsv", id_space="x")
    (tmp_path / "kb.tsv").write_text("id\tlabel\tscore\nQ1\tFox\t0.5\n")
    # Without aliases, it is an attribute.
    with vbterrier.linking.kb_from_file(tmp_path / "y.kb", tmp_path / "kb.tsv", id_space="x", progress=False) as kb:
        assert kb.attributes(["Q1"])["value"].tolist() == ["0.5"]
