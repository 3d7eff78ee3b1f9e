"""Signs of selection, the depth of pools, and the effect of runs on the estimates of other runs."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from vbterrier import judge_next, rank_systems
from vbterrier.frames.ranking import Run
from vbterrier.kernels.rankings import discounts, ideal_dcg
from vbterrier.settings import Data, Inference
from vbterrier.unjudged import MachineLabels, fit
from vbterrier.unjudged.draws import GradeDraws
from vbterrier.unjudged.evidence import collect_evidence
from vbterrier.unjudged.features import features_of
from vbterrier.unjudged.incomplete import leave_group_out, shallow_pool, subsample_qrels
from vbterrier.unjudged.model import Constants, fit_evidence, fit_model
from vbterrier.unjudged.pool import Judgments
from vbterrier.unjudged.selection import explain_judging, pool_depth, selection

pytestmark = pytest.mark.filterwarnings("ignore:.* loses? all :vbterrier.errors.DegenerateWarning")

N_TOPICS, DEPTH, CUTOFF, N_DRAWS = 40, 40, 10, 300
SKILLS = {"a": 1.2, "b": 1.0, "c": 0.8, "d": 1.1}


def collection():
    """Runs of different quality, and judgments of all retrieved documents."""
    rng = np.random.default_rng(7)
    runs, rows = {name: [] for name in SKILLS}, []
    for topic in range(N_TOPICS):
        quality = rng.normal(size=120) + rng.normal(scale=0.4)
        label = np.clip(np.floor(quality + 0.3), 0, 2).astype(int)
        retrieved = set()
        for name, skill in SKILLS.items():
            order = np.argsort(-(skill * quality + rng.normal(size=120)))[:DEPTH]
            runs[name] += [(f"q{topic}", f"d{doc}", -float(rank)) for rank, doc in enumerate(order)]
            retrieved.update(order.tolist())
        rows += [(f"q{topic}", f"d{doc}", label[doc]) for doc in sorted(retrieved)]
    frames = {name: pd.DataFrame(cells, columns=["qid", "docno", "score"]) for name, cells in runs.items()}
    return frames, pd.DataFrame(rows, columns=["qid", "docno", "label"])


RUNS, QRELS = collection()


def evidence(qrels, runs=RUNS, cutoff=CUTOFF):
    return collect_evidence({name: Run(run) for name, run in runs.items()}, Judgments(qrels), cutoff, DEPTH)


def means(runs, qrels, pool_cutoff=DEPTH):
    """The estimated mean nDCG of each run over topics, from the draws of a fitted model."""
    judgments = Judgments(qrels)
    model = fit_model({name: Run(run) for name, run in runs.items()}, judgments, CUTOFF, pool_cutoff)
    drawn, result = GradeDraws(model, N_DRAWS, 0, deep=True), model.evidence
    gain = judgments.grades.astype(float)
    grades = np.broadcast_to(gain[np.maximum(result.level, 0)], (N_DRAWS, len(result))).copy()
    grades[:, result.unjudged_positions] = gain[drawn.levels.T]
    ideal = ideal_dcg(drawn.counts, gain, CUTOFF)
    scores = {}
    for place, name in enumerate(result.names):
        entries = np.flatnonzero((result.run == result.distinct[place]) & result.in_cut)
        value = grades[:, result.item[entries]] * discounts(CUTOFF)[result.rank[entries] - 1]
        dcg = np.stack(
            [value[:, result.topic[result.item[entries]] == topic].sum(axis=1) for topic in range(N_TOPICS)], 1
        )
        scores[name] = (dcg / np.where(ideal > 0, ideal, np.inf)).mean()
    return scores


def by_topic(share):
    """Judgments of which a third of the topics lack a share."""
    poor = QRELS["qid"].isin({f"q{topic}" for topic in range(0, N_TOPICS, 3)})
    return pd.concat([QRELS[~poor], subsample_qrels(QRELS[poor], share, seed=1)], ignore_index=True)


def left_out(name):
    return next(part.qrels for part in leave_group_out(RUNS, QRELS) if part.name == name)


RUN_FRAME = RUNS["a"][["qid", "docno", "score"]]
JUDGED = QRELS.iloc[[0]].assign(score=1.0)[["qid", "docno", "score"]]
RANDOM = (
    QRELS.sample(frac=1, random_state=3).groupby("qid").head(20).assign(score=lambda frame: -frame.index.astype(float))
)
COMPANY = {
    "empty": (RUN_FRAME.iloc[:0], 0.0),
    "one judged document": (JUDGED, 0.002),
    "one document": (RUN_FRAME.iloc[[0]], 0.002),
    "copy": (RUN_FRAME, 0.0),
    "random documents": (RANDOM[["qid", "docno", "score"]], 0.02),
    "invented documents": (RUN_FRAME.assign(docno="x" + RUN_FRAME["docno"]), 0.005),
}
REDUCED = {
    "thinned": subsample_qrels(QRELS, 0.4, seed=1),
    "shallow": shallow_pool(RUNS, QRELS, cutoff=4),
    "a run left out": left_out("c"),
}


@pytest.mark.parametrize("missing", REDUCED)
@pytest.mark.parametrize("company", COMPANY)
def test_a_run_moves_no_other_run_by_more_than_stated(missing, company):
    frame, limit = COMPANY[company]
    before, after = means(RUNS, REDUCED[missing]), means({**RUNS, "z": frame}, REDUCED[missing])
    assert max(abs(after[name] - before[name]) for name in RUNS) <= limit


@pytest.mark.parametrize("company", ["empty", "one judged document", "one document"])
def test_a_run_of_hardly_any_document_leaves_two_runs_as_they_are(company):
    # Three runs have features that two have not.
    two = {name: RUNS[name] for name in "ac"}
    before, after = (means(runs, left_out("c")) for runs in (two, {**two, "z": COMPANY[company][0]}))
    assert max(abs(after[name] - before[name]) for name in two) <= COMPANY[company][1]


def test_renamed_runs_have_equal_estimates():
    other = dict(zip("pqrs", RUNS.values(), strict=True))
    before, after = means(RUNS, REDUCED["thinned"]), means(other, REDUCED["thinned"])
    assert list(after.values()) == pytest.approx(list(before.values()), abs=1e-12)


def test_judging_topic_by_topic_is_no_selection_of_documents():
    assert selection(evidence(by_topic(0.8)))[0] < 0.1
    assert selection(evidence(REDUCED["thinned"]))[0] < 0.1
    assert selection(evidence(left_out("c"), {"c": RUNS["c"]}))[0] > 0.5


def test_a_run_with_nothing_or_everything_judged_does_not_change_the_signs_of_selection():
    qrels = left_out("c")
    alone = selection(evidence(qrels, {"c": RUNS["c"]}))[0]
    strange = RUNS["a"].assign(docno="x" + RUNS["a"]["docno"])
    for other in (strange, strange.iloc[:0], RUNS["a"].merge(qrels[["qid", "docno"]])):
        assert selection(evidence(qrels, {"c": RUNS["c"], "z": other}))[0] == pytest.approx(alone, abs=0.1)


def test_few_topics_show_no_selection_for_certain():
    topics = [f"q{topic}" for topic in range(2)]
    few = left_out("c")
    few = few[few["qid"].isin(topics)]
    runs = {"c": RUNS["c"][RUNS["c"]["qid"].isin(topics)]}
    assert 0.05 < selection(evidence(few, runs))[0] < 0.95


def unexplained(qrels, runs):
    result = evidence(qrels, runs)
    judging = explain_judging(result, features_of(result))
    return judging.unexplained[(result.level < 0) & result.near].mean()


def test_judging_is_explained_by_ranks_and_runs_unless_pooled_runs_are_unknown():
    assert unexplained(left_out("c"), RUNS) < 0.15
    assert unexplained(REDUCED["shallow"], RUNS) < 0.15
    assert unexplained(left_out("c"), {"c": RUNS["c"]}) > 0.8
    assert unexplained(REDUCED["thinned"], RUNS) > 0.9


def test_unjudged_documents_of_unknown_pools_are_less_relevant_than_judged_ones_and_those_of_known_pools_are_not():
    qrels = left_out("c")
    alone = fit_evidence(evidence(qrels, {"c": RUNS["c"]}))
    assert alone.gate > 0.5
    assert fit_evidence(evidence(qrels)).gate < 0.15

    def share(constants):
        return GradeDraws(fit_evidence(alone.evidence, constants), N_DRAWS, 0).shares[:, 1:].sum(axis=1).mean()

    plain = type(alone.constants)
    for constants in (plain(selected=0.0), plain(pool=0.0)):
        assert share(plain()) < share(constants) - 0.01


def test_a_run_with_nearly_nothing_judged_has_wide_intervals_and_low_estimates():
    strange = RUNS["c"].assign(docno=np.where(RUNS["c"].index % 20 == 0, RUNS["c"]["docno"], "x" + RUNS["c"]["docno"]))
    averages = means({**RUNS, "z": strange}, left_out("c"))
    assert averages["z"] < min(averages[name] for name in RUNS)


@pytest.mark.parametrize("cutoff", [5, 10])
@pytest.mark.parametrize("depth", [10, 15, 20, 30])
def test_a_pool_of_these_runs_shows_its_depth_exactly(depth, cutoff):
    assert pool_depth(evidence(shallow_pool(RUNS, QRELS, cutoff=depth), cutoff=cutoff)) == depth


@pytest.mark.parametrize(
    "qrels",
    [
        pytest.param(REDUCED["shallow"], id="shallower than the cutoff"),
        pytest.param(REDUCED["thinned"], id="at random"),
        pytest.param(by_topic(0.8), id="by topic"),
        pytest.param(left_out("c"), id="a run left out"),
        pytest.param(QRELS, id="complete"),
    ],
)
def test_judgments_without_a_visible_depth_are_meant_to_the_depth_of_the_evidence(qrels):
    assert pool_depth(evidence(qrels)) == DEPTH


def test_exact_scores_stay_in_a_pool_cut_at_the_cutoff_with_one_run_left_out():
    qrels = shallow_pool({name: RUNS[name] for name in "abd"}, QRELS, cutoff=CUTOFF)
    judgments = Judgments(qrels)
    model = fit_model({name: Run(run) for name, run in RUNS.items()}, judgments, CUTOFF)
    assert model.evidence.depth == CUTOFF
    complete = np.bincount(model.evidence.topic[model.evidence.unjudged_positions], minlength=N_TOPICS) == 0
    counts = GradeDraws(model, N_DRAWS, 0).counts
    assert (counts[:, complete] == model.evidence.counts[complete]).all()


def test_shallow_pools_hide_relevant_documents_and_pools_of_known_depth_do_not():
    def hidden(qrels, constant, pool_cutoff=None):
        judgments = Judgments(qrels)
        model = fit_model({name: Run(run) for name, run in RUNS.items()}, judgments, CUTOFF, pool_cutoff)
        model = fit_evidence(model.evidence, type(model.constants)(hidden=constant))
        return GradeDraws(model, N_DRAWS, 0).unseen_counts[:, :, 1:].sum() / N_DRAWS

    shallow, cut = REDUCED["shallow"], shallow_pool({name: RUNS[name] for name in "abd"}, QRELS, cutoff=CUTOFF)
    relevant = (QRELS["label"] > 0).sum()
    assert hidden(shallow, 0.0) < 0.05 * relevant < 0.1 * relevant < hidden(shallow, 0.5) < relevant
    assert hidden(cut, 0.5) < hidden(cut, 0.0) + 0.05 * relevant
    assert hidden(REDUCED["thinned"], 0.5) == pytest.approx(hidden(REDUCED["thinned"], 0.0), abs=0.01 * relevant)


# Constants, by what a user would notice: widths of intervals, and unseen documents.

MANY = 1000
UNKNOWN, KNOWN = evidence(left_out("c"), {"c": RUNS["c"]}), evidence(left_out("c"))


def spread(result, shift_sds):
    """The standard deviation, over draws, of the share of relevant documents among the unjudged ones."""
    drawn = GradeDraws(fit_evidence(result, Constants(shift_sds=shift_sds)), MANY, 0)
    return (drawn.levels > 0).mean(axis=0).std()


@pytest.mark.parametrize(
    ("result", "part"),
    [
        pytest.param(UNKNOWN, 0, id="the selection of runs of an unknown pool"),
        pytest.param(KNOWN, 4, id="judging that the evidence explains"),
    ],
)
def test_uncertainty_of_the_selection_widens_intervals_by_5_to_40_percent(result, part):
    stated = Constants().shift_sds
    without = spread(result, tuple(0.0 if place == part else sd for place, sd in enumerate(stated)))
    assert 1.05 < spread(result, stated) / without < 1.4


def test_the_pull_towards_the_pool_is_the_difference_of_logits_up_to_4():
    model = fit_evidence(UNKNOWN)
    near = UNKNOWN.near[UNKNOWN.unjudged_positions]
    topic, unexplained = UNKNOWN.topic[UNKNOWN.unjudged_positions][near], model.shift.parts[: near.sum(), 0]
    assert unexplained.min() > 0.1

    def pull(move):
        """The pull of each document if the logit of its topic's pool is moved."""
        moved = replace(UNKNOWN)
        vars(moved)["pool_logit"] = UNKNOWN.pool_logit + move
        return replace(model, evidence=moved).shift.parts[: len(unexplained), 2] / unexplained

    # No document is at a limit once its topic is moved to the middle of its documents.
    middle = np.zeros(len(UNKNOWN.topics))
    for place in np.unique(topic):
        middle[place] = -pull(0.0)[topic == place].mean()
    expected = pull(middle)
    assert 1.0 < np.abs(expected).max() < 3.5
    np.testing.assert_allclose(pull(middle + 0.5), expected + 0.5, atol=1e-9)
    assert pull(middle + 20.0) == pytest.approx(np.full(len(expected), 4.0))
    assert pull(middle - 20.0) == pytest.approx(np.full(len(expected), -4.0))


