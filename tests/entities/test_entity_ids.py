"""One meaning of an entity's id at every entrance of pools: addresses, names, and no entity in each spelling."""

import gzip
import json
import warnings

import numpy as np
import pandas as pd
import pytest

import vbterrier
from vbterrier.entities import EntitySelector, NeuralReranker
from vbterrier.entities.fingerprints import of_texts, of_vectors
from vbterrier.entities.pool import link_pool, read_links, write_links
from vbterrier.entities.rankers.consensus import ConsensusEntities
from vbterrier.entities.rankers.similarity import entity_texts, raw_vectors
from vbterrier.errors import DegenerateWarning, InputError
from vbterrier.frames.entity_coverage import Selection, at_cutoff, reached_shares
from vbterrier.frames.id_spaces import entity_ids
from vbterrier.frames.ids import column_ids
from vbterrier.frames.linked_pool import LinkedPool
from vbterrier.linking import DictionaryLinker, EntityPriors, build_kb

ALWAYS_NIL = [
    "NIL",
    "NIL0012",
    "<NIL>",
    "--NME--",
    "--OOE--",
    "<unk_wiki>",
    "notInWiki",
    "http://aksw.org/notInWiki/Tom",
    "",
]
SOMETIMES_NIL = ["null", "NULL", "None", "NA", "O", "_"]
RUN = pd.DataFrame({"qid": "q1", "docno": ["d1", "d2", "d3"], "score": [3.0, 2.0, 1.0]})
QRELS = pd.DataFrame({"qid": "q1", "docno": ["d1", "d2"], "label": 1})


def tags_of(*entities):
    return pd.DataFrame({"docno": [f"d{n + 1}" for n in range(len(entities))], "entity_id": entities})


def entities_of(tags):
    return link_pool(RUN, tags).entities.text.to_pylist()


@pytest.mark.parametrize("nil", ALWAYS_NIL)
@pytest.mark.parametrize("entity", ["Q42", "Paris", "http://dbpedia.org/resource/Paris"])
def test_nil_is_no_entity(nil, entity):
    pool = link_pool(RUN, tags_of(entity, nil, entity), QRELS)
    assert (len(pool.entities), len(pool), np.diff(pool.starts).tolist()) == (1, 3, [1, 0, 1])
    frame = link_pool(RUN, tags_of(entity, entity, entity)).to_frame()
    again = LinkedPool.from_frame(frame.assign(entity_id=[entity, nil, entity]))
    assert np.diff(again.starts).tolist() == [1, 0, 1]


@pytest.mark.parametrize("nil", SOMETIMES_NIL)
def test_null_is_an_entity_among_names_only(nil):
    assert entities_of(tags_of("Q42", nil)) == ["Q42"]
    assert entities_of(tags_of("http://de.dbpedia.org/resource/Berlin", nil)) == ["Berlin"]
    for others, entities in (("Paris",), sorted(["Paris", nil])), ((nil,), [nil]):
        with pytest.warns(
            DegenerateWarning, match=rf"'{nil}' \(. rows?\) is treated as an entity, .* remove these rows"
        ):
            assert entities_of(tags_of(nil, *others)) == entities


@pytest.mark.parametrize(
    ("spellings", "entity"),
    [
        (["http://www.wikidata.org/entity/Q42", "wd:Q42", "Q42"], "Q42"),
        (["<http://www.wikidata.org/entity/Q42>", "q42", "https://www.wikidata.org/wiki/Q42"], "Q42"),
        (["dbr:Michael_Jordan", "Michael_Jordan", "Michael Jordan"], "Michael_Jordan"),
        (["http://dbpedia.org/resource/Caf%C3%A9", "Caf%C3%A9", "Café"], "Café"),
        (["https://en.wikipedia.org/wiki/New_York", "New York", "New%20York"], "New_York"),
        (["//m.wikidata.org/wiki/Q42", "wikidata:Q42", "https://www.wikidata.org/wiki/Q42?uselang=de#P31"], "Q42"),
        (
            ["en.wikipedia.org/wiki/New_York#Climate", "//en.wikipedia.org/wiki/New_York?oldid=3", "New York"],
            "New_York",
        ),
        (["https://en.wikipedia.org/wiki/Who%3F", "http://en.wikipedia.org/wiki/Who?", "Who%3F"], "Who?"),
    ],
)
def test_spellings_of_a_space_are_one_entity(spellings, entity):
    pool = link_pool(RUN, tags_of(*spellings))
    assert pool.entities.text.to_pylist() == [entity]
    # Each spelling finds the entity, and the vectors and texts of another spelling.
    assert pool.entities_of(column_ids(pd.Series(spellings, dtype=object), "ids")).tolist() == [0, 0, 0]
    for spelling in (each for each in spellings if "?" not in each and not each.startswith(("//", "en."))):
        assert raw_vectors({spelling: [1.0, 2.0]}, [entity])[1].tolist() == [True]
        assert entity_texts([entity], {spelling: "its text"}) == ["its text"]


