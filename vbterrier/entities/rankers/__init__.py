"""Transformers from a linked pool to an entity run.

``base`` reads the pool of each topic; ``consensus``, ``idf``, ``pagerank``, ``similarity`` and ``hybrid`` need no
judgments; ``selector`` learns from them (``features``, ``teaching``, ``boosting``; ``leaks`` keeps judgments out of
the features); ``oer_filter`` reads them, as a diagnostic.
"""
