"""Explanations of the method for a page: formulas in words, and their sources. Pages select among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tightrope.documents.privacy_unit import PrivacyUnit

SOURCES = {
    "odo": "C. Dwork, K. Kenthapadi, F. McSherry, I. Mironov, M. Naor: Our data, ourselves: privacy via distributed "
    "noise generation. EUROCRYPT 2006.",
    "profile": "B. Balle, G. Barthe, M. Gaboardi: Privacy amplification by subsampling: tight analyses via couplings "
    "and divergences. NeurIPS 2018.",
    "tradeoff": "J. Dong, A. Roth, W. J. Su: Gaussian differential privacy. Journal of the Royal Statistical "
    "Society, Series B, 2022.",
    "GI": "E. Ghazi, I. Issa: Total variation meets differential privacy. IEEE Journal on Selected Areas in "
    "Information Theory, 2024.",
    "fft": "A. Koskela, J. Jälkö, A. Honkela: Computing tight differential privacy guarantees using FFT. AISTATS 2020.",
    "dots": "V. Doroshenko, B. Ghazi, P. Kamath, R. Kumar, P. Manurangsi: Connect the dots: tighter discrete "
    "approximations of privacy loss distributions. PoPETs 2022.",
    "dpsgd": "M. Abadi, A. Chu, I. Goodfellow, H. B. McMahan, I. Mironov, K. Talwar, L. Zhang: Deep learning with "
    "differential privacy. CCS 2016.",
    "GDGK": "Q. Geng, W. Ding, R. Guo, S. Kumar: Tight analysis of privacy and utility tradeoff in approximate "
    "differential privacy. AISTATS 2020.",
    "local": "S. P. Kasiviswanathan, H. K. Lee, K. Nissim, S. Raskhodnikova, A. Smith: What can we learn privately? "
    "SIAM Journal on Computing, 2011.",
    "AAC": "S. Asoodeh, M. Aliakbarpour, F. P. Calmon: Local differential privacy is equivalent to contraction of "
    "E_γ-divergence. ISIT 2021.",
    "KM": "Y. Kawamoto, T. Murakami: Local distribution obfuscation via probability coupling. Allerton 2019.",
}
"""Sources of the formulas."""


@dataclass(frozen=True, slots=True)
class Statement:
    """One formula: its name in the templates, its title, its text, and keys of ``SOURCES``."""

    formula: str
    term: str
    explanation: str
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NumberedStatement:
    """A statement on a page, with the numbers of its sources there."""

    formula: str
    term: str
    explanation: str
    numbers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class MethodAppendix:
    """The appendix of a page: statements, and the sources that they cite, in order."""

    statements: tuple[NumberedStatement, ...]
    sources: tuple[str, ...]

    @classmethod
    def from_statements(cls, statements: Sequence[Statement]) -> MethodAppendix:
        """Return the appendix, with sources numbered in the order of citation.

        >>> found = MethodAppendix.from_statements([INPUTS, ATTACKER])
        >>> [one.numbers for one in found.statements], len(found.sources)
        ([(1,), (2, 3)], 3)
        """
        named = list(dict.fromkeys(key for one in statements for key in one.sources))
        placed = tuple(
            NumberedStatement(
                one.formula, one.term, one.explanation, tuple(named.index(key) + 1 for key in one.sources)
            )
            for one in statements
        )
        return cls(placed, tuple(SOURCES[key] for key in named))


INPUTS = Statement(
    "inputs",
    "The guarantee",
    "Let P and Q be the distributions of the whole output under two neighboring inputs. For every set S of outputs, "
    "and with P and Q exchanged,",
    ("odo",),
)
PROFILE = Statement(
    "profile",
    "The privacy profile",
    "The smallest δ for each ε, over both orders of P and Q; the guarantee holds at every ε at once.",
    ("profile",),
)
ATTACKER = Statement(
    "attacker",
    "The attacker",
    "Total variation η = δ(0). An attacker with even prior odds is right with probability at most (1 + η)/2; at false "
    "positive rate α, the true positive rate is at most β(α).",
    ("tradeoff", "GI"),
)
NOISE_ADDED = Statement(
    "noise",
    "The noise",
    "Every noisy statistic is an integer number of steps, and so is its noise Z. Y is sampled exactly from integer "
    "weights w; U and U′ are uniform on {0, …, f − 1}. The certificate gives the weights, the tail (if infinite), f "
    "and the step size.",
)
INTERVALS = Statement(
    "intervals",
    "The intervals",
    "The ends follow from the exact distribution of the noise: the statistic of the rows used lies between them with "
    "probability at least 95 %. For a count or a sum in listed groups, the interval is value ± h, with the "
    "smallest number h that satisfies the formula below. Thresholded counts, and answers computed from several noisy "
    "numbers, use intervals obtained by inverting their own distributions. Bounds on attacks are rounded up, ends of "
    "intervals outward.",
)
STEPS = Statement(
    "composition",
    "All steps together",
    "The losses L = log(P(o) / Q(o)) of the steps add up, for steps that were fixed in advance. Lower and upper bounds "
    "are computed; the upper bound is stated.",
    ("fft", "dots"),
)
POISSON = Statement(
    "poisson",
    "Batches",
    "Each example enters a batch with probability q, independently for every step; normal noise with standard "
    "deviation σ in every direction is added to the sum of gradients, each clipped to length 1. Adding one example "
    "changes N(0, σ²) into the mixture P.",
    ("dpsgd", "profile"),
)
SUBSET = Statement(
    "subset",
    "Batches",
    "A batch is a subset of fixed size, sampled independently for every step, which contains one example with "
    "probability q; normal noise with standard deviation σ in every direction is added to the sum of gradients, each "
    "clipped to length 1. Replacing one example changes this sum by up to 2.",
    ("dpsgd", "profile"),
)
TABLE_OF_NOISE = Statement(
    "table",
    "The noise",
    "An integer is sampled exactly from integer weights w; the guarantee and the errors are computed from these "
    "weights, at every shift up to the sensitivity. The certificate contains them.",
)
LEAST = Statement(
    "least",
    "The lower bound on the cost",
    "The expected cost of noise is a linear function of its probabilities p, and each point (ε, δ) of the budget is a "
    "linear constraint on them. So multipliers prove a lower bound on it, by additions and multiplications alone.",
    ("GDGK",),
)
WHAT_ONE_SENDS = Statement(
    "report",
    "The guarantee",
    "Let M be the mechanism that a person applies to their answer. For every two answers x and x′ and every report y,",
    ("local",),
)
LIMIT = Statement(
    "limit",
    "The lower bound for every mechanism",
    "Reports with privacy loss ε distinguish two distributions of answers less well than the answers do; this bounds "
    "the error of every estimate from n people from below, for every mechanism.",
    ("AAC",),
)
COUPLED = Statement(
    "coupling",
    "The mechanism",
    "In a group with distribution λ over the points x, the output is y with probability K(y | x), so that y has the "
    "same target distribution μ in every group. Of all such K, one with the smallest mean or maximum distance d was "
    "chosen; a dual proof of this was checked when it was fitted.",
    ("KM",),
)
PARTIALLY_COUPLED = Statement(
    "partial coupling",
    "The mechanism",
    "In group s with distribution λ over the points x, the output is y with probability K(y | x). The output "
    "distributions of all groups share a mass of at least 1 − δ, so any two of them differ in total variation by at "
    "most δ. Of all such K, one with the smallest mean distance d was chosen; the document has a dual proof of this.",
    ("KM",),
)
WHAT_IS_LEFT = Statement(
    "alike",
    "What is left",
    "If values have other distributions than the coupling was fitted to, or if these were learned with noise, outputs "
    "of two groups differ by at most as much as their distributions do: computing an output from a value cannot reveal "
    "more than the value.",
    ("GI",),
)


def release_method(privacy_unit: PrivacyUnit) -> MethodAppendix:
    """Return the statements for a release that protects this privacy unit."""
    noun = privacy_unit.unit_noun
    all_rows, many_splits = "", ""
    if privacy_unit.column:
        all_rows = f", with all rows of this {noun}"
        many_splits = (
            f" If the rows of one {noun} can be distributed over groups in several ways, the largest δ(ε) over all of "
            "them is used."
        )
    guarantee = Statement(
        "guarantee",
        "The guarantee",
        f"Let D and D′ be tables of which one has one {noun} more than the other{all_rows}, and let M be everything "
        "that is published. For every set S of results,",
        ("odo",),
    )
    profile = Statement(
        PROFILE.formula,
        PROFILE.term,
        "The smallest δ for each ε, over both orders of P and Q, the distributions of M(D) and of M(D′); the guarantee "
        "holds at every ε at once.",
        PROFILE.sources,
    )
    together = Statement(
        "composition",
        "All answers together",
        "The losses L = log(P(o) / Q(o)) of the noisy numbers add up. Sums are computed on a grid, with each loss "
        f"rounded up, so that δ(ε) is never underestimated.{many_splits}",
        ("fft", "dots"),
    )
    return MethodAppendix.from_statements([guarantee, profile, ATTACKER, NOISE_ADDED, together, INTERVALS])
