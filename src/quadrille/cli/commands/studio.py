"""`quadrille studio`: the whole path in a browser, its address, its users and its audit."""

from __future__ import annotations

import getpass
import sys
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from quadrille.cli import options as opt
from quadrille.cli import show
from quadrille.errors import InputError, ParameterError, QuadrilleError

if TYPE_CHECKING:
    from quadrille.studio.store import Home, Store

_TEAM = "For a team"
_NEEDED = ("fastapi", "uvicorn", "jinja2", "argon2", "altair", "vl_convert")
_MIB = 1 << 20


def studio(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="WORDS",
            help="Nothing: start it. open FILE or STUDY: start it there. url: a fresh address. audit: check or copy "
            "it. user add, roles, password, lock, unlock, url NAME; user list.",
            show_default=False,
        ),
    ] = None,
    home: Annotated[Path | None, opt.value("FOLDER", "Where it keeps everything. [default: user's data]")] = None,
    port: Annotated[int | None, opt.value("NUMBER", "Port. [default: as last time, or a free one]")] = None,
    jobs: Annotated[int, opt.value("NUMBER", "Workers: jobs that run side by side.")] = 2,
    root: Annotated[Path | None, opt.value("FOLDER", "Files below it can be opened without an upload.")] = None,
    limit: Annotated[int, opt.value("MIB", "The largest upload.")] = 2048,
    no_browser: Annotated[bool, opt.flag("--no-browser", "Print the address, open nothing.")] = False,
    host: Annotated[str, opt.value("NAME", "Where it listens.", panel=_TEAM)] = "127.0.0.1",
    tls_cert: Annotated[Path | None, opt.value("FILE", "Certificate, PEM.", panel=_TEAM)] = None,
    tls_key: Annotated[Path | None, opt.value("FILE", "Its key, PEM.", panel=_TEAM)] = None,
    behind_proxy: Annotated[str, opt.value("ADDRESS", "https address of a proxy in front.", panel=_TEAM)] = "",
    user_header: Annotated[str, opt.value("NAME", "The header in which it names the user.", panel=_TEAM)] = "",
    role: Annotated[list[str] | None, opt.value("ROLE", "Of a user: analyst, reviewer or admin.", panel=_TEAM)] = None,
    verify: Annotated[bool, opt.flag("--verify", "With audit: work out the chain anew.", panel=_TEAM)] = False,
    audit_copy: Annotated[Path | None, opt.value("FILE", "Add new events to this copy.", panel=_TEAM)] = None,
    as_json: opt.Json = False,
) -> None:
    """Open the whole path in a browser."""
    _require_extra()
    from quadrille.studio.serve import default_home
    from quadrille.studio.store import Home

    place = default_home() if home is None else Home(home.absolute())
    match words or []:
        case []:
            pass
        case ["url"]:
            _tell(as_json, _url(place))
            return
        case ["audit"]:
            _audit(place, audit_copy, verify=verify, as_json=as_json)
            return
        case ["user", *rest]:
            _tell(as_json, _user(place, rest, role or []))
            return
        case ["open", _]:
            pass
        case _:
            _refuse_words(words or [])
    from quadrille.studio.serve import Address, run
    from quadrille.studio.web import Settings

    if jobs < 1 or limit < 1 or not 0 <= (port or 0) <= 65_535:
        raise ParameterError("--jobs and --limit must be 1 or more, and --port between 0 and 65535.")
    address = Address(host, port or 0, tls_cert, tls_key, behind_proxy)
    if root is not None and not root.is_dir():
        raise InputError(f"There is no folder {str(root)!r}. Check --root.")
    allowed = root if root is not None or address.team else Path.home()
    settings = Settings(place, root=allowed, limit=limit * _MIB, jobs=jobs, user_header=user_header)
    say: Callable[[str], None] = show.shell
    if as_json:

        def said(text: str) -> None:
            show.emit({"message": text})

        say = said
    first = _opener(words[1]) if words else None
    run(settings, address, browser=not no_browser, say=say, audit_copy=audit_copy, first=first)


