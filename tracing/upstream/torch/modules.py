"""The parameters, buffers and submodules that a torch.nn.Module holds itself, under every name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from tracing.upstream.contract import require

# The name of the submodule that holds the original module in a module that torch.compile returned.
COMPILED = "_orig_mod"


def parameters_of(module: torch.nn.Module) -> Mapping[str, torch.Tensor | None]:
    """Its own parameters by name; a parameter with two names twice, unlike in named_parameters()."""
    return module._parameters


def buffers_of(module: torch.nn.Module) -> Mapping[str, torch.Tensor | None]:
    """Its own buffers by name; a buffer with two names twice, unlike in named_buffers()."""
    return module._buffers


def submodules_of(module: torch.nn.Module) -> Mapping[str, torch.nn.Module | None]:
    """Its direct submodules by name; a module with two names twice, unlike in named_children()."""
    return module._modules


def contract() -> None:
    """Raise Broken or another error if torch or Triton has changed what this file relies on."""
    module = torch.nn.BatchNorm1d(2)
    require([*parameters_of(module)] == ["weight", "bias"], "the parameters of a module")
    require("running_mean" in buffers_of(module), "the buffers of a module")
    compiled: Any = torch.compile(module)
    require(submodules_of(compiled).get(COMPILED) is module, f"{COMPILED} of a compiled module")
