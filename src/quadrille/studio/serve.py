"""Running the studio: one web process, which this is, and its workers, which are started again when they end."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
import webbrowser
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path

from quadrille.errors import InputError, OutputError, ParameterError
from quadrille.studio import audit, retention, users
from quadrille.studio.store import Home, Store
from quadrille.studio.web import Settings

DAY = 86_400.0
LOOK, LONGEST_LOOK = 0.2, 5.0
"""Seconds between two looks at the workers."""
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True)
class Address:
    """Where the studio listens, and by what it is reached."""

    host: str = "127.0.0.1"
    port: int = 0
    cert: Path | None = None
    key: Path | None = None
    proxy: str = ""

    @property
    def team(self) -> bool:
        """Whether others than the user of this machine can reach it."""
        return self.host not in _LOOPBACK or bool(self.proxy)

    def check(self, store: Store, user_header: str) -> None:
        """Refuse to serve others without encryption, or without anybody who may come in."""
        if (self.cert is None) != (self.key is None):
            raise ParameterError("--tls-cert and --tls-key go together. Name both.")
        if self.cert is not None and self.key is not None:
            _check_pair(self.cert, self.key)
        if self.proxy and not self.proxy.startswith("https://"):
            raise ParameterError(
                "--behind-proxy takes the address that browsers use, such as https://studio.example.org."
            )
        if user_header and not self.proxy:
            raise ParameterError("--user-header goes with --behind-proxy: anybody else could send the header.")
        if not self.team:
            return
        if self.cert is None and not self.proxy:
            raise ParameterError(
                "--host needs --tls-cert and --tls-key, or --behind-proxy: data must not travel in the open."
            )
        if not any(user.active and user.name != users.LOCAL_USER for user in store.users()):
            text = "There is no user yet. Add one first: quadrille studio user add NAME --role analyst."
            raise ParameterError(text)

    def origins(self, port: int, name: str) -> tuple[str, ...]:
        """Return the addresses at which browsers may reach it, the first one to be printed."""
        if self.proxy:
            return (self.proxy.rstrip("/").lower(),)
        scheme = "http" if self.cert is None else "https"
        if not self.team:
            hosts = [f"{name}.localhost", "127.0.0.1", "localhost"]
        elif self.host in ("0.0.0.0", "::"):
            hosts = [socket.getfqdn(), socket.gethostname()]
        else:
            hosts = [self.host]
        usual = port == (80 if scheme == "http" else 443)
        return tuple(f"{scheme}://{host}{'' if usual else f':{port}'}".lower() for host in dict.fromkeys(hosts))


def _check_pair(cert: Path, key: Path) -> None:
    """Refuse a certificate and a key that cannot be used, before anything is started."""
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(cert, key)
    except ssl.SSLError:
        text = "must be PEM files that fit together, the key without a password"
    except OSError as error:
        text = f"cannot be read: {error.strerror}"
    else:
        return
    raise InputError(f"The certificate {str(cert)!r} and its key {str(key)!r} {text}. Check --tls-cert and --tls-key.")


def default_home() -> Home:
    """Return the folder of the user's data for programs."""
    if sys.platform == "darwin":
        base = Path.home() / "Library" / "Application Support"
    else:
        base = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
    return Home(base / "quadrille" / "studio")


@contextmanager
def alone(home: Home) -> Generator[None]:
    """Keep a second studio out of the folder while this one runs."""
    home.prepare()
    handle = os.open(home.run / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise OutputError(
            f"A studio is running on the folder {str(home.path)!r} already. `quadrille studio url` tells its address."
        ) from None
    try:
        yield
    finally:
        os.close(handle)


def listen(address: Address, store: Store) -> socket.socket:
    """Open the port: the one asked for, else the one of the last time, else any."""
    wanted = [address.port] if address.port else [int(store.setting("port", "0")), 0]
    for port in wanted:
        family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((address.host, port))
        except OSError as error:
            listener.close()
            if port == wanted[-1]:
                raise OutputError(f"Cannot listen at {address.host}, port {port}: {error.strerror}.") from None
            continue
        listener.set_inheritable(False)
        listener.listen(128)  # whoever opens the address as soon as it is told waits, and is not refused
        if not address.port:
            store.set("port", str(listener.getsockname()[1]))
        return listener
    raise AssertionError


class Workers:
    """The worker processes: started, and started again when one ends."""

    def __init__(self, home: Home, count: int) -> None:
        self._home = home
        self._count = count
        self._running: dict[int, subprocess.Popen[bytes]] = {}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def start(self) -> None:
        """Start them."""
        for place in range(self._count):
            self._start(place)
        self._thread.start()

    def stop(self) -> None:
        """End them at once: what they were at is done again."""
        self._stopping.set()
        for process in self._running.values():
            process.kill()
        for process in self._running.values():
            process.wait()

    @property
    def numbers(self) -> list[int]:
        """The numbers of the processes."""
        return [process.pid for process in self._running.values()]

    def _start(self, place: int) -> None:
        # Of several workers one takes no searches, so that short jobs need not wait for a long one.
        searches = "0" if place and place == self._count - 1 else "1"
        words = [sys.executable, "-m", "quadrille.studio.worker"]
        words += [str(self._home.path), f"w{place}", str(self._count), searches]
        self._running[place] = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)

    def _watch(self) -> None:
        pause = LOOK
        while not self._stopping.wait(pause):
            if not self._home.path.exists():  # whoever removed the folder wants no studio on it
                os.kill(os.getpid(), signal.SIGTERM)
                return
            ended = [place for place, process in self._running.items() if process.poll() is not None]
            pause = min(2 * pause, LONGEST_LOOK) if ended else LOOK  # one that cannot start is not tried without end
            for place in ended:
                if not self._stopping.is_set():
                    self._start(place)


