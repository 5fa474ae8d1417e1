"""The page of a report in a browser: from the divergence to its kernel, its linked lines and its passes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from commands import DATA
from handmade.small_runs import small_run
from recorded.runs import recorded
from report.html.browser import browser
from typer.testing import CliRunner

from tracing import store
from tracing.cli.app import app
from tracing.model import AnswerBars, AnswerHeat, AnswerTable, KeptAnswer

VIEWS = (
    "overview",
    "divergences",
    "launches/0/0",
    "kernels",
    "kernel/0/code",
    "kernel/0/passes",
    "answers",
    "environment",
)
READY = {"launches/0/0": ".detail .arguments", "kernel/0/code": ".cm-line", "kernel/0/passes": ".pass"}
HOSTILE = "<img src=x onerror=document.title='owned'>\u202e"


def answered(run: Path, text: str) -> None:
    """Keeps an answer in a run, whose parts all have this text."""
    table = AnswerTable(text, (text, text), ((text, "1"), ("", "2"), (text,)))
    bars, heat = (
        AnswerBars(text, text, ((text, 2.0), ("b", -1.0))),
        AnswerHeat(text, ((0.0, 1.0, None), (2.0,), ())),
    )
    with closing(store.reopened(run)) as writer:
        writer.append(
            KeptAnswer(text, text, text, text, 1, (text,), (text,), 0, 0, text, (table,), (bars,), (heat,))
        )


def written(path: Path, *runs: Path, status: int) -> Path:
    done = CliRunner().invoke(app, ["report", *map(str, runs), "-o", str(path)])
    assert done.exit_code == status, done.output
    return path


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def report(chromium: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of two runs of a case; the second one launches with a different grid."""
    runs = tmp_path_factory.mktemp("runs")
    cases = (f"{DATA / 'faults.py'}:fault={fault}" for fault in ("none", "grid"))
    a, b = (recorded(case, runs, passes="during") for case in cases)
    answered(a.path, "judge")
    return written(runs / "report.html", a.path, b.path, status=1)


class Page:
    """A report in a tab, with what the browser complained of and what the page tried to load."""

    def __init__(self, chromium: Any, path: Path, at: str = "", script: str = "", **options: Any) -> None:
        context = chromium.new_context(viewport={"width": 1400, "height": 900}, **options)
        self.complaints: list[str] = []
        self.loaded: list[str] = []
        context.add_init_script(script)
        self.tab = context.new_page()
        self.tab.set_default_timeout(20_000)
        self.tab.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.tab.on("console", lambda one: self.complaints.append(one.text) if one.type == "error" else None)
        self.tab.on("request", lambda one: self.loaded.append(one.url))
        self.path = path
        self.show(at)

    def show(self, at: str) -> None:
        self.tab.goto(f"{self.path.as_uri()}#{at}")
        self.tab.wait_for_selector("main h2")

    def text(self, selector: str) -> str:
        return str(self.tab.locator(selector).first.inner_text())

    def click(self, selector: str, **options: Any) -> None:
        self.tab.locator(selector, **options).first.click()


def test_a_person_gets_from_the_divergence_to_the_linked_ptx_the_passes_and_the_other_run(
    chromium: Any, report: Path
) -> None:
    page = Page(chromium, report)
    assert "first divergence: launch #0 scale" in page.text(".finding.bad h3")

    page.click("header nav a", has_text="launches")
    page.tab.select_option(".filters select", label="that diverge")
    page.tab.wait_for_selector(".filters output:text-is('1 launch')")
    page.click(".space .row")
    assert "differs" in page.text(".detail .other") or "grid" in page.text(".detail .facts")
    page.click(".detail h3 a")
    python = ".pane[aria-label=Python] .cm-line"
    page.click(python, has_text="tl.store")
    page.tab.wait_for_selector(".pane[aria-label=PTX] .linked")
    linked = page.tab.locator(".pane[aria-label=PTX] .linked").all_inner_texts()
    assert any("st.global" in line for line in linked)
    assert not any("ld.param" in line for line in linked)
    href = page.tab.locator(".origin .editor").first.get_attribute("href")
    file, _, line = str(href).removeprefix("vscode://file").rpartition(":")
    assert "tl.store" in Path(file).read_text().splitlines()[int(line) - 1]  # what VSCode opens

    page.click(".tabs a", has_text="Passes")
    page.click(".passes a", has_text="convert-triton-to-tritongpu")
    page.tab.wait_for_selector(".pass .added:has-text('#blocked')")  # the pass before it has others
    page.click(".sides a", has_text="b:")
    page.tab.wait_for_selector(".sides a[aria-current=true]:has-text('b:')")
    assert page.complaints == []


def test_the_page_loads_nothing_but_itself(chromium: Any, report: Path) -> None:
    page = Page(chromium, report)
    for view in VIEWS:
        page.show(f"b/{view}")

    assert {url.partition("#")[0] for url in page.loaded} == {report.as_uri()}
    assert page.complaints == []


