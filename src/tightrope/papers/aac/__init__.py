"""Asoodeh, Aliakbarpour, Calmon: local differential privacy is contraction of E_γ."""
