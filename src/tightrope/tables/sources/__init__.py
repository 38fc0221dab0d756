"""Whatever a user has as a Table: files, frames, databases; knows no request."""
