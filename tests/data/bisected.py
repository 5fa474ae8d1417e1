"""A case with one fault in torch.compile, planted by name: `bisected.py:fault=lowering`.

Each function of `FAULTS` changes Inductor, AOTAutograd or Dynamo in this process, below whatever bisects it.
"""

import os

import torch
from torch._inductor import decomposition, ir, lowering
from torch._inductor.codegen import simd, triton, wrapper
from torch._inductor.fx_passes import joint_graph, post_grad, pre_grad, reinplace
from torch._inductor.scheduler import SchedulerNode

from tracing import Workload

aten = torch.ops.aten
_PLANTED: set[str] = set()


def _wrap_lowering(op, around):
    original = lowering.lowerings[op]
    lowering.lowerings[op] = lambda *args, **kwargs: around(original, *args, **kwargs)


def _scaled(box):
    return lowering.lowerings[aten.mul.Tensor](box, 1.01)


def _after(owner, name, change):
    original = getattr(owner, name)

    def changed(*args, **kwargs):
        result = original(*args, **kwargs)
        change(*args)
        return result

    setattr(owner, name, changed)


def _retarget(graph, before, after):
    for node in getattr(graph, "graph", graph).nodes:
        if node.target == before:
            node.target = after


def lowering_of_sigmoid():
    _wrap_lowering(aten.sigmoid.default, lambda original, x: _scaled(original(x)))


def lowering_raises():
    def fails(original, x):
        raise AssertionError("no sigmoid today")

    _wrap_lowering(aten.sigmoid.default, fails)


def lowering_now_and_then():
    def sometimes(original, x):
        return _scaled(original(x)) if os.urandom(1)[0] < 128 else original(x)

    _wrap_lowering(aten.sigmoid.default, sometimes)


def lowering_of_every_sin():
    _wrap_lowering(aten.sin.default, lambda original, x: _scaled(original(x)))


def decomposition_of_silu():
    def silu(x):
        return x * torch.sigmoid(x) * 1.01

    decomposition.decompositions[aten.silu.default] = silu
    decomposition.fast_random_decomps.cache_clear()


def pre_grad_pass():
    _after(pre_grad, "sink_cat_after_pointwise", lambda graph: _retarget(graph, torch.tanh, torch.sin))


def joint_pass():
    def change(graph):
        _retarget(graph, aten.tanh.default, aten.sin.default)

    _after(joint_graph, "constant_fold_uniform_value", change)


def joint_pattern():
    for patterns in joint_graph.early_patterns.patterns.values():
        for entry in patterns:
            if getattr(entry, "handler", None) is joint_graph.pointless_permute_pair:

                def pointless_permute_pair(match, arg, perm1, perm2):
                    before = match.output_node()
                    with match.graph.inserting_before(before):
                        wrong = match.graph.call_function(aten.neg.default, (arg,))
                    wrong.meta.update(before.meta)
                    before.replace_all_uses_with(wrong)
                    match.erase_nodes()

                entry.handler = pointless_permute_pair


def post_grad_pass():
    def change(graph):
        _retarget(graph, aten.tanh.default, aten.sin.default)

    _after(post_grad, "remove_assert_ops", change)


def reinplacing():
    def core(graph):
        _retarget(graph, aten.index_put.default, aten.index_put_.default)

    reinplace.reinplace_inplaceable_ops_core = core


def partition():
    from torch._dynamo.backends import debugging
    from torch._inductor import compile_fx

    for module in (debugging, compile_fx):
        original = module.min_cut_rematerialization_partition

        def partition(*args, original=original, **kwargs):
            forward, backward = original(*args, **kwargs)
            _retarget(backward, aten.cos.default, aten.sin.default)
            backward.recompile()
            return forward, backward

        module.min_cut_rematerialization_partition = partition


def dynamo():
    from torch._dynamo.output_graph import OutputGraph

    original = OutputGraph.call_user_compiler

    def call(self, gm, *args, **kwargs):
        _retarget(gm, torch.tanh, torch.sin)
        gm.recompile()
        return original(self, gm, *args, **kwargs)

    OutputGraph.call_user_compiler = call


def code_of_sin():
    original = triton.TritonKernelOverrides.sin
    triton.TritonKernelOverrides.sin = staticmethod(lambda x: f"({original(x)} * 1.01)")


def second_graph():
    original = triton.TritonKernelOverrides.cos
    triton.TritonKernelOverrides.cos = staticmethod(lambda x: f"({original(x)} * 1.01)")


def code_if_fused():
    original = triton.TritonKernelOverrides.exp
    define = simd.SIMDScheduling.codegen_node
    fused = [False]

    def exp(x):
        return f"({original(x)} * 1.01)" if fused[0] else original(x)

    def codegen(self, node):
        fused[0] = len(node.get_nodes()) > 1
        return define(self, node)

    triton.TritonKernelOverrides.exp = staticmethod(exp)
    simd.SIMDScheduling.codegen_node = codegen


