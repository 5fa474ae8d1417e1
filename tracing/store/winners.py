"""A winners file: the configuration that each autotuned kernel must use, whichever run tuned it.

The file is JSON, for people to read and edit, and to keep next to a model:

    {"format": "tracing winners", "version": 1,
     "torch": "2.11.0", "triton": "3.6.0", "target": "cuda:90", "device": "NVIDIA H100 80GB HBM3",
     "winners": [{"tuner": "triton", "kernel": "softmax", "source": "6c1f...",
                  "key": ["n=1024", "torch.float32"],
                  "config": {"BLOCK": 1024, "num_warps": 4, "num_ctas": 1, "num_stages": 3}}]}

An entry is joined by `tuner`, `source` and `key`, and for "triton" by `kernel`. `source` is the digest of the
kernel's Python source without its name: Inductor numbers its kernels anew when a graph changes. Triton's own
hashes are of no use here, because they change with the configuration.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

import msgspec

from tracing.errors import Problem
from tracing.model import Environment, Record, Winner, exact

Join: TypeAlias = tuple[str, str, str, tuple[str, ...]]  # tuner, kernel if it keeps its name, source and key

FORMAT = "tracing winners"
VERSION = 1


class WinnersFile(Record, frozen=True, omit_defaults=False):
    """The content of a winners file."""

    format: str
    version: int
    torch: str
    triton: str
    target: str  # "cuda:90"
    device: str
    winners: tuple[Winner, ...]


def join(winner: Winner) -> Join:
    """The key of a choice, equal for the same choice in different runs."""
    return joined(winner.tuner, winner.kernel, winner.source, winner.key)


def joined(tuner: str, kernel: str, source: str, key: tuple[str, ...]) -> Join:
    """The key of the choice of an autotuner for a kernel and a tuning key."""
    return tuner, kernel if tuner == "triton" else "", source, key


def write_winners(path: Path, environment: Environment, winners: Sequence[Winner]) -> None:
    """Write a winners file, without the candidates and measurements of each choice."""
    plain = tuple(msgspec.structs.replace(one, how="tuned", candidates=()).stored() for one in winners)
    content = WinnersFile(
        FORMAT, VERSION, environment.torch, environment.triton, environment.target, environment.device, plain
    )
    path.write_bytes(msgspec.json.format(msgspec.json.encode(content)) + b"\n")


def read_winners(path: Path) -> WinnersFile:
    """Read a winners file.

    Raises Problem if it is invalid, has another version, or has two configurations for one kernel and key.
    """
    remedy = "write one: `tracing winners RUN --output FILE`"
    try:
        file = msgspec.json.decode(path.read_bytes(), type=WinnersFile)
    except OSError as error:
        raise Problem(f"{path} cannot be read: {error.strerror}", remedy) from None
    except msgspec.MsgspecError as error:
        raise Problem(f"{path} is not a winners file: {error}", remedy) from None
    if (file.format, file.version) != (FORMAT, VERSION):
        what = f"{file.format!r}, version {file.version}"
        raise Problem(f"{path} is {what}; this reads {FORMAT!r}, version {VERSION}", remedy)
    known: dict[Join, Winner] = {}
    for one in file.winners:
        if exact(known.setdefault(join(one), one).config) != exact(one.config):
            key = ", ".join(one.key)
            raise Problem(f"{path} has two configurations for {one.kernel} ({key})", "remove one of them")
    return file
