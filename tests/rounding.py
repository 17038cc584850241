"""How far results may be apart for rounding alone, on whatever processor.

In which order a processor adds up, whether it rounds a product before it adds it, and whether it adds up bfloat16 in
float32 or in bfloat16, differs; how many numbers are rounded at most, and by how much, does not.
"""

import math

import numpy as np

# The most by which rounding changes a number, as a share of it (Higham 2002, "Accuracy and Stability", section 2.2).
UNIT_ROUNDOFF = {"float32": 2.0**-24, "bfloat16": 2.0**-8}


def independent_errors(count: int, dtype: str = "float32") -> float:
    """Returns the standard deviation of the sum of so many errors of rounding numbers of the order of 1."""
    return math.sqrt(count / 3) * UNIT_ROUNDOFF[dtype]  # each is spread evenly up to the unit roundoff


def assert_within(found, expected: np.ndarray, bound: np.ndarray):
    """Checks that no element is further from the float64 one than its bound."""
    excess = np.abs(np.asarray(found).astype(np.float64) - expected) / bound
    assert excess.max() <= 1, f"{excess.max():.2f} times as far off as rounding explains"
