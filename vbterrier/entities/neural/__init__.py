"""Trained neural rerankers of documents and rankers of entities (extra ``neural``).

``batches`` aligns texts, entities and vectors of a topic; ``models`` computes frozen features and trained scores;
``reranker`` has the training loop and the document rerankers; ``entity_ranker`` the cross-encoder of entities, and
judges and rankers that ask a language model.
"""
