"""Profiles of queries, with the expected values of each sampling method."""

from collections import Counter, defaultdict

import numpy as np
import pandas as pd
import pytest
from statsmodels.stats.proportion import proportion_confint

from vbterrier.design.profile import query_profile
from vbterrier.design.sampling import sample_queries
from vbterrier.errors import DegenerateWarning, InputError, ParameterError

ROWS = ["d1 Paris Q90", "d1 Dupont NIL", "d1 Texas Q1439", "d2 Paris Q830149", "d2 Paris Q830149", "d3 Paris Q90"]
ROWS = [tuple(row.split()) for row in [*ROWS, "d3 M.Dupont NIL0042"]]
CORPUS = pd.DataFrame(ROWS, columns=["docno", "mention", "entity_id"])


def value_of(profile, part, column="value"):
    return profile[profile["part"] == part].set_index("item")[column].to_dict()


def test_a_corpus_by_hand():
    profile = query_profile(CORPUS)
    assert value_of(profile, "count") == {"draws": 6, "queries": 6, "documents": 3, "mentions": 4, "entities": 3}
    assert value_of(profile, "entity", "n") == {"link": 4, "NIL": 2}
    frequencies = {"1": 3, "2": 0, "3-5": 3, "6-10": 0, "11-100": 0, "101-1000": 0, "over 1000": 0}
    assert value_of(profile, "frequency", "n") == frequencies
    assert value_of(profile, "frequency quantile") == {"0.25": 1, "0.5": 1, "0.75": 3, "0.9": 3, "max": 3, "mean": 2}
    assert value_of(profile, "ambiguity", "n") == {"0": 2, "1": 1, "2+": 3}
    ends = [value_of(profile, "entity", end)["link"] for end in ("low", "high")]
    assert ends == pytest.approx(proportion_confint(4, 6, method="wilson"))
    assert profile["uniform"].isna().all()
    # Intervals of none and of all end at 0 and 1.
    profile = query_profile(pd.DataFrame({"docno": [f"d{place}" for place in range(400)], "mention": "Paris"}))
    assert value_of(profile, "frequency", "low")["1"] == 0
    assert value_of(profile, "frequency", "high")["101-1000"] == 1


def expected_link_share(rows, method):
    """By the definition, one query at a time."""
    pairs = {(docno, mention): not entity.startswith("NIL") for docno, mention, entity in rows}
    groups = defaultdict(list)
    for (docno, mention), is_link in pairs.items():
        key = {"uniform": "", "random_document": docno, "random_mention": mention}[method]
        groups[key].append(is_link)
    return np.mean([np.mean(group) for group in groups.values()])


def in_bin(frequency):
    """The bin of a number of documents."""
    ends = {"1": 1, "2": 2, "3-5": 5, "6-10": 10, "11-100": 100, "101-1000": 1000}
    return next((name for name, end in ends.items() if frequency <= end), "over 1000")


@pytest.mark.parametrize("seed", range(3))
def test_frequency_tables_equal_a_loop_over_queries(seed):
    """Mentions in 1 to 120 of 150 documents; queries are distinct pairs of document and mention."""
    draw = np.random.default_rng(seed)
    pairs = [
        (f"d{docno}", f"m{mention}")
        for mention, n in enumerate([1, 1, 2, 2, 3, 5, 6, 10, 11, 60, 100, 101, 120])
        for docno in draw.choice(150, n, replace=False)
    ]
    corpus = pd.DataFrame(pairs, columns=["docno", "mention"]).sample(frac=1, random_state=seed, ignore_index=True)
    frequency, per_document = Counter(mention for _, mention in pairs), Counter(docno for docno, _ in pairs)
    profile = query_profile(corpus, corpus)
    weights = {
        "uniform": {pair: 1 / len(pairs) for pair in pairs},
        "random_document": {pair: 1 / len(per_document) / per_document[pair[0]] for pair in pairs},
        "random_mention": {pair: 1 / len(frequency) / frequency[pair[1]] for pair in pairs},
    }
    for method, weight in weights.items():
        shares, mean = Counter(), 0.0
        for pair in pairs:
            shares[in_bin(frequency[pair[1]])] += weight[pair]
            mean += weight[pair] * frequency[pair[1]]
        values = value_of(profile, "frequency", method)
        assert values == pytest.approx({name: shares[name] for name in values}, abs=1e-12)
        assert value_of(profile, "frequency quantile", method)["mean"] == pytest.approx(mean, abs=1e-9)
        levels = sorted((frequency[pair[1]], weight[pair]) for pair in pairs)
        for level in (0.25, 0.5, 0.75, 0.9):
            below, reached = 0.0, None
            for value, share in levels:
                below += share
                if below >= level - 1e-12:
                    reached = value
                    break
            assert value_of(profile, "frequency quantile", method)[f"{level:g}"] == reached


def test_expected_shares_are_those_of_the_methods():
    profile = query_profile(CORPUS, CORPUS)
    for method in ("uniform", "random_document", "random_mention"):
        assert value_of(profile, "entity", method)["link"] == pytest.approx(expected_link_share(ROWS, method))
    for part, method, item, expected in (
        # Paris is in three documents, three others in one.
        ("frequency", "random_mention", "3-5", 1 / 4),
        ("frequency", "random_document", "3-5", (1 / 3 + 1 + 1 / 2) / 3),
        ("frequency quantile", "random_mention", "mean", 6 / 4),
        ("ambiguity", "random_mention", "2+", 1 / 4),
        ("count", "uniform", "documents", 3),
    ):
        assert value_of(profile, part, method)[item] == pytest.approx(expected)


