"""Record what torch.compile and Triton do, and find where two runs differ."""

from tracing.model import Workload

__all__ = ["Workload"]
