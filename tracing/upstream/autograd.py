"""The state of autograd on the current thread."""

from __future__ import annotations

import torch

# () -> int: the number of the backward pass that runs on this thread; NO_BACKWARD if none does
backward_pass = torch._C._current_graph_task_id
NO_BACKWARD = -1

# (bool) -> None: switches gradients on or off, without a context manager
set_grad_enabled = torch._C._set_grad_enabled
