"""Noise laws that declare facts: loss, errors, sampler; they know no budget and no table of people."""
