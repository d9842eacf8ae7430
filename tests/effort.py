"""How hard the tests try: a fresh sample of the cases in `make test`, as much as a night allows in `make nightly`.

The profile of Hypothesis is the one switch: `pytest --hypothesis-profile=nightly` tries as hard as the night does.
"""

from __future__ import annotations

from hypothesis import settings

NIGHTLY = settings.get_current_profile_name() == "nightly"
NIGHTLY_EXAMPLES = 1_000


def examples(count: int) -> settings:
    """Let a law try `count` cases in `make test` and 1,000 in `make nightly`."""
    return settings(max_examples=tries(count, NIGHTLY_EXAMPLES))


def tries(count: int, nightly: int) -> int:
    """Return how often something is drawn, killed or repeated: in `make test`, and in `make nightly`."""
    return nightly if NIGHTLY else count
