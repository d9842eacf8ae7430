"""Hostile input for every reader, parser and command: `make fuzz` runs for as long as it is told and can be resumed."""
