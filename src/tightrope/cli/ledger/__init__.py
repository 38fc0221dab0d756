"""The commands of tightrope ledger: open, show, history, check, export; know no question."""
