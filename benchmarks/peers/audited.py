"""Sample a peer's mechanisms on the answers 0 and 1, for an audit; runs in the peer's own environment.

    python audited.py NAME RUNS FOLDER

Writes FOLDER/<mechanism>.<answer>.f64, the outputs as doubles, and FOLDER/claims.json.
"""

from __future__ import annotations

import array
import json
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

warnings.filterwarnings("ignore")
DELTA = 1e-5
Mechanisms = dict[str, tuple[Callable[[float], float], float, float]]
"""A function that samples for an answer, and the ε and δ that are claimed for answers that differ by 1."""


def diffprivlib_mechanisms() -> Mechanisms:
    """Return mechanisms of diffprivlib."""
    from diffprivlib import mechanisms as m

    geometric = m.Geometric(epsilon=1, sensitivity=1)
    return {
        "Laplace": (m.Laplace(epsilon=1, sensitivity=1).randomize, 1, 0),
        "GaussianAnalytic": (m.GaussianAnalytic(epsilon=1, delta=DELTA, sensitivity=1).randomize, 1, DELTA),
        "Staircase": (m.Staircase(epsilon=1, sensitivity=1, gamma=0.5).randomize, 1, 0),
        "Snapping": (m.Snapping(epsilon=1, sensitivity=1, lower=-10, upper=10).randomize, 1, 0),
        "Geometric": (lambda answer: geometric.randomize(int(answer)), 1, 0),
    }


def opendp_mechanisms() -> Mechanisms:
    """Return mechanisms of OpenDP."""
    import opendp.prelude as dp

    dp.enable_features("contrib", "floating-point")
    floats = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    integer = dp.m.make_laplace(dp.atom_domain(T=int), dp.absolute_distance(T=int), scale=1.0)
    gaussian = dp.m.make_gaussian(*floats, scale=4.0)
    epsilon = dp.c.make_zCDP_to_approxDP(gaussian).map(1.0).epsilon(DELTA)
    return {
        "make_laplace, float": (dp.m.make_laplace(*floats, scale=1.0), 1, 0),
        "make_laplace, int": (lambda answer: integer(int(answer)), 1, 0),
        "make_gaussian, float": (gaussian, epsilon, DELTA),
    }


def smartnoise_mechanisms() -> Mechanisms:
    """Return mechanisms of SmartNoise."""
    from snsql.sql._mechanisms.gaussian import Gaussian
    from snsql.sql._mechanisms.laplace import Laplace

    laplace = Laplace(1.0, lower=0.0, upper=1.0, max_contrib=1)
    gaussian = Gaussian(1.0, delta=DELTA, lower=0.0, upper=1.0, max_contrib=1)
    return {
        "Laplace": (lambda answer: laplace.release([answer])[0], 1, 0),
        "Gaussian": (lambda answer: gaussian.release([answer])[0], 1, DELTA),
    }


def tumult_mechanisms() -> Mechanisms:
    """Return mechanisms of Tumult."""
    import numpy as np
    from tmlt.core.domains.numpy_domains import NumpyFloatDomain
    from tmlt.core.measurements.noise_mechanisms import AddGeometricNoise, AddLaplaceNoise

    laplace, geometric = AddLaplaceNoise(input_domain=NumpyFloatDomain(), scale=1), AddGeometricNoise(alpha=1)
    return {
        "AddLaplaceNoise": (lambda answer: laplace(np.float64(answer)), 1, 0),
        "AddGeometricNoise": (lambda answer: geometric(np.int64(answer)), 1, 0),
    }


PEERS: dict[str, Callable[[], Mechanisms]] = {
    "diffprivlib": diffprivlib_mechanisms,
    "opendp": opendp_mechanisms,
    "smartnoise": smartnoise_mechanisms,
    "tumult": tumult_mechanisms,
}


def main(name: str, runs: int, folder: Path) -> None:
    """Write the samples of all mechanisms of a peer."""
    mechanisms = PEERS[name]()
    for mechanism, (sample, _, _) in mechanisms.items():
        for answer in (0.0, 1.0):
            samples = array.array("d", (float(sample(answer)) for _ in range(runs)))
            (folder / f"{mechanism}.{answer:g}.f64").write_bytes(samples.tobytes())
    claims = {mechanism: [epsilon, delta] for mechanism, (_, epsilon, delta) in mechanisms.items()}
    (folder / "claims.json").write_text(json.dumps(claims))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
