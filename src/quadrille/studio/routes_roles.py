"""Step 2, Roles: what each column is, and how it is recoded; the profile is worked out anew after each change."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import tomli_w
from fastapi import APIRouter, Request, Response

from quadrille.codebook import KINDS, ROLES, Codebook
from quadrille.errors import QuadrilleError
from quadrille.studio import jobs
from quadrille.studio.pages import page, working
from quadrille.studio.store import ChangedError, toml
from quadrille.studio.web import current, form_of, own_project, redirect, store_of

router = APIRouter(include_in_schema=False)


@router.get("/projects/{project}/roles")
def roles(request: Request, project: str) -> Response:
    """Show the columns."""
    return shown(request, project)


def shown(
    request: Request,
    project: str,
    *,
    status: int = 200,
    text: str | None = None,
    fault: tuple[str, str] | None = None,
    conflict: bool = False,
) -> Response:
    """Show the page; `text` is a codebook that could not be kept, with what is wrong with it."""
    store, found = store_of(request), own_project(request, project)
    job = store.latest_job(found.id, "profile")
    profile = store.result(store.latest_job(found.id, "profile", done=True))
    held = store.document(found.id, "codebook")
    if profile is None:
        return redirect(f"/projects/{found.id}/data")
    start = _start(request, len(profile["columns"]))
    book = _document(text if text is not None else held.text if held else profile["codebook"])
    command, written = jobs.drawer(store, found, "profile", {})
    return page(
        request,
        "roles.html.j2",
        title="Roles",
        project=found,
        step="roles",
        status=status,
        job=job,
        working=working(job),
        rows=rows_of(profile, book, start),
        columns=len(profile["columns"]),
        start=start,
        shown=SHOWN,
        edit=_place(request.query_params.get("edit", "")),
        kinds=KINDS,
        roles=ROLES,
        version=0 if held is None else held.version,
        by="" if held is None or held.user == 0 else "you",
        fault=fault,
        conflict=conflict,
        theirs=held.text if conflict and held else "",
        ours=text or "",
        hints=profile["hints"],
        profile=profile,
        command=command,
        files=written or [("codebook.toml", profile["codebook"])],
    )


def _start(request: Request, columns: int) -> int:
    given = request.query_params.get("from", "0")
    return min(int(given), max(columns - 1, 0)) if given.isdecimal() and len(given) < 7 else 0


@router.post("/projects/{project}/roles")
def save(request: Request, project: str) -> Response:
    """Keep a new version of the codebook and look at the file again."""
    store, found, user = store_of(request), own_project(request, project), current(request).user
    profile = store.result(store.latest_job(found.id, "profile", done=True))
    if profile is None:
        return redirect(f"/projects/{found.id}/data")
    sent, held = dict(form_of(request)), store.document(found.id, "codebook")
    base = None if held is None else store.document(found.id, "codebook", _version(sent.get("version", "")))
    book = _document(base.text if base else profile["codebook"])
    text = changed(book, profile, sent)
    names = [each["name"] for each in profile["columns"]]
    fault = fault_of(text, names)
    if fault is not None:
        return shown(request, project, status=422, text=text, fault=fault)
    if held is None or text != held.text:
        try:
            store.put_document(user, found.id, "codebook", text, expected=_version(sent.get("version", "")))
        except ChangedError:
            return shown(request, project, status=412, text=text, conflict=True)
        jobs.submit(store, user, store.project(found.id), "profile")
    if sent.get("then") == "risk":
        return redirect(f"/projects/{found.id}/risk")
    edit = _place(sent.get("edit", ""))
    place = "said=saved" if edit is None else f"edit={edit}#edit"
    return redirect(f"/projects/{found.id}/roles?from={_start(request, len(names))}&{place}")


def _place(text: str) -> int | None:
    return int(text) if text.isdecimal() and len(text) < 7 else None


def _version(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) < 10 else 0


# --- the codebook as a form ------------------------------------------------------------------------------------------

SHOWN = 60
"""Columns on one page."""
_RECODING = ("bands", "top", "bottom", "merge", "original")

Entry = dict[str, Any]


@dataclass(frozen=True)
class Row:
    """A column as the form shows it; `order` and the others are texts, a value per line or separated by commas."""

    number: int
    name: str
    label: str
    kind: str
    role: str
    level: str
    categories: int | None
    missing_share: float
    order: str
    missing: str
    bands: str
    top: str
    bottom: str
    merge: str
    original: str
    reason: str
    hints: tuple[str, ...]
    key: bool
    named: tuple[str, ...] = ()

    @property
    def recoded(self) -> bool:
        """Whether the column is recoded."""
        return any((self.bands, self.top, self.bottom, self.merge))


def rows_of(profile: Mapping[str, Any], book: Mapping[str, Any], start: int = 0) -> list[Row]:
    """Return the columns of a profile with the entries of the codebook, from a place on."""
    variables = {each["name"]: each for each in profile["variables"]}
    entries = cast("dict[str, Entry]", book.get("columns", {}))
    made: list[Row] = []
    columns: list[Entry] = profile["columns"][start : start + SHOWN]
    for number, column in enumerate(columns, start):
        name = column["name"]
        entry, known = entries.get(name, {}), variables.get(name, {})
        made.append(
            Row(
                number,
                name,
                str(entry.get("label") or column.get("label") or ""),
                str(entry.get("kind") or column["kind"]),
                str(entry.get("role") or column["role"] or ""),
                str(entry.get("level") or column.get("level") or ""),
                column["categories"],
                column["missing"],
                "\n".join(map(_text, entry.get("categories", known.get("categories", [])))),
                ", ".join(map(_text, entry.get("missing", known.get("missing", [])))),
                ", ".join(map(_text, entry.get("bands", []))),
                _text(entry.get("top", "")),
                _text(entry.get("bottom", "")),
                "\n".join(f"{new} = {', '.join(map(_text, old))}" for new, old in entry.get("merge", {}).items()),
                str(entry.get("original", "")),
                column["reason"],
                tuple(profile["hints_of"].get(name, ())),
                bool(column["key"]),
            )
        )
    return made


def _text(value: object) -> str:
    return (
        ("true" if value else "false")
        if isinstance(value, bool)
        else f"{value:.15g}"
        if isinstance(value, float)
        else str(value)
    )


def _document(text: str | None) -> dict[str, Any]:
    """Return a codebook as a document."""
    try:
        return toml(text or "")
    except ValueError:
        return {}


def changed(book: Mapping[str, Any], profile: Mapping[str, Any], sent: Mapping[str, str]) -> str:
    """Return the codebook with what a form says, as TOML; what the form does not show stays as it is."""
    made = {
        **book,
        "columns": {name: dict(entry) for name, entry in cast("dict[str, Entry]", book.get("columns", {})).items()},
    }
    variables = {each["name"]: each for each in profile["variables"]}
    numbers = sorted(int(match[1]) for match in (re.fullmatch(r"c(\d+)\.kind", name) for name in sent) if match)
    for number in numbers:
        if not 0 <= number < len(profile["columns"]):
            continue
        name = profile["columns"][number]["name"]
        fields = {key.partition(".")[2]: value for key, value in sent.items() if key.startswith(f"c{number}.")}
        entry = made["columns"].setdefault(name, {})
        _fill(entry, fields, variables.get(name, {}), profile["columns"][number])
    return tomli_w.dumps(made)


def _fill(entry: Entry, fields: Mapping[str, str], known: Mapping[str, Any], column: Mapping[str, Any]) -> None:
    kind, role = fields.get("kind", ""), fields.get("role", "")
    before = entry.get("kind") or column["kind"]
    if kind in KINDS and kind != before:
        entry["kind"] = kind
        if "numeric" in (kind, before):
            for stale in ("categories", "labels", "missing_labels"):
                entry.pop(stale, None)
    _put(entry, "role", role if role in ROLES else "")
    if "level" in fields or role != "geography":
        level = fields.get("level", "").strip() if role == "geography" else ""
        _put(entry, "level", _number(level) if level else "")
    for name in ("label", "original"):
        if name in fields:
            _put(entry, name, fields[name].strip())
    if "order" in fields:
        _order(entry, fields["order"], known)
    if "missing" in fields:
        _values(entry, "missing", fields["missing"], known)
    if "bands" in fields:
        _recoding(entry, fields, known)


def _put(entry: Entry, name: str, value: object) -> None:
    entry.pop(name, None)
    if value not in ("", [], None):
        entry[name] = value


def _order(entry: Entry, text: str, known: Mapping[str, Any]) -> None:
    """Take over an order of categories that was changed; labels move along with their categories."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    held = list(entry.get("categories", known.get("categories", [])))
    if lines == list(map(_text, held)) or not lines:
        return
    values = {_text(value): value for value in [*held, *known.get("categories", [])]}
    ordered = [values.get(line, _number(line) if held and not isinstance(held[0], str) else line) for line in lines]
    labels = entry.get("labels")
    if labels and len(labels) == len(held):
        named = dict(zip(map(_text, held), labels, strict=True))
        entry["labels"] = [named.get(line, "") for line in lines]
    entry["categories"] = ordered


