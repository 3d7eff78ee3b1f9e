"""How linkers answer: decoded JSON in, links out. Nothing here touches the network."""

from vbterrier.linking.formats.base import Format
from vbterrier.linking.formats.entity_fishing import EntityFishing
from vbterrier.linking.formats.rel import REL
from vbterrier.linking.formats.spotlight import SpotlightAnnotate, SpotlightCandidates
from vbterrier.linking.formats.tagme import TagMe
from vbterrier.linking.formats.wat import WAT

__all__ = ["REL", "WAT", "EntityFishing", "Format", "SpotlightAnnotate", "SpotlightCandidates", "TagMe"]
