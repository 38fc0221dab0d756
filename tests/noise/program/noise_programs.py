"""The linear program of the least noise, written down densely and solved once more: slow, obvious, independent."""

import math

import numpy as np
from scipy.optimize import linprog


def least_by_program(points, sensitivity, cells, cost):
    """min Σ cost(|x|) p_x over all laws on −cells..cells that keep (ε_i, δ_i) for shifts 1..sensitivity, both ways.

    A number p stands for |x|^p.
    """
    size = 2 * cells + 1
    x = np.arange(-cells, cells + 1)
    shifted = [s for d in range(1, sensitivity + 1) for s in (d, -d)]
    blocks = [(math.exp(e), d, s) for e, d in points for s in shifted]
    rows, above = [], []
    for i, (gamma, delta, shift) in enumerate(blocks):
        for k in range(size):
            row = np.zeros(size + len(blocks) * size)
            row[k] = 1
            if 0 <= k - shift < size:
                row[k - shift] = -gamma
            row[size + i * size + k] = -delta  # slack in units of delta: tolerances are absolute
            rows.append(row)
            above.append(0.0)
        total = np.zeros(size + len(blocks) * size)
        total[size + i * size : size + (i + 1) * size] = 1
        rows.append(total)
        above.append(1.0)
    phi = cost if callable(cost) else lambda size: size**cost
    costs = np.concatenate([[phi(abs(size)) for size in x.tolist()], np.zeros(len(blocks) * size)])
    whole = np.concatenate([np.ones(size), np.zeros(len(blocks) * size)])
    options = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    from scipy.sparse import csr_array

    found = linprog(
        costs, A_ub=csr_array(np.array(rows)), b_ub=above, A_eq=whole[None, :], b_eq=[1.0], method="highs",
        options=options,
    )  # fmt: skip
    assert found.status == 0, found.message
    return found.fun
