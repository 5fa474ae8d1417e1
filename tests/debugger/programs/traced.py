"""Print when Python's calls are traced: around a compile by torch, and up to and after a stop in it."""

import sys

import torch
from kernels import compile_add

traced = []


def note():
    traced.append(sys.gettrace() is not None)


def backend(graph, inputs):
    note()
    compile_add()
    note()
    return graph.forward


if __name__ == "__main__":
    note()
    torch.compile(lambda x: x + 1, backend=backend)(torch.ones(1))
    note()
    print("traced", traced, flush=True)