def test_selected_judgments_leave_more_relevant_documents_unseen():
    """The judged share q of relevant documents is lowered to q^(1 + 2 sigma U), with U uniform for each draw."""
    model = fit_evidence(UNKNOWN)
    at_random, selected = (GradeDraws(replace(model, sigma=sigma), MANY, 0) for sigma in (0.0, 1.0))
    assert selected.unseen_counts.sum() > 1.3 * at_random.unseen_counts.sum() > 0
    topics = slice(0, len(UNKNOWN.topics))
    result = at_random._retrieved_draws(topics)
    overall = at_random._overall([(topics, result)]).judged
    shares = [drawn._judged_share(topics, result.counts, overall) for drawn in (at_random, selected)]
    exponent = (np.log(shares[1]) / np.log(shares[0]))[shares[1] > 0.021]
    assert exponent.min() == pytest.approx(1.0, abs=0.02)
    assert exponent.max() == pytest.approx(3.0, abs=0.02)
    assert np.median(exponent) == pytest.approx(2.0, abs=0.1)


def test_a_topic_whose_judged_documents_are_all_relevant_does_not_make_all_others_relevant():
    """A pool of one grade in a topic moves its unjudged documents by a limited amount."""
    qrels = left_out("c")
    first = qrels["qid"] == "q0"
    pure = pd.concat([qrels[~first], qrels[first].assign(label=1)])
    model = fit_evidence(evidence(pure, {"c": RUNS["c"]}))
    drawn = GradeDraws(model, MANY, 0)
    of_topic = (model.evidence.topic == 0)[model.evidence.unjudged_positions] & model.evidence.near[
        model.evidence.unjudged_positions
    ]
    assert 0.3 < drawn.shares[of_topic, 1:].sum(axis=1).mean() < 0.99


