"""From judgments to distributions: the pool, its priors, bootstrapped scores, bounds, condensed lists."""
