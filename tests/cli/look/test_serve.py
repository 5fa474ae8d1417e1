"""`tracing serve`: who is answered, what is served, and what the page starts and shows live."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
from handmade.small_runs import small_run
from report.html.browser import browser

from tracing.cli.look.serve import page_process
from tracing.cli.look.serve.case_request import CaseRequest, CheckedConstraints
from tracing.errors import Problem

SECRET = "the content of a file outside of the folder"


@dataclass(frozen=True)
class Server:
    """A server in a process of its own."""

    url: str
    runs: Path
    process: subprocess.Popen[str]

    @property
    def port(self) -> int:
        return urlsplit(self.url).port or 0

    @property
    def token(self) -> str:
        return urlsplit(self.url).path.strip("/")

    def ask(
        self,
        path: str,
        method: str = "GET",
        headers: Mapping[str, str] | None = None,
        body: str | None = None,
    ) -> tuple[int, str]:
        """The status and the text of the answer to a request, which is sent as it is."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        own = {"Host": f"127.0.0.1:{self.port}", "Content-Length": str(len(body or ""))}
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for name, value in {**own, **(headers or {})}.items():
            connection.putheader(name, value)
        connection.endheaders((body or "").encode())
        answer = connection.getresponse()
        return answer.status, answer.read().decode()

    def post(self, path: str, body: object, **headers: str) -> tuple[int, str]:
        own = {"Origin": f"http://127.0.0.1:{self.port}", "Content-Type": "application/json"}
        own |= {name.replace("_", "-"): value for name, value in headers.items()}
        return self.ask(f"/{self.token}/{path}", "POST", own, json.dumps(body))

    def state(self) -> Any:
        return json.loads(self.ask(f"/{self.token}/state")[1])


