"""Gold standards and system answers."""

import pandas as pd
import pytest

from vbterrier.errors import DegenerateWarning, InputError, ParameterError
from vbterrier.frames.entity_answers import Gold, answers, decide
from vbterrier.linking.quality import linking_report

GOLD = pd.DataFrame({"qid": ["a", "b", "c", "d"], "entity_id": ["Q1", "Q2", "NIL", "NIL"]})


def frame(**of):
    return pd.DataFrame({"qid": list(of), "entity_id": list(of.values())})


def counts(system, gold=GOLD, *, unanswered="nothing", **options):
    return decide(answers(system), Gold(gold, **options), unanswered=unanswered).counts.tolist()


def test_each_kind_of_answer_has_its_cell_and_an_unanswered_query_is_nothing_or_nil():
    assert counts(frame(a="Q1", b="Q9", c="NIL", d="Q2")) == [[1, 1, 0, 0], [0, 1, 1, 0]]
    assert counts(frame(a="NIL", b="Q2")) == [[1, 0, 1, 0], [0, 0, 0, 2]]
    assert counts(frame(a="Q1"), unanswered="nil") == [[1, 0, 1, 0], [0, 0, 2, 0]]
    with pytest.raises(ParameterError, match="unanswered='NIL': wanted one of 'nothing', 'nil'"):
        counts(frame(a="Q1"), unanswered="NIL")


def test_the_best_ranked_entity_is_the_answer_whatever_the_order_of_rows():
    several = pd.DataFrame({"qid": ["a", "a", "b"], "entity_id": ["Q9", "Q1", "Q2"], "score": [1.0, 2.0, 0.0]})
    assert counts(several) == [[2, 0, 0, 0], [0, 0, 0, 2]]
    with pytest.raises(InputError, match="run: query 'a' has several answers and there is no column"):
        counts(several.drop(columns="score"))
    run = several.rename(columns={"entity_id": "docno"})
    assert counts(run) == counts(several)
    # Ties are broken by descending id, as in trec_eval.
    with pytest.warns(DegenerateWarning, match="are tied"):
        assert counts(several.assign(score=1.0)) == [[1, 1, 0, 0], [0, 0, 0, 2]]


@pytest.mark.parametrize("column", ["entity_id", "docno"])
def test_an_answer_that_stands_twice_is_refused_or_keeps_its_best_rank(column):
    twice = pd.DataFrame({"qid": "a", column: ["Q1", "Q9", "Q1"], "score": [1.0, 2.0, 3.0]})
    with pytest.raises(InputError, match="'Q1' is duplicated for query 'a'"):
        answers(twice)
    with pytest.warns(DegenerateWarning, match="1 repeated documents dropped"):
        run = answers(twice, duplicates="first")
    assert decide(run, Gold(GOLD)).counts[0].tolist() == [1, 0, 0, 1]


def test_clusters_of_nil_are_nil_as_tac_numbers_them():
    gold = GOLD.assign(entity_id=["Q1", "Q2", "NIL0012", "NIL7"])
    assert counts(frame(a="Q1", c="NIL", d="NIL0001"), gold) == [[1, 0, 0, 1], [0, 0, 2, 0]]
    # A title with this prefix is an entity.
    assert counts(frame(a="NILE", b="NIL_1", c="Q1"), gold) == [[0, 2, 0, 0], [0, 1, 0, 1]]


def test_another_word_for_nil_is_taken_as_it_stands():
    gold = GOLD.assign(entity_id=["Q1", "Q2", "--NME--", "(none.)"])
    assert counts(frame(a="Q1", c="--NME--"), gold, nil="--NME--") == [[1, 0, 0, 2], [0, 0, 1, 0]]
    assert Gold(GOLD.assign(entity_id=["Q1", "x1", "x", "x"]), nil="x").is_nil.tolist() == [False, False, True, True]
    assert Gold(GOLD.assign(entity_id=["Q1", "abc", "a.c", "(?"]), nil="a.c").is_nil.tolist() == [0, 0, 1, 0]


