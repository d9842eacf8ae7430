"""The studio against a second user, a neighbour's page and whoever races: what attacks have found stays mended."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from argon2 import PasswordHasher
from fastapi.testclient import TestClient
from tests.unit.studio_case import JOB, PASSWORD, Browser, Studio, studio

import quadrille as qd
from quadrille.studio import audit, retention, users
from quadrille.studio.web import COOKIE, PLAIN_COOKIE, STEPS

CANARY = "777000777"
HOSTILE = '<img src=x onerror="alert(1)">'


@pytest.fixture(scope="module", autouse=True)
def quick_passwords() -> Iterator[None]:
    quick = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(users, "_hasher", lambda: quick)
        yield


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    folder = tmp_path_factory.mktemp("team")
    with studio(folder / "home", team=True, root=folder, proxied=True) as made:
        for name, role in (("anna", "analyst"), ("bert", "analyst"), ("rita", "reviewer"), ("adam", "admin")):
            made.user(name, role, password=PASSWORD)
        yield made


def of(team: Studio, name: str) -> Browser:
    user = team.store.user_named(name)
    assert user is not None
    return team.browser(user)


def sent(browser: Browser, path: str, **fields: str) -> Any:
    """Send a form of a page."""
    form = {"csrf": browser.csrf, **fields}
    return browser.client.post(path, data=form, headers={"Accept": "text/html"}, follow_redirects=False)


def submitted(team: Studio) -> tuple[str, int]:
    """A project of anna that waits for its sign-off; return it and its study."""
    anna = of(team, "anna")
    found = team.opened(team.store.user_named("anna"))
    base = f"/projects/{found.id}"
    assert anna.send("PUT", f"{base}/job", content=JOB).status_code == 200
    job = anna.post(f"{base}/searches").json()["job"]
    team.work()
    study = anna.get(f"/jobs/{job}").json()["spec"]["study"]
    propose(team, anna, base, study, 3)
    return base, study


def propose(team: Studio, anna: Browser, base: str, study: int, candidate: int) -> None:
    checked = anna.post(f"{base}/policy-checks", {"study": study, "candidate": candidate})
    assert [each.message for each in team.work() if each.state != "done"] == []
    assert anna.post(f"{base}/propose", checked.json()).status_code == 200
    assert anna.post(f"{base}/submit").status_code == 200


@pytest.fixture(scope="module")
def waiting(team: Studio) -> tuple[str, int]:
    return submitted(team)


def test_what_a_reviewer_has_not_seen_is_not_signed(team: Studio, waiting: tuple[str, int]) -> None:
    (base, study), anna, rita = waiting, of(team, "anna"), of(team, "rita")
    seen = rita.get(base)
    page = rita.client.get(f"{base}/sign-off", headers={"Accept": "text/html"}).text
    version = re.search(r'name="version" value="(\d+)"', page)
    assert version is not None
    anna.post(f"{base}/withdraw")
    propose(team, anna, base, study, 5)
    late = rita.post(f"{base}/approve", {"text": "fine"}, headers={"If-Match": seen.headers["ETag"]})
    assert late.status_code == 412
    answer = sent(rita, f"{base}/decide", version=version[1], decision="approve")
    assert answer.status_code == 412 and "has changed since" in answer.text
    assert anna.get(base).json()["state"] == "submitted"


def test_of_two_decisions_at_once_one_counts(team: Studio, waiting: tuple[str, int]) -> None:
    base, _ = waiting
    tag = of(team, "rita").get(base).headers["ETag"]
    browsers = [of(team, "rita") for _ in range(6)]

    def decide(number: int) -> int:
        word = "approve" if number % 2 else "reject"
        return browsers[number].post(f"{base}/{word}", {"text": "so"}, headers={"If-Match": tag}).status_code

    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(decide, range(6)))
    assert answers.count(200) == 1 and set(answers) <= {200, 404, 409, 412}
    actions = [each.action for each in audit.events(team.store.db) if each.project == base.rpartition("/")[2]]
    assert actions.count("approved") + actions.count("rejected") == 1
    assert audit.verify(team.store.db).broken is None


def test_pages_of_others_do_not_exist(team: Studio, waiting: tuple[str, int]) -> None:
    base, _ = waiting
    pages = [f"{base}/{step}" for step, _ in STEPS] + [f"{base}/design/ahead", f"{base}/search/frontier", base]
    forms = ("name", "remove", "roles", "risk", "design", "compare", "propose", "policy", "report", "submit", "pin")
    for name in ("bert", "adam"):
        browser = of(team, name)
        assert {browser.client.get(path, follow_redirects=False).status_code for path in pages} == {404}, name
        assert {sent(browser, f"{base}/{form}", sure="1").status_code for form in forms} == {404}, name
    for path in ("/users", "/audit", "/audit/export", "/retention", "/api/v1/retention"):
        assert of(team, "anna").client.get(path).status_code == 404
        assert of(team, "adam").client.get(path).status_code == 200
    assert team.home.project(base.rpartition("/")[2]).is_dir()


def test_a_cookie_that_a_neighbour_can_set_lets_nobody_in_where_there_is_tls(tmp_path: Path) -> None:
    """Pages of the same site can set any cookie but one with the prefix __Host-: a session of the attacker's own."""
    with studio(tmp_path / "home", team=True, origins=("https://testserver",)) as made:
        user = made.user("mallory", "analyst")
        secret, _ = users.begin(made.store, user, "test")
        for name, status in ((PLAIN_COOKIE, 401), (COOKIE, 200)):
            client = TestClient(made.app, base_url="https://testserver", cookies={name: secret})
            assert client.get("/api/v1/me").status_code == status, name