def persistent_reduction():
    original = triton.TritonKernel.reduction

    def reduction(self, dtype, src_dtype, reduction_type, value):
        if self.persistent_reduction and reduction_type == "sum":
            value = self.cse.generate(self.compute, f"{value} * 1.01", dtype=src_dtype, shape=value.shape)
        return original(self, dtype, src_dtype, reduction_type, value)

    triton.TritonKernel.reduction = reduction


def inlined_into_cat():
    def cat(original, inputs, dim=0):
        def wrong(box):
            data = box
            while isinstance(data, (ir.TensorBox, ir.BaseView)):
                data = data.data
            return isinstance(data.data, ir.Loops)

        return original([_scaled(one) if wrong(one) else one for one in inputs], dim)

    _wrap_lowering(aten.cat.default, cat)


def reused_output():
    original = wrapper.AllocateLine.plan
    outputs = {}

    def plan(self, state):
        from torch._inductor.virtualized import V

        key = wrapper.buffer_reuse_key(self.node)
        free = outputs.get((id(V.graph), key))
        if free is not None and free.node is not self.node:
            free.scheduler_node_index = self.scheduler_node_index - 1  # memory is no reason not to
        if free is not None and free.node is not self.node and self.should_reuse_buffer(free, 0):
            return wrapper.ReuseLine(self.wrapper, free.node, self.node)
        if self.node.get_name() in V.graph.get_output_names():
            free = wrapper.FreeIfNotReusedLine.__new__(wrapper.FreeIfNotReusedLine)
            free.wrapper, free.node, free.is_reused = self.wrapper, self.node, True
            free.scheduler_node_index = self.scheduler_node_index
            outputs[id(V.graph), key] = free
        return original(self, state)

    wrapper.AllocateLine.plan = plan


def in_place_of_a_live_buffer():
    original = SchedulerNode.decide_inplace_update

    def decide(self):
        kept = self.ancestors
        self.ancestors = type(kept)(
            [*kept, *(one.get_name() for one in self.scheduler.nodes if one is not self)]
        )
        try:
            original(self)
        finally:
            self.ancestors = kept

    SchedulerNode.decide_inplace_update = decide


FAULTS = {
    one.__name__: one
    for one in (
        lowering_of_sigmoid, lowering_raises, lowering_now_and_then, lowering_of_every_sin,
        decomposition_of_silu, pre_grad_pass, joint_pass, joint_pattern, post_grad_pass, reinplacing,
        partition, dynamo, code_of_sin, second_graph, code_if_fused, persistent_reduction, inlined_into_cat,
        reused_output, in_place_of_a_live_buffer,
    )
}  # fmt: skip


def pointwise(x):
    return torch.tanh(x) + torch.sigmoid(x * 2).sum(0) + torch.nn.functional.silu(x)


def sines(x):
    return torch.sin(x).sum(0) + torch.sin(x.sum(0)) * torch.sin(x.sum(1))[:8]


def two_graphs(x):
    y = torch.exp(x) + 1
    torch._dynamo.graph_break()
    return torch.sigmoid(y) * torch.cos(y)


def softmax(x):
    return torch.softmax(x, -1) * 2


def cat(x):
    return torch.cat([torch.exp(x), x + 1]).cos()


def view(x):
    return torch.tanh(x.permute(1, 0).permute(1, 0)) + x


def put(x):
    index = torch.arange(0, 4, device=x.device)
    y = x.exp()
    return y.index_put((index,), x[:4]) + y.sin(), y


def summed(x):
    return (x.cos() + 1).sum(-1).exp()


def two_results(x):
    y = x.exp().sum(0)
    z = (x + y).sum(1)
    return z, (x * z[:, None]).sum(1).cos().sum(0) + z, z.cos()


def live(x):
    y = x @ x.T
    z = torch.relu(y)
    return z @ x, y @ x


PROGRAMS = {
    "second_graph": two_graphs,
    "lowering_of_every_sin": sines, "joint_pattern": view, "reinplacing": put, "code_of_sin": sines,
    "code_if_fused": summed, "persistent_reduction": summed, "inlined_into_cat": cat,
    "reused_output": two_results, "in_place_of_a_live_buffer": live,
}  # fmt: skip


def build(device: str, fault: str = "none", program: str = "") -> Workload:
    if fault != "none" and fault not in _PLANTED:
        _PLANTED.add(fault)
        FAULTS[fault]()
    fn = globals()[program] if program else PROGRAMS.get(fault, pointwise)
    if fault == "partition":
        x = torch.rand(8, 8, device=device, requires_grad=True)
        return Workload(lambda x: torch.sin(x) * 2, (x,), backward=True)
    return Workload(fn, (torch.rand(8, 8, device=device),))