@pytest.mark.parametrize("word", ["(NIL)", "Nil0012", "-NIL-"])
def test_what_looks_like_nil_and_is_not_is_told(word):
    with pytest.warns(DegenerateWarning, match=r"gold: .* \(2 rows\) is treated as an entity, because nil='NIL'"):
        gold = Gold(GOLD.replace({"entity_id": {"NIL": word}}))
    assert not gold.is_nil.any()
    with pytest.warns(DegenerateWarning, match="run: .* is treated as an entity"):
        decide(answers(frame(a="Q1", b=word)), Gold(GOLD))


@pytest.mark.parametrize("word", ["<NIL>", "--NME--", "<unk_wiki>", "notInWiki", "", "null", "O", "nil"])
def test_nil_in_the_spelling_of_each_linker(word):
    gold = GOLD.replace({"entity_id": {"NIL": word}})
    assert counts(frame(a="Q1", b="NIL", c=word), gold) == counts(frame(a="Q1", b="NIL", c="NIL"), GOLD)
    assert counts(frame(a=word, c=word)) == counts(frame(a="NIL", c="NIL"))


def test_null_is_a_title_among_titles():
    gold = frame(a="O", b="Paris", c="NIL")
    with pytest.warns(DegenerateWarning, match="'null' .1 rows. is treated as an entity"):
        assert counts(frame(a="O", b="null"), gold) == [[1, 1, 0, 0], [0, 0, 0, 1]]
    assert counts(frame(a="O", b="null", c="null"), gold, nil="null") == [[1, 0, 1, 0], [0, 0, 1, 0]]


def test_addresses_are_the_ids_of_their_space():
    gold = frame(a="Q1", b="Q42", c="Q5", d="Q6")
    system = frame(a="Q1", b="http://www.wikidata.org/entity/Q42", c="wd:Q5", d="Q6")
    assert counts(system, gold) == counts(gold, system) == [[4, 0, 0, 0], [0, 0, 0, 0]]
    assert linking_report({"s": system}, gold).figures()["LinkP"].item() == 1.0
    titles = frame(a="Michael Jordan", b="Paris")
    addresses = frame(a="dbr:Michael_Jordan", b="http://dbpedia.org/resource/Paris")
    assert counts(addresses, titles) == counts(titles, addresses) == [[2, 0, 0, 0], [0, 0, 0, 0]]
    with pytest.raises(InputError, match=r"'dbr:Paris' is of dbpedia, wanted ids of wikidata.*--ids wikidata"):
        counts(frame(a="dbr:Paris"), gold)


def test_equal_gold_rows_are_one_answer():
    twice = pd.concat([GOLD, GOLD, frame(a="wd:Q1", c="<NIL>")])
    assert counts(frame(a="Q1", c="NIL"), twice) == counts(frame(a="Q1", c="NIL"))


def test_several_right_entities_are_refused_or_any_is_right():
    gold = pd.concat([GOLD, frame(a="Q5")])
    message = r"gold: query 'a' .* several correct answers; keep one, or .* multiple_answers='any'"
    with pytest.raises(InputError, match=message):
        Gold(gold)
    for right in ("Q1", "Q5"):
        assert counts(frame(a=right, b="Q5"), gold, multiple_answers="any") == [[1, 1, 0, 0], [0, 0, 0, 2]]
    with pytest.raises(ParameterError, match="multiple_answers='all'"):
        Gold(gold, multiple_answers="all")
    for multiple_answers in ("raise", "any"):
        with pytest.raises(InputError, match="query 'a' has both 'NIL' and an entity"):
            Gold(pd.concat([GOLD, frame(a="NIL")]), multiple_answers=multiple_answers)


