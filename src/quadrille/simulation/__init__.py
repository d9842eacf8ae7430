"""Swaps between areas in count space, without microdata: one setting, or a full factorial design."""
