"""From text to entities: what intents, tags and entity runs share. Nothing here leaves the machine unasked."""