def test_judgments_are_a_gold_standard_of_those_that_are_right():
    qrels = pd.DataFrame(
        {"qid": ["a", "a", "b", "c"], "docno": ["Q1", "Q9", "NIL", "Q3"], "label": [1, 0, 1, 2], "iteration": "0"}
    )
    assert counts(frame(a="Q9", b="NIL", c="Q3"), qrels) == [[1, 1, 0, 0], [0, 0, 1, 0]]
    assert Gold(qrels.drop(columns="iteration")).topics == ["a", "b", "c"]
    assert counts(frame(a="Q9", c="Q1"), qrels.rename(columns={"docno": "entity_id"}))[0] == [0, 2, 0, 0]
    with pytest.raises(InputError, match=r"query 'b' has no correct answer; write 'NIL' .* \(2 such queries\)"):
        Gold(qrels.assign(label=[1, 0, 0, -1]))
    # A column of names is no column of judgments.
    assert Gold(GOLD.assign(label=["Paris", "Rome", "", ""])).topics == ["a", "b", "c", "d"]


def test_no_gold_is_refused_and_no_answer_is_none():
    with pytest.raises(InputError, match="gold: no rows"):
        Gold(GOLD.iloc[:0])
    with pytest.warns(DegenerateWarning, match="run: empty; none of the 4 queries has an answer"):
        assert counts(GOLD.iloc[:0]) == [[0, 0, 0, 2], [0, 0, 0, 2]]
    with pytest.warns(DegenerateWarning, match="run: empty"):
        assert counts(GOLD.iloc[:0], unanswered="nil") == [[0, 0, 2, 0], [0, 0, 2, 0]]


def test_answers_that_can_never_match_are_refused_and_further_queries_left_out():
    with pytest.warns(DegenerateWarning, match="1 topic is not in gold and is left out"):
        assert counts(frame(a="Q1", x="Q2")) == [[1, 0, 0, 1], [0, 0, 0, 2]]
    with pytest.raises(InputError, match="no topic in common"):
        counts(frame(x="Q1"))
    with pytest.raises(InputError, match="gold column 'qid' holds text, run column 'qid' holds integers"):
        counts(frame(a="Q1").assign(qid=[1]))
    numbers = GOLD.iloc[:2].assign(entity_id=[1, 2])
    with pytest.raises(InputError, match="gold entities holds integers, run entities holds text"):
        counts(frame(a="1", b="NIL"), numbers)
    assert counts(frame(a=1, b=3), numbers) == [[1, 1, 0, 0], [0, 0, 0, 0]]


def test_ids_of_another_space_are_told():
    with pytest.warns(DegenerateWarning, match="no answer is an entity of gold: it has 'Paris'; gold has 'Q1', 'Q2'"):
        counts(frame(a="Paris", b="NIL"))
    # No warning if one id matches, even for another query, or if the system links nothing.
    counts(frame(a="Q2"))
    counts(frame(a="NIL"))
    counts(frame(a="Paris"), GOLD.assign(entity_id="NIL"))


def test_paths_are_read_and_frames_not_changed(tmp_path):
    gold, system = GOLD.copy(), frame(a="Q1", b="NIL")
    before = system.copy()
    counts(system, gold)
    pd.testing.assert_frame_equal(system, before)
    pd.testing.assert_frame_equal(gold, GOLD)
    GOLD.to_csv(tmp_path / "gold.csv", index=False)
    (tmp_path / "run.txt").write_text("a Q0 Q1 1 1.0 mine\nb Q0 NIL 1 1.0 mine\n")
    result = decide(answers(tmp_path / "run.txt"), Gold(str(tmp_path / "gold.csv")))
    assert result.counts.tolist() == [[1, 0, 1, 0], [0, 0, 0, 2]]


def test_answers_in_another_spelling_are_told():
    gold = GOLD.assign(entity_id=["New_York", "Caf%C3%A9", *GOLD["entity_id"][2:]])
    with pytest.warns(DegenerateWarning, match="run: 2 answers differ from those of gold only in case.*'new york' and"):
        counts(frame(a="new york", b="Café"), gold)
    counts(frame(a="New_York", b="Boston"), gold)
