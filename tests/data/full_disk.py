"""A program whose disk is full for a while: no file of this process may grow."""

import resource
import sys

import torch

double = torch.compile(lambda x: torch.relu(x).sum() * 2)
x = torch.ones(64)
print(double(x).item())
sys.stdout.flush()
resource.setrlimit(resource.RLIMIT_FSIZE, (1, resource.RLIM_INFINITY))
print(double(x * 2).item())
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
print(double(x * 3).item(), torch.sin(x).shape)
sys.exit(4)