def test_the_width_that_judging_narrows_is_that_of_the_reported_interval():
    """Errors that all topics share widen both."""
    qrels = REDUCED["thinned"]
    model = fit(RUNS, qrels, cutoff=CUTOFF)
    plan = judge_next(
        {"a": RUNS["a"]}, qrels, "ENDCG@10", budget=3, data=Data(model=model), inference=Inference(level=0.9)
    )
    options = Inference(level=0.9, n_draws=1000)
    ranking = rank_systems(RUNS, qrels, "ENDCG@10", uncertainty="unjudged", inference=options)
    row = ranking.systems.set_index("name").loc["a"]
    assert plan.width_before == pytest.approx(row["high"] - row["low"], rel=0.1)
    assert plan.width_after < plan.width_before


# Constants without any shift, error or uncertainty of the regression.
NOTHING = {
    **dict.fromkeys(("selected", "excess", "pool", "strange", "call", "of_run", "of_run_topic", "topic"), 0.0),
    **dict.fromkeys(("topic_selected", "topic_higher"), 0.0),
    "shift_sds": (0.0,) * 5,
    "inflation": 1e-9,
}


# With one run, that of a run is twice as large.
@pytest.mark.parametrize(("error", "sd"), [("call", 0.3), ("of_run", 0.9)])
def test_errors_that_topics_share_do_not_average_out_over_topics(error, sd):
    """A common error of the logits with deviation sd moves the mean of shares p by ``sd mean(p (1 - p))``."""
    alone = {name: value for name, value in NOTHING.items() if name != error}
    model = replace(fit_evidence(UNKNOWN), sigma=0.0)
    drawn, without = (
        GradeDraws(replace(model, constants=Constants(**constants)), MANY, 0) for constants in (alone, NOTHING)
    )
    near = UNKNOWN.near[UNKNOWN.unjudged_positions]
    share = without.shares[near, 1:].sum(axis=1)
    independent = np.sum(share * (1 - share)) / len(share) ** 2
    variance = (drawn.levels > 0).mean(axis=0).var()
    assert (without.levels > 0).mean(axis=0).var() == pytest.approx(independent, rel=0.15)
    assert np.sqrt(variance - independent) == pytest.approx(sd * np.mean(share * (1 - share)), rel=0.1)


