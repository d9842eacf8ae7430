"""Who is there: passwords, sessions, one-time addresses and tokens for programs."""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from quadrille.errors import InputError, ParameterError
from quadrille.studio.store import ROLES, Session, Store, User, hashed

if TYPE_CHECKING:
    from argon2 import PasswordHasher

LEAST_PASSWORD = 12
MOST_PASSWORD = 1024
TICKET_SECONDS = 600.0
LOCAL_IDLE, TEAM_IDLE, MOST_SESSION = 12 * 3600.0, 30 * 60.0, 12 * 3600.0
FREE_FAILURES, FREE_OF_ADDRESS, MOST_DELAY = 5, 50, 3600.0
"""Wrong passwords before one has to wait, of a user and of an address, which a whole office may share."""
SCOPES = ("read", "run")
LOCAL_USER = "local"


@cache
def _hasher() -> PasswordHasher:
    from argon2 import PasswordHasher

    return PasswordHasher()


def check_roles(roles: Sequence[str]) -> tuple[str, ...]:
    """Refuse roles that do not exist; who administers sees no data, and so has no other role."""
    unknown = [role for role in roles if role not in ROLES]
    if unknown or not roles:
        raise ParameterError(f"A role must be one of {', '.join(ROLES)}. Got {', '.join(unknown) or 'none'}.")
    if "admin" in roles and len(set(roles)) > 1:
        raise ParameterError("An admin sees no data, so the role goes with no other. Add a second user.")
    return tuple(role for role in ROLES if role in roles)


def hash_password(password: str) -> str:
    """Return the argon2id hash of a password that is long enough."""
    if not LEAST_PASSWORD <= len(password) <= MOST_PASSWORD:
        raise ParameterError(f"A password must have {LEAST_PASSWORD} characters or more. Choose a longer one.")
    return _hasher().hash(password)


def add(store: Store, by: User | str, name: str, roles: Sequence[str], password: str | None) -> User:
    """Add a user; without a password only a proxy, or a one-time address, lets them in."""
    if not re.fullmatch(r"[\w.@+-]{1,100}", name):
        raise ParameterError("A user's name must be 1 to 100 letters, digits or any of . _ @ + -.")
    if store.user_named(name) is not None:
        raise InputError(f"There is a user {name!r} already. Choose another name.")
    return store.add_user(by, name, check_roles(roles), "" if password is None else hash_password(password))


def has_password(store: Store, user: User) -> bool:
    """Whether a user can sign in with a password."""
    return bool(store.db.execute("SELECT password FROM users WHERE id = ?", (user.id,)).fetchone()["password"])


def local_user(store: Store) -> User:
    """Return the one user of a studio for one person: analyst and reviewer."""
    return store.user_named(LOCAL_USER) or store.add_user("studio", LOCAL_USER, ("analyst", "reviewer"))