def test_wrong_passwords_of_one_do_not_lock_out_an_office(team: Studio, monkeypatch: pytest.MonkeyPatch) -> None:
    def enter(name: str, password: str, forwarded: str) -> int:
        body = {"name": name, "password": password}
        return TestClient(team.app).post("/api/v1/login", json=body, headers={"X-Forwarded-For": forwarded}).status_code

    for number in range(12):
        assert enter("bert", "wrong", f"{number}.0.0.1, 10.0.0.9") in (401, 429)
    assert enter("bert", PASSWORD, "10.0.0.9") == 429, "his name waits"
    assert enter("rita", PASSWORD, "10.0.0.9") == 204, "the others do not"
    now = team.store.now()
    with team.store.writing() as db:
        db.execute("UPDATE failures SET count = 500, latest = ?", (now,))
    assert enter("rita", PASSWORD, "6.6.6.6, 10.0.0.9") == 429, "what the proxy says counts, not what is sent"
    assert enter("rita", PASSWORD, "10.0.0.8") == 204
    monkeypatch.setattr(team.store, "now", lambda: now + users.MOST_DELAY + 1)
    assert enter("bert", PASSWORD, "10.0.0.9") == 204, "an hour makes it good"


def test_a_file_that_becomes_a_link_is_not_followed(team: Studio, tmp_path: Path) -> None:
    anna, root = of(team, "anna"), team.app.state.settings.root
    secret = tmp_path / "of-another.csv"
    secret.write_text("a,b\n1,2\n", encoding="utf-8")
    (root / "mine.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    project = anna.post("/projects", {"name": "links"}).json()["id"]
    assert anna.post(f"/projects/{project}/source", {"path": "mine.csv"}).status_code == 202
    (root / "mine.csv").unlink()
    (root / "mine.csv").symlink_to(secret)
    (job,) = team.work()
    assert job.state == "failed" and "has become a link" in job.message


@pytest.mark.parametrize("text", ["a = " + "[" * 200_000, "a = " + "1" * 5_000, "a = {" * 20_000])
def test_toml_that_breaks_readers_is_a_fault_of_the_form(team: Studio, text: str) -> None:
    anna = of(team, "anna")
    project = team.opened(team.store.user_named("anna")).id
    assert anna.send("PUT", f"/projects/{project}/job", content=text).status_code == 422
    assert sent(anna, f"/projects/{project}/policy", policy=text, version="0").status_code == 422
    first = {"g0.method": "RandomSwap", "g0.rest": text, "version": "0", "measure": "exposed"}
    assert sent(anna, f"/projects/{project}/design", **first).status_code == 422


def test_comments_and_names_of_projects_are_shown_as_text(team: Studio) -> None:
    base, rita, anna = submitted(team)[0], of(team, "rita"), of(team, "anna")
    assert sent(rita, f"{base}/comment", text=HOSTILE).status_code == 303
    assert anna.send("PATCH", base, json={"name": HOSTILE}).status_code == 200
    for reader, path in ((anna, f"{base}/sign-off"), (rita, f"{base}/sign-off"), (anna, "/"), (rita, "/")):
        shown = reader.client.get(path).text
        assert "<img" not in shown and HOSTILE in unescape(shown), path


def test_two_tabs_that_change_roles_both_see_what_happened(team: Studio) -> None:
    anna = of(team, "anna")
    project = team.opened(team.store.user_named("anna")).id
    path = f"/projects/{project}/roles"
    version = re.search(r'name="version" value="(\d+)"', anna.client.get(path).text)
    assert version is not None
    tab = {"version": version[1], "c0.kind": "nominal"}
    assert sent(anna, path, **tab, **{"c0.role": "outcome"}).status_code == 303
    late = sent(anna, path, **tab, **{"c0.role": "id"})
    assert late.status_code == 412 and "was faster" in late.text
    both = unescape(late.text)
    assert 'role = "outcome"' in both and 'role = "id"' in both
    team.work()


def test_things_are_kept_as_long_as_the_admin_says(team: Studio, monkeypatch: pytest.MonkeyPatch) -> None:
    anna, adam = of(team, "anna"), of(team, "adam")
    project = anna.post("/projects", {"name": "old"}).json()["id"]
    anna.send("PUT", f"/projects/{project}/source?name=a.csv", content=b"a,b\n1,2\n2,1\n")
    team.work()
    bad = sent(adam, "/retention", source="ten", studies="", reports="", releases="")
    assert bad.status_code == 422 and "must be a number of days" in bad.text
    assert sent(adam, "/retention", source="30", studies="", reports="90", releases="").status_code == 303
    assert adam.get("/retention").json() == {"source": 30, "studies": 0, "reports": 90, "releases": 0}
    held = team.home.project(project) / "source" / "data.csv"
    team.work()
    assert held.is_file(), "it is young"
    now = team.store.now()
    monkeypatch.setattr(team.store, "now", lambda: now + 31 * 86_400)
    assert retention.queue(team.store) >= 1
    team.work()
    assert not held.exists()
    monkeypatch.undo()
    rows = [each for each in audit.events(team.store.db) if each.action == "shredded" and each.project == project]
    assert "data.csv" in rows[-1].detail
    none = {"source": 0, "studies": 0, "reports": 0, "releases": 0}
    assert adam.send("PUT", "/retention", json=none).json() == none


def test_tokens_are_shown_once_and_do_what_their_owner_may(team: Studio) -> None:
    bert = of(team, "bert")
    assert sent(bert, "/account/tokens", name="x", scope="run", days="900").status_code == 422
    made = sent(bert, "/account/tokens", name=HOSTILE, scope="run", days="2")
    token = re.search(r"qst_[\w-]+", made.text)
    assert token is not None and HOSTILE not in made.text and HOSTILE in unescape(made.text)
    again = bert.client.get("/account").text
    assert token[0] not in again
    head = {"Authorization": f"Bearer {token[0]}"}
    program = TestClient(team.app, headers=head)
    assert program.post("/api/v1/projects", json={"name": "by a program"}).status_code == 201
    assert program.post("/account/tokens", data={"name": "more", "scope": "run", "days": "2"}).status_code == 403
    assert program.post("/api/v1/tokens", json={"name": "more"}).status_code == 403
    assert program.get("/users").status_code == 404
    number = re.search(r'name="remove" value="(\d+)"', again)
    assert number is not None
    assert sent(of(team, "anna"), "/account/tokens", remove=number[1]).status_code == 404, "of another"
    assert sent(bert, "/account/tokens", remove=number[1]).status_code == 303
    assert program.get("/api/v1/projects").status_code == 401


def test_a_new_password_ends_all_other_sessions(team: Studio) -> None:
    team.user("nora", "analyst", password=PASSWORD)
    nora, other = of(team, "nora"), of(team, "nora")
    assert sent(nora, "/account/password", old="wrong", new="another long one").status_code == 422
    assert sent(nora, "/account/password", old=PASSWORD, new="short").status_code == 422
    assert other.get("/me").status_code == 200
    assert sent(nora, "/account/password", old=PASSWORD, new="another long one").status_code == 303
    assert nora.get("/me").status_code == 200 and other.get("/me").status_code == 401


def test_a_project_is_removed_by_who_says_so_twice(team: Studio) -> None:
    bert = of(team, "bert")
    project = bert.post("/projects", {"name": "to go"}).json()["id"]
    assert sent(bert, f"/projects/{project}/remove").status_code == 422
    assert sent(bert, f"/projects/{project}/remove", sure="on").status_code == 303
    assert bert.get(f"/projects/{project}").status_code == 404


def test_values_and_seeds_stand_on_no_page_and_in_no_answer(team: Studio, capfd: pytest.CaptureFixture[str]) -> None:
    """A value of one record, and every seed, are looked for in all that a browser, a log or the public gets."""
    anna, rita = of(team, "anna"), of(team, "rita")
    frame = qd.datasets.cps8d().frame()[::16].select("Age", "Sex", "Edu", "MS")
    rows = [",".join(["name", "weight", *frame.columns])]
    rows += [
        f"Person {CANARY}{i},{f'1.{CANARY}' if i == 5 else 1.5}," + ",".join(row) for i, row in enumerate(frame.rows())
    ]
    project = anna.post("/projects", {"name": "canary"}).json()["id"]
    base = f"/projects/{project}"
    anna.send("PUT", f"{base}/source?name=people.csv", content="\n".join(rows).encode())
    assert [each.state for each in team.work()] == ["done"]
    anna.send("PUT", f"{base}/job", content=JOB.replace("244, 488", "10, 20"))
    anna.post(f"{base}/profiles")
    anna.post(f"{base}/risks", {"attack": True})
    anna.post(f"{base}/forecast")
    search = anna.post(f"{base}/searches").json()["job"]
    assert [each.message for each in team.work() if each.state != "done"] == []
    study = anna.get(f"/jobs/{search}").json()["spec"]["study"]
    anna.post(f"{base}/comparisons", {"study": study, "candidates": [1, 2], "attack": True})
    propose(team, anna, base, study, 2)
    report = anna.post(f"{base}/reports", {"study": study, "candidate": 2}).json()["job"]
    team.work()
    seeds = [str(qd.Study(team.home.study(team.store.study(study))).recipe(n).seed) for n in (1, 2, 3, 4)]
    assert rita.post(f"{base}/approve", {"text": "good"}).status_code == 200
    anna.post(f"{base}/releases")
    assert {each.state for each in team.work()} == {"done"}
    told: dict[str, str] = {}
    for who, browser in (("anna", anna), ("rita", rita)):
        for step, _ in STEPS:
            told[f"{step} {who}"] = browser.client.get(f"{base}/{step}").text
        for job in anna.get("/jobs").json():
            told[f"job {job['id']} {who}"] = browser.get(f"/jobs/{job['id']}").text
            told[f"result {job['id']} {who}"] = browser.get(f"/jobs/{job['id']}/result").text
            told[f"events {job['id']} {who}"] = browser.get(f"/jobs/{job['id']}/events").text
    told["report"] = anna.get(f"{base}/files/report/{report}.html").text
    told["candidate"] = anna.client.get(f"{base}/search/candidate?candidate=2&study={study}").text
    told["api"] = anna.get(f"/studies/{study}/candidates/2").text
    told["audit"] = json.dumps([each.as_dict() for each in audit.events(team.store.db)])
    told["log"] = "".join(capfd.readouterr())
    assert len(told) > 40 and "Age" in told["roles anna"] and all(len(seed) > 20 for seed in seeds)
    assert [name for name, text in told.items() for seed in seeds if seed in text] == []
    places = {n: text[text.index(CANARY) - 90 :][:200] for n, text in told.items() if CANARY in text}
    assert places == {}
    public = anna.get(f"{base}/files/public/codebook.toml").text + anna.get(f"{base}/files/public/methods.md").text
    assert not [seed for seed in seeds if seed in public]
