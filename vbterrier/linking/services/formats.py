"""How linkers answer: decoded JSON in, links out. Nothing here touches the network."""

from vbterrier.linking.services.entity_fishing import EntityFishing
from vbterrier.linking.services.json_answers import Format
from vbterrier.linking.services.rel import REL
from vbterrier.linking.services.spotlight import SpotlightAnnotate, SpotlightCandidates
from vbterrier.linking.services.tagme import TagMe
from vbterrier.linking.services.wat import WAT

__all__ = ["REL", "WAT", "EntityFishing", "Format", "SpotlightAnnotate", "SpotlightCandidates", "TagMe"]
