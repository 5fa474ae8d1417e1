"""A report as one HTML file: the page's program and style, an index that it reads first, and chunks.

The page may load nothing and execute nothing but its own program: a Content-Security-Policy names the digest
of that program and of its style, and no address at all.
"""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

from tracing.report.html.chunks import Chunks, encoded

_HEAD = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<div id="app"><p class="starting">Reading the report …</p></div>
<noscript>This report needs JavaScript. It loads nothing from a network.</noscript>
"""


def document(title: str, index: Any, chunks: Chunks) -> Iterator[str]:
    """The parts of the file in order; the page appears when it has read the index, before the chunks."""
    style, program = _bundled("report.css"), _bundled("report.js")
    yield _HEAD.format(policy=_policy(style, program), title=html.escape(title), style=style)
    yield _data("index", encoded(index))
    yield f"<script>{program}</script>\n"
    for number, chunk in enumerate(chunks.encoded):
        yield _data(f"chunk-{number}", chunk)
    yield "</body>\n</html>\n"


def write(path: Path, title: str, index: Any, chunks: Chunks) -> int:
    """Write a report; returns its size in bytes. A file of that name is replaced when all is written."""
    unfinished = path.with_name(f"{path.name}.part")
    with unfinished.open("w", encoding="utf-8") as file:
        for part in document(title, index, chunks):
            file.write(part)
    unfinished.replace(path)
    return path.stat().st_size


def _bundled(name: str) -> str:
    return files(__package__).joinpath("bundle").joinpath(name).read_text(encoding="utf-8")


def _policy(style: str, program: str) -> str:
    # style-src also has the sheets that the viewer of code adds; its style cannot load anything either
    return (
        f"default-src 'none'; script-src 'sha256-{_sha256(program)}'; "
        f"style-src 'sha256-{_sha256(style)}' 'nonce-code'; base-uri 'none'; form-action 'none'"
    )


def _sha256(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _data(name: str, content: str) -> str:
    return f'<script type="text/plain" id="{name}">{content}</script>\n'