def clear_away(store: Store) -> None:
    """Make good after an end in the middle: empty the scratch folder, and let jobs that were running be taken up."""
    for path in store.home.scratch.iterdir():
        shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)
    for part in store.home.path.glob("projects/*/source/*.part"):
        part.unlink(missing_ok=True)
    with store.writing() as db:
        db.execute("UPDATE jobs SET lease = 0 WHERE state = 'running'")


def ticket_page(store: Store, origins: tuple[str, ...], user: users.User, to: str = "/") -> tuple[Path, str]:
    """Write a page, for this user alone, that leads to a one-time address: on a command line all could read it."""
    secret = users.ticket(store, user)
    addresses = [f"{origin}/open/{secret}?to={to}" for origin in origins[:2]]
    page = store.home.run / "open.html"
    page.unlink(missing_ok=True)
    links = " or ".join(
        f'<a href="{escape(each)}">{escape(each.partition("/open")[0])}</a>' for each in addresses[::-1]
    )
    handle = os.open(page, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(
            f'<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0;url={escape(addresses[0])}">'
            f"<title>Quadrille studio</title><p>If nothing happens, open {links}.</p>"
        )
    return page, addresses[-1]


def keep_running(home: Home, origins: tuple[str, ...]) -> None:
    """Write where the studio is reached, for `quadrille studio url`."""
    path = home.run / "address.json"
    path.unlink(missing_ok=True)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        json.dump({"pid": os.getpid(), "origins": origins}, file)


def running_at(home: Home) -> tuple[str, ...]:
    """Return the addresses of the studio that runs on a folder."""
    try:
        known = json.loads((home.run / "address.json").read_text(encoding="utf-8"))
        os.kill(int(known["pid"]), 0)
    except (OSError, ValueError, KeyError):
        raise InputError(f"No studio runs on the folder {str(home.path)!r}. Start it: quadrille studio.") from None
    return tuple(known["origins"])


def run(
    settings: Settings,
    address: Address,
    *,
    browser: bool,
    say: Callable[[str], None],
    audit_copy: Path | None = None,
    first: Callable[[Store], str] | None = None,
) -> None:
    """Run the studio until it is stopped. `first` may prepare a project, and returns the page to open."""
    import uvicorn

    from quadrille.studio.app import make_app

    home = settings.home
    with alone(home):
        store = Store(home)
        address.check(store, settings.user_header)
        listener = listen(address, store)
        origins = address.origins(listener.getsockname()[1], store.setting("name"))
        settings = replace(settings, origins=origins, team=address.team, proxied=bool(address.proxy))
        clear_away(store)
        to = "/" if first is None else first(store)
        workers = Workers(home, settings.jobs)
        workers.start()
        app = make_app(settings, store)
        keep_running(home, origins)
        _say_where(store, settings, to, say, browser=browser)
        threading.Thread(target=_daily, args=(store, say, audit_copy, settings.team), daemon=True).start()
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=True,
            proxy_headers=False,
            timeout_graceful_shutdown=2,
            ssl_certfile=address.cert,
            ssl_keyfile=address.key,
            h11_max_incomplete_event_size=65_536,
        )
        try:
            uvicorn.Server(config).run(sockets=[listener])
        finally:
            workers.stop()
            (home.run / "address.json").unlink(missing_ok=True)
            (home.run / "open.html").unlink(missing_ok=True)


def _say_where(store: Store, settings: Settings, to: str, say: Callable[[str], None], *, browser: bool) -> None:
    if settings.team:
        say(f"The studio is at {settings.origins[0]}. Stop it with Ctrl-C.")
        return
    page, link = ticket_page(store, settings.origins, users.local_user(store), to)
    opened = False
    if browser:
        with suppress(Exception):
            opened = webbrowser.open(page.as_uri())
    where = "Your browser shows the studio. If not, open" if opened else "Open"
    say(f"{where} {link} (once, within ten minutes). Stop it with Ctrl-C.")


def _daily(store: Store, say: Callable[[str], None], copy: Path | None, team: bool) -> None:
    """Once a day: print the head of the audit where others rely on it, copy it, and shred what was kept long enough."""
    while True:
        with suppress(Exception):
            if team:
                number, head = audit.head(store.db)
                say(f"Audit: {number:,} events, head {head}.")
            if copy is not None:
                audit.copy(store.db, copy)
            retention.queue(store)
        time.sleep(DAY)
