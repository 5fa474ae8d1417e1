"""Finds the GPU of this machine without opening it: a program may still choose another one, or fork."""

from __future__ import annotations

import os

import torch

from tracing import environment


def gpu_available() -> bool:
    """True if torch can use a GPU."""
    with environment.gpu_unopened():
        return torch.cuda.is_available()


def described_gpu(*, opened: bool) -> tuple[str, str]:
    """Name and target of the current GPU: "NVIDIA H100 80GB HBM3", "cuda:90".

    opened -- this process may open it; False: a fork does, if this process has not yet
    """
    if opened or torch.cuda.is_initialized():  # type: ignore[no-untyped-call, unused-ignore]
        return torch.cuda.get_device_name(), _target()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writer, "\n".join(described_gpu(opened=True)).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        described = pipe.read().splitlines()
    os.waitpid(child, 0)
    return (described[0], described[1]) if len(described) == 2 else described_gpu(opened=True)


def _target() -> str:
    if torch.version.hip:
        return f"hip:{torch.cuda.get_device_properties(0).gcnArchName}"
    major, minor = torch.cuda.get_device_capability()
    return f"cuda:{10 * major + minor}"
