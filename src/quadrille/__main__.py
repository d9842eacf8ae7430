"""Run the command line as `python -m quadrille`."""

from quadrille.cli import main

if __name__ == "__main__":
    main()