def test_uncertainty_about_a_selection_changes_no_estimate_where_nothing_shows_one():
    """Its variance must not enter the factor that keeps means of probabilities in place, either."""
    model, wide = fit_evidence(UNKNOWN), Constants(shift_sds=(2.0,) * 5, topic_selected=2.0)

    def shares(sigma, constants):
        return GradeDraws(replace(model, sigma=sigma, constants=constants), N_DRAWS, 0).shares

    np.testing.assert_array_equal(shares(0.0, Constants()), shares(0.0, wide))
    assert not np.array_equal(shares(0.5, Constants()), shares(0.5, wide))


def log_odds(model, **constants):
    """The log odds that each unjudged document in the cuts is relevant."""
    near = model.evidence.near[model.evidence.unjudged_positions]
    drawn = GradeDraws(replace(model, constants=Constants(**constants)), MANY, 0)
    share = np.clip(drawn.shares[near, 1:].sum(axis=1), 0.5 / MANY, 1 - 0.5 / MANY)
    return np.log(share / (1 - share))


@pytest.mark.parametrize("error", ["call", "of_run", "of_run_topic", "topic"])
def test_errors_of_logits_pull_no_mean_of_a_probability_towards_one_half(error):
    """An error with deviation 1 alone would divide log odds by the square root of 1.35."""
    model = replace(fit_evidence(UNKNOWN), sigma=0.0)
    without, result = (log_odds(model, **errors) for errors in (NOTHING, NOTHING | {error: 1.0}))
    moderate = np.abs(without) < 2.5
    assert moderate.sum() > 100
    slope, _ = np.polyfit(without[moderate], result[moderate], 1)
    assert slope == pytest.approx(1.0, abs=0.06)


