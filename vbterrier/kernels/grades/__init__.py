"""The distribution of a score over the grades of unjudged documents.

``model`` states the process, ``moments`` computes mean and variance, ``exact`` and ``choice`` compute the distribution
in the forms of ``distributions``, and ``value_of_judging`` ranks documents by the variance that their judgment removes.
"""
