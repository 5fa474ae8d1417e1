"""Check everything that this project relies on in the installed torch and Triton, feature by feature."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module

# A file of this folder -> the feature that is off if its contract is broken.
FEATURES: Mapping[str, str] = {
    "autograd": "the phase of a launch: forward or backward",
    "backends": "compiling for a chosen target",
    "compile_errors": "naming what failed in a compile",
    "compile_steps": "bisecting a case",
    "compiled_kernel": "recording launches by Triton",
    "compiler_bisector": "bisecting decompositions, graph passes and lowerings",
    "compiler_switches": "bisecting settings",
    "cuda_graphs": "recording while a CUDA graph is captured",
    "torch_debug_mode": "DebugMode with whole kernel calls",
    "decompositions": "how far rounding may take a result",
    "dispatch_modes": "recording operators outside of Triton",
    "driver": "the virtual GPU in Triton",
    "dynamo": "recording compiled programs",
    "dynamo_tracing": "the virtual GPU in compiled programs",
    "generated_kernels": "the kernel that a bisection accuses",
    "graph_pass_observer": "bisecting with a good torch",
    "graph_passes": "bisecting patterns and reinplaced operators",
    "graph_stages": "bisecting from eager to Inductor",
    "inductor_autotuner": "recording launches by Inductor",
    "inductor_code": "recording Inductor's C++ kernels and allocations",
    "inductor_compiler": "recording in Inductor's compile workers",
    "inductor_config": "Inductor's settings for one run",
    "inductor_graphs": "recording the graphs that Inductor compiles",
    "inductor_device": "the virtual GPU in Inductor",
    "interpreter": "executing kernels without a GPU",
    "jit": "launches replaced by `tracing swap`",
    "knobs": "the end of launches by Triton",
    "libtriton": "compiling pass by pass",
    "libtriton_import": "stopping at a pass",
    "modules": "names of parameters and buffers",
    "operator_schemas": "what operators read and write",
    "process_groups": "recording collectives",
    "pytrees": "results judged by float64",
    "scheduling": "bisecting fusion and memory",
    "streams": "digests on the GPU",
    "tensor_subclasses": "tensors without memory of their own",
    "triton_autotuner": "winners of @triton.autotune",
    "user_kernels": "lines of the user's kernels in compiled programs",
}


@dataclass(frozen=True, slots=True)
class Feature:
    """One feature with this torch and this Triton."""

    name: str  # "recording launches by Inductor"
    module: str  # the file of tracing/upstream to change: "inductor_autotuner"
    failure: str  # why it is off; empty: it works


def features() -> Iterator[Feature]:
    """Check each feature; launches nothing. Costs some 3 s, most of it for the import of torch."""
    for module, name in FEATURES.items():
        yield Feature(name, module, _failure(module))


def _failure(module: str) -> str:
    try:
        import_module(f"tracing.upstream.{module}").contract()
    except Exception as error:  # whatever a private object does after an upgrade is the answer here
        return f"{type(error).__name__}: {error}"
    return ""
