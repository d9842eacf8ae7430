"""The parts of the reproduction of Lemons, Dajani, You & Jordan (2014)."""
