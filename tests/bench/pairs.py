# SPDX-License-Identifier: Apache-2.0
"""The median of interleaved pairs with a distribution-free interval, and what it says about a target."""
import math


def median(values):
    ordered = sorted(values)
    n = len(ordered)
    return ordered[n // 2] if n % 2 else 0.5 * (ordered[n // 2 - 1] + ordered[n // 2])


def interval(values, level=0.95):
    """The narrowest pair of order statistics that covers the median with at least `level`; None if there is none.

    P(x_(k) < median < x_(n-k+1)) = 1 - 2 * sum_{i<k} C(n, i) / 2^n, whatever the distribution (binomial).
    """
    ordered = sorted(values)
    n = len(ordered)
    best = None
    for k in range(1, n // 2 + 1):
        coverage = 1 - 2 * sum(math.comb(n, i) for i in range(k)) / 2**n
        if coverage >= level:
            best = (ordered[k - 1], ordered[n - k])
    return best


def judge(ratios, target, higher_is_better):
    """met: the median meets the target. missed: the whole interval lies on the wrong side. Otherwise: unresolved."""
    if target is None:
        return "-"
    middle, bounds = median(ratios), interval(ratios)
    if bounds is None:
        return "too few pairs"
    if (middle >= target) if higher_is_better else (middle <= target):
        return "met"
    excluded = bounds[1] < target if higher_is_better else bounds[0] > target
    return "missed" if excluded else "unresolved"
