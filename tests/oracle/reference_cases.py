"""What ``generate_references`` computes: (method, steps, epsilons, directions) by group."""

from __future__ import annotations

from typing import Any

Step = dict[str, Any]
Case = tuple[str, list[tuple[int, Step]], list[float], list[str]]
SAME, BOTH, WORSE = ["same"], ["remove", "add"], ["worse"]


def law(name: str, **parameters: Any) -> Step:
    return {"law": name, **parameters}


def gaussian(sensitivity: float, scale: float = 1, **more: Any) -> Step:
    return law("gaussian", scale=scale, sensitivity=sensitivity, **more)


def laplace(sensitivity: float, scale: float = 1, **more: Any) -> Step:
    return law("laplace", scale=scale, sensitivity=sensitivity, **more)


def triple(epsilon: float, delta: float = 0.0, eta: float | None = None, **more: Any) -> Step:
    return law("approx_dp", epsilon=epsilon, delta=delta, total_variation=eta, **more)


def one(method: str, step: Step, epsilons: list[float], directions: list[str] = SAME) -> Case:
    return method, [(1, step)], epsilons, directions


POINTS = [(0.0, 0.25), (0.5, 0.0625), (1.5, 2.0**-20)]
PAIR = {"p": [0.5, 0.25, 0.125, 0.125], "q": [0.25, 0.125, 0.5, 0.125]}
GAPPED = {"p": [0.5, 0.25, 0.25, 0.0], "q": [0.0, 0.25, 0.25, 0.5]}
CUT = law("truncated_laplace", epsilon=1.0, delta=0.01)
RANGE = law("bounded_range", epsilon=1.0)
HEADS = [-1.5, 0.0, 0.3, 0.9]

SINGLE: list[Case] = [
    *(one("gaussian", gaussian(mu), [-3.0, -0.1, 0.0, 0.01, 1.0, 10.0]) for mu in (0.03, 0.3, 1.0, 5.0)),
    one("gaussian", gaussian(1, 0.7), [0.5, 3.0, 50.0]),
    one("gaussian", gaussian(1e-4), [0.0, 1e-4, 3e-3]),
    one("line", laplace(1, 3), [-1.0, -0.2, 0.0, 0.1, 0.33, 0.5]),
    one("line", laplace(1, 10), [0.0, 0.09, 0.0999999]),
    one("line", laplace(30), [0.0, 1.0, 20.0, 29.9]),
    one("line", laplace(1e-5), [0.0, 5e-6]),
    one("line", CUT, [-2.0, -0.5, 0.0, 0.5, 0.99, 4.0]),
    one("line", law("truncated_laplace", epsilon=0.1, delta=1e-9), [0.0, 0.05, 0.0999]),
    one("finite", law("staircase", epsilon=1.3, gamma=0.3), HEADS),
    one("finite", law("staircase", epsilon=0.4, gamma=0.7), [0.0, 0.2]),
    one("finite", triple(1.0, 1e-6, 0.25), HEADS),
    one("finite", triple(0.01), [0.0, 0.005, 0.00999]),
    one("finite", triple(10.0, 0.125), [-3.0, 0.0, 5.0, 9.99]),
    one("finite", law("from_points", points=POINTS), [-1.0, -0.2, 0.0, 0.2, 0.5, 1.0, 2.0]),
    one("finite", law("from_pair", **PAIR), HEADS, WORSE),
    one("finite", law("from_pair", **GAPPED), HEADS, WORSE),
    one("pole", RANGE, [-2.0, -0.5, 0.0, 0.4, 0.9]),
    one("pole", law("bounded_range", epsilon=0.1), [0.0, 0.05]),
    one("pole", law("bounded_range", epsilon=8.0), [0.0, 3.0, 7.5]),
]

