"""A headless browser for tests of the page; tests are skipped where there is none."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
# The browser contacts nobody, also not on behalf of its maker.
OPTIONS = (
    "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--enable-precise-memory-info",
)  # fmt: skip


@contextmanager
def browser() -> Iterator[Any]:
    """Playwright's browser; skips the test, with the reason, if there is none. CHROMIUM can name one."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: make test")
    paths = (shutil.which(name) for name in (os.environ.get("CHROMIUM"), *NAMES) if name)
    path = next(filter(None, paths), None)
    if path is None:
        pytest.skip("no Chromium or Chrome is installed: apt-get install chromium")
    with api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=path, args=list(OPTIONS))
        yield opened
        opened.close()
