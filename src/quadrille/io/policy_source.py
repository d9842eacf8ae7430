"""Which policies judge a release: the one that is given and, always, the one that the machine names."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields
from pathlib import Path

from quadrille.errors import InputError, bad_parameter
from quadrille.io.policy import Policy

VARIABLE = "QUADRILLE_POLICY"
"""The variable that names the policy of a machine; an empty value counts as not set."""


@dataclass(frozen=True)
class Asked:
    """A policy that a release must keep, and whether the machine names it."""

    policy: Policy
    machine: bool = False


def asked_policies(owner: str, given: Policy | str | Path | None) -> tuple[Asked, ...]:
    """Return the policies that judge a release; `owner` is who takes the given one, for the message.

    The policy of the machine comes beside the given one, never in its place; where both say the same, it counts
    once, as the machine's.
    """
    own = None if given is None else as_policy(owner, given)
    machine = machine_policy()
    asked = [] if machine is None else [Asked(machine, machine=True)]
    if own is not None and (machine is None or own.sha256 != machine.sha256):
        asked.insert(0, Asked(own))
    return tuple(asked)


def machine_policy() -> Policy | None:
    """Return the policy of the machine, if it names one; one that cannot be used is an error, not no policy."""
    name = os.environ.get(VARIABLE, "").strip()
    if not name:
        return None
    try:
        return Policy.read(name)
    except InputError as error:
        raise InputError(f"The variable {VARIABLE} names a policy that cannot be used. {error}") from None


def as_policy(owner: str, given: object) -> Policy:
    """Return a policy, read from its file where it has one: what is judged by is what stands in the file."""
    if isinstance(given, str | Path):
        return Policy.read(given)
    if not isinstance(given, Policy):
        raise bad_parameter(owner, "policy", "a policy, or the path of its file", given)
    return given if given.path is None else _as_in_its_file(given, given.path)


def _as_in_its_file(given: Policy, path: Path) -> Policy:
    """Read the file of a policy again, and refuse a policy that says anything else."""
    read = Policy.read(path)
    if read.sha256 != given.sha256:
        raise InputError(f"{path}: the policy file is not the one that was read. Read it again: qd.Policy.read.")
    other = [field.name for field in fields(Policy) if getattr(read, field.name) != getattr(given, field.name)]
    if other:
        raise InputError(
            f"{path}: the policy given is not what this file says. Different: {', '.join(other)}. Give the path of the "
            "file, or, for rules of your own, a Policy with path=None and sha256=None."
        )
    return read