@pytest.mark.parametrize(
    ("spellings", "entity"),
    [
        (["http://www.wikidata.org/entity/q42", "WD:Q42", "https://www.wikidata.org/wiki/Item:Q42"], "Q42"),
        (
            [
                "http://www.wikidata.org/wiki/Special:EntityData/Q42.json",
                "http://www.wikidata.org/wiki/Special:EntityData/Q42",
                "HTTPS://www.Wikidata.org/entity/Q42/",
            ],
            "Q42",
        ),
        (
            [
                "https://en.wikipedia.org/w/index.php?title=New_York&oldid=3",
                "https://en.Wikipedia.org/w/index.php?title=New%20York",
                "New York",
            ],
            "New_York",
        ),
    ],
)
def test_addresses_of_data_and_of_versions_are_those_of_the_entity(spellings, entity):
    assert entities_of(tags_of(*spellings)) == [entity]


def test_names_of_no_known_space_stay_apart():
    assert entities_of(tags_of("Michael Jordan", "Michael_Jordan", "michael jordan")) == [
        "Michael Jordan",
        "Michael_Jordan",
        "michael jordan",
    ]


def relevant_coverage(run, pool):
    return at_cutoff(reached_shares(Selection(pool, run), pool.relevant()), 2).item()


def test_entity_runs_match_addresses():
    pool = link_pool(RUN, tags_of("Michael_Jordan", "Chicago"), QRELS)
    run = pd.DataFrame({"qid": "q1", "docno": ["dbr:Michael_Jordan", "dbr:Chicago"], "score": [2.0, 1.0]})
    assert relevant_coverage(run, pool) == 1.0
    # Names of an unknown space take the space of the addresses that they are compared with.
    blanks = link_pool(RUN, tags_of("Michael Jordan", "Chicago"), QRELS)
    assert relevant_coverage(run, blanks) == 1.0


def test_no_entity_in_an_entity_run_is_reported():
    pool = link_pool(RUN, tags_of("Q42", "Q7"), QRELS)
    run = pd.DataFrame({"qid": "q1", "docno": ["<NIL>", "Q42", "Q7"], "score": [3.0, 2.0, 1.0]})
    with pytest.warns(DegenerateWarning, match=r"1 id is NIL, has a rank and is reached by nothing \('<NIL>'\); rem"):
        assert relevant_coverage(run, pool) == 0.5


@pytest.mark.parametrize("spelling", ["wd:Q42", "q42", "<http://www.wikidata.org/entity/Q42>", " Q42 "])
def test_names_of_entities_have_ids_of_their_space(tmp_path, spelling):
    aliases = pd.DataFrame({"alias": ["Adams", "NY"], "entity_id": [spelling, "Q60"], "score": [1.0, 1.0]})
    both = pd.concat([aliases, aliases.head(1).assign(entity_id="Q42")])
    with pytest.raises(InputError, match=r"alias 'Adams' of entity .* is in rows 0 and 2; keep one"):
        DictionaryLinker(both, id_space="wikidata")
    entities = [
        {"id": "Q42", "label": "Douglas Adams", "aliases": ["Adams"], "redirects": ["wd:Q43"]},
        {"id": spelling, "aliases": ["DNA"]},
        {"id": "Q7", "label": "Adams"},
    ]
    options = {"id_space": "wikidata", "priors": EntityPriors(popularity={spelling: 8, "wd:Q7": 2}), "progress": False}
    with build_kb(tmp_path / "a.kb", entities, **options) as kb:
        values = kb.lookup(["dna", "adams"])[["mention", "entity_id"]].to_numpy().tolist()
        assert values == [["dna", "Q42"], ["adams", "Q42"], ["adams", "Q7"]]
        assert kb.names([spelling, "wd:Q43", "dbr:Q43"]) == ["Douglas Adams", "Douglas Adams", ""]
        assert kb.resolve(["wd:Q43", "Q9"]) == ["Q42", "Q9"]


