"""`tracing doctor`: the features that work with the installed torch and Triton."""

from __future__ import annotations

import json
import logging
from dataclasses import asdict
from typing import Annotated

import typer
from rich.text import Text

from tracing import environment
from tracing.cli.app import VALIDATE, app, out, spinner
from tracing.upstream.contracts import Feature, features


@app.command(rich_help_panel=VALIDATE)
def doctor(as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False) -> None:
    """Check which features work with the installed torch and Triton.

    Recording rests on private objects of torch and Triton, which each release may change. Every
    feature checks the objects that it uses; features that are off are listed. Launches no kernel
    and needs no GPU.

    What runs for every launch and operator is compiled from C++ when it is first used. Where it cannot be,
    recording works and is slower.

    Exit status: 0 if every feature works, 1 if one is off. Recording by Python only is no such feature.

    Example: tracing doctor --json

    Keys of --json: torch, triton (versions), features (name, module, failure; failure is empty if
    the feature works, and module is that of tracing.upstream that needs a change), compiled (name,
    failure; failure is empty if C++ records).
    """
    versions = {package: environment.installed(package) for package in ("torch", "triton")}
    logging.disable(logging.WARNING)  # checks provoke what torch warns of
    try:
        with spinner("checking features"):
            checked = [*features()]
    finally:
        logging.disable(logging.NOTSET)
    compiled = _compiled()
    off = sum(bool(feature.failure) for feature in checked)
    if as_json:
        rows = [asdict(feature) for feature in checked]
        out.print(Text(json.dumps({**versions, "features": rows, "compiled": compiled})))
    else:
        for part in compiled:
            out.print(_compiled_line(**part))
        with_versions = f"with torch {versions['torch']} and Triton {versions['triton']}"
        for feature in (one for one in checked if one.failure):
            out.print(_line(feature))
        out.print(Text(f"{len(checked) - off} of {len(checked)} features work {with_versions}"))
    raise typer.Exit(1 if off else 0)


def _compiled() -> list[dict[str, str]]:
    from tracing.native.extension import PARTS, failure  # imports torch

    return [{"name": name, "failure": failure(file)} for file, name in PARTS.items()]


def _line(feature: Feature) -> Text:
    file = f"tracing/upstream/{feature.module.replace('.', '/')}.py"
    return Text(f"off  {feature.name}\n     {feature.failure}\n     {file}")


def _compiled_line(name: str, failure: str) -> Text:
    if not failure:
        return Text(f"ok   {name}")
    return Text(f"slow {name}: Python does, more slowly\n     {failure}")
