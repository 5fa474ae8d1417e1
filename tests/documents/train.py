"""Stands for the program of somebody who reads the docs: it compiles a function, and takes any arguments."""

import torch

import tracing

double = torch.compile(lambda x: x * 2, backend="eager")
for _ in range(100):
    double(torch.ones(3))
    tracing.step()
