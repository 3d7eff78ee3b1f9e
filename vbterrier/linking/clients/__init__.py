"""Linkers behind HTTP endpoints that the user names. Without a call of ``link`` nothing leaves the machine."""

from vbterrier.linking.clients.base import Client
from vbterrier.linking.clients.entity_fishing import EntityFishingClient
from vbterrier.linking.clients.rel import RELClient
from vbterrier.linking.clients.spotlight import SpotlightClient
from vbterrier.linking.clients.tagme import TagMeClient
from vbterrier.linking.clients.wat import WATClient

__all__ = ["Client", "EntityFishingClient", "RELClient", "SpotlightClient", "TagMeClient", "WATClient"]
