"""Explanations of the method for a page: formulas in words, and their sources. Pages select among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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
    "Let P and Q be the laws of all that comes out under two neighboring inputs. For every set S of results, and "
    "with P and Q exchanged,",
    ("odo",),
)
PROFILE = Statement(
    "profile",
    "The privacy profile",
    "The least δ for each ε, over both orders of P and Q; the guarantee holds at every ε at once.",
    ("profile",),
)
ATTACKER = Statement(
    "attacker",
    "The attacker",
    "Total variation η = δ(0). Who guesses from an even chance is right at most this often, and whoever accepts a "
    "share α of false alarms finds at most a share β.",
    ("tradeoff", "GI"),
)
NOISE_ADDED = Statement(
    "noise",
    "The noise",
    "A statistic that noise is added to is a whole number of steps, and so is its noise Z. Y is drawn by whole-number "
    "weights w, exactly; U and U′ are even on 0 … f − 1. The weights, how their tail goes on where it does, f and the "
    "length of a step stand in the certificate.",
)
INTERVALS = Statement(
    "intervals",
    "The intervals",
    "Ends follow from the exact law of the noise, so that the statistic of the rows that were used lies between them "
    "at least 95 % of the time: for a count or a sum in listed groups, h is the least with the formula below; a "
    "count that is shown only where it is large enough, and an answer that is computed from several noisy numbers, "
    "invert their own laws. What limits an attacker is rounded up, ends of intervals outwards.",
)
STEPS = Statement(
    "composition",
    "All steps together",
    "The loss L = log(P(o) / Q(o)) of one step adds to that of the next, for steps that were fixed in advance. The "
    "sum is enclosed from both sides; the upper end is what is stated.",
    ("fft", "dots"),
)
POISSON = Statement(
    "poisson",
    "Batches",
    "Each example enters a batch with chance q, independently and afresh for every step; the sum of gradients, each "
    "clipped to length 1, gets normal noise Z of standard deviation σ in every direction. One example more changes "
    "N(0, σ²) into a mixture, and back.",
    ("dpsgd", "profile"),
)
SUBSET = Statement(
    "subset",
    "Batches",
    "A batch is a subset of fixed size, drawn afresh for every step, so that one example is in it with chance q; the "
    "sum of gradients, each clipped to length 1, gets normal noise of standard deviation σ in every direction. "
    "Replacing one example moves it by up to 2.",
    ("dpsgd", "profile"),
)
TABLE_OF_NOISE = Statement(
    "table",
    "The noise",
    "A whole number is drawn by whole-number weights w, exactly; the guarantee and the errors are computed from these "
    "weights, at every shift up to the sensitivity. They stand in the certificate.",
)
LEAST = Statement(
    "least",
    "Why nothing costs much less",
    "What noise costs on average is a linear function of its probabilities p, and each point of the promise is a "
    "linear constraint on them. So multipliers prove, by additions and multiplications alone, a cost that none goes "
    "below.",
    ("GDGK",),
)
WHAT_ONE_SENDS = Statement(
    "report",
    "The guarantee",
    "Let M be what a person runs on the own answer. For every two answers x and x′ and every report y,",
    ("local",),
)
LIMIT = Statement(
    "limit",
    "What no mechanism can beat",
    "Reports that keep ε tell two laws of answers apart by less than the answers would; what remains bounds the "
    "error of every estimate from n people, known or not, below.",
    ("AAC",),
)
COUPLED = Statement(
    "coupling",
    "The mechanism",
    "A group with law λ over the points x writes y with the chance K(y | x), so that the law of y is the same target "
    "μ for every group. Of all such K, one that moves values the least was chosen, on average or at most, by a "
    "distance d; a dual proof of it was checked when it was fitted.",
    ("KM",),
)
WHAT_IS_LEFT = Statement(
    "alike",
    "What is left",
    "If values have other laws than those it was made for, or these were learned with noise, outputs of two groups "
    "differ by no more than their laws do: nothing that is computed from a value tells more than the value.",
    ("GI",),
)


def release_method(noun: str) -> MethodAppendix:
    """Return the statements for a release whose privacy unit is called ``noun``."""
    guarantee = Statement(
        "guarantee",
        "The guarantee",
        f"Let D and D′ be tables of which one has one {noun} more than the other, with all rows that belong there, "
        "and let M be all that is published. For every set S of results,",
        ("odo",),
    )
    profile = Statement(
        PROFILE.formula,
        PROFILE.term,
        "The least δ for each ε, over both orders of P and Q, the laws of M(D) and of M(D′); the guarantee holds at "
        "every ε at once.",
        PROFILE.sources,
    )
    together = Statement(
        "composition",
        "All answers together",
        "The loss L = log(P(o) / Q(o)) of one noisy number adds to that of the next. Sums are taken on a lattice on "
        f"which each loss is rounded up, so that δ(ε) comes out too large, if anything; where the rows of one {noun} "
        "may fall in several ways, the largest δ(ε) over all of them counts.",
        ("fft", "dots"),
    )
    return MethodAppendix.from_statements([guarantee, profile, ATTACKER, NOISE_ADDED, together, INTERVALS])