@pytest.mark.parametrize(
    "scheme, rules", [("light", {}), ("dark", {"runOnly": ["color-contrast"]})], ids=["light", "dark"]
)
def test_no_view_has_a_serious_barrier(
    chromium: Any, report: Path, scheme: str, rules: dict[str, Any]
) -> None:
    pytest.importorskip("axe_playwright_python", reason="axe-core is not installed: make test")
    axe = resources.files("axe_playwright_python").joinpath("axe.min.js").read_text()
    page = Page(chromium, report, color_scheme=scheme, bypass_csp=True)  # to inject axe-core
    page.tab.evaluate(axe)
    barriers = []
    for view in VIEWS:
        page.show(f"a/{view}")
        page.tab.wait_for_selector(READY.get(view, "main h2"))
        results = page.tab.evaluate("rules => axe.run({resultTypes: ['violations'], ...rules})", rules)
        serious = [one for one in results["violations"] if one["impact"] in ("serious", "critical")]
        barriers += [(view, one["id"], [node["html"][:120] for node in one["nodes"][:3]]) for one in serious]

    assert barriers == []


# what VSCode gives to a page in a webview, which follows no link
WEBVIEW = (
    "window.sent = []; window.acquireVsCodeApi = () => ({ postMessage: (one) => window.sent.push(one) })"
)


def test_in_an_editor_a_click_on_a_python_line_or_a_link_asks_the_editor_to_open_it(
    chromium: Any, report: Path
) -> None:
    page = Page(chromium, report, "a/kernel/0/code", script=WEBVIEW)

    page.click(".pane[aria-label=Python] .cm-line", has_text="tl.store")
    page.click(".origin .editor")
    shown, opened = page.tab.evaluate("window.sent")
    page.click("header nav a", has_text="launches")

    assert "tl.store" in Path(shown["file"]).read_text().splitlines()[shown["line"] - 1]
    assert (shown["focus"], opened) == (False, {**shown, "focus": True})
    assert page.tab.url.endswith("#a/launches")


def test_the_keyboard_opens_views_launches_and_the_other_run(chromium: Any, report: Path) -> None:
    page = Page(chromium, report)
    page.tab.keyboard.press("3")
    page.tab.locator(".rows").focus()
    page.tab.keyboard.press("ArrowDown")
    page.tab.keyboard.press("Enter")
    page.tab.wait_for_selector(".detail h3:has-text('#1')")
    page.tab.keyboard.press("x")
    page.tab.wait_for_selector(".sides a[aria-current=true]:has-text('b:')")

    assert "#b/launches/0/1" in page.tab.url


def test_a_key_that_is_pressed_before_the_page_is_drawn_keeps_the_launch(chromium: Any, report: Path) -> None:
    page = Page(chromium, report, "a/launches")
    pressed = "document.body.dispatchEvent(new KeyboardEvent('keydown', {key: 'x', bubbles: true}))"
    page.tab.evaluate(f"location.hash = 'a/launches/0/1'; {pressed}")
    page.tab.wait_for_selector(".sides a[aria-current=true]:has-text('b:')")

    assert page.tab.url.endswith("#b/launches/0/1")


def test_a_view_opens_on_the_run_that_has_something_to_see_there(chromium: Any, tmp_path: Path) -> None:
    a, b = (small_run(tmp_path / name) for name in "ab")
    answered(b, "right")
    page = Page(chromium, written(tmp_path / "report.html", a, b, status=2), "a/overview")

    links = {one.text_content(): one.get_attribute("href") for one in page.tab.locator("nav a").all()}
    page.tab.keyboard.press(str(1 + [*links].index("answers")))

    assert "right" in page.text(".answers pre")
    assert (links["answers"], links["kernels"]) == ("#b/answers", "#a/kernels")
    assert page.tab.url.endswith("#b/answers")


def test_a_key_that_is_pressed_when_the_first_view_appears_is_obeyed(chromium: Any, tmp_path: Path) -> None:
    pressed = """new MutationObserver((_, self) => {
        if (!document.querySelector("main h2")) return
        self.disconnect()
        document.body.dispatchEvent(new KeyboardEvent("keydown", {key: "2", bubbles: true}))
    }).observe(document, {childList: true, subtree: true})"""
    path = written(tmp_path / "report.html", small_run(tmp_path / "run"), status=0)

    page = Page(chromium, path, "a/overview", pressed)

    page.tab.wait_for_selector("nav a[aria-current=page]:has-text('launches')")
    assert page.tab.url.endswith("#a/launches")


def test_hostile_names_and_sources_are_shown_as_text(chromium: Any, tmp_path: Path) -> None:
    run = small_run(tmp_path / "run", kernel=HOSTILE)
    answered(run, HOSTILE)
    page = Page(chromium, written(tmp_path / "report.html", run, status=0), "a/kernels")

    assert "<img src=x onerror=document.title='owned'>\\u202e" in page.text(".sorted tbody")
    for view in VIEWS:
        page.show(f"a/{view}")
    page.show("a/answers")
    assert HOSTILE.replace("\u202e", "\\u202e") in page.text(".answers pre")
    assert page.tab.locator(".map i").count() == 4
    assert page.complaints == []
    assert page.tab.title() != "owned"
    assert page.tab.locator("img").count() == 0


def test_a_file_that_was_cut_shows_the_first_screen_and_says_what_is_missing(
    chromium: Any, report: Path, tmp_path: Path
) -> None:
    cut = tmp_path / "cut.html"
    cut.write_text(report.read_text().partition('<script type="text/plain" id="chunk-1"')[0])
    page = Page(chromium, cut)

    assert "first divergence" in page.text(".finding.bad h3")
    page.show("a/kernel/0/code")
    assert "the file ends early" in page.text(".failed")
