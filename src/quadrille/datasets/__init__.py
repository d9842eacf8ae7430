"""Bundled example files, ready to use."""

from quadrille.datasets.cps8d import cps8d

__all__ = ["cps8d"]
