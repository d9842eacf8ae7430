"""Bundled example files, ready to use."""

from quadrille.datasets.adult import adult
from quadrille.datasets.cps8d import cps8d
from quadrille.datasets.households import households
from quadrille.datasets.state import state

__all__ = ["adult", "cps8d", "households", "state"]
