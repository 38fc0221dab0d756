"""The only door to POT, the network simplex that solves dense and sparse tables (extra ``transport``)."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy.sparse import coo_array, csr_array

from tightrope.errors import MissingExtraError, PrecisionError
from tightrope.numerics.arrays import Floats

PIVOTS = 10**9
"""The solver stops here; a problem that fits in memory is far below."""


def simplex(source: Floats, target: Floats, costs: Floats | coo_array) -> tuple[csr_array, Floats, Floats]:
    """A plan of least cost and the potentials u and v; every law must be positive.

    Marginals are exact to rounding errors of the solver's sums. Raises ``PrecisionError`` where the solver gives up,
    ``MissingExtraError`` where POT is not installed.
    """
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        plan, log = _emd()(source, target, costs, numItermax=PIVOTS, log=True)
    if log.get("result_code", 1) != 1 or log.get("warning"):
        reason = log.get("warning") or "; ".join(str(one.message) for one in said)
        raise PrecisionError(f"the network simplex found no optimum ({reason}); scale the costs to about 1")
    return csr_array(plan), np.asarray(log["u"]), np.asarray(log["v"])


def _emd() -> Any:
    try:
        from ot.lp import emd
    except ImportError:
        raise MissingExtraError("POT", "transport") from None
    return emd
