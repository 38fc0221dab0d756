"""Commands that account: account, dpsgd; know no table of people."""
