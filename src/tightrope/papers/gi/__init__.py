"""Ghazi, Issa: Total Variation Meets Differential Privacy, the journal version."""