def test_a_sample_is_looked_up_in_its_corpus():
    rows = CORPUS[CORPUS["docno"] == "d2"].assign(entity_id="NIL")
    assert value_of(query_profile(rows), "frequency quantile")["max"] == 1
    profile = query_profile(rows, CORPUS)
    assert value_of(profile, "frequency quantile")["max"] == 3
    # The corpus has two entities for Paris, unlike the sample.
    assert value_of(profile, "ambiguity")["2+"] == 1
    assert value_of(query_profile(rows, CORPUS.drop(columns="entity_id")), "ambiguity")["0"] == 1
    parts = query_profile(rows.drop(columns="entity_id"), CORPUS)["part"]
    assert set(parts) == {"count", "frequency", "frequency quantile"}


def test_a_sample_brings_the_frequencies_of_its_corpus_and_counts_draws():
    sample = sample_queries(CORPUS, 50, method="random-mention", replace=True, seed=1)
    profile = query_profile(sample)
    draws = Counter()
    for row in sample.queries.itertuples():
        draws["Paris" if row.mention == "Paris" else "other"] += row.n_draws
    assert value_of(profile, "frequency", "n")["3-5"] == draws["Paris"]
    assert value_of(profile, "count")["draws"] == 50
    low, _ = proportion_confint(draws["Paris"], 50, method="wilson")
    assert value_of(profile, "frequency", "low")["3-5"] == pytest.approx(low)
    # Read from a file, numbers are text.
    as_text = sample.queries.astype({"n_documents": str, "n_draws": str})
    pd.testing.assert_frame_equal(query_profile(as_text), profile)


def test_random_mention_finds_fewer_links_in_a_corpus_of_zipf():
    """Mertens et al., section 2: the long tail is less likely to be in the knowledge base. Planted: rank decides."""
    draw = np.random.default_rng(1)
    rank = draw.zipf(1.3, 60_000)
    corpus = pd.DataFrame({"docno": draw.integers(6000, size=len(rank)), "mention": rank}).astype(str)
    corpus["entity_id"] = np.where(rank <= 2000, "Q" + corpus["mention"], "NIL")
    low, high, expected = {}, {}, {}
    for method in ("random-document", "random-mention"):
        profile = query_profile(sample_queries(corpus, 1000, method=method, seed=1), corpus)
        for column, values in (("low", low), ("high", high), (method.replace("-", "_"), expected)):
            values[method] = value_of(profile, "entity", column)["link"]
        assert low[method] < expected[method] < high[method]
    assert high["random-mention"] < low["random-document"]
    assert expected["random-mention"] < 0.5 < expected["random-document"]


def test_nil_is_spelt_in_several_ways():
    frame = CORPUS.assign(entity_id=["<NIL>", "-", "NIL", "Q1", "Q1", "NILS", "Q2"])
    assert value_of(query_profile(frame, nil=["<NIL>", "-", "NIL"]), "entity", "n")["NIL"] == 3
    assert value_of(query_profile(frame), "entity", "n")["NIL"] == 2
    with pytest.warns(DegenerateWarning, match="'.NIL.' .1 rows. is treated as an entity"):
        assert value_of(query_profile(frame.replace("<NIL>", "(NIL)")), "entity", "n")["NIL"] == 1
    numbers = CORPUS.assign(entity_id=["0", "01", "7", "9", "9", "8", "NIL0042"])
    assert value_of(query_profile(numbers), "entity", "n")["NIL"] == 1
    numbers["entity_id"] = numbers["entity_id"].replace("NIL0042", "7")
    # Ids that are numbers go on in digits, too.
    assert value_of(query_profile(numbers, nil="0"), "entity", "n")["NIL"] == 1
    with pytest.warns(DegenerateWarning, match="no entity_id is 'none', so that all count as links"):
        assert value_of(query_profile(numbers, nil="none"), "entity")["link"] == 1


def test_paths_are_read(tmp_path):
    CORPUS.to_csv(tmp_path / "corpus.tsv", sep="\t", index=False)
    path = str(tmp_path / "corpus.tsv")
    pd.testing.assert_frame_equal(query_profile(path, path), query_profile(CORPUS, CORPUS))
    pd.testing.assert_frame_equal(sample_queries(path, 2).queries, sample_queries(CORPUS, 2).queries, check_dtype=False)


@pytest.mark.parametrize(
    ("frame", "options", "error", "message"),
    [
        (CORPUS.assign(mention="x"), {"mentions": CORPUS}, InputError, "'x' is not in mentions"),
        (CORPUS[:0], {}, InputError, "queries: no rows"),
        (CORPUS.assign(entity_id=None), {}, InputError, "entity_id"),
        (CORPUS.assign(n_draws=0), {}, InputError, "'n_draws': row 0 is below 1"),
        (CORPUS, {"level": 95}, ParameterError, "level=95"),
        (CORPUS, {"mentions": CORPUS.drop(columns="docno")}, InputError, "mentions: wanted .* missing docno"),
    ],
)
def test_bad_input_is_refused(frame, options, error, message):
    with pytest.raises(error, match=message):
        query_profile(frame, **options)
