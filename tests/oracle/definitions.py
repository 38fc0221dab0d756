"""Every loss law from its definition, by slow independent means: mpmath and sums, nothing shared with the library.

A *step* is plain data, ``{"law": name, ...parameters}`` with optional ``"poisson": rate``, ``"subset": [m, n]`` or
``"erase": probability``, applied in this order. Three forms, each from the definition of the mechanism:

finite     outcomes with (P, Q), P the output with the record           ``outcomes``
half-line  a real output whose likelihood ratio increases: the best attack is {x > t}   ``HalfLine``
pole       losses with atoms and a density e^{l/2}: M has the one pole z = −½            ``pole_terms``
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any

from mpmath import mp, mpf

Step = dict[str, Any]
Outcomes = list[tuple[mpf, mpf]]
MARGIN = 1 - mpf(2) ** -48
"""Integer laws are built for this much of the ε asked for: stated in their docstrings."""


def number(value: float | str) -> mpf:
    """Floats are taken as they are; decimal strings are read to the working precision."""
    return mpf(value)


def rounded(value: mpf) -> mpf:
    """The double nearest to it."""
    return mpf(float(value))


# ---------------------------------------------------------------- finite laws


def triple(epsilon: mpf, delta: mpf, eta: mpf | None) -> Outcomes:
    """GI eqs. 43–44: δ, c e^ε, α(1−δ), c, 0 against the same backwards."""
    gamma = mp.exp(epsilon)
    most = delta + (1 - delta) * (gamma - 1) / (gamma + 1)
    eta = most if eta is None else min(eta, most)
    active = (eta - delta) * (1 + gamma) / ((1 - delta) * (gamma - 1))
    c = (1 - delta) * active / (1 + gamma)
    p = [delta, c * gamma, (1 - active) * (1 - delta), c, mpf(0)]
    return list(zip(p, reversed(p), strict=True))


def staircase_total_variation(epsilon: mpf, gamma: mpf) -> mpf:
    """P(|X| ≤ ½) of the staircase density with Δ = 1."""
    down = mp.exp(-epsilon)
    height = (1 - down) / (2 * (gamma + down * (1 - gamma)))
    half = mpf(1) / 2
    return 2 * height * (min(gamma, half) + down * max(half - gamma, mpf(0)))


def response(epsilon: mpf, k: int) -> Outcomes:
    """Truth e^ε, each of the k − 1 others 1; the k − 2 that neither holds are alike."""
    gamma = mp.exp(rounded(epsilon * MARGIN))
    whole = gamma + k - 1
    alike = [(mpf(k - 2) / whole, mpf(k - 2) / whole)] if k > 2 else []
    return [(gamma / whole, 1 / whole), (1 / whole, gamma / whole), *alike]


def shifted(weight: Callable[[int], mpf], reach: int, shift: int) -> Outcomes:
    """X + shift with the record, X without; ``weight`` vanishes beyond ``reach``."""
    whole = mp.fsum(weight(abs(x)) for x in range(-reach, reach + 1))

    def share(x: int) -> mpf:
        return weight(abs(x)) / whole if abs(x) <= reach else mpf(0)

    return [(share(x - shift), share(x)) for x in range(-reach, reach + shift + 1)]


def gathered(outcomes: Outcomes) -> Outcomes:
    """Outcomes of equal likelihood ratio (to 30 digits) are one."""
    found: dict[str, tuple[mpf, mpf]] = {}
    for p, q in outcomes:
        if p or q:
            key = mp.nstr(p / q, 25) if q else "inf"
            before = found.get(key, (mpf(0), mpf(0)))
            found[key] = before[0] + p, before[1] + q
    return list(found.values())


def geometric_levels(epsilon: mpf, shift: int, high: int) -> Outcomes:
    """Discrete staircase e^{−iε}, i = 0 for |x| < high, one more every ``shift`` cells (discrete Laplace: high = 1)."""
    built = rounded(rounded(epsilon) * MARGIN)
    reach = high + shift * (int(mp.dps * mp.log(10) / built) + 2)

    def weight(x: int) -> mpf:
        return mp.exp(-built * (0 if x < high else 1 + (x - high) // shift))

    return shifted(weight, reach, shift)


def discrete_gaussian(scale: mpf, shift: int) -> Outcomes:
    """e^{−x²/2s²} where that holds 2⁻¹²⁸ of the whole; less is rounded down to nothing."""

    def weight(x: int) -> mpf:
        return mp.exp(-mpf(x * x) / (2 * scale**2))

    whole = 1 + 2 * mp.nsum(lambda x: weight(int(x)), [1, mp.inf], method="d") if scale > 50 else _theta(scale)
    reach = int(scale * mp.sqrt(2 * (128 * mp.log(2) - mp.log(whole))))
    return shifted(weight, reach, shift)


def _theta(scale: mpf) -> mpf:
    return mp.fsum(mp.exp(-mpf(x * x) / (2 * scale**2)) for x in range(-int(20 * scale) - 5, int(20 * scale) + 6))


def discrete_truncated_laplace(epsilon: mpf, delta: mpf, shift: int) -> Outcomes:
    """R^|x| before N, θ r^N at ±N, δ used up by one partial step: N and θ by trial, not by formula."""
    rate, end = epsilon / shift, shift
    ratio = mp.exp(-rate)
    gamma = mp.exp(rate * shift)

    def weights(n: int, share: mpf) -> Callable[[int], mpf]:
        return lambda x: ratio**x * (share if x == n else 1)

    def excess(n: int, share: mpf) -> mpf:
        law = shifted(weights(n, share), n, shift)
        return mp.fsum(max(p - gamma * q, mpf(0)) for p, q in law) - delta

    while excess(end, mpf(1)) > 0:
        end += 1
    share = mp.findroot(lambda s: excess(end, s), (mpf(1) / 3, mpf(2) / 3), solver="illinois", tol=mpf(10) ** -80)
    return shifted(weights(end, share), end, shift)


def points_law(points: list[tuple[float, float]]) -> Outcomes:
    """The lower convex hull in γ of the points, their mirrors and (0, 1), constant beyond the last: kinks are atoms."""
    known = [(mp.exp(number(e)), number(d)) for e, d in points]
    known += [(1 / g, 1 - (1 - d) / g) for g, d in known] + [(mpf(0), mpf(1))]
    known = sorted({*known, (mpf(10) ** 40 + max(g for g, _ in known), min(d for _, d in known))})

    def hull(gamma: mpf) -> mpf:
        chords = [d for g, d in known if g == gamma]
        for (a, up), (b, down) in combinations(known, 2):
            if a < gamma < b:
                chords.append(up + (gamma - a) / (b - a) * (down - up))
        return min(chords)

    kinks = [(g, d) for g, d in known[:-1] if d == hull(g)]
    kinks.append((mpf("inf"), kinks[-1][1]))
    slopes = [(b[1] - a[1]) / (b[0] - a[0]) for a, b in pairwise(kinks)]
    atoms = [
        (g * (right - left), right - left) for (g, _), left, right in zip(kinks[1:], slopes, slopes[1:], strict=False)
    ]
    infinite = kinks[-1][1]
    return [*atoms, (infinite, mpf(0)), (mpf(0), 1 - mp.fsum(q for _, q in atoms))]


FINITE: dict[str, Callable[[Step], Outcomes]] = {
    "approx_dp": lambda s: triple(number(s["epsilon"]), number(s.get("delta", 0)), _optional(s.get("total_variation"))),
    "staircase": lambda s: triple(
        number(s["epsilon"]), mpf(0), staircase_total_variation(number(s["epsilon"]), number(s["gamma"]))
    ),
    "randomized_response": lambda s: response(number(s["epsilon"]), s["k"]),
    "discrete_laplace": lambda s: _laplace_levels(number(s["scale"]), s["sensitivity"]),
    "discrete_staircase": lambda s: geometric_levels(number(s["epsilon"]), s["sensitivity"], s["high"]),
    "discrete_gaussian": lambda s: discrete_gaussian(number(s["scale"]), s["sensitivity"]),
    "discrete_truncated_laplace": lambda s: discrete_truncated_laplace(
        number(s["epsilon"]), number(s["delta"]), s["sensitivity"]
    ),
    "from_points": lambda s: points_law(s["points"]),
    "from_pair": lambda s: [(number(p), number(q)) for p, q in zip(s["p"], s["q"], strict=True)],
}


def _optional(value: float | None) -> mpf | None:
    return None if value is None else number(value)


def _laplace_levels(scale: mpf, shift: int) -> Outcomes:
    built = rounded(rounded(1 / scale) * MARGIN)
    reach = int(mp.dps * mp.log(10) / built) + shift + 2
    return shifted(lambda x: mp.exp(-built * x), reach, shift)


def outcomes(step: Step, *, remove: bool) -> Outcomes:
    """(P, Q) of a finite law: with the record against without it, or (add) the other order."""
    base = FINITE[step["law"]](step)
    law = gathered(_changed(base, step, remove=remove))
    if "erase" in step:
        lost = number(step["erase"])
        law = [((1 - lost) * p, (1 - lost) * q) for p, q in law] + [(lost, lost)]
    return law


def _changed(base: Outcomes, step: Step, *, remove: bool) -> Outcomes:
    if "poisson" in step:
        rate = number(step["poisson"])
        base = [((1 - rate) * q + rate * p, q) for p, q in base]
    if "subset" in step:
        return subset(base, mpf(step["subset"][0]) / step["subset"][1])
    return base if remove else [(q, p) for p, q in base]


def subset(base: Outcomes, share: mpf) -> Outcomes:
    """C_p of a symmetric pair: above 1 the pair (pP + (1−p)Q, Q), below 1 its mirror, all else at ratio 1."""
    above = [(share * p + (1 - share) * q, q) for p, q in base if p > q]
    rest = 1 - mp.fsum(p + q for p, q in above)
    return [*above, *((q, p) for p, q in above), (rest, rest)]


# ---------------------------------------------------------------- half-line laws


@dataclass(frozen=True)
class HalfLine:
    """A = law without, B = law with the record; B/A increases in x.

    ``tails(t)`` = (A, B)(x > t); ``edge(ratio)`` = the t with {B > ratio·A} = {x > t}; ``densities``, and ``points``
    where they break. Beyond the outermost points the ratio is constant where ``flat``.
    """

    tails: Callable[[mpf], tuple[mpf, mpf]]
    edge: Callable[[mpf], mpf]
    densities: Callable[[mpf], tuple[mpf, mpf]]
    points: list[mpf]
    flat: bool

    def profile(self, gamma: mpf) -> mpf:
        """E_γ(B‖A)."""
        if gamma <= 0:
            return 1 - gamma
        a, b = self.tails(self.edge(gamma))
        return b - gamma * a


def gaussian_line(mu: mpf) -> HalfLine:
    """N(0, 1) and N(μ, 1)."""
    return HalfLine(
        lambda t: (mp.ncdf(-t), mp.ncdf(mu - t)),
        lambda ratio: mp.log(ratio) / mu + mu / 2,
        lambda x: (mp.npdf(x), mp.npdf(x, mu, 1)),
        [mpf(i) for i in range(-14, 15)] + [mu + i for i in range(-14, 15)],
        flat=False,
    )


def laplace_line(epsilon: mpf, delta: mpf) -> HalfLine:
    """Noise e^{−ε|x|} on all of ℝ (δ = 0) or on [−A, A] (GDGK), shifted by 1."""
    end = mp.log(1 + (mp.exp(epsilon) - 1) / (2 * delta)) / epsilon if delta else mp.inf
    whole = 2 * (1 - (mp.exp(-epsilon * end) if delta else 0)) / epsilon

    def above(t: mpf) -> mpf:
        """∫ of the noise density beyond t."""
        if t >= end:
            return mpf(0)
        last = mp.exp(-epsilon * end) if delta else mpf(0)
        half = (mp.exp(-epsilon * abs(max(t, -end))) - last) / (epsilon * whole)
        return half if t >= 0 else 1 - half

    def edge(ratio: mpf) -> mpf:
        loss = mp.log(ratio)
        if loss >= epsilon:
            return end
        return (loss / epsilon + 1) / 2 if loss >= -epsilon else -mp.inf if not delta else 1 - end

    def density(x: mpf) -> mpf:
        return mp.exp(-epsilon * abs(x)) / whole if abs(x) <= end else mpf(0)

    return HalfLine(
        lambda t: (above(t), above(t - 1)), edge, lambda x: (density(x), density(x - 1)), [mpf(0), mpf(1)], flat=True
    )


LINES: dict[str, Callable[[Step], HalfLine]] = {
    "gaussian": lambda s: gaussian_line(number(s.get("sensitivity", 1)) / number(s["scale"])),
    "laplace": lambda s: laplace_line(number(s.get("sensitivity", 1)) / number(s["scale"]), mpf(0)),
    "truncated_laplace": lambda s: laplace_line(number(s["epsilon"]), number(s["delta"])),
}


def line_profile(step: Step, *, remove: bool) -> Callable[[mpf], mpf]:
    """ε ↦ δ(ε) of one step of a half-line law, sampled or erased. All three bases are symmetric pairs."""
    base = LINES[step["law"]](step).profile
    curve = base
    if "poisson" in step:
        rate = number(step["poisson"])
        curve = _poisson_remove(base, rate) if remove else _poisson_add(base, rate)
    if "subset" in step:
        curve = _subset(base, mpf(step["subset"][0]) / step["subset"][1])
    lost = number(step.get("erase", 0))
    return lambda epsilon: (1 - lost) * curve(mp.exp(epsilon)) + lost * max(mpf(0), 1 - mp.exp(epsilon))


def _poisson_remove(base: Callable[[mpf], mpf], rate: mpf) -> Callable[[mpf], mpf]:
    """(1−q)A + qB − γA = q(B − γ'A)."""
    return lambda gamma: rate * base((gamma - 1 + rate) / rate)


def _poisson_add(base: Callable[[mpf], mpf], rate: mpf) -> Callable[[mpf], mpf]:
    """A − γ(1−q)A − γqB = w(A − γ'B), w = 1 − γ(1−q)."""

    def curve(gamma: mpf) -> mpf:
        weight = 1 - gamma * (1 - rate)
        return weight * base(gamma * rate / weight) if weight > 0 else mpf(0)

    return curve


def _subset(base: Callable[[mpf], mpf], share: mpf) -> Callable[[mpf], mpf]:
    """P δ(1 + (γ−1)/p) for γ ≥ 1; 1 − γ(1 − δ(1/γ)) below."""

    def curve(gamma: mpf) -> mpf:
        if gamma >= 1:
            return share * base(1 + (gamma - 1) / share)
        return 1 - gamma * (1 - curve(1 / gamma))

    return curve


def line_losses(
    step: Step, *, remove: bool
) -> tuple[Callable[[mpf], tuple[mpf, mpf]], list[mpf], list[tuple[mpf, mpf]]]:
    """x ↦ (P-density, loss), where it breaks, and the flat ends as atoms (mass, loss); unsampled or Poisson."""
    line, rate = LINES[step["law"]](step), number(step.get("poisson", 1))

    def pair(a: mpf, b: mpf) -> tuple[mpf, mpf]:
        mixed = (1 - rate) * a + rate * b
        p, q = (mixed, a) if remove else (a, mixed)
        return p, mp.log(p / q)

    if not line.flat:
        return lambda x: pair(*line.densities(x)), sorted(line.points), []
    right = line.tails(mpf(1))
    left = tuple(1 - tail for tail in line.tails(mpf(0)))
    return lambda x: pair(*line.densities(x)), line.points, [pair(*right), pair(*left)]


# ---------------------------------------------------------------- laws with the one pole z = −½


def pole_terms(step: Step) -> tuple[list[tuple[mpf, int, int]], mpf, mpf]:
    """M of the finite losses as Σ coefficient · e^{w·n·ε} w^{−order}, w = z + ½; with ε and the infinite mass.

    Laplace noise: ½ at +ε, e^{−ε}/2 at −ε, ¼e^{(l−ε)/2} between. Truncated at A: x > A has loss +∞ (mass δ), the
    rest scaled. Bounded range: density e^{(l−ε)/2}/(2(1−e^{−ε})).
    """
    epsilon, delta = _pole_parameters(step)
    grow = mp.exp(epsilon / 2)
    if step["law"] == "bounded_range":
        top, density, delta = mpf(0), 1 / (2 * (1 - mp.exp(-epsilon)) * grow), mpf(0)
    elif step["law"] == "approx_dp":
        return _atom_terms(triple(epsilon, delta, _optional(step.get("total_variation"))), epsilon)
    else:
        line = laplace_line(epsilon, delta)
        (a, b), inside = line.tails(mpf(1)), line.densities(mpf(1) / 2)[1]
        top, density = b - delta, inside / (2 * epsilon)
        if abs(top - a * mp.exp(epsilon)) > mpf(10) ** (20 - mp.dps):
            raise ArithmeticError("the atom at +epsilon does not have that ratio")
    lost = number(step.get("erase", 0))
    terms = [(top / grow, 1, 0), (top * mp.exp(-epsilon) * grow, -1, 0), (density, 1, 1), (-density, -1, 1)]
    return [((1 - lost) * c, n, order) for c, n, order in terms] + [(lost, 0, 0)], epsilon, (1 - lost) * delta


def _pole_parameters(step: Step) -> tuple[mpf, mpf]:
    if step["law"] == "laplace":
        return number(step.get("sensitivity", 1)) / number(step["scale"]), mpf(0)
    return number(step["epsilon"]), number(step.get("delta", 0))


def _atom_terms(law: Outcomes, epsilon: mpf) -> tuple[list[tuple[mpf, int, int]], mpf, mpf]:
    """E^{zl} = e^{wl} e^{−l/2} for each finite loss."""
    grow = mp.exp(epsilon / 2)
    (infinite, _), (top, _), (middle, _), (bottom, _), _ = law
    return [(top / grow, 1, 0), (middle, 0, 0), (bottom * grow, -1, 0)], epsilon, infinite