def test_labels_of_machines_leave_the_shift_of_selected_documents_as_it_is():
    """A label that says that a document is relevant must not pull it down for being above its topic's pool."""
    judgments, labels = left_out("c"), MachineLabels({"exact": QRELS})
    runs = {"c": Run(RUNS["c"])}
    labelled = fit_evidence(collect_evidence(runs, Judgments(judgments), CUTOFF, DEPTH, labels))
    alone = fit_evidence(collect_evidence(runs, Judgments(judgments), CUTOFF, DEPTH))
    rows = labelled.evidence.unjudged_positions
    assert (labelled.steps[0].regression.logit(labelled.steps[0].design[rows], labelled.evidence.topic[rows]) > 2).any()
    np.testing.assert_allclose(labelled.shift.parts, alone.shift.parts, atol=1e-9)


USELESS = RUNS["c"].assign(docno="x" + RUNS["c"]["docno"])
# Two of three documents of run d that nobody found before, in 15 topics.
PARTLY = RUNS["d"].assign(
    docno=RUNS["d"]["docno"].where(
        ~RUNS["d"]["qid"].isin([f"q{topic}" for topic in range(15)]) | (RUNS["d"].index % 3 == 0),
        "x" + RUNS["d"]["docno"],
    )
)


@pytest.mark.parametrize(
    ("constant", "part", "slope", "qrels", "runs"),
    [
        pytest.param("excess", 1, -4.5, REDUCED["thinned"], {"c": RUNS["c"], "d": PARTLY}, id="more than other runs"),
        pytest.param("strange", 3, -2.0, QRELS, {**RUNS, "z": USELESS}, id="nearly all of a run"),
    ],
)
def test_unjudged_documents_of_runs_and_topics_with_many_of_them_are_less_relevant(constant, part, slope, qrels, runs):
    """If documents were selected for judging, their log odds change in proportion to the excess or the strangeness."""
    model = replace(fit_evidence(evidence(qrels, runs)), sigma=1.0)
    size = model.shift.parts[: np.count_nonzero(model.evidence.near[model.evidence.unjudged_positions]), part]
    change = log_odds(model) - log_odds(model, **{constant: 0.0})
    assert change[size > 0.15].max() < 0.0
    assert (change * size).sum() / (size**2).sum() == pytest.approx(slope, rel=0.25)


