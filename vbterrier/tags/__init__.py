"""From results to tags: which entities each retrieved document is about."""
