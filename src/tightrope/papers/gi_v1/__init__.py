"""Ghazi, Issa: Total Variation Meets Differential Privacy, the first version: what the journal version changed."""
