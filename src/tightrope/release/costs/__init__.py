"""What bounding and clamping leave out, counted privately; and bounds that follow from such counts."""
