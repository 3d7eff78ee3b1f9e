"""Transformers from a linked pool to an entity run.

``base`` reads the pool of each topic; ``consensus`` (with IDF and PageRank), ``similarity`` and ``hybrid`` fusion need
no judgments; ``selector`` learns from judgments (with ``learning``); the OER filter in ``hybrid`` is a diagnostic that
reads them.
"""
