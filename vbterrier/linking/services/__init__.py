"""Clients of linking services at HTTP endpoints that the user names; only ``link`` sends requests."""

from vbterrier.linking.services.client import Client
from vbterrier.linking.services.spotlight import SpotlightClient
from vbterrier.linking.services.wikipedia import EntityFishingClient, RELClient, TagMeClient, WATClient

__all__ = ["Client", "EntityFishingClient", "RELClient", "SpotlightClient", "TagMeClient", "WATClient"]
