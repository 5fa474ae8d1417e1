"""Read the supported pairs of torch and Triton, their Python versions, and the URLs of their sources.

pins.toml lists the pairs. One is chosen by the versions that the user names and by whether this machine has a
GPU; an unlisted pair is refused with the list.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PINS = Path(__file__).with_name("pins.toml")


class Problem(Exception):
    """What was found and what is needed, and the remedy."""

    def __init__(self, statement: str, remedy: str) -> None:
        super().__init__(statement)
        self.remedy = remedy


@dataclass(frozen=True)
class Pair:
    torch: str
    triton: str
    python: tuple[str, str]  # first and last version, inclusive
    device: str = "any"  # or "cpu": only with a CPU torch

    def __str__(self) -> str:
        note = ", CPU torch only" if self.device == "cpu" else ""
        return f"torch {self.torch} with Triton {self.triton} (Python {'-'.join(self.python)}{note})"

    def allows(self, python: tuple[int, int]) -> bool:
        return version(self.python[0]) <= python <= version(self.python[1])


@dataclass(frozen=True)
class Release:
    triton: str
    llvm: str = ""  # major version of the LLVM it is written against; "": not known
    commit: str = ""  # the commit that its tag must name; "": the one that it named at the first fetch


@dataclass(frozen=True)
class Pins:
    default: str  # a torch version
    pairs: tuple[Pair, ...]  # newest first
    triton: str = ""  # where Triton's source is
    llvm: tuple[str, ...] = ()  # repositories of LLVM; the second is asked for commits that the first lacks
    releases: tuple[Release, ...] = ()

    def __str__(self) -> str:
        return "".join(f"\n    {pair}" for pair in self.pairs)

    def known(self, torch: str, triton: str) -> bool:
        """True if this pair is listed; the local version after a "+" (cpu, cu130, git…) is ignored."""
        versions = (torch.partition("+")[0], triton.partition("+")[0])
        return any((pair.torch, pair.triton) == versions for pair in self.pairs)

    def release(self, triton: str) -> Release:
        """The entry of a Triton version; an empty one if there is none."""
        return next((row for row in self.releases if row.triton == triton), Release(triton))

    def llvm_major(self, triton: str) -> str:
        """The LLVM major version of a Triton version, one for each minor version; "" if unknown."""
        minor = triton.rpartition(".")[0]
        return next((row.llvm for row in self.releases if row.triton.rpartition(".")[0] == minor), "")

    def commit(self, triton: str) -> str:
        return self.release(triton).commit


def version(text: str) -> tuple[int, int]:
    major, minor = text.split(".")[:2]
    return int(major), int(minor)


# Python 3.10 has no tomllib, and pip's copy of tomli is not there before a venv is. A string and a list
# of strings are written in TOML as in JSON, so these few lines read all that pins.toml uses.
def tables(text: str) -> dict[str, list[dict[str, Any]]]:
    parsed: dict[str, list[dict[str, Any]]] = {}
    row: dict[str, Any] = {}
    for line in text.splitlines():
        if line.startswith("["):
            row = {}
            parsed.setdefault(line.strip("[] "), []).append(row)
        elif line and not line.startswith("#"):
            key, _, value = line.partition("=")
            row[key.strip()] = json.loads(value)
    return parsed


def read(path: Path = PINS) -> Pins:
    parsed = tables(path.read_text(encoding="utf-8"))
    pairs = tuple(Pair(**{**row, "python": tuple(row["python"])}) for row in parsed["pair"])
    (source,) = parsed["source"]
    releases = tuple(Release(**row) for row in parsed.get("release", []))
    return Pins(parsed["default"][0]["torch"], pairs, source["triton"], tuple(source["llvm"]), releases)


def pick(pins: Pins, *, torch: str = "", triton: str = "", gpu: bool, python: tuple[int, int]) -> Pair:
    """The pair to install.

    torch, triton -- requested versions; empty: the one that fits the other, preferably the default torch
    gpu           -- whether the torch to install uses a GPU
    python        -- major and minor version of the environment

    Raises Problem if no such pair is listed, or if it has no wheels for this Python.
    """
    asked = [p for p in pins.pairs if torch in ("", p.torch) and triton in ("", p.triton)]
    fitting = [p for p in asked if not gpu or p.device != "cpu"]
    if not fitting:
        names = " with ".join(f"{n} {v}" for n, v in (("torch", torch), ("Triton", triton)) if v)
        where = " for a machine with a GPU" if asked else ""
        raise Problem(
            f"{names} is not a known pair{where}; known are{pins}",
            "choose with `make venv TORCH=… TRITON=…`, or add a row to scripts/pins.toml",
        )
    pair = next((p for p in fitting if p.torch == pins.default), fitting[0])
    if not pair.allows(python):
        raise Problem(
            f"Python {python[0]}.{python[1]} was found, {pair} was needed",
            f"`make venv PYTHON=python{pair.python[1]}`, or another pair; known are{pins}",
        )
    return pair
