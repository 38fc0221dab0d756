"""A source that says what a test wants it to say."""

import numpy as np

from tightrope.randomness.bits import Source


class Scripted(Source):
    """Hands out the given lists of words, one a call, and counts the calls."""

    def __init__(self, answers):
        self.answers = list(answers)

    def random_words(self, n):
        answer = self.answers.pop(0)
        assert len(answer) == n, (len(answer), n)
        return np.array(answer, dtype=np.uint64)