class WaitError(Exception):
    """Too many wrong passwords: `seconds` have to pass first."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"wait {seconds:.0f} seconds")
        self.seconds = seconds


def check_password(store: Store, name: str, password: str, address: str) -> User | None:
    """Return the user of a name and a password, or None; too many failures of a name or an address must wait."""
    asked = [(f"user {name[:100]}", FREE_FAILURES), *([(f"address {address}", FREE_OF_ADDRESS)] if address else [])]
    wait = max(_wait(store, who, free) for who, free in asked)
    if wait > 0:
        raise WaitError(wait)
    row = store.db.execute("SELECT id, password FROM users WHERE name = ? AND active", (name,)).fetchone()
    held = row["password"] if row is not None and row["password"] else _nobody()
    right = _verified(held, password[: MOST_PASSWORD + 1]) and row is not None
    with store.writing() as db:
        if right:
            db.execute("DELETE FROM failures WHERE who = ?", (asked[0][0],))
        else:
            db.execute("DELETE FROM failures WHERE latest < ?", (store.now() - MOST_DELAY,))
            query = (
                "INSERT INTO failures VALUES (?, 1, ?) ON CONFLICT (who) DO UPDATE SET count = count + 1, latest = ?"
            )
            db.executemany(query, [(who, store.now(), store.now()) for who, _ in asked])
            store.record(name[:100], "login refused")
    return store.user_named(name) if right else None


@cache
def _nobody() -> str:
    """Return the hash of a password that nobody has, so that names which do not exist take as long to refuse."""
    return _hasher().hash(secrets.token_hex(16))


def _verified(held: str, password: str) -> bool:
    from argon2.exceptions import Argon2Error, InvalidHashError

    try:
        return _hasher().verify(held, password)
    except (Argon2Error, InvalidHashError):
        return False


def _wait(store: Store, who: str, free: int) -> float:
    """Return the seconds that must pass: 1, 2, 4, ... after some failures, of which an hour without one makes none."""
    row = store.db.execute("SELECT count, latest FROM failures WHERE who = ?", (who,)).fetchone()
    if row is None or row["count"] < free:
        return 0.0
    delay = min(MOST_DELAY, 2.0 ** min(row["count"] - free, 20))
    return max(0.0, row["latest"] + delay - store.now())


def begin(store: Store, user: User, how: str) -> tuple[str, Session]:
    """Begin a session; return the secret for the cookie, of which only a hash is kept."""
    secret, csrf, now = secrets.token_urlsafe(32), secrets.token_urlsafe(32), store.now()
    with store.writing() as db:
        db.execute("DELETE FROM sessions WHERE created < ?", (now - MOST_SESSION,))
        db.execute("INSERT INTO sessions VALUES (?, ?, ?, ?, ?)", (hashed(secret), user.id, csrf, now, now))
        store.record(user, "login", detail={"how": how})
    return secret, Session(user, csrf, hashed(secret), created=now)


def session(store: Store, secret: str, idle: float) -> Session | None:
    """Return the session of a cookie, unless it is too old or was idle for too long."""
    row = store.db.execute("SELECT * FROM sessions WHERE hash = ?", (hashed(secret),)).fetchone()
    now = store.now()
    if row is None or now - row["seen"] > idle or now - row["created"] > MOST_SESSION:
        return None
    user = store.user(row["user"])
    if user is None or not user.active:
        return None
    if now - row["seen"] > 10:  # not at every request: each write waits for the disk
        with store.writing() as db:
            db.execute("UPDATE sessions SET seen = ? WHERE hash = ?", (now, row["hash"]))
    return Session(user, row["csrf"], row["hash"], created=row["created"])


def end(store: Store, session: Session) -> None:
    """End a session."""
    with store.writing() as db:
        db.execute("DELETE FROM sessions WHERE hash = ?", (session.hash,))
        store.record(session.user, "logout")


def ticket(store: Store, user: User) -> str:
    """Return the secret of a one-time address, good for ten minutes."""
    secret = secrets.token_urlsafe(32)
    with store.writing() as db:
        db.execute("DELETE FROM tickets WHERE until < ?", (store.now(),))
        db.execute("INSERT INTO tickets VALUES (?, ?, ?)", (hashed(secret), user.id, store.now() + TICKET_SECONDS))
    return secret


def redeem(store: Store, secret: str) -> User | None:
    """Return the user of a one-time address at its first use."""
    with store.writing() as db:
        query = "DELETE FROM tickets WHERE hash = ? AND until >= ? RETURNING user"
        row = db.execute(query, (hashed(secret), store.now())).fetchone()
    found = None if row is None else store.user(row["user"])
    return found if found is not None and found.active else None


def add_token(store: Store, user: User, name: str, scope: str, days: int) -> str:
    """Return a new token for programs; only its hash is kept."""
    if scope not in SCOPES:
        raise ParameterError(f"The scope of a token must be one of {', '.join(SCOPES)}. Got {scope!r}.")
    if not 1 <= days <= 366:
        raise ParameterError(f"A token must expire after 1 to 366 days. Got {days}.")
    secret, now = f"qst_{secrets.token_urlsafe(32)}", store.now()
    with store.writing() as db:
        db.execute(
            "INSERT INTO tokens (user, name, hash, scope, until, created) VALUES (?, ?, ?, ?, ?, ?)",
            (user.id, name, hashed(secret), scope, now + 86400 * days, now),
        )
        store.record(user, "token made", detail={"name": name, "scope": scope, "days": days})
    return secret


def token(store: Store, secret: str) -> Session | None:
    """Return the session that a token stands for."""
    query = "SELECT user, scope, created FROM tokens WHERE hash = ? AND until >= ?"
    row = store.db.execute(query, (hashed(secret), store.now())).fetchone()
    if row is None:
        return None
    user = store.user(row["user"])
    if user is None or not user.active:
        return None
    return Session(user, scope=row["scope"], created=row["created"])


def tokens(store: Store, user: User) -> list[dict[str, object]]:
    """Return the tokens of a user, without what lets one in."""
    query = "SELECT id, name, scope, until, created FROM tokens WHERE user = ? AND until >= ? ORDER BY id"
    return [dict(row) for row in store.db.execute(query, (user.id, store.now())).fetchall()]


def remove_token(store: Store, user: User, number: int) -> bool:
    """Take a token back."""
    with store.writing() as db:
        gone = db.execute("DELETE FROM tokens WHERE id = ? AND user = ?", (number, user.id)).rowcount > 0
        if gone:
            store.record(user, "token removed", detail={"token": number})
    return gone


def change(
    store: Store,
    by: User | str,
    user: User,
    *,
    roles: Sequence[str] | None = None,
    active: bool | None = None,
    password: str | None = None,
) -> None:
    """Change roles or password of a user, or lock them out; their sessions and tokens end with it."""
    values: dict[str, object] = {}
    if roles is not None:
        values["roles"] = ",".join(check_roles(roles))
    if active is not None:
        values["active"] = int(active)
    if password is not None:
        values["password"] = hash_password(password)
    if not values:
        return
    with store.writing() as db:
        columns = ", ".join(f"{name} = ?" for name in values)
        db.execute(f"UPDATE users SET {columns} WHERE id = ?", (*values.values(), user.id))
        db.execute("DELETE FROM sessions WHERE user = ?", (user.id,))
        if active is False:
            db.execute("DELETE FROM tokens WHERE user = ?", (user.id,))
        changed = sorted(name for name in values)
        store.record(by, "user changed", detail={"name": user.name, "changed": changed})
