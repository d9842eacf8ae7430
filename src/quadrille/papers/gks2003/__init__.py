"""The parts of the reproduction of Gomatam, Karr & Sanil (2003): experiment, claims, references, demonstrations."""
