"""Every fact worded once."""
