"""The compiled engine of designed swaps."""
