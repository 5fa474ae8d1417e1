"""The kernels that Inductor writes, with the FX nodes that each of them computes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

from torch._inductor.codegen.triton import TritonScheduling

from tracing.upstream.contract import require_methods, require_parameters
from tracing.upstream.inductor.compile_steps import origins_of
from tracing.upstream.patch import Method, patched

# Receives the name of a kernel, its source, and the names of its FX nodes.
KernelWritten: TypeAlias = Callable[[str, str, list[str]], None]


@contextmanager
def kernels_written(written: KernelWritten) -> Iterator[None]:
    """While active, `written` is called for each use of a Triton kernel that Inductor writes."""

    def around(original: Method) -> Method:
        def define_kernel(scheduling: Any, source: str, nodes: Any, *args: Any, **options: Any) -> Any:
            name = original(scheduling, source, nodes, *args, **options)
            scheduled = [one for one in nodes if hasattr(one, "get_operation_names")]
            origins = {origin for one in scheduled for origin in origins_of(one)}
            written(str(name), source, sorted(origins))
            return name

        return define_kernel

    with patched(TritonScheduling, "define_kernel", around):
        yield


def contract() -> None:
    """Raise Broken or another error if torch has changed what this file relies on."""
    require_methods(TritonScheduling, "define_kernel")
    require_parameters(TritonScheduling.define_kernel, "src_code", "node_schedule")
