"""Embedded knowledge base: entities, aliases with priors, attributes and redirects in one SQLite file."""

from vbterrier.linking.kb.files import build_kb, kb_from_file
from vbterrier.linking.kb.knowledge_base import KnowledgeBase
from vbterrier.linking.kb.libraries import kb_from_rel, kb_from_spacy, kb_from_wikimapper
from vbterrier.linking.kb.mediawiki import read_mediawiki_aliases
from vbterrier.linking.kb.wikidata import kb_from_wikidata

__all__ = [
    "KnowledgeBase",
    "build_kb",
    "kb_from_file",
    "kb_from_rel",
    "kb_from_spacy",
    "kb_from_wikidata",
    "kb_from_wikimapper",
    "read_mediawiki_aliases",
]
