"""From queries to candidate intents, and from intents to what a ranking covers of them."""
