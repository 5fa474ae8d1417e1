"""A program that compares its compiled results with eager's, with a fault of bisected.py that it is given."""

import sys

import torch
from bisected import build

from tracing.program.backward import differentiate

torch.manual_seed(0)
workload = build("cpu", fault=sys.argv[1])


def results(compiled):
    args = [one.detach().clone().requires_grad_(one.requires_grad) for one in workload.args]
    returned = (torch.compile(workload.fn) if compiled else workload.fn)(*args)
    if workload.backward:
        differentiate(returned)
    return returned, [one.grad for one in args if one.grad is not None]


torch.testing.assert_close(results(True), results(False))
print("equal")
