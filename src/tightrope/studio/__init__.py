"""A local page to make a plan by eye: who a person is, what is asked, which promise; thin, and loopback only."""
