"""Check the private objects of the installed torch and Triton that each feature relies on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module

# A module of this package -> the feature that is off if its contract is broken.
FEATURES: Mapping[str, str] = {
    "inductor.adjacent_launches": "digests between two launches of generated code, taken together",
    "inductor.autotuner": "recording launches by Inductor",
    "inductor.backend_compile": "backends that check graphs",
    "inductor.code": "recording Inductor's C++ kernels and allocations",
    "inductor.compile_errors": "naming what failed in a compile",
    "inductor.compile_steps": "bisecting a case",
    "inductor.compiler": "recording in Inductor's compile workers",
    "inductor.compiler_bisector": "bisecting decompositions, graph passes and lowerings",
    "inductor.compiler_switches": "bisecting settings",
    "inductor.config": "Inductor's settings for one run",
    "inductor.device": "the virtual GPU in Inductor",
    "inductor.generated_kernels": "the kernel that a bisection accuses",
    "inductor.gpu_templates": "FlexAttention and convolutions on the virtual GPU",
    "inductor.graph_pass_observer": "bisecting with a good torch",
    "inductor.graph_passes": "bisecting patterns and reinplaced operators",
    "inductor.graph_stages": "bisecting from eager to Inductor",
    "inductor.graphs": "recording the graphs that Inductor compiles",
    "inductor.scheduling": "bisecting fusion and memory",
    "inductor.script_parts": "scripts of `tracing minify`",
    "inductor.user_kernels": "lines of the user's kernels in compiled programs",
    "torch.autograd": "the phase of a launch: forward or backward",
    "torch.program_backends": "bisecting programs with a backend of their own",
    "torch.compiled_backward": "recording the gradients of a compiled graph",
    "torch.compiled_function": "naming the function and the backend of a compile",
    "torch.compile_callbacks": "stopping at a pass without debugpy's tracing of the compile",
    "torch.cuda_graphs": "recording while a CUDA graph is captured",
    "torch.fake_tensors": "checking fake implementations of operators",
    "torch.functorch_levels": "torch.func in the graphs that Dynamo traced",
    "torch.higher_order": "flex_attention judged by float64",
    "torch.import_settings": "variables that a program sets before it imports torch",
    "torch.constructors": "recording programs that replace torch.empty",
    "torch.custom_operators": "naming the operator of the program that fails",
    "torch.decompositions": "how far rounding may take a result",
    "torch.dispatch_modes": "recording operators outside of Triton",
    "torch.dynamo": "recording compiled programs",
    "torch.dynamo_tracing": "the virtual GPU in compiled programs",
    "torch.frame_compiles": "graph breaks, guards and recompilations",
    "torch.modules": "names of parameters and buffers",
    "torch.float32_precision": "in which precision a GPU multiplies float32",
    "torch.numpy_functions": "judging programs that call numpy in compiled code",
    "torch.operator_schemas": "what operators read and write",
    "torch.optimizers": "optimizers with `capturable=True` on the virtual GPU",
    "torch.process_groups": "recording collectives",
    "torch.pytrees": "results judged by float64",
    "torch.attention_parts": "attention in the graphs that Dynamo traced",
    "torch.traced_dropout": "dropout in the graphs that Dynamo traced",
    "torch.traced_functions": "results by the graphs that Dynamo traced",
    "torch.fused_attention": "the dropout of attention on a GPU",
    "torch.quantized_decomposed": "judging quantization by PT2E",
    "torch.random_operators": "random numbers in the graphs that Dynamo traced",
    "torch.source_names": "call sites, tracebacks and compile workers",
    "torch.spawned_processes": "reporting processes that a program spawns",
    "torch.streams": "digests on the GPU",
    "torch.symbolic_sizes": "constraints on symbolic sizes",
    "torch.tensor_subclasses": "tensors without memory of their own",
    "torch.torch_debug_mode": "DebugMode with whole kernel calls",
    "triton.autotune": "winners of @triton.autotune",
    "triton.backends": "compiling for a chosen target",
    "triton.batched_handles": "executing several programs of a launch together",
    "triton.compiled_kernel": "recording launches by Triton",
    "triton.driver": "the virtual GPU in Triton",
    "triton.interpreter": "executing kernels without a GPU",
    "triton.jit": "launches replaced by `tracing swap`",
    "triton.knobs": "the end of launches by Triton",
    "triton.libtriton": "compiling pass by pass",
    "triton.libtriton_import": "stopping at a pass",
}


@dataclass(frozen=True, slots=True)
class Feature:
    """One feature with this torch and this Triton."""

    name: str  # "recording launches by Inductor"
    module: str  # of tracing.upstream, to be changed: "inductor.autotuner"
    failure: str  # why it is off; empty: it works


def features() -> Iterator[Feature]:
    """Check each feature; launches nothing. Costs some 3 s, most of it for the import of torch."""
    for module, name in FEATURES.items():
        yield Feature(name, module, _failure(module))


def _failure(module: str) -> str:
    try:
        import_module(f"tracing.upstream.{module}").contract()
    except Exception as error:  # after an upgrade a private object may raise anything: the feature is off
        return f"{type(error).__name__}: {error}"
    return ""
