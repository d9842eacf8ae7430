"""The parts of the reproduction of Boudreau (2005): the small file, the two regions, the draws, the claims."""
