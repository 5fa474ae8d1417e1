"""Templates of the scripts of `tracing minify`, which are standalone and name private objects of torch."""

from __future__ import annotations

import re
from importlib import import_module

import torch._inductor.config

from tracing.upstream.contract import require

_IMPORT = re.compile(r"^ *from ((?:torch|triton|functorch)[\w.]*) import (\w+)", re.MULTILINE)
_SETTINGS = ("compile_threads", "fallback_random", "cpu_backend", "force_disable_caches")

HEAD = '''"""{title}

    python {file}

{what}
Exit status 1: it fails as described. Exit status 0: it does not.
Reduced with torch {torch}{triton} for {device}.
"""

{interpreted}import sys
{path}
import torch
{imports}

torch._inductor.config.compile_threads = 1
torch._inductor.config.fallback_random = True  # the random numbers of eager
{case}{device_line}{functions}

{classes}


{data}def inputs():
    """New inputs, in the order of the arguments of forward."""
{inputs}


def flat(value):
    if isinstance(value, torch.Tensor):
        return [value]
    return [one for part in value for one in flat(part)] if isinstance(value, (tuple, list)) else []


def results(function):
    """Its results by name, from new inputs."""
    torch.manual_seed(0)
    given = inputs()
{named}    outputs = flat(function(*given))
    found = {{f"output {{i}}": one.detach() for i, one in enumerate(outputs)}}
{more}    return found

'''
CASE = """
from tracing.program.case import load_case

CASE = load_case({case!r}).build({device!r})  # changes what the graph is compiled with

"""
DATA = """DATA = load_file(Path(__file__).parent / "{stem}.safetensors")


"""
TENSOR = '''def tensor(storage, dtype, shape, stride, offset, grad=False):
    """A tensor in a storage, which others may share."""
    return storage.view(torch.uint8).view(dtype).as_strided(shape, stride, offset).requires_grad_(grad)


'''
NAMED = """    named = dict(zip({names!r}, given))
    tensors = {{name: one for name, one in named.items() if isinstance(one, torch.Tensor)}}
"""
STORAGES = """    owners = {}
    for name, one in [*((f"input {name}", one) for name, one in tensors.items()),
                      *((f"output {i}", one) for i, one in enumerate(outputs))]:
        owner = owners.setdefault(one.untyped_storage().data_ptr(), name) if one.numel() else name
        if owner != name and name.startswith("output"):
            found[f"storage of {name}"] = f"that of {owner}"
"""
AFTERWARDS = """    found |= {f"input {name} afterwards": one.detach() for name, one in tensors.items()}
"""
BACKWARD = """    weights = {weights}
    roots = {{i: one for i, one in enumerate(outputs) if one.requires_grad}}
    if roots:
        gradients = [weights.get(i, torch.ones_like(one)) for i, one in roots.items()]
        torch.autograd.backward(list(roots.values()), gradients)
    found |= {{f"grad of {{name}}": one.grad for name, one in tensors.items() if one.grad is not None}}
"""
INTERPRETED = """import os

os.environ["TRITON_INTERPRET"] = "1"  # no GPU: Triton's interpreter executes what Inductor writes
import torch
import triton
from triton.backends.compiler import GPUTarget


class Driver:
    def get_current_target(self):
        return GPUTarget("cuda", 90, 32)

    def get_active_torch_device(self):
        return torch.device("cpu")

    def get_current_device(self):
        return 0

    def get_current_stream(self, device=None):
        return 0


triton.runtime.driver.set_active(Driver())
import numpy
import torch._inductor.config
import triton.language as tl
from torch._inductor.runtime.triton_helpers import libdevice
from triton.runtime.interpreter import TensorHandle


def by_torch(name):  # a function of libdevice, which the interpreter lacks
    def function(*args):
        args = [one if isinstance(one, tl.tensor) else tl.full((), one, tl.float32) for one in args]
        values = [torch.from_numpy(numpy.array(one.handle.data)) for one in args]
        result, dtype = getattr(torch, name)(*values), args[0].dtype.scalar
        if result.dtype == torch.bool:
            result, dtype = result.to(torch.int32), tl.int32
        kind = tl.block_type(dtype, list(result.shape)) if result.dim() else dtype
        return tl.tensor(TensorHandle(result.numpy(), dtype), kind)

    return function


for name in dir(libdevice):
    if hasattr(torch, name) and callable(getattr(libdevice, name)) and not name.startswith("_"):
        setattr(libdevice, name, by_torch(name))

torch._inductor.config.cpu_backend = "triton"
"""
CAPTURED = """import torch
import triton.backends
from triton.backends.compiler import GPUTarget


class Driver:
    def get_current_target(self):
        return GPUTarget("cuda", 90, 32)

    def get_active_torch_device(self):
        return torch.device("cpu")

    def get_current_device(self):
        return 0

    def get_current_stream(self, device=None):
        return 0


triton.runtime.driver.set_active(Driver())
triton.backends.backends["cpu"] = triton.backends.backends.pop("nvidia")  # no GPU: Dynamo captures launches
"""
COMPILED = """import torch._inductor.runtime.triton_heuristics as heuristics

heuristics.GPUTarget = lambda *_: GPUTarget("cuda", 90, 32)  # kernels are compiled for it, and not launched
heuristics.triton_helpers.set_driver_to_cpu = lambda: None
heuristics.CachingAutotuner._make_launchers = lambda self: None
heuristics.CachingAutotuner.run = lambda self, *args, **options: None
import torch._inductor.config

torch._inductor.config.cpu_backend = "triton"
"""
DIFFERS = '''
def wrong(name, actual, expected):
    """How a result is wrong; None: it is not."""
    if not (isinstance(actual, torch.Tensor) and isinstance(expected, torch.Tensor)):
        return None if actual == expected else f"compiled: {{actual}}, eager: {{expected}}"
    if (actual.shape, actual.dtype) != (expected.shape, expected.dtype):
        return f"compiled: {{actual.dtype}} {{actual.shape}}, eager: {{expected.dtype}} {{expected.shape}}"
    strides = [[s for s, n in zip(one.stride(), one.shape) if n > 1] for one in (actual, expected)]
    if name.startswith("output") and actual.numel() and strides[0] != strides[1]:
        return f"strides: compiled {{actual.stride()}}, eager {{expected.stride()}}"
    if f"exact {{name}}" not in DATA:
        try:
            torch.testing.assert_close(actual, expected, equal_nan=True)
        except AssertionError as error:
            return str(error)
        return None
    # `exact` is computed in float64, `rounding` is what rounding may change of each element
    exact, rounding = DATA[f"exact {{name}}"].to(DEVICE), DATA[f"rounding {{name}}"].to(DEVICE)
    if not (exact.is_floating_point() or exact.is_complex()):
        apart = ((actual != exact) & (rounding == 0)).double() * 2 * {farthest}
    else:
        values = actual.to(exact.dtype)
        apart = (values - exact).abs().double() / rounding
        largest = torch.finfo(actual.dtype).max
        equal = (values == exact) | (values.isnan() & exact.isnan())
        if not exact.is_complex():
            equal |= values.isinf() & (exact.abs() > largest) & (values.sign() == exact.sign())
        apart = torch.where(equal, 0.0, apart).nan_to_num(nan=torch.inf)
    if apart.numel() and (apart.max() > {farthest} or apart.mean() > {typical}):
        at = int(apart.argmax())
        compiled, eager, right = (one.flatten()[at].item() for one in (actual, expected, exact))
        return f"element {{at}} is {{compiled}}, in eager {{eager}}, exact {{right}}"
    return None


expected = results(Graph())
actual = results(torch.compile(Graph(){compiling}))
found = {{name: wrong(name, actual.get(name), expected.get(name)) for name in {results!r}}}
for name, how in found.items():
    print(f"{{name}}: {{how or 'as in eager'}}")
sys.exit(1 if any(found.values()) else 0)
'''
FAR = """
expected = results(Graph())
actual = results(torch.compile(Graph(){compiling}))
status = 0
for name in {results!r}:
    try:
        torch.testing.assert_close(actual[name], expected[name], equal_nan=True)
    except AssertionError as error:
        status = 1
        print(f"{{name}}: compiled: {{actual[name]}}\\neager: {{expected[name]}}\\n{{error}}")
sys.exit(status)
"""
RAISES = """
results(Graph())  # eager
results(torch.compile(Graph(){compiling}))
print("compiled without an error")
"""
RAISES_COMPILING = """
results(torch.compile(Graph(){compiling}))
print("compiled without an error")
"""
UNSTABLE = """

def bits(one):
    return one.contiguous().flatten().view(torch.uint8).tolist() if isinstance(one, torch.Tensor) else one


function = torch.compile(Graph(){compiling})
first, *others = [{{name: bits(one) for name, one in results(function).items()}} for _ in range({times})]
found = sorted({{name for one in others for name in first if one.get(name) != first[name]}})
print(f"different bits: {{', '.join(found)}}" if found else "equal bits")
sys.exit(1 if found else 0)
"""
KERNELS = '''

def kernels(settings):
    """The sources of the kernels that Inductor writes."""
    import re

    from torch._inductor.utils import run_and_get_code

    torch._dynamo.reset()
    with torch._inductor.config.patch({{"force_disable_caches": True, **settings}}):
        _, code = run_and_get_code(lambda: results(torch.compile(Graph(){compiling})))
    return [kernel for text in code for kernel in re.findall("\'\'\'(.*?)\'\'\'", text, re.DOTALL)]


a, b = kernels({{}}), kernels({settings!r})
print("the same kernels" if a == b else "\\n".join(["other kernels:", *a, "instead of:", *b]))
sys.exit(1 if a != b else 0)
'''
VIOLATES = """
from functorch.compile import make_boxed_func
from torch._dynamo.backends.common import aot_autograd

# operator, and dtype, shape and strides of each tensor that it gives
VIOLATION = {violation!r}


def numbers(sizes):  # symbols have other names in each compile
    return str(tuple(one if isinstance(one, int) else one.node.hint for one in sizes))


def compiler(aten, _):
    graphs = [one.graph for one in aten.modules() if isinstance(one, torch.fx.GraphModule)]
    for node in (node for graph in graphs for node in graph.nodes):
        tensors = [one for one in flat(node.meta.get("val"))]
        layouts = [(str(one.dtype), numbers(one.shape), numbers(one.stride())) for one in tensors]
        if (str(node.target), layouts) == VIOLATION:  # the graph need not be executed
            print(f"{{VIOLATION}}: {{{requires!r}}}")
            sys.exit(1)
    return make_boxed_func(aten.forward)


results(torch.compile(Graph(), backend=aot_autograd(fw_compiler=compiler){compiling}))
print("no graph has this operator")
"""


def contract() -> None:
    """Raise Broken or another error if torch or Triton has changed what the scripts rely on."""
    templates = (HEAD, INTERPRETED, CAPTURED, KERNELS, VIOLATES)
    for module, name in (pair for text in templates for pair in _IMPORT.findall(text)):
        require(hasattr(import_module(module), name), f"{module}.{name}")
    for setting in _SETTINGS:
        require(hasattr(torch._inductor.config, setting), f"torch._inductor.config.{setting}")
