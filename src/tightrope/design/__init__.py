"""The least noise for a promise, limits and calibration; knows no question and no table of people."""
