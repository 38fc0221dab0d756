"""The user's data as a Table: files, frames, databases; independent of requests."""
