"""Evaluation of retrieval systems where ground truth is missing, incomplete or ambiguous.

Importing the package registers its measures with ir_measures. Its PyTerrier stages are reached as attributes, which is
when pyterrier is imported: pyterrier loads this package while it is itself being imported.
"""

import importlib
from typing import TYPE_CHECKING, Any

from vbterrier.errors import DegenerateWarning, FileError, InputError, ParameterError, ServiceError, VBTerrierError
from vbterrier.frames.files import (
    read_answers,
    read_documents,
    read_intents,
    read_mentions,
    read_qrels,
    read_run,
    read_tags,
    read_topics,
    read_values,
    write_intents,
    write_qrels,
    write_queries,
    write_run,
    write_tags,
)
from vbterrier.frames.named import register_intents, register_tags
from vbterrier.frames.qrels import flatten_qrels
from vbterrier.frames.ranked import ranked
from vbterrier.judgments.bootstrap import BootstrapDistribution, bootstrap_distribution
from vbterrier.measures import (
    BAP,
    BERR,
    BNDCG,
    BP,
    BQ,
    BRBP,
    ES,
    OER,
    VB,
    BaitRate,
    DiscRatio,
    LinkingF1,
    LinkingP,
    LinkingR,
    LinkP,
    LinkR,
    NDCGBound,
    NilP,
    NilR,
    NonRelCov,
    ObsCov,
    OERCorr,
    OracleCov,
    RelCov,
    SignalRate,
    TopBait,
    TopIntent,
    Unjudged,
    VarPenalty,
    enable_string_measures,
    measures_from,
)

if TYPE_CHECKING:
    from vbterrier.adapters.trectools import VBTrecEval
    from vbterrier.entities.files import read_links, write_links
    from vbterrier.entities.pool import LinkedPool, link_pool
    from vbterrier.entities.rankers.consensus import ConsensusEntities
    from vbterrier.entities.rankers.hybrid import HybridEntities
    from vbterrier.entities.rankers.idf import LocalIDF
    from vbterrier.entities.rankers.oer_filter import OERFilter
    from vbterrier.entities.rankers.pagerank import PersonalisedPageRank
    from vbterrier.entities.rankers.selector import EntitySelector
    from vbterrier.entities.rankers.similarity import EntitySimilarity
    from vbterrier.entities.reachable import EntityReachable
    from vbterrier.entities.rerank.embedding import EmbeddingReranker
    from vbterrier.entities.rerank.expansion import ExpandByEntities, ExpansionReranker
    from vbterrier.entities.rerank.overlap import OverlapReranker
    from vbterrier.entities.rerank.propagation import PropagationReranker
    from vbterrier.entities.slots import selected_entities
    from vbterrier.entities.supervision import entity_labels, supervision_report
    from vbterrier.evaluate import score
    from vbterrier.evaluate.comparing import compare
    from vbterrier.evaluate.coverage import coverage_report
    from vbterrier.evaluate.intents import evaluate_intents
    from vbterrier.evaluate.judging import judge_next
    from vbterrier.evaluate.ranking import rank_systems
    from vbterrier.evaluate.rerank_grid import rerank_grid
    from vbterrier.evaluate.settings import evaluate_settings
    from vbterrier.evaluate.shares import variance_shares
    from vbterrier.evaluate.sides import evaluate_sides
    from vbterrier.evaluate.simulations import simulate
    from vbterrier.evaluate.variants import Paraphrases, Rerun
    from vbterrier.intents.calibrate import Calibrate
    from vbterrier.intents.calibration import calibration_error
    from vbterrier.intents.candidates import CandidateIntents
    from vbterrier.intents.constraints import ParseConstraints, parse_constraints
    from vbterrier.intents.dedup import Dedup
    from vbterrier.intents.embed import MiniLM
    from vbterrier.intents.oracle import oracle_success
    from vbterrier.intents.relax import RelaxConstraints
    from vbterrier.intents.truncate import Truncate
    from vbterrier.judgments.condense import Condense
    from vbterrier.judgments.incomplete import leave_group_out, shallow_pool, thin_pool
    from vbterrier.judgments.judge_next import write_judging
    from vbterrier.judgments.priors.predicted import predict_grades
    from vbterrier.linking.articles import read_elevant, read_rel
    from vbterrier.linking.clients import EntityFishingClient, RELClient, SpotlightClient, TagMeClient, WATClient
    from vbterrier.linking.corpora import read_mmead, read_spans, read_wat_corpus
    from vbterrier.linking.dictionary import DictionaryLinker
    from vbterrier.linking.fuzzy import FuzzyLinker
    from vbterrier.linking.kb import (
        KnowledgeBase,
        build_kb,
        kb_from_file,
        kb_from_rel,
        kb_from_spacy,
        kb_from_wikidata,
        kb_from_wikimapper,
    )
    from vbterrier.linking.quality import linking_report
    from vbterrier.linking.retriever import RetrieverLinker
    from vbterrier.linking.spacy import SpacyLinker
    from vbterrier.measures.artifact import IntentSet
    from vbterrier.queryset.decisions import DecisionCounts
    from vbterrier.queryset.discrimination import discriminative_power
    from vbterrier.queryset.estimates import horvitz_thompson
    from vbterrier.queryset.planning import detectable_difference, queries_needed
    from vbterrier.queryset.profile import query_profile
    from vbterrier.queryset.removal import removal
    from vbterrier.queryset.sampling import sample_queries
    from vbterrier.queryset.sizes import score_by_size
    from vbterrier.queryset.widths import interval_width
    from vbterrier.report.page import write_report
    from vbterrier.tags.quality import tag_quality
    from vbterrier.tags.stage import TagEntities
    from vbterrier.uncertainty import (
        Dirichlet,
        DropCandidates,
        DropConstraints,
        IntentBootstrap,
        ScoreNoise,
        TagConfusion,
        TagDropout,
        TemperatureJitter,
        Variants,
        hoeffding_error,
        hoeffding_replicas,
    )
    from vbterrier.uncertainty.breakpoints import breakpoint_sweep
    from vbterrier.uncertainty.frontier import frontier
    from vbterrier.uncertainty.intervals import intervals
    from vbterrier.uncertainty.kappa import cohen_kappa, fleiss_kappa, judge_agreement
    from vbterrier.uncertainty.prediction_powered import prediction_powered
    from vbterrier.uncertainty.ratios import disc_ratio
    from vbterrier.uncertainty.regression import gain_regressions
    from vbterrier.uncertainty.strata import coverage_strata
    from vbterrier.uncertainty.topic_statistics import TopicStatistics

