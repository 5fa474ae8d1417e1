"""Stands for the program of somebody who reads the docs: it compiles a function, and takes any arguments."""

import sys

import torch

import tracing

# a search of Inductor's steps needs Inductor, which takes seconds
double = torch.compile(lambda x: x * 2, backend="inductor" if "--epochs" in sys.argv else "eager")
for _ in range(100):
    double(torch.ones(3))
    tracing.step()
print("loss 2.31")
