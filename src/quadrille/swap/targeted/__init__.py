"""Targeted swapping: whole units, such as households, that are at risk exchange their places with others."""
