"""Parquet files of other tools whose columns are not ids."""

import pandas as pd
import pytest

from vbterrier.entities.pool import read_links
from vbterrier.errors import FileError


@pytest.mark.parametrize("column", ["qid", "docno", "entity_id"])
def test_nested_columns_are_refused_by_name(tmp_path, column):
    path = tmp_path / "links.parquet"
    links = pd.DataFrame({"qid": ["q1"], "docno": "a", "entity_id": "E", "label": 1, "rank": 0, "weight": 1.0})
    links.assign(**{column: [["x"]]}).to_parquet(path)
    with pytest.raises(FileError, match=rf"links\.parquet: column '{column}' holds list<.*, wanted ids as text"):
        read_links(path)
