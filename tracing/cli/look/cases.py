"""`tracing cases`: list the cases that can be run by name."""

from __future__ import annotations

import json
import os.path

from rich.text import Text

from tracing.cli.app import LOOK, Json, app, out
from tracing.program.case import described, known_cases, options_text, written_options


@app.command(rich_help_panel=LOOK)
def cases(as_json: Json = False) -> None:
    """List the cases that can be run by name, each with its description and its options.

    Lists those of this project and of the folder `cases` of the working directory. Any other file is a case
    by its path. Options follow a colon: `gated_mlp:width=32,hidden=64`; those shown are the defaults.

    Example: tracing cases

    Exit status: 0.
    """
    known = {name: (path, described(path), written_options(path)) for name, path in known_cases().items()}
    if as_json:
        listed = [
            {"case": name, "path": str(path), "says": description, "options": options}
            for name, (path, description, options) in known.items()
        ]
        print(json.dumps({"cases": listed}, indent=2, default=str))
        return
    width = max(map(len, known), default=0)
    for name, (path, description, options) in known.items():
        out.print(Text(f"{name:<{width}}  {description or os.path.relpath(path)}"))
        if options:
            out.print(Text(f"{'':<{width}}  :{options_text(options)}", style="dim"))
