"""What all least noise is, whole-numbered or real: a mechanism with a proof beside it."""

from __future__ import annotations

from tightrope.certificates.noise import NoiseCertificate
from tightrope.mechanisms.mechanism import Mechanism


class Certified(Mechanism):
    """A mechanism with a certificate of how good it is."""

    __slots__ = ()

    certificate: NoiseCertificate
