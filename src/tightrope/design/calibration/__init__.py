"""The size of each family, of DP-SGD's too, that a budget allows; knows nothing of several vectors."""
