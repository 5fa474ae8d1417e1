"""The names of parameters, as landmarks record them."""

from __future__ import annotations

import torch

from tracing.record.parameter_names import parameter_names


class DistributedDataParallel(torch.nn.Module):
    """Has the name and the attribute of torch's."""

    def __init__(self, module: torch.nn.Module) -> None:
        super().__init__()
        self.module = module


def test_a_parameter_has_the_name_that_the_outermost_module_gives_it() -> None:
    model = torch.nn.ModuleDict({"head": torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Linear(2, 3))})

    assert parameter_names(list(model.parameters())) == ("head.1.weight", "head.1.bias")


def test_wrappers_add_nothing_to_a_name() -> None:
    model = torch.nn.Linear(2, 3)
    wrapped = torch.compile(DistributedDataParallel(model))

    assert parameter_names([model.bias]) == ("bias",)
    assert wrapped is not model


def test_a_parameter_of_no_module_has_no_name() -> None:
    assert parameter_names([torch.nn.Parameter(torch.ones(2))]) == ("",)