INTEGERS: list[Case] = [
    one("finite", law("randomized_response", epsilon=1.0, k=2), HEADS),
    one("finite", law("randomized_response", epsilon=2.5, k=10), HEADS),
    one("finite", law("randomized_response", epsilon=0.01, k=1000), [0.0, 0.005]),
    one("finite", law("discrete_laplace", scale=2.0, sensitivity=1), [-0.3, 0.0, 0.25, 0.49]),
    one("finite", law("discrete_laplace", scale=5.0, sensitivity=3), [-0.3, 0.0, 0.25, 0.55]),
    one("finite", law("discrete_laplace", scale=0.3, sensitivity=2), [0.0, 4.0, 6.5]),
    one("finite", law("discrete_gaussian", scale=3.0, sensitivity=1), [-0.3, 0.0, 0.25, 1.0, 3.0]),
    one("finite", law("discrete_gaussian", scale=0.8, sensitivity=2), [0.0, 2.0, 8.0]),
    one("finite", law("discrete_gaussian", scale=20.0, sensitivity=7), [0.0, 0.5, 1.5]),
    one("finite", law("discrete_staircase", epsilon=1.0, sensitivity=3, high=2), HEADS),
    one("finite", law("discrete_staircase", epsilon=0.5, sensitivity=8, high=3), [0.0, 0.2]),
    ("lattice", [(5, law("discrete_gaussian", scale=3.0, sensitivity=1))], [-0.5, 0.0, 1.0, 4.0], SAME),
    ("lattice", [(12, law("discrete_gaussian", scale=1.5, sensitivity=1))], [0.0, 5.0, 15.0], SAME),
    ("lattice", [(20, law("discrete_laplace", scale=4.0, sensitivity=2))], [0.0, 1.0, 4.0], SAME),
    ("lattice", [(8, law("discrete_staircase", epsilon=0.5, sensitivity=4, high=2))], [0.0, 1.0, 3.0], SAME),
    ("finite", [(30, law("randomized_response", epsilon=0.3, k=5))], [-1.0, 0.0, 2.0, 6.0], SAME),
    ("lattice", [(400, law("randomized_response", epsilon=0.05, k=3))], [0.0, 2.0, 8.0, 15.0], SAME),
]

IDEAL: list[Case] = [
    one(
        "finite", law("discrete_truncated_laplace", epsilon=1.0, delta=1e-3, sensitivity=1), [-0.5, 0.0, 0.5, 0.9, 3.0]
    ),
    one("finite", law("discrete_truncated_laplace", epsilon=0.5, delta=1e-6, sensitivity=2), [0.0, 0.3, 1.0]),
    ("finite", [(3, law("discrete_truncated_laplace", epsilon=1.0, delta=1e-3, sensitivity=1))], [0.0, 1.0, 2.5], SAME),
]
"""Its integer table is built for a budget smaller by an unstated margin: the ideal is only near."""

TRIPLES: list[Case] = [
    ("finite", [(5, triple(1.0, 0.0, 0.3))], [-2.0, 0.0, 0.5, 1.0, 2.0, 4.5], SAME),
    ("lattice", [(100, triple(0.1, 1e-6, 0.03))], [0.0, 0.5, 2.0, 6.0], SAME),
    ("lattice", [(1000, triple(0.01, 0.0, 0.004))], [0.0, 0.2, 1.0, 3.0], SAME),
    ("finite", [(20, triple(3.0, 1e-3, 0.5))], [0.0, 30.0, 50.0], SAME),
    ("finite", [(3, triple(1.0, 1e-6)), (4, triple(0.3, 0.0, 0.1))], [-1.0, 0.0, 1.0, 3.0], SAME),
    ("finite", [(2, triple(1.0)), (2, triple(0.7)), (3, triple(0.31415926))], [0.0, 1.0, 3.0], SAME),
    ("finite", [(4, law("from_points", points=POINTS))], [-1.0, 0.0, 1.0, 3.0], SAME),
    ("finite", [(3, law("from_pair", **PAIR))], [0.0, 1.0], BOTH),
    ("finite", [(4, law("from_pair", **GAPPED))], [0.0, 1.0], WORSE),
    ("finite", [(6, law("staircase", epsilon=0.8, gamma=0.4))], [0.0, 1.0, 4.0], SAME),
    ("binomial", [(10**4, triple(0.05))], [0.0, 5.0, 20.0, 100.0], SAME),
    ("binomial", [(10**5, triple(1e-3))], [0.0, 1.0, 3.0, 12.0], SAME),
    ("binomial", [(10**6, triple(1e-6))], [0.0, 1e-3, 5e-3, 2e-2], SAME),
]

