"""One file a mechanism: what a person reports; knows no study, no limit and no table of people."""
