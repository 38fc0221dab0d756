"""The least noise of one answer as a linear program, with its proof; knows nothing of several releases."""
