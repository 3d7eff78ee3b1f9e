"""The interface of linkers."""

import pandas as pd
import pytest

from vbterrier.errors import InputError, ParameterError
from vbterrier.linking.links import COLUMNS, Linker, Links, links_frame

ROW = (0, 5, 9, "York", "Q42462", 0.75, "York")


def test_rows_become_columns_of_the_right_kinds_even_without_any():
    for rows in ([], [ROW]):
        frame = links_frame(rows)
        assert tuple(frame.columns) == COLUMNS
        assert [frame[name].dtype.kind for name in ("text", "start", "end", "score")] == ["i", "i", "i", "f"]
        assert len(frame) == len(rows)
    assert links_frame([ROW]).loc[0].tolist() == list(ROW)


def test_links_say_what_their_ids_and_scores_are():
    links = Links(links_frame([ROW]), "wikidata", "probability")
    assert (links.id_space, links.scale) == ("wikidata", "probability")
    assert Links(links_frame([(*ROW[:5], -3.5, "")]), "own").scale == "score"


@pytest.mark.parametrize(
    ("frame", "scale", "error", "message"),
    [
        (links_frame([ROW]), "percent", ParameterError, "scale='percent': wanted one of 'probability', 'score'"),
        (pd.DataFrame({"text": [0]}), "score", InputError, "missing start, end, mention, entity_id, score, name"),
        (links_frame([(*ROW[:5], 1.5, "")]), "probability", InputError, "'Q42462' of mention 'York' has score 1.5"),
        (links_frame([(*ROW[:5], float("nan"), "")]), "probability", InputError, "wanted 0 to 1"),
        (links_frame([(*ROW[:5], float("nan"), "")]), "score", InputError, "wanted a number"),
    ],
)
def test_what_is_no_links_is_refused(frame, scale, error, message):
    with pytest.raises(error, match=message):
        Links(frame, "wikidata", scale)


def test_a_class_of_one_s_own_is_a_linker():
    class Own:
        id_space = "own"

        def link(self, texts):
            return Links(
                links_frame([(place, 0, len(text), text, text, 1.0, "") for place, text in enumerate(texts)]), "own"
            )

    assert isinstance(Own(), Linker)
    assert not isinstance(object(), Linker)