LAPLACE: list[Case] = [
    *(("pole", [(k, laplace(0.5))], [-0.5, 0.0, 0.2 * k**0.5, 0.4 * k], SAME) for k in (2, 3, 5, 10, 20, 30)),
    ("pole", [(4, laplace(1, 3))], [0.0, 0.5, 1.2], SAME),
    ("pole", [(12, laplace(4))], [0.0, 20.0, 40.0], SAME),
    ("pole", [(2, laplace(1e-3))], [0.0, 1e-3], SAME),
    ("pole", [(3, laplace(1)), (2, laplace(0.3))], [-0.5, 0.0, 1.0, 3.0], SAME),
    ("pole", [(2, CUT)], [-0.5, 0.0, 1.0, 1.9], SAME),
    ("pole", [(5, law("truncated_laplace", epsilon=0.4, delta=1e-6))], [0.0, 1.0, 1.8], SAME),
    ("pole", [(2, laplace(1)), (3, triple(0.4, 1e-3, 0.1))], [0.0, 1.0, 2.5], SAME),
    ("pole", [(2, RANGE)], [-0.5, 0.0, 1.0, 1.9], SAME),
    ("pole", [(10, law("bounded_range", epsilon=0.2))], [0.0, 0.5, 1.5], SAME),
    ("pole", [(1, RANGE), (1, laplace(0.7))], [0.0, 1.0], SAME),
    ("pole", [(3, {**laplace(1), "erase": 0.25})], [-0.5, 0.0, 1.0, 2.5], SAME),
    ("pole", [(1, {**laplace(1), "erase": 0.25})], [-0.5, 0.0, 0.5], SAME),
]

SAMPLED: list[Case] = [
    *(one("line", gaussian(mu, poisson=q), [-0.2, 0.0, 0.05, 1.0], BOTH) for mu, q in ((1, 0.25), (0.5, 0.01))),
    one("line", gaussian(3, poisson=0.5), [0.0, 0.6, 8.0], BOTH),
    one("line", laplace(1, poisson=0.1), [-0.05, 0.0, 0.03, 0.08], BOTH),
    one("line", {**CUT, "poisson": 0.2}, [0.0, 0.1, 0.3, 1.0], BOTH),
    one("finite", triple(1.0, 1e-3, 0.25, poisson=0.1), [-0.05, 0.0, 0.05, 0.5], BOTH),
    one("finite", law("from_pair", poisson=0.25, **PAIR), [0.0, 0.1], BOTH),
    one("finite", law("randomized_response", epsilon=1.0, k=4, erase=0.5), HEADS),
    one("finite", law("discrete_gaussian", scale=2.0, sensitivity=1, poisson=0.25), [0.0, 0.3], BOTH),
    ("finite", [(6, triple(1.0, 1e-3, 0.25, poisson=0.1))], [0.0, 0.2, 0.8], BOTH),
    ("finite", [(12, triple(2.0, poisson=0.25))], [0.0, 2.0, 6.0], BOTH),
    ("finite", [(4, law("from_pair", poisson=0.25, **PAIR))], [0.0, 0.5], BOTH),
    ("finite", [(3, law("from_points", points=POINTS, poisson=0.5))], [0.0, 1.0], BOTH),
    ("two lines", [(2, gaussian(1, poisson=0.25))], [-0.2, 0.0, 0.5, 3.0], BOTH),
    ("two lines", [(2, gaussian(2, poisson=0.01))], [0.0, 0.01, 1.0], BOTH),
    ("two lines", [(2, laplace(1, poisson=0.25))], [-0.2, 0.0, 0.2, 0.5], BOTH),
    ("two lines", [(1, gaussian(0.5)), (1, laplace(1, poisson=0.25))], [0.0, 0.5, 2.0], BOTH),
    ("two lines", [(1, laplace(1)), (1, gaussian(0.5))], [-0.5, 0.0, 1.0, 5.0], SAME),
    ("two lines", [(1, gaussian(1, poisson=0.1)), (1, gaussian(0.3))], [0.0, 0.3, 3.0], BOTH),
]

SUBSETS: list[Case] = [
    one("line", gaussian(1, subset=[1, 4]), [-0.5, 0.0, 0.1, 1.0, 4.0]),
    one("line", laplace(1, subset=[3, 10]), [-0.2, 0.0, 0.1, 0.3]),
    one("finite", triple(1.0, 1e-3, 0.25, subset=[1, 10]), [-0.05, 0.0, 0.05, 0.5]),
    one("finite", law("discrete_laplace", scale=1.0, sensitivity=1, subset=[1, 2]), [0.0, 0.3, 0.6]),
    one("line", gaussian(1, erase=0.25), [-0.5, 0.0, 1.0, 4.0]),
    ("finite", [(5, triple(1.0, 1e-3, 0.25, subset=[1, 10]))], [0.0, 0.1, 0.4], SAME),
    ("finite", [(8, triple(1.0, erase=0.5))], [-1.0, 0.0, 1.0, 5.0], SAME),
    ("two lines", [(1, gaussian(0.5)), (1, gaussian(1, subset=[1, 4]))], [0.0, 0.5, 2.0], SAME),
    ("two lines", [(1, laplace(0.5)), (1, laplace(1, subset=[1, 4]))], [0.0, 0.5], SAME),
    ("two lines", [(1, laplace(0.5)), (1, gaussian(1, erase=0.25))], [0.0, 0.5, 3.0], SAME),
]