def test_hidden_relevant_documents_are_known_up_to_a_factor():
    """The logarithm of their number has a standard deviation of .6, and its middle stays."""
    judgments = Judgments(REDUCED["shallow"])
    model = fit_model({name: Run(run) for name, run in RUNS.items()}, judgments, CUTOFF)
    unseen = [
        GradeDraws(replace(model, constants=constants), MANY, 0).unseen_counts[:, :, 1:].sum(axis=(1, 2))
        for constants in (Constants(), Constants(hidden_sd=0.0))
    ]
    factor = np.log(unseen[0] / unseen[1])
    assert factor.std() == pytest.approx(0.6, rel=0.1)
    assert np.median(factor) == pytest.approx(0.0, abs=0.05)


@pytest.mark.slow
def test_documents_that_no_run_retrieves_follow_their_gamma_prior_and_poisson_numbers():
    """Topics without a relevant document in the evidence have .1 / 1.1 of the mean over topics as prior mean."""
    qrels, shown = left_out("c"), RUNS["c"][RUNS["c"]["qid"] == "q0"]
    not_relevant = (qrels["qid"] == "q0") & qrels["docno"].isin(shown["docno"])
    model = fit_evidence(evidence(qrels.assign(label=qrels["label"].where(~not_relevant, 0)), {"c": RUNS["c"]}))
    drawn, poor = GradeDraws(replace(model, sigma=0.0), MANY, 0), model.evidence.topics.index("q0")
    topics, result = slice(0, N_TOPICS), drawn._retrieved_draws(slice(0, N_TOPICS)).counts
    overall = drawn._overall([(topics, drawn._retrieved_draws(topics))])
    share = drawn._judged_share(topics, result, overall.judged)
    level, outside = 1, model.evidence.outside
    inside = result[:, level] + model.evidence.counts[:, level, None] - outside[:, level, None]
    mean = (outside[:, level].sum() + 0.5) / N_TOPICS / overall.mean_share
    prior = mean * (inside / inside.mean(axis=0) + 0.1) / 1.1
    # Bayes' theorem by weighted draws of the rate: the judged ones are Poisson with the rate times the judged share.
    rng, seen = np.random.default_rng(0), drawn.unseen_counts[:, :, level].mean(axis=0)
    rate = rng.gamma(0.5, prior / 0.5, size=(200, *prior.shape))
    weight = stats.poisson.pmf(outside[:, level, None], rate * share)
    expected = ((weight * rate).sum(axis=0) / weight.sum(axis=0) * (1 - share)).mean(axis=1)
    assert seen[poor] == pytest.approx(expected[poor], rel=0.1)
    assert seen == pytest.approx(expected, rel=0.2)
    assert (seen / expected).mean() == pytest.approx(1.0, abs=0.01)


def test_the_odds_that_a_relevant_document_is_unjudged_have_no_bias_in_topics_with_few():
    """Their mean over draws is (u + 4(1 - Q))/(j + 4Q), for any number j of judged relevant documents."""
    drawn = GradeDraws(replace(fit_evidence(evidence(REDUCED["thinned"])), sigma=0.0), MANY, 0)
    topics = slice(0, N_TOPICS)
    levels = drawn._retrieved_draws(topics).counts
    overall = drawn._overall([(topics, drawn._retrieved_draws(topics))]).judged
    share = drawn._judged_share(topics, levels, overall)
    judged = drawn._inside[topics, 1:].sum(axis=1)[:, None]
    unjudged = levels[:, 1:].sum(axis=1)
    expected = ((unjudged + 4 * (1 - overall)) / (judged + 4 * overall)).mean(axis=1)
    few = judged[:, 0] <= np.median(judged)
    odds = (1 / share - 1).mean(axis=1)
    assert (odds / expected)[few].mean() == pytest.approx(1.0, abs=0.03)
    assert (odds / expected)[~few].mean() == pytest.approx(1.0, abs=0.03)


def test_two_judgments_leave_the_fall_of_relevance_with_the_rank_at_its_prior_mean():
    judged = pd.concat([QRELS[QRELS["label"] == 0].head(1), QRELS[QRELS["label"] > 0].head(1)])
    model = fit_evidence(evidence(judged))
    slope = dict(zip(model.features.names, model.steps[0].regression.coef, strict=False))["rank"]
    assert slope == pytest.approx(0.45, abs=0.25)
