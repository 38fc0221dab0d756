"""What a release promises, and to whom, as data and in words; knows no noise and no table."""