MIXED: list[Case] = [
    ("gaussian", [(10, gaussian(0.1)), (1, gaussian(1, 3)), (5, gaussian(0.7))], [0.0, 2.0, 10.0], SAME),
    ("gaussian", [(10**6, gaussian(1e-3))], [0.0, 2.0, 30.0], SAME),
    ("finite and gaussian", [(1, gaussian(0.5)), (3, triple(0.4, 1e-3, 0.1))], [-0.5, 0.0, 1.0, 4.0], SAME),
    ("finite and gaussian", [(40, gaussian(0.1)), (10, triple(0.2))], [0.0, 2.0, 6.0], SAME),
    ("finite and gaussian", [(1, gaussian(0.1)), (1, triple(1.0))], [0.0, 0.9, 1.2, 1.9], SAME),
    ("contour", [(1000, laplace(0.1))], [0.0, 5.0, 17.42365199, 40.0], SAME),
    ("contour", [(200, laplace(0.05)), (50, gaussian(0.1))], [0.0, 2.0, 9.0], SAME),
    ("contour", [(3, laplace(0.5)), (1, gaussian(1))], [0.0, 2.0, 12.0], SAME),
    ("contour", [(5, laplace(1, poisson=0.25)), (1, gaussian(0.5))], [0.0, 1.0, 4.0], BOTH),
    ("contour", [(1000, gaussian(1, poisson=0.01, fine=0.08, further=12))], [0.0, 1.0, 3.0], BOTH),
    ("contour", [(100, gaussian(0.5, poisson=0.2, fine=0.1, further=12))], [0.5, 4.0], BOTH),
    ("contour", [(10**6, gaussian(0.5, poisson=1e-3, fine=0.1, further=12))], [1.0, 4.0], BOTH),
    ("contour", [(100, gaussian(1, 0.3, poisson=0.5, fine=0.02, further=12))], [380.2948, 300.0], ["remove"]),
    ("contour", [(20, gaussian(1, poisson=0.1, fine=0.08, further=14)), (30, laplace(0.2))], [0.0, 3.0, 8.0], BOTH),
]

GROUPS: dict[str, list[Case]] = {
    "single": SINGLE,
    "integers": INTEGERS,
    "ideal": IDEAL,
    "triples": TRIPLES,
    "laplace": LAPLACE,
    "sampled": SAMPLED,
    "subsets": SUBSETS,
    "mixed": MIXED,
}

Targets = list[tuple[str, str]]
"""(δ, a guess of ε)."""

EPSILONS: list[tuple[str, list[tuple[int, Step]], str, Targets]] = [
    (
        "gaussian",
        [(1, gaussian(1))],
        "same",
        [
            ("0.1", "1.16033385"),
            ("1e-6", "4.88655412"),
            ("1e-15", "8.1655797"),
            ("1e-20", "9.51093624"),
            ("1e-30", "11.743883"),
            ("1e-100", "21.6275081"),
            ("1e-300", "37.4488479"),
        ],
    ),
    (
        "gaussian",
        [(1, gaussian(1, 20))],
        "same",
        [
            ("1e-3", "0.0840176627"),
            ("1e-6", "0.189213173"),
            ("1e-15", "0.365878641"),
            ("1e-20", "0.435812151"),
            ("1e-30", "0.550527308"),
            ("1e-100", "1.05064702"),
            ("1e-300", "1.84467424"),
        ],
    ),
    (
        "gaussian",
        [(100, gaussian(1, 10))],
        "same",
        [
            ("1e-6", "4.88655412"),
            ("1e-15", "8.1655797"),
            ("1e-20", "9.51093624"),
            ("1e-30", "11.743883"),
            ("1e-100", "21.6275081"),
            ("1e-300", "37.4488479"),
        ],
    ),
    (
        "gaussian",
        [(1, gaussian(8))],
        "same",
        [
            ("1e-6", "69.2439635"),
            ("1e-15", "94.836968"),
            ("1e-20", "105.435065"),
            ("1e-30", "123.092164"),
            ("1e-100", "201.699913"),
            ("1e-300", "328.003591"),
        ],
    ),
    ("contour", [(100, gaussian(1, 0.3, poisson=0.5, fine=0.02, further=12))], "remove", [("1e-5", "380.2948")]),
    ("contour", [(1000, laplace(0.1))], "same", [("1e-5", "17.42365199")]),
    ("binomial", [(10**6, triple(1e-6))], "same", [("1e-6", "0.00271821705")]),
]
