"""Tolerances of rounding that several modules share."""

# Differences of scores, absolute or relative to the largest score, that are rounding errors of sums in another order:
# a sum of 1,000 numbers up to 1 has relative errors of about 1,000 units of 2^-53, or 1e-13.
ROUNDING = 1e-12

# The same for sums with more terms, as means over replicas, draws or pairs: 10^6 units of 2^-53 are 1e-10.
REPLICA_ROUNDING = 1e-9

# Probabilities with six decimals are equal if they differ by at most one unit of the last decimal; so are sums of them.
PROBABILITY_ROUNDING = 1e-6

# Sums that agree to this many decimals are equal: ROUNDING in decimals, for keys of sorting and grouping.
SUM_DECIMALS = 12

# Means and cosines are compared to this many decimals, REPLICA_ROUNDING in decimals: further decimals depend on the
# order of summation and on the linear algebra library.
COMPARED_DECIMALS = 9

# Products and quotients this close to a whole number are that number, as 0.29 * 100 is 29: floor, ceil and tests of
# multiples of a unit allow for it.
WHOLE_ROUNDING = 1e-9
