"""The command line. Importing it loads nothing heavy, so that `quadrille --help` answers at once."""

from quadrille.cli.app import app, main

__all__ = ["app", "main"]