def served(runs: Path) -> Server:
    words = [sys.executable, "-m", "tracing", "serve", "--runs", str(runs)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env={**os.environ, "COLUMNS": "200"})
    assert process.stdout is not None
    return Server(process.stdout.readline().strip(), runs, process)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Serves one sound run, one that is a link, one with a link inside; files lie outside of the folder."""
    folder = tmp_path_factory.mktemp("served")
    runs, outside = folder / "runs", folder / "outside"
    sound, linked = small_run(runs), small_run(runs)
    hidden = small_run(outside, case=f"/{SECRET}.py")
    (folder / "secret.txt").write_text(SECRET)
    (runs / "link").symlink_to(hidden)
    sound.rename(runs / "sound")
    linked.rename(runs / "linked")
    (runs / "linked/kernels-x-0-1.ndjson").symlink_to(folder / "secret.txt")
    one = served(runs)
    yield one
    one.process.send_signal(signal.SIGINT)
    assert one.process.wait(20) == 0


def until(true: Callable[[], Any], seconds: float = 120) -> Any:
    """The first true value of a function; fails after some time."""
    deadline = time.monotonic() + seconds
    while not (value := true()):
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.2)
    return value


# ---- who is answered


def test_the_page_is_served_to_whoever_has_its_address_and_loads_nothing_else(server: Server) -> None:
    status, text = server.ask(f"/{server.token}/report?run=sound")

    assert status == 200
    assert "default-src 'none'; connect-src 'self'; script-src 'sha256-" in text


@pytest.mark.parametrize(
    "headers, status",
    [
        ({"Host": "evil.example"}, 421),
        ({"Host": "127.0.0.1"}, 421),
        ({"Host": "127.0.0.1:1"}, 421),
        ({"Host": ""}, 421),
        ({"Host": "127.0.0.1:{port}.evil.example"}, 421),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://127.0.0.1:1"}, 403),
        ({"Origin": "https://127.0.0.1:{port}"}, 403),
    ],
    ids=lambda one: str(one),
)
def test_a_request_of_another_page_is_refused(server: Server, headers: dict[str, str], status: int) -> None:
    own = {name: value.format(port=server.port) for name, value in headers.items()}

    assert server.ask(f"/{server.token}/state", headers=own)[0] == status


@pytest.mark.parametrize(
    "path", ["/", "//", "/state", "/x/state", "/{token}x/state", "/{token}", "/%00/state", "*"]
)
def test_an_address_without_the_token_has_no_page(server: Server, path: str) -> None:
    status, text = server.ask(path.format(token=server.token))

    assert status in (307, 404)  # 307: to the address with a slash at its end
    assert "runs" not in text


@pytest.mark.parametrize(
    "headers, status",
    [
        ({"Origin": "http://evil.example"}, 403),
        ({"Content_Type": "text/plain"}, 415),
        ({"Content_Type": "application/x-www-form-urlencoded"}, 415),
        ({"Content_Length": "99999999"}, 413),
    ],
    ids=lambda one: str(one),
)
def test_another_page_cannot_start_a_case(server: Server, headers: dict[str, str], status: int) -> None:
    assert server.post("start", {"case": "silu"}, **headers)[0] == status
    assert server.state()["started"] == []


def test_a_case_is_not_started_without_an_origin_or_by_a_link(server: Server) -> None:
    body, kind = json.dumps({"case": "silu"}), {"Content-Type": "application/json"}

    assert server.ask(f"/{server.token}/start", "POST", kind, body)[0] == 403
    assert server.ask(f"/{server.token}/start?case=silu")[0] in (404, 405)
    assert server.state()["started"] == []


# ---- what is served


NAMES = [
    "", ".", "..", "../outside", "%2e%2e/outside", "..%2foutside", "sound/../../outside", "link", "linked",
    "{folder}/outside", "{folder}/secret.txt", "../secret.txt", "sound/run.json", "sound\0", "-h", "--help",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES, ids=lambda one: repr(one))
@pytest.mark.parametrize("page", ["report", "stamp"])
def test_nothing_outside_of_the_folder_is_served(server: Server, name: str, page: str) -> None:
    name = name.format(folder=server.runs.parent)
    for sent in {quote(name, safe=""), name.replace("\0", "%00")}:
        status, text = server.ask(f"/{server.token}/{page}?run={sent}")

        assert status == 404
        assert SECRET not in text


@pytest.mark.parametrize(
    "path", ["/{t}/../secret.txt", "/{t}/..%2f..%2fsecret.txt", "/{t}/%2e%2e/secret.txt", "/{t}/runs/sound"]
)
def test_a_path_is_no_file(server: Server, path: str) -> None:
    status, text = server.ask(path.format(t=server.token))

    assert (status, SECRET in text) == (404, False)


def test_the_list_has_the_runs_of_the_folder_and_no_links(server: Server) -> None:
    listed = {one["name"]: one["status"] for one in server.state()["runs"]}

    assert listed == {"sound": "failed", "linked": "damaged"}


# ---- what can be started


@pytest.mark.parametrize(
    "settings",
    [
        {"case": "--help"},
        {"case": "/etc/passwd"},
        {"case": "../cases/silu.py"},
        {"case": "silu", "options": "x=1 --judge"},
        {"case": "silu", "options": "--runs=/"},
        {"case": "silu", "target": "sm_90 --runs=/"},
        {"case": "silu", "mode": "$(id)"},
        {"case": "silu", "seed": "0; id"},
        {"case": "silu", "device": "tpu"},
        {"case": "silu", "runs": "/"},
        {"case": "silu", "constraints": {"dtypes": "float16;id"}},
        [],
        "silu",
    ],
    ids=lambda one: json.dumps(one),
)
def test_what_is_no_case_or_setting_is_refused(server: Server, settings: object) -> None:
    assert server.post("start", settings)[0] == 400
    assert server.state()["started"] == []


def test_settings_become_options_of_one_word_each() -> None:
    request = CaseRequest("silu", target="sm_80", seed=-3, mode="max-autotune", judge=True, device="cpu")

    assert request.words(Path("/r")) == [
        "run", "silu", "--no-virtual-gpu", "--mode=max-autotune", "--judge", "--target=sm_80", "--seed=-3",
        "--runs=/r",
    ]  # fmt: skip


def test_constraints_are_checked_by_the_command_that_checks_them() -> None:
    constraints = CheckedConstraints(alignment=8, dtypes="float16, float32", layout="contiguous")

    assert CaseRequest("silu", constraints=constraints).words(Path("/r")) == [
        "check", "silu", "--alignment=8", "--layout=contiguous", "--dtype=float16", "--dtype=float32",
        "--seed=0", "--runs=/r",
    ]  # fmt: skip


def test_a_seed_that_is_an_option_is_no_case() -> None:
    with pytest.raises(Problem):
        CaseRequest("silu", options="a=1,--b").words(Path("/r"))


def test_a_folder_that_is_missing_is_refused(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tracing", "serve", "--runs", "typo"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)

    assert done.returncode == 2
    assert "there is no folder typo" in done.stderr


def test_ctrl_c_ends_the_server_and_the_case_that_it_started(tmp_path: Path) -> None:
    one = served(tmp_path)
    assert one.post("start", {"case": "silu"})[0] == 200
    until(lambda: one.state()["started"][0]["output"])  # it imports torch
    pid = one.process.pid
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()

    one.process.send_signal(signal.SIGINT)

    assert one.process.wait(30) == 0
    assert children and not any(Path(f"/proc/{child}").exists() for child in children)


# ---- the page


def test_the_list_has_no_serious_barrier_and_the_constraints_are_offered(server: Server) -> None:
    pytest.importorskip("axe_playwright_python", reason="axe-core is not installed: make test")
    axe = resources.files("axe_playwright_python").joinpath("axe.min.js").read_text()
    with browser() as chromium:
        tab = chromium.new_context(bypass_csp=True).new_page()  # to inject axe-core
        tab.goto(server.url)
        tab.wait_for_selector(".sorted")
        tab.locator(".start select").nth(1).select_option(label="check constraints")
        tab.wait_for_selector("fieldset label:has-text('Sizes are multiples of')")
        tab.evaluate(axe)
        results = tab.evaluate("axe.run({resultTypes: ['violations']})")

    serious = [one for one in results["violations"] if one["impact"] in ("serious", "critical")]
    assert [(one["id"], [node["html"][:120] for node in one["nodes"][:3]]) for one in serious] == []


def test_the_page_of_a_run_that_ends_while_it_is_written_is_not_taken_for_its_last_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run, page = small_run(tmp_path / "runs"), tmp_path / "page.html"
    recorded = iter([True])  # by the first look at the run, and no longer afterwards
    monkeypatch.setattr("tracing.store.being_recorded", lambda path: next(recorded, False))

    stamps = []
    for _ in range(2):
        assert page_process.main([str(page), str(run)]) == 0
        stamps.append(capsys.readouterr().out.strip())
        assert f'<meta name="tracing-stamp" content="{stamps[-1]}">' in page.read_text()

    assert stamps[0] == f"{stamps[1]}-recording"


def test_a_person_starts_a_case_from_the_list_sees_it_recorded_and_opens_its_report(tmp_path: Path) -> None:
    one = served(tmp_path)
    try:
        with browser() as chromium:
            tab = chromium.new_context(viewport={"width": 1400, "height": 900}).new_page()
            tab.set_default_timeout(120_000)
            complaints: list[str] = []
            tab.on("pageerror", lambda error: complaints.append(str(error)))
            tab.on("console", lambda one: complaints.append(one.text) if one.type == "error" else None)
            tab.goto(one.url)
            tab.get_by_label("Seed").fill("7")
            tab.get_by_role("button", name="Start", exact=True).click()
            # it may end before the page shows it
            tab.wait_for_selector(".runs .mark:text-is('recording'), .runs .mark:text-is('passed')")
            tab.click(".sorted td a")
            growing = "recording" in tab.locator(".live").inner_text()
            tab.wait_for_selector(
                ".live:has-text('recorded, updated')" if growing else ".live:has-text('recorded')"
            )
            tab.click("header nav a:has-text('kernels')")
            tab.wait_for_selector(".sorted td a:has-text('triton_poi')")
            tab.click(".live a")
            tab.wait_for_selector(".runs .mark:text-is('passed')")
            assert "tracing run silu --seed=7" in tab.locator("h3 code").inner_text()
            assert complaints == []
    finally:
        one.process.send_signal(signal.SIGINT)
        assert one.process.wait(30) == 0
