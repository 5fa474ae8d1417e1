"""What an Inductor worker is given to compile, without Inductor's generated code: it needs no GPU."""

from __future__ import annotations

from data import kernels


class WorkerKernel:
    """The part of `CachingAutotuner` that a worker calls."""

    def precompile(self, warm_cache_only: bool) -> None:
        kernels.compiled("vector_add", "sm_90")

    def prepare_for_pickle(self) -> None: ...