__version__ = "0.1.0"

__all__ = [
    "BAP",
    "BERR",
    "BNDCG",
    "BP",
    "BQ",
    "BRBP",
    "ES",
    "OER",
    "VB",
    "BaitRate",
    "BootstrapDistribution",
    "Calibrate",
    "CandidateIntents",
    "Condense",
    "ConsensusEntities",
    "DecisionCounts",
    "Dedup",
    "DegenerateWarning",
    "DictionaryLinker",
    "Dirichlet",
    "DiscRatio",
    "DropCandidates",
    "DropConstraints",
    "EmbeddingReranker",
    "EntityFishingClient",
    "EntityReachable",
    "EntitySelector",
    "EntitySimilarity",
    "ExpandByEntities",
    "ExpansionReranker",
    "FileError",
    "FuzzyLinker",
    "HybridEntities",
    "InputError",
    "IntentBootstrap",
    "IntentSet",
    "KnowledgeBase",
    "LinkP",
    "LinkR",
    "LinkedPool",
    "LinkingF1",
    "LinkingP",
    "LinkingR",
    "LocalIDF",
    "MiniLM",
    "NDCGBound",
    "NilP",
    "NilR",
    "NonRelCov",
    "OERCorr",
    "OERFilter",
    "ObsCov",
    "OracleCov",
    "OverlapReranker",
    "ParameterError",
    "Paraphrases",
    "ParseConstraints",
    "PersonalisedPageRank",
    "PropagationReranker",
    "RELClient",
    "RelCov",
    "RelaxConstraints",
    "Rerun",
    "RetrieverLinker",
    "ScoreNoise",
    "ServiceError",
    "SignalRate",
    "SpacyLinker",
    "SpotlightClient",
    "TagConfusion",
    "TagDropout",
    "TagEntities",
    "TagMeClient",
    "TemperatureJitter",
    "TopBait",
    "TopIntent",
    "TopicStatistics",
    "Truncate",
    "Unjudged",
    "VBTerrierError",
    "VBTrecEval",
    "VarPenalty",
    "Variants",
    "WATClient",
    "__version__",
    "bootstrap_distribution",
    "breakpoint_sweep",
    "build_kb",
    "calibration_error",
    "cohen_kappa",
    "compare",
    "coverage_report",
    "coverage_strata",
    "detectable_difference",
    "disc_ratio",
    "discriminative_power",
    "enable_string_measures",
    "entity_labels",
    "evaluate_intents",
    "evaluate_settings",
    "evaluate_sides",
    "flatten_qrels",
    "fleiss_kappa",
    "frontier",
    "gain_regressions",
    "hoeffding_error",
    "hoeffding_replicas",
    "horvitz_thompson",
    "interval_width",
    "intervals",
    "judge_agreement",
    "judge_next",
    "kb_from_file",
    "kb_from_rel",
    "kb_from_spacy",
    "kb_from_wikidata",
    "kb_from_wikimapper",
    "leave_group_out",
    "link_pool",
    "linking_report",
    "measures_from",
    "oracle_success",
    "parse_constraints",
    "predict_grades",
    "prediction_powered",
    "queries_needed",
    "query_profile",
    "rank_systems",
    "ranked",
    "read_answers",
    "read_documents",
    "read_elevant",
    "read_intents",
    "read_links",
    "read_mentions",
    "read_mmead",
    "read_qrels",
    "read_rel",
    "read_run",
    "read_spans",
    "read_tags",
    "read_topics",
    "read_values",
    "read_wat_corpus",
    "register_intents",
    "register_tags",
    "removal",
    "rerank_grid",
    "sample_queries",
    "score",
    "score_by_size",
    "selected_entities",
    "shallow_pool",
    "simulate",
    "supervision_report",
    "tag_quality",
    "thin_pool",
    "variance_shares",
    "write_intents",
    "write_judging",
    "write_links",
    "write_qrels",
    "write_queries",
    "write_report",
    "write_run",
    "write_tags",
]

