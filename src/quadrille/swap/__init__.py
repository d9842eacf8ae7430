"""All methods of swapping, one file each."""

from __future__ import annotations

from quadrille.swap import controlled as controlled  # registers its recipe
from quadrille.swap import cycle as cycle
from quadrille.swap import designed as designed
from quadrille.swap import permutation as permutation
from quadrille.swap import private as private
from quadrille.swap import random as random
from quadrille.swap import rank as rank
from quadrille.swap import targeted as targeted
