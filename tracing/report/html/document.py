"""A report as one HTML file: the page's program and style, an index that it reads first, and chunks.

The page may load nothing and execute nothing but its own program: a Content-Security-Policy names the digest
of that program and of its style, and no address at all. A page that `tracing serve` serves may also ask its
own server for what is new.
"""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

from tracing.errors import Problem
from tracing.report.html.chunks import Chunks, encoded

_HEAD = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="{policy}">
{stamp}<title>{title}</title>
<style>{style}</style>
</head>
<body>
<div id="app"><p class="starting">Reading the report …</p></div>
<noscript>This report needs JavaScript. It loads nothing from a network.</noscript>
"""
_STAMP = '<meta name="tracing-stamp" content="{stamp}">\n'


def document(
    title: str, index: Any, chunks: Chunks, stamp: str = "", program: str = "report.js"
) -> Iterator[str]:
    """The parts of the file in order; the page appears when it has read the index, before the chunks.

    stamp   -- of a served page: changes when the page is to be shown anew
    program -- the program of the bundle that shows it
    """
    style, script = _bundled("report.css"), _bundled(program)
    yield _HEAD.format(
        policy=_policy(style, script, asks=bool(stamp)),
        stamp=_STAMP.format(stamp=html.escape(stamp)) if stamp else "",
        title=html.escape(title),
        style=style,
    )
    yield _data("index", encoded(index))
    yield f"<script>{script}</script>\n"
    for number, chunk in enumerate(chunks.encoded):
        yield _data(f"chunk-{number}", chunk)
    yield "</body>\n</html>\n"


def write(path: Path, title: str, index: Any, chunks: Chunks, stamp: str = "") -> int:
    """Write a report; returns its size in bytes. A file of that name is replaced when all is written."""
    if path.is_dir():
        raise Problem(f"{path} is a folder", "name the file to write: `--output FILE.html`")
    unfinished = path.with_name(f"{path.name}.part")
    try:
        with unfinished.open("w", encoding="utf-8") as file:
            for part in document(title, index, chunks, stamp):
                file.write(part)
        unfinished.replace(path)
    except OSError as error:
        unfinished.unlink(missing_ok=True)
        raise Problem(
            f"{path} cannot be written: {error.strerror}", "`--output FILE.html` names another"
        ) from None
    return path.stat().st_size


def _bundled(name: str) -> str:
    return files(__package__).joinpath("bundle").joinpath(name).read_text(encoding="utf-8")


def _policy(style: str, program: str, *, asks: bool) -> str:
    # style-src also has the sheets that the viewer of code adds; its style cannot load anything either
    connect = "connect-src 'self'; " if asks else ""
    return (
        f"default-src 'none'; {connect}script-src 'sha256-{_sha256(program)}'; "
        f"style-src 'sha256-{_sha256(style)}' 'nonce-code'; base-uri 'none'; form-action 'none'"
    )


def _sha256(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _data(name: str, content: str) -> str:
    return f'<script type="text/plain" id="{name}">{content}</script>\n'