@pytest.mark.parametrize("nil", ["NIL", "<NIL>", "--NME--", "NIL0012"])
def test_no_entity_and_ids_of_another_space_have_no_names(tmp_path, nil):
    aliases = pd.DataFrame({"alias": ["Tom", "NY"], "entity_id": [nil, "Q60"]})
    for space in ("wikidata", "people"):
        with pytest.raises(
            InputError, match=rf"aliases: row 0 \(alias 'Tom'\): the id '{nil}' means no entity, .*leave"
        ):
            DictionaryLinker(aliases, id_space=space)
    for entity, message in ((nil, "means no entity"), ("dbr:Tom", "is of dbpedia, wanted ids of wikidata")):
        with pytest.raises(InputError, match=f"entities: number 1: the id '{entity}' {message}"):
            build_kb(tmp_path / "a.kb", [{"id": "Q1"}, {"id": entity}], id_space="wikidata", progress=False)
    # Ids of a space that is not known are kept.
    kept = DictionaryLinker(aliases.assign(entity_id=["wd:Q42", "q42"]), id_space="people", numeric=True)
    assert kept.link(["Tom in NY"]).frame["entity_id"].tolist() == ["wd:Q42", "q42"]


def test_space_is_kept_in_files_and_joins_of_two_are_refused(tmp_path):
    pool = link_pool(RUN, tags_of("dbr:Paris", "Rome"), QRELS)
    write_links(pool, tmp_path / "links.parquet")
    again = read_links(tmp_path / "links.parquet")
    assert (pool.space, again.space) == ("dbpedia", "dbpedia")
    ids = column_ids(pd.Series(["wd:Q90"], dtype=object), "ids")
    with pytest.raises(InputError, match=r"'wd:Q90' is of wikidata, wanted ids of dbpedia.*convert .*--ids dbpedia"):
        again.entities_of(ids)


def test_numbers_are_no_codes_of_wikidata():
    ids = column_ids(pd.Series(["7", "NA", "q1"], dtype=object), "ids")
    assert entity_ids(ids, "ids").is_nil.tolist() == [False, False, False]
    assert entity_ids(ids, "ids").ids.text.to_pylist() == ["7", "NA", "q1"]


@pytest.mark.filterwarnings("ignore::vbterrier.errors.DegenerateWarning")
def test_discrimination_with_the_links_of_refined_as_delivered(shared_data):
    folder = shared_data / "aida_ambiguous_labels"
    with gzip.open(folder / "candidates.refined.jsonl.gz", "rt", encoding="utf-8") as file:
        rows = [(doc["doc"], link[2]) for doc in map(json.loads, file) for link in doc["links"]]
    tags = pd.DataFrame(rows, columns=["docno", "entity_id"])
    assert (tags["entity_id"] == "<NIL>").mean() == pytest.approx(0.113, abs=1e-3)
    topics = [json.loads(line) for line in (folder / "topics.jsonl").read_text().splitlines()]
    dominant = {topic["qid"]: max(topic["intents"], key=lambda intent: intent["p"])["intent"] for topic in topics}
    lines = (line.split() for line in (folder / "qrels.intents.txt").read_text().splitlines())
    qrels = pd.DataFrame([(q, d, 1) for q, i, d, _ in lines if i == dominant[q]], columns=["qid", "docno", "label"])
    run = vbterrier.read_run(folder / "runs" / "bm25.run.gz")
    entities = ConsensusEntities(tags, cutoff=20).transform(run)
    report = vbterrier.coverage_report({"consensus": entities}, link_pool(run, tags, qrels))
    value = report.to_frame().set_index("measure")["value"]
    assert value[["DiscRatio@20", "NonRelCov@20"]].tolist() == pytest.approx([1.198, 0.797], abs=6e-4)


