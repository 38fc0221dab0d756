"""Real-valued noise laws: a loss and errors, never a sampler; know nothing of tables."""
