"""Settings of Dynamo, AOTAutograd and Inductor, with the value for which the compiler does least."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

from torch._dynamo import config as dynamo
from torch._functorch import config as functorch
from torch._inductor import config as inductor

from tracing.upstream.contract import require
from tracing.upstream.inductor.compile_steps import StepChoice

SETTINGS = "settings"
_CONFIGS: Mapping[str, Any] = {"dynamo": dynamo, "functorch": functorch, "inductor": inductor}
_DYNAMO: Mapping[str, object] = {
    "automatic_dynamic_shapes": False,
    "capture_scalar_outputs": False,
    "capture_dynamic_output_shape_ops": False,
}
_FUNCTORCH: Mapping[str, object] = {
    "cse": False,
    "donated_buffer": False,
    "aggressive_recomputation": False,
    "recompute_views": False,
    "activation_memory_budget": 1.0,
    "guess_tangent_strides_as_outputs": False,
    "treat_parameters_as_free_to_save": False,
}
_GRAPHS: Mapping[str, object] = {  # of Inductor, and of its graph passes
    "pattern_matcher": False,
    "joint_graph_constant_folding": False,
    "optimize_scatter_upon_const_tensor": False,
    "apply_gumbel_max_trick": False,
    "shape_padding": False,
    "permute_fusion": False,
    "batch_fusion": False,
    "group_fusion": False,
    "efficient_conv_bn_eval_fx_passes": False,
    "decompose_mem_bound_mm": False,
    "enable_linear_binary_folding": False,
    "freezing": False,
    "reorder_for_locality": False,
    "partitioned_scatter_enabled": False,
    "b2b_gemm_pass": False,
    "dce": False,
    "online_softmax": False,
    "fallback_random": True,
    "custom_partitioner_fn": None,
}
_CODE: Mapping[str, object] = {  # of Inductor, after its graph passes
    "memory_planning": False,
    "reorder_for_peak_memory": False,
    "inplace_padding": False,
    "layout_optimization": False,
    "comprehensive_padding": False,
    "constant_and_index_propagation": False,
    "max_autotune": False,
    "max_autotune_pointwise": False,
    "max_autotune_gemm": False,
    "coordinate_descent_tuning": False,
    "epilogue_fusion": False,
    "prologue_fusion": False,
    "benchmark_fusion": False,
    "combo_kernels": False,
    "aggressive_fusion": False,
    "pick_loop_orders": False,
    "loop_ordering_after_fusion": False,
    "loop_reindexing_after_fusion": False,
    "loop_index_inversion_in_fusion": False,
    "expand_dimension_for_pointwise_nodes": False,
    "split_reductions": False,
    "unroll_reductions_threshold": 1,
    "max_pointwise_cat_inputs": 0,
    "max_complex_pointwise_cat_inputs": 0,
    "use_fast_math": False,
    "emulate_precision_casts": True,
    "assume_aligned_inputs": False,
    "dynamic_scale_rblock": False,
    "triton.persistent_reductions": False,
    "triton.cooperative_reductions": False,
    "triton.mix_order_reduction": False,
    "triton.nested_reduction": False,
    "triton.tile_reductions": False,
    "triton.coalesce_tiling_analysis": False,
    "triton.prefer_nd_tiling": False,
    "triton.max_tiles": 1,
    "triton.multi_kernel": 0,
    "triton.use_block_ptr": False,
    "triton.use_tensor_descriptor": False,
    "triton.native_matmul": False,
    "triton.divisible_by_16": False,
    "triton.codegen_upcast_to_fp32": True,
}
OF_DYNAMO, OF_AUTOGRAD, OF_GRAPHS, OF_CODE = "dynamo", "autograd", "graphs", "code"
_GROUPS: Mapping[str, tuple[str, Mapping[str, object]]] = {
    OF_DYNAMO: ("dynamo", _DYNAMO),
    OF_AUTOGRAD: ("functorch", _FUNCTORCH),
    OF_GRAPHS: ("inductor", _GRAPHS),
    OF_CODE: ("inductor", _CODE),
}


@contextmanager
def switches_asked(groups: list[str], steps: StepChoice) -> Iterator[None]:
    """While active, each setting with a non-minimal value is a step; leaving it out sets the minimal value.

    Settings that this torch lacks are ignored.
    """
    with ExitStack() as stack:
        for group in groups:
            owner, switches = _GROUPS[group]
            config = _CONFIGS[owner]
            for name, least in switches.items():
                value = _value(config, name)
                if value in (None, least) and name != "triton.max_tiles":
                    continue
                shown = value if isinstance(value, (bool, int, float, str)) else type(value).__qualname__
                if not steps.make(SETTINGS, f"{owner}.{name}", detail=f"{shown}; left out: {least}"):
                    stack.enter_context(config.patch({name: least}))
        yield


def _value(config: Any, name: str) -> Any:
    for part in name.split("."):
        config = getattr(config, part, None)
    return config


def contract() -> None:
    """Raise Broken or another error if torch has changed what this file relies on."""
    for owner, switches in _GROUPS.values():
        names = [name for name in switches if hasattr(_CONFIGS[owner], name.split(".")[0])]
        require(2 * len(names) > len(switches), f"most of the settings of {owner} that are known here")
