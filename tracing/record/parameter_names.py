"""Find the qualified names of parameters, as `named_parameters()` of the outermost module gives them."""

from __future__ import annotations

import gc
from collections.abc import Mapping, Sequence

import torch

from tracing.upstream.torch.modules import COMPILED, parameters_of, submodules_of

_DEEPEST = 100  # modules in modules
_WRAPPER = "DistributedDataParallel"  # its `module` is the program's own
_Owners = Mapping[int, tuple[torch.nn.Module, str]]


def parameter_names(parameters: Sequence[torch.Tensor]) -> tuple[str, ...]:
    """The name of each parameter, "2.bias"; "" if no module holds it.

    Wrappers of torch.compile and of DistributedDataParallel add nothing to the name.

    Cost: a look at every object that Python's garbage collector knows, some 0.1 s for a million.
    """
    modules = [one for one in gc.get_objects() if issubclass(type(one), torch.nn.Module)]
    whole = [one for one in modules if {"_parameters", "_modules"} <= vars(one).keys()]  # __init__ has run
    owners = {id(child): (one, name) for one in whole for name, child in parameters_of(one).items()}
    parents = {id(child): (one, name) for one in whole for name, child in submodules_of(one).items()}
    return tuple(_qualified(one, owners, parents) for one in parameters)


def _qualified(parameter: torch.Tensor, owners: _Owners, parents: _Owners) -> str:
    if id(parameter) not in owners:
        return ""
    module, name = owners[id(parameter)]
    words = [name]
    while id(module) in parents and len(words) < _DEEPEST:
        module, name = parents[id(module)]
        if name != COMPILED and not (name == "module" and type(module).__name__ == _WRAPPER):
            words.append(name)
    return ".".join(reversed(words))
