"""Clients of linking services at HTTP endpoints that the user names; only ``link`` sends requests."""

from vbterrier.linking.services.annotators import (
    EntityFishingClient,
    RELClient,
    SpotlightClient,
    TagMeClient,
    WATClient,
)
from vbterrier.linking.services.client import Client, RequestOptions

__all__ = [
    "Client",
    "EntityFishingClient",
    "RELClient",
    "RequestOptions",
    "SpotlightClient",
    "TagMeClient",
    "WATClient",
]
