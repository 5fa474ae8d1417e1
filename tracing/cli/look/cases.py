"""`tracing cases`: list the cases that can be run by name."""

from __future__ import annotations

import json
import os.path
from contextlib import suppress
from pathlib import Path

from rich.text import Text

from tracing.cli.app import LOOK, Json, app, out
from tracing.program.case import described, known_cases, missing_packages
from tracing.program.case_options import CaseOptions, options_text, written_options


@app.command(rich_help_panel=LOOK)
def cases(as_json: Json = False) -> None:
    """List the cases that can be run by name, each with its description and its options.

    Lists those of this project and of the folder `cases` of the working directory. Any other file is a case
    by its path. Options follow a colon: `gated_mlp:width=32,hidden=64`; those shown are the defaults.

    Example: tracing cases

    Exit status: 0.
    """
    known = known_cases()
    if as_json:
        listed = [{"case": name, **_facts(path)} for name, path in known.items()]
        print(json.dumps({"cases": listed}, indent=2, default=str))
        return
    width = max(map(len, known), default=0)
    for name, path in known.items():
        out.print(Text(f"{name:<{width}}  {described(path) or os.path.relpath(path)}"))
        if options := _options(path):
            out.print(Text(f"{'':<{width}}  :{options_text(options)}", style="dim"))
        if missing := missing_packages(path):
            out.print(Text(f"{'':<{width}}  imports {', '.join(missing)}: not installed", style="yellow"))


def _facts(path: Path) -> dict[str, object]:
    options = _options(path)
    return {
        "path": str(path),
        "says": described(path),
        "options": {name: one.default for name, one in options.items()},
        "choices": {name: one.choices for name, one in options.items() if one.choices},
        "missing": missing_packages(path),
    }


def _options(path: Path) -> CaseOptions:
    with suppress(OSError, SyntaxError, ValueError):
        return written_options(path) or {}
    return {}
