"""The engines' differences as data, and their column types; independent of requests and persons."""
