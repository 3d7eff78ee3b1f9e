"""Clients of linking services at HTTP endpoints that the user names; only ``link`` sends requests."""

from vbterrier.linking.services.client import Client
from vbterrier.linking.services.entity_fishing import EntityFishingClient
from vbterrier.linking.services.rel import RELClient
from vbterrier.linking.services.spotlight import SpotlightClient
from vbterrier.linking.services.wat import TagMeClient, WATClient

__all__ = ["Client", "EntityFishingClient", "RELClient", "SpotlightClient", "TagMeClient", "WATClient"]
