"""Bundled example files, ready to use."""

from quadrille.datasets.adult import adult
from quadrille.datasets.cps8d import cps8d

__all__ = ["adult", "cps8d"]
