"""Guarantees for single draws, with distributions known exactly, approximately or from samples."""
