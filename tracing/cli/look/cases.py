"""`tracing cases`: list the cases that can be run by name."""

from __future__ import annotations

import json
import os.path

from rich.text import Text

from tracing.cli.app import LOOK, Json, app, out
from tracing.program.case import described, known_cases


@app.command(rich_help_panel=LOOK)
def cases(as_json: Json = False) -> None:
    """List the cases that can be run by name, each with its description.

    Lists those of this project and of the folder `cases` of the working directory. Any other file is a case
    by its path.

    Example: tracing cases

    Exit status: 0.
    """
    known = {name: (path, described(path)) for name, path in known_cases().items()}
    if as_json:
        listed = [
            {"case": name, "path": str(path), "says": description}
            for name, (path, description) in known.items()
        ]
        print(json.dumps({"cases": listed}, indent=2))
        return
    width = max(map(len, known), default=0)
    for name, (path, description) in known.items():
        out.print(Text(f"{name:<{width}}  {description or os.path.relpath(path)}"))
