"""The verdict of a report, sentences about significant differences between systems, and its caveats."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from vbterrier.errors import printable
from vbterrier.evaluate.intent_notes import GUESSES
from vbterrier.evaluate.unjudged_shares import SERIOUS_SHARE_DIFFERENCE, SERIOUS_UNJUDGED_SHARE, share_range
from vbterrier.evaluate.verdicts import (
    FLAG_MARK,
    NO_POWER,
    better,
    count_range_text,
    means_sentence,
    measure_from_name,
    name_list,
    too_few,
    verdict_sentence,
)
from vbterrier.frames.answer import Caveat, text_key
from vbterrier.frames.ranking import MAX_TIED_SHARE
from vbterrier.intents.taggers import MAX_TIED_TAG_SHARE
from vbterrier.kernels.tolerances import ROUNDING
from vbterrier.measures.target import MAX_MISSING_SHARE
from vbterrier.measures.unjudged import Bootstrapped, Estimated, UnjudgedMeasure
from vbterrier.report.page.evaluated import row_tuples, wide_values

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from vbterrier.annotations import Floats
    from vbterrier.evaluate.comparison import Comparison
    from vbterrier.report.page.evaluated import ReportNumbers


_CORRECTION_TEXTS = {
    "bonferroni": "corrected for all {n} {scope} (Bonferroni)",
    "holm": "corrected for all {n} {scope} (Holm)",
    "bh": "with the false discovery rate over all {n} {scope} controlled (Benjamini-Hochberg)",
    "max-t": "corrected for all {n} {scope} (max-T)",
    "none": "not corrected for the {n} {scope}",
}


def sentences(numbers: ReportNumbers) -> list[str]:
    """A sentence for each measure by which systems are compared, and sentences on measures that disagree."""
    if numbers.comparison is None:
        # A single system, or measures by which systems are not compared.
        rows = numbers.scores.intervals.drop_duplicates(["name", "measure"]).to_dict("records")
        return [means_sentence(str(row["measure"]), [row]) for row in rows]
    pairs = numbers.comparison.pairs
    # No test finds a difference on one topic.
    single = pairs.groupby("measure")["n_qids"].max() < 2  # noqa: PLR2004
    few = {
        measure: "topics" if single[measure] else too_few(numbers.messages, measure, numbers.compared)
        for measure in numbers.compared
    }
    guessed = numbers.comparison.guessed
    ordered = [measure for measure in numbers.compared if measure not in guessed]
    texts = [verdict_sentence(numbers.comparison, measure, few=few[measure]) for measure in ordered]
    if guessed:
        texts.append(f"By {name_list(guessed)}, {GUESSES}.")
    return texts + _disagreements(numbers.comparison, numbers.compared)


def agreement(numbers: ReportNumbers) -> list[str]:
    """A sentence on measures that find other significant pairs than the first measure, if there are further ones."""
    if numbers.comparison is None:
        return []
    compared = [measure for measure in numbers.compared if measure not in numbers.comparison.guessed]
    if len(compared) < 2:  # noqa: PLR2004 - two measures may disagree
        return []
    pairs = numbers.comparison.pairs[numbers.comparison.significant()]
    # The order within a pair depends on the measure, so a pair is written with its better system first.
    differ = {measure: set[tuple[str, str]]() for measure in compared}
    for measure, a, b, diff in row_tuples(pairs, "measure", "name_a", "name_b", "diff"):
        differ[measure].add((a, b) if (diff > 0) == (better(measure) != "lower") else (b, a))
    first, *others = compared
    same = [measure for measure in others if differ[measure] == differ[first]]
    reverse = {(b, a) for a, b in differ[first]}
    against = [measure for measure in others if differ[measure] & reverse]
    none = [measure for measure in others if not differ[measure] and measure not in same]
    rest = [measure for measure in others if measure not in same + against + none]
    alone = [(measure, *next(iter(differ[measure]))) for measure in rest if len(differ[measure]) == 1]
    many = [measure for measure in rest if len(differ[measure]) > 1]
    statements = [
        *_finding(same, "the same significant differences" if differ[first] else "no significant difference either"),
        *_finding(none, "no significant difference"),
        *(f"{measure} finds {printable(a)} significantly better than {printable(b)}" for measure, a, b in alone),
        *_finding(many, "other significant differences"),
        *_finding(against, "a significant difference in the opposite direction"),
    ]
    return [f"{'; '.join(statements)}."]


def _finding(measures: list[str], what: str) -> list[str]:
    return [f"{name_list(measures)} {'finds' if len(measures) == 1 else 'find'} {what}"] if measures else []


def _disagreements(result: Comparison, measures: Iterable[str]) -> list[str]:
    """Pairs that differ significantly by a measure of unjudged documents or by its plain version, but not by both.

    The plain version, as nDCG of ENDCG, treats unjudged documents as non-relevant.
    """
    texts = []
    for measure in measures:
        # The plain version of BNDCG@10 and ENDCG@10 is nDCG@10, that of BRBP(p=0.8) is RBP(p=0.8).
        bare = measure[1:].casefold()
        plain = next((other for other in measures if other.casefold() == bare), None)
        if plain is not None and isinstance(measure_from_name(measure), UnjudgedMeasure):
            texts += _disagreement_sentences(result, measure, plain)
    return texts


def _disagreement_sentences(result: Comparison, bootstrapped: str, plain: str) -> list[str]:
    wide = result.pairs.assign(significant=result.significant())
    # The order within a pair depends on the measure, so the sign of a difference is the better system's name.
    signs: dict[str, dict[frozenset[str], str | None]] = {bootstrapped: {}, plain: {}}
    for measure, a, b, diff, significant in row_tuples(wide, "measure", "name_a", "name_b", "diff", "significant"):
        if measure in signs:
            signs[measure][frozenset((a, b))] = (a if diff > 0 else b) if significant else None
    both = [(one, signs[bootstrapped].get(pair), " vs. ".join(sorted(pair))) for pair, one in signs[plain].items()]
    gone = [pair for one, other, pair in both if one is not None and other is None]
    new = [pair for one, other, pair in both if one is None and other is not None]
    turned = [pair for one, other, pair in both if None not in (one, other) and one != other]
    texts = []
    if gone:
        texts.append(
            f"By {plain}, but not by {bootstrapped}, these systems differ significantly: {name_list(gone, 4)}. The "
            f"difference depends on unjudged documents, which {plain} treats as non-relevant."
        )
    if new:
        texts.append(f"By {bootstrapped}, but not by {plain}, these systems differ significantly: {name_list(new, 4)}.")
    if turned:
        both_ways = f"significant differences in opposite directions: {name_list(turned, 4)}"
        texts.append(f"{plain} and {bootstrapped} contradict each other, with {both_ways}.")
    return texts


def test_sentence(result: Comparison) -> str:
    """The test, its level and its correction in a sentence."""
    one = result.pairs.iloc[0]
    n, n_measures = int(one["n_tests"]), result.pairs["measure"].nunique()
    scope = "pairs of a measure" if n < len(result.pairs) or n_measures == 1 else "tests of all measures"
    corrected = "" if n == 1 else ", " + _CORRECTION_TEXTS[str(one["correction"])].format(n=n, scope=scope)
    if n < len(result.pairs):
        corrected += f"; {len(result.pairs)} tests of {n_measures} measures in all"
    return f"A difference is significant if p is at most {result.alpha:g}; test over topics: {one['test']}{corrected}."


# Below this share of tagged documents, a caveat is serious.
MIN_TAGGED_SHARE = 0.5
_MAX_NAMED = 5


def caveats(numbers: ReportNumbers) -> list[Caveat]:
    """All caveats of a verdict: the meaning of measures of unjudged documents, then serious ones, then the others."""
    parts = (_missing, _unjudged_caveats, _tagging_caveats, _reach, _influential, _ties, _powerless)
    families = [_families(numbers)] if numbers.distributions else []
    notes = [Caveat("Judgments", f"{note.text[0].upper()}{note.text[1:]}.", note.serious) for note in numbers.notes]
    return families + sorted(
        [*notes, *(one for part in parts for one in part(numbers))], key=lambda caveat: not caveat.serious
    )


def _families(numbers: ReportNumbers) -> Caveat:
    """The measures of unjudged documents on the page, their models, and fully judged runs that they change."""
    estimated, bootstrapped = (
        [name for name in numbers.measures if isinstance(measure_from_name(name), family)]
        for family in (Estimated, Bootstrapped)
    )
    texts = []
    if estimated:
        texts.append(
            f"{name_list(estimated)} {'estimates' if len(estimated) == 1 else 'estimate'} the scores that complete "
            "judgments would give, from all runs and judgments of this page. They change with the runs that are "
            "evaluated together."
        )
    if bootstrapped:
        texts.append(
            f"{name_list(bootstrapped)} {'draws' if len(bootstrapped) == 1 else 'draw'} the grades of a topic's "
            "unjudged documents from its own judgments; the ideal ranking stays that of the pool. Report these scores "
            "beside published scores of the same judgments."
        )
    # A note that repeats a warning is left out: the warning is a separate caveat.
    warned = set(map(text_key, numbers.messages))
    notes = [f"{note[0].upper()}{note[1:]}." for note in numbers.scores.notes if text_key(note) not in warned]
    return Caveat("Unjudged documents in scores", " ".join([*texts, *notes]), serious=False)


def _missing(numbers: ReportNumbers) -> Iterator[Caveat]:
    flags = None if numbers.comparison is None else numbers.comparison.flags
    flagged = set() if flags is None else set(flags.loc[flags["flag"] != "", "name"].astype(str))
    for name, n_qids, n_missing in row_tuples(numbers.scores.missing, "name", "n_qids", "n_missing"):
        if n_missing:
            text = (
                f"{printable(name)}{FLAG_MARK * (str(name) in flagged)} returned nothing for {n_missing} of {n_qids} "
                "topics, which score as empty rankings."
            )
            serious = n_missing > MAX_MISSING_SHARE * n_qids
            more = " The file may be incomplete: compare the systems also on the topics that all of them have."
            yield Caveat("Empty topics", text + more * serious, serious)


def _unjudged_caveats(numbers: ReportNumbers) -> Iterator[Caveat]:
    if not numbers.tops:
        return
    shares = {name: float(top.unjudged_share().mean()) for name, top in numbers.tops.items()}
    low, high, span = share_range(shares)
    where = f"the first {numbers.cutoff} documents"
    if not shares[high]:
        yield Caveat("Unjudged documents", f"All of {where} of all systems are judged.", serious=False)
        return
    of_all = " of all systems" * (len(shares) > 1)
    statement = f"Of {where}, {span} are unjudged." if "(" in span else f"{span} of {where}{of_all} are unjudged."
    apart = shares[high] - shares[low] > SERIOUS_SHARE_DIFFERENCE
    if apart:
        statement += f" Measures that treat unjudged documents as non-relevant favour {printable(low)}"
        statement += f"; prefer {numbers.bootstrapped}." if numbers.distributions else "."
    if numbers.distributions and numbers.comparison is not None:
        statement += (
            f" The tests vary the topics and treat the expected {numbers.bootstrapped} as exact; "
            '"vbterrier rank --uncertainty both" also includes the uncertainty of unjudged documents.'
        )
    yield Caveat("Unjudged documents", statement, apart or shares[high] > SERIOUS_UNJUDGED_SHARE)
    whole = {name: int((top.unjudged_share() == 1).sum()) for name, top in numbers.tops.items()}
    unjudged_topics = [f"{count_range_text(n, 'topic')} of {printable(name)}" for name, n in whole.items() if n]
    if unjudged_topics:
        effect = "depend on the model of unjudged documents alone"
        effect = effect if numbers.distributions else "are not evidence of quality"
        text = f"None of {where} is judged for {name_list(unjudged_topics)}: these scores {effect}."
        yield Caveat("Topics without judgments", text, serious=True)


def _tagging_caveats(numbers: ReportNumbers) -> Iterator[Caveat]:
    tagged = {name: covered.tagged for name, covered in numbers.covered.items() if not np.isnan(covered.tagged)}
    if not tagged:
        return
    low, _, span = share_range(tagged)
    text = f"{span} of the first {numbers.cutoff} documents have a candidate as a tag."
    ties = {name: covered.ties for name, covered in numbers.covered.items() if covered.ties.sentence()}
    most = max(ties, key=lambda name: sum(ties[name]), default=None)
    if most is not None:
        text += f" Of {printable(most)}, {ties[most].sentence()}."
    many = any(sum(each) > MAX_TIED_TAG_SHARE for each in ties.values())
    oracle = next(iter(numbers.covered.values())).oracle
    if not np.isnan(oracle):
        text += f" The best possible ranking under the same tags has an expected success of {oracle:.3f}."
    yield Caveat("Tags", text, tagged[low] < MIN_TAGGED_SHARE or many)


def _reach(numbers: ReportNumbers) -> Iterator[Caveat]:
    if numbers.reach is None:
        return
    pool = numbers.reach.pool.to_dict("records")[0]
    text = (
        f"Of {pool['n_documents']:,} documents in the pool, {pool['share_unjudged']:.1%} are unjudged and treated as "
        f"non-relevant; {pool['share_without_entities']:.1%} mention no entity, so no entity run reaches them."
    )
    serious = pool["share_unjudged"] > SERIOUS_UNJUDGED_SHARE or pool["share_without_entities"] > SERIOUS_UNJUDGED_SHARE
    yield Caveat("The linked pool", text, serious)


def _influential(numbers: ReportNumbers) -> Iterator[Caveat]:
    if numbers.comparison is None:
        return
    measure = numbers.compared[0]
    wide = wide_values(numbers, measure).dropna()
    lower = better(measure) == "lower"
    names = list(wide.mean().sort_values(ascending=lower, kind="stable").index)
    baseline = numbers.comparison.baseline
    # The best system against the baseline, or against the second best.
    a, b = names[:2] if baseline in (None, names[0]) else (names[0], str(baseline))
    first, second = (wide[name].to_numpy() for name in ((b, a) if lower else (a, b)))
    topics = influential_topics(first, second)
    where = "below" if lower else "above"
    if not len(topics):
        return
    if len(topics) == len(wide):
        if len(wide) > 1:
            text = (
                f"No single topic is decisive: by {measure}, {printable(a)} is {where} {printable(b)} on every topic."
            )
            yield Caveat("Influential topics", text, serious=False)
        return
    without = (
        f"Without {len(topics)} of {len(wide)} topics ({name_list(wide.index[topics], _MAX_NAMED)}), the mean {measure}"
    )
    text = f"{without} of {printable(a)} would not be {where} that of {printable(b)}."
    pairs = numbers.comparison.pairs
    significant = pairs[numbers.comparison.significant() & (pairs["measure"] == measure)]
    differ = any({*pair} == {a, b} for pair in row_tuples(significant, "name_a", "name_b"))
    few = len(topics) <= max(1, len(wide) // 20)
    yield Caveat("Influential topics", text, differ and few)


def _ties(numbers: ReportNumbers) -> Iterator[Caveat]:
    tied = {name: share for name, share in numbers.ties.items() if share > MAX_TIED_SHARE}
    if tied:
        shares = name_list(f"{name} ({share:.0%})" for name, share in tied.items())
        text = (
            f"Scores of the first {numbers.cutoff} documents are tied in {shares}. Ties are broken by docno, as "
            "trec_eval does; another order would give other values."
        )
        yield Caveat("Tied scores", text, max(tied.values()) > SERIOUS_UNJUDGED_SHARE)


def _powerless(numbers: ReportNumbers) -> Iterator[Caveat]:
    """Tests that cannot find a difference, and tests with an infinite statistic."""
    for text in numbers.messages:
        if NO_POWER in text:
            yield Caveat("Few resamples" if "n_resamples=" in text else "Few topics", f"{text}.", serious=True)
        elif "t is infinite" in text:
            yield Caveat("Differences without variance", f"{text[0].upper()}{text[1:]}.", serious=True)


def influential_topics(a: Floats, b: Floats) -> NDArray[np.int64]:
    """The fewest topics without which the mean of ``a`` is not above that of ``b``; empty if it is not above it."""
    gain = a - b
    order = np.argsort(-gain, kind="stable")
    left = gain.sum() - np.cumsum(gain[order])
    if not gain.sum() > 0:
        return order[:0]
    # Without the tolerance, rounding of sums could add one topic.
    return order[: 1 + int(np.argmax(left <= np.abs(gain).sum() * ROUNDING))]
