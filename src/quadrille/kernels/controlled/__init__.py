"""The compiled search for partners in controlled swaps."""
