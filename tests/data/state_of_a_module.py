"""A module of the user's whose state functions of another module change."""

import torch

CALLS = torch.zeros(1)
