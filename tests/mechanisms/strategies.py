"""Random tables for property tests."""

import math

from hypothesis import strategies as st

from tightrope.mechanisms.discrete.noise_table import NoiseTable

falling = st.lists(st.integers(0, 1000), min_size=1, max_size=8).map(lambda w: sorted(w, reverse=True)).filter(any)
ragged = st.lists(st.integers(0, 1000), min_size=1, max_size=8).filter(any)
positive = st.lists(st.integers(1, 1000), min_size=1, max_size=6).map(lambda w: sorted(w, reverse=True))

finite_tables = falling.map(NoiseTable.from_probabilities)
ragged_tables = ragged.map(NoiseTable.from_probabilities)
endless_tables = st.builds(
    lambda half, rate, width: NoiseTable.from_probabilities(half, tail_ratio=math.exp(-rate), tail_width=width),
    positive,
    st.floats(0.3, 12),
    st.integers(1, 4),
)