# Saved models


def trained_links(prefix):
    rows = [(f"q{q}", f"d{q}.{d}", -d, f"{prefix}{q}{d // 2 + 1}", int(d > 1)) for q in range(6) for d in range(4)]
    pool = pd.DataFrame(rows, columns=["qid", "docno", "score", "entity_id", "label"])
    return pool, pool[["docno", "entity_id"]].drop_duplicates()


def test_a_saved_model_refuses_links_to_another_id_space(tmp_path):
    pool, tags = trained_links("Q1")
    run, qrels = pool[["qid", "docno", "score"]], pool[["qid", "docno", "label"]]

    def links_of(some):
        return link_pool(run, some)

    options = {"features": ["rank_support"], "rounds": 2, "parameters": {"min_data_in_leaf": 1}}
    selector = EntitySelector(links_of(tags), **options)
    first = ConsensusEntities(links_of(tags), min_documents=1)(run)
    selector.fit(first, qrels).save(tmp_path)
    assert json.loads((tmp_path / "model.json").read_text())["space"] == "wikidata"
    for prefix in ("http://dbpedia.org/resource/E", "https://en.wikipedia.org/wiki/E"):
        with pytest.raises(InputError, match=r"training to entities of wikidata.*--kind links --to tags --ids wiki"):
            EntitySelector.load(tmp_path, links_of(trained_links(prefix)[1]))
    # Addresses of the same space, and names whose form says none.
    assert EntitySelector.load(tmp_path, links_of(trained_links("wd:Q1")[1]))._topics == selector._topics
    with pytest.warns(DegenerateWarning, match="links are not those of the training"):
        assert EntitySelector.load(tmp_path, links_of(trained_links("E")[1]))._topics == selector._topics
    assert EntitySelector.load(tmp_path, links_of(trained_links("wd:Q1")[1]))(first).equals(selector(first))


def test_a_saved_model_reports_other_links_of_its_documents(tmp_path):
    pool, tags = trained_links("Q1")
    run, qrels = pool[["qid", "docno", "score"]], pool[["qid", "docno", "label"]]
    options = {"features": ["rank_support"], "rounds": 2, "parameters": {"min_data_in_leaf": 1}}
    selector = EntitySelector(link_pool(run, tags), **options)
    selector.fit(ConsensusEntities(link_pool(run, tags), min_documents=1)(run), qrels).save(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # Another order, spelling and choice of documents are the same links.
        for same in (tags[::-1], tags.assign(entity_id="wd:" + tags["entity_id"]), tags.head(5)):
            EntitySelector.load(tmp_path, link_pool(run, same))
    first = tags["docno"].iloc[0]
    others = tags.assign(entity_id=tags["entity_id"].mask(tags["docno"] == first, "Q77"))
    n = tags["docno"].nunique()
    message = rf"1 of {n} documents of the training have others \(.*{first}.*\); use the same linker"
    with pytest.warns(DegenerateWarning, match=message):
        EntitySelector.load(tmp_path, link_pool(run, others))


def test_tags_without_a_pool_have_an_id_space():
    entities = pd.DataFrame({"qid": ["q1"], "docno": ["x"], "score": [1.0]})
    for entity, space in (("Q1", "wikidata"), ("dbr:Paris", "dbpedia"), ("Paris", "")):
        assert NeuralReranker(tags_of(entity), entities, encoder=lambda _: [[1.0]])._id_space() == space


def test_fingerprints_find_the_texts_and_vectors_of_other_spellings():
    ids = ["wd:Q42", "http://dbpedia.org/resource/Paris"]
    texts, plain = {"Q42": "a", "Paris": "b"}, ["Q42", "Paris"]
    assert list(of_texts(texts, ids).values()) == list(of_texts(texts, plain).values())
    vectors = {"Q42": [1.0], "Paris": [2.0]}
    assert len(of_vectors(vectors, ids)) == 2