def _values(entry: Entry, name: str, text: str, known: Mapping[str, Any]) -> None:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    held = list(entry.get(name, known.get(name, [])))
    if parts == list(map(_text, held)):
        return
    texts = any(isinstance(value, str) for value in entry.get("categories", known.get("categories", [])))
    values = {_text(value): value for value in held}
    entry.pop("missing_labels", None)
    _put(entry, name, [values.get(part, part if texts else _number(part)) for part in parts])
    categories = entry.get("categories")
    if categories:
        kept = [value for value in categories if _text(value) not in parts]
        if len(kept) < len(categories) and "labels" in entry:
            entry["labels"] = [
                label for value, label in zip(categories, entry["labels"], strict=False) if value in kept
            ]
        entry["categories"] = kept


def _recoding(entry: Entry, fields: Mapping[str, str], known: Mapping[str, Any]) -> None:
    before = {name: entry.get(name) for name in _RECODING}
    bands = [_number(part) for part in fields["bands"].split(",") if part.strip()]
    _put(entry, "bands", bands)
    for name in ("top", "bottom"):
        text = fields.get(name, "").strip()
        _put(entry, name, _number(text) if text else "")
    merge: dict[str, list[object]] = {}
    values = {_text(value): value for value in known.get("categories", [])}
    for line in fields.get("merge", "").splitlines():
        new, _, old = line.partition("=")
        if new.strip() and old.strip():
            merge[new.strip()] = [values.get(part.strip(), part.strip()) for part in old.split(",") if part.strip()]
    _put(entry, "merge", merge or "")
    if bands and bands != before["bands"]:  # the bands make categories of their own
        for stale in ("kind", "categories", "labels"):
            entry.pop(stale, None)


def _number(text: str) -> object:
    text = text.strip()
    try:
        return int(text) if re.fullmatch(r"[+-]?\d+", text) else float(text)
    except ValueError:
        return text


def fault_of(text: str, names: Sequence[str]) -> tuple[str, str] | None:
    """Return what is wrong with a codebook and the column that it is about, "" for none; None when all is well."""
    try:
        Codebook.from_toml(text, where="The codebook")
    except QuadrilleError as error:
        place = error.place
        named, said = ("", str(error)) if place is None or place.key not in names else (place.key, place.text)
        return named, said[:1].upper() + said[1:]
    return None
