"""The command line. Importing it loads nothing heavy, so that `quadrille --help` answers at once."""

try:
    from quadrille.cli.app import app, main
except KeyboardInterrupt:  # whoever stops the program before it has begun wants no traceback
    raise SystemExit(130) from None

__all__ = ["app", "main"]