def _require_extra() -> None:
    if any(find_spec(name) is None for name in _NEEDED):
        raise QuadrilleError("The studio needs further packages. Install them: pip install 'quadrille[studio]'.")


def _refuse_words(words: Sequence[str]) -> NoReturn:
    raise ParameterError(f"`studio {' '.join(words)}` is not known. See: quadrille studio --help.")


def _tell(as_json: bool, text: str) -> None:
    if as_json:
        show.emit({"message": text})
    else:
        show.shell(text)


def _opened(place: Home) -> Store:
    from quadrille.studio.store import Store

    return Store(place)


def _url(place: Home, name: str = "") -> str:
    """Return a fresh one-time address: for the user of this machine, or for a user of the team."""
    from quadrille.studio import users
    from quadrille.studio.serve import running_at

    origins, store = running_at(place), _opened(place)
    user = store.user_named(name) if name else users.local_user(store)
    if user is None:
        raise InputError(f"There is no user {name!r}. `quadrille studio user list` names them.")
    origin = next((each for each in origins if "://127." in each), origins[0])
    return f"{origin}/open/{users.ticket(store, user)}"


def _audit(place: Home, copy: Path | None, *, verify: bool, as_json: bool) -> None:
    from quadrille.studio import audit

    store = _opened(place)
    wrong = audit.differs(store.db, copy) if copy is not None and copy.exists() else None
    added = 0 if copy is None or wrong is not None else audit.copy(store.db, copy)
    number, head = audit.head(store.db)
    checked = audit.verify(store.db) if verify else None
    broken = wrong if checked is None or checked.broken is None else checked.broken
    if as_json:
        show.emit({"events": number, "head": head, "verified": checked is not None, "broken": broken, "copied": added})
    else:
        show.facts([("events", f"{number:,}"), ("head", head)])
        if checked is not None and broken is None:
            show.note("Every event fits the one before it.")
        if copy is not None and wrong is None:
            show.note(f"{added:,} events were added to {copy}.")
    if broken is not None:
        raise InputError(
            f"Event {broken:,} of the audit is not what it was. Compare with the heads in the dossiers and the copies."
        )


def _user(place: Home, words: Sequence[str], roles: Sequence[str]) -> str:
    """Add or change a user."""
    from quadrille.studio import users

    store = _opened(place)
    match list(words):
        case ["list"]:
            rows = [f"{u.name}: {', '.join(u.roles)}{'' if u.active else ' (locked)'}" for u in store.users()]
            return "\n".join(rows) or "There is no user yet."
        case ["add", name]:
            users.add(store, "command line", name, roles, _password())
            return f"Added {name}."
        case ["roles" | "password" | "lock" | "unlock" as what, name]:
            user = store.user_named(name)
            if user is None:
                raise InputError(f"There is no user {name!r}. `quadrille studio user list` names them.")
            if what == "roles":
                users.change(store, "command line", user, roles=roles)
            elif what == "password":
                users.change(store, "command line", user, password=_password())
            else:
                users.change(store, "command line", user, active=what == "unlock")
            return f"Changed {name}."
        case ["url", name]:
            return _url(place, name)
        case _:
            _refuse_words(["user", *words])


def _password() -> str:
    """Ask for a password, twice on a terminal; in a pipe it is the first line."""
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\n")
    first = getpass.getpass("Password (12 characters or more): ")
    if first != getpass.getpass("Again: "):
        raise ParameterError("The two passwords differ. Try again.")
    return first


def _opener(name: str) -> Callable[[Store], str]:
    """Return what opens a bundled file, a data file or a study in a project of its own."""
    from quadrille.studio.files import open_named, refuse_unknown

    refuse_unknown(name)
    return lambda store: open_named(store, name)