# What imports a host library or SciPy, and where it lives.
_LAZY = {
    "Calibrate": "vbterrier.intents.calibrate",
    "CandidateIntents": "vbterrier.intents.candidates",
    "Condense": "vbterrier.judgments.condense",
    "ConsensusEntities": "vbterrier.entities.rankers.consensus",
    "DecisionCounts": "vbterrier.queryset.decisions",
    "Dedup": "vbterrier.intents.dedup",
    "DictionaryLinker": "vbterrier.linking.dictionary",
    "Dirichlet": "vbterrier.uncertainty",
    "DropCandidates": "vbterrier.uncertainty",
    "DropConstraints": "vbterrier.uncertainty",
    "EmbeddingReranker": "vbterrier.entities.rerank.embedding",
    "EntityFishingClient": "vbterrier.linking.clients",
    "EntityReachable": "vbterrier.entities.reachable",
    "EntitySelector": "vbterrier.entities.rankers.selector",
    "EntitySimilarity": "vbterrier.entities.rankers.similarity",
    "ExpandByEntities": "vbterrier.entities.rerank.expansion",
    "ExpansionReranker": "vbterrier.entities.rerank.expansion",
    "FuzzyLinker": "vbterrier.linking.fuzzy",
    "HybridEntities": "vbterrier.entities.rankers.hybrid",
    "IntentBootstrap": "vbterrier.uncertainty",
    "IntentSet": "vbterrier.measures.artifact",
    "KnowledgeBase": "vbterrier.linking.kb",
    "LinkedPool": "vbterrier.entities.pool",
    "LocalIDF": "vbterrier.entities.rankers.idf",
    "MiniLM": "vbterrier.intents.embed",
    "OERFilter": "vbterrier.entities.rankers.oer_filter",
    "OverlapReranker": "vbterrier.entities.rerank.overlap",
    "Paraphrases": "vbterrier.evaluate.variants",
    "ParseConstraints": "vbterrier.intents.constraints",
    "PersonalisedPageRank": "vbterrier.entities.rankers.pagerank",
    "PropagationReranker": "vbterrier.entities.rerank.propagation",
    "RELClient": "vbterrier.linking.clients",
    "RelaxConstraints": "vbterrier.intents.relax",
    "Rerun": "vbterrier.evaluate.variants",
    "RetrieverLinker": "vbterrier.linking.retriever",
    "ScoreNoise": "vbterrier.uncertainty",
    "SpacyLinker": "vbterrier.linking.spacy",
    "SpotlightClient": "vbterrier.linking.clients",
    "TagConfusion": "vbterrier.uncertainty",
    "TagDropout": "vbterrier.uncertainty",
    "TagEntities": "vbterrier.tags.stage",
    "TagMeClient": "vbterrier.linking.clients",
    "TemperatureJitter": "vbterrier.uncertainty",
    "TopicStatistics": "vbterrier.uncertainty.topic_statistics",
    "Truncate": "vbterrier.intents.truncate",
    "VBTrecEval": "vbterrier.adapters.trectools",
    "Variants": "vbterrier.uncertainty",
    "WATClient": "vbterrier.linking.clients",
    "breakpoint_sweep": "vbterrier.uncertainty.breakpoints",
    "build_kb": "vbterrier.linking.kb",
    "calibration_error": "vbterrier.intents.calibration",
    "cohen_kappa": "vbterrier.uncertainty.kappa",
    "compare": "vbterrier.evaluate.comparing",
    "coverage_report": "vbterrier.evaluate.coverage",
    "coverage_strata": "vbterrier.uncertainty.strata",
    "detectable_difference": "vbterrier.queryset.planning",
    "disc_ratio": "vbterrier.uncertainty.ratios",
    "discriminative_power": "vbterrier.queryset.discrimination",
    "entity_labels": "vbterrier.entities.supervision",
    "evaluate_intents": "vbterrier.evaluate.intents",
    "evaluate_settings": "vbterrier.evaluate.settings",
    "evaluate_sides": "vbterrier.evaluate.sides",
    "fleiss_kappa": "vbterrier.uncertainty.kappa",
    "frontier": "vbterrier.uncertainty.frontier",
    "gain_regressions": "vbterrier.uncertainty.regression",
    "hoeffding_error": "vbterrier.uncertainty",
    "hoeffding_replicas": "vbterrier.uncertainty",
    "horvitz_thompson": "vbterrier.queryset.estimates",
    "interval_width": "vbterrier.queryset.widths",
    "intervals": "vbterrier.uncertainty.intervals",
    "judge_agreement": "vbterrier.uncertainty.kappa",
    "judge_next": "vbterrier.evaluate.judging",
    "kb_from_file": "vbterrier.linking.kb",
    "kb_from_rel": "vbterrier.linking.kb",
    "kb_from_spacy": "vbterrier.linking.kb",
    "kb_from_wikidata": "vbterrier.linking.kb",
    "kb_from_wikimapper": "vbterrier.linking.kb",
    "leave_group_out": "vbterrier.judgments.incomplete",
    "link_pool": "vbterrier.entities.pool",
    "linking_report": "vbterrier.linking.quality",
    "oracle_success": "vbterrier.intents.oracle",
    "parse_constraints": "vbterrier.intents.constraints",
    "predict_grades": "vbterrier.judgments.priors.predicted",
    "prediction_powered": "vbterrier.uncertainty.prediction_powered",
    "queries_needed": "vbterrier.queryset.planning",
    "query_profile": "vbterrier.queryset.profile",
    "rank_systems": "vbterrier.evaluate.ranking",
    "read_elevant": "vbterrier.linking.articles",
    "read_links": "vbterrier.entities.files",
    "read_mmead": "vbterrier.linking.corpora",
    "read_rel": "vbterrier.linking.articles",
    "read_spans": "vbterrier.linking.corpora",
    "read_wat_corpus": "vbterrier.linking.corpora",
    "removal": "vbterrier.queryset.removal",
    "rerank_grid": "vbterrier.evaluate.rerank_grid",
    "sample_queries": "vbterrier.queryset.sampling",
    "score": "vbterrier.evaluate",
    "score_by_size": "vbterrier.queryset.sizes",
    "selected_entities": "vbterrier.entities.slots",
    "shallow_pool": "vbterrier.judgments.incomplete",
    "simulate": "vbterrier.evaluate.simulations",
    "supervision_report": "vbterrier.entities.supervision",
    "tag_quality": "vbterrier.tags.quality",
    "thin_pool": "vbterrier.judgments.incomplete",
    "variance_shares": "vbterrier.evaluate.shares",
    "write_judging": "vbterrier.judgments.judge_next",
    "write_links": "vbterrier.entities.files",
    "write_report": "vbterrier.report.page",
}


# Type checkers know the names from above; with this they would take any other for one that exists.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name not in _LAZY:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(importlib.import_module(_LAZY[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
