"""An embedded knowledge base: entities, their aliases with priors, attributes and redirects, in one SQLite file."""

from vbterrier.linking.kb.base import KnowledgeBase
from vbterrier.linking.kb.files import kb_from_file
from vbterrier.linking.kb.records import build_kb
from vbterrier.linking.kb.rel import kb_from_rel
from vbterrier.linking.kb.spacy import kb_from_spacy
from vbterrier.linking.kb.wikidata import kb_from_wikidata
from vbterrier.linking.kb.wikimapper import kb_from_wikimapper

__all__ = [
    "KnowledgeBase",
    "build_kb",
    "kb_from_file",
    "kb_from_rel",
    "kb_from_spacy",
    "kb_from_wikidata",
    "kb_from_wikimapper",
]
