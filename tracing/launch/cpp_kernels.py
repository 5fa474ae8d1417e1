"""Intercept launches of Inductor's C++ kernels on the CPU.

A generated module looks up its kernels by name at each call, so while `installed` a function of that name
replaces each kernel. The roles of the arguments are read from the C++ text that Inductor stores next to the
shared object.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from tracing.launch import hooks
from tracing.launch.hooks import Listener
from tracing.launch.launch_site import FlatSite, Grid, KernelArtefacts, KernelKind
from tracing.launch.memory.accesses import Accesses
from tracing.launch.roles import Declared
from tracing.model import Role
from tracing.upstream.inductor.code import around_loading, generated_modules
from tracing.upstream.patch import Method, patched


class CppSite:
    """A C++ kernel of Inductor."""

    kind: KernelKind = "cpp"
    flat: FlatSite | None = None
    accesses: Accesses | None = None
    settled = True
    scalars: Sequence[int] | None

    def __init__(self, name: str, kernel: Callable[..., Any], count: int) -> None:
        self.name = name
        self.binary = self  # kernels of several names may be one function: equal code is compiled once
        self._source = _source(kernel)
        parameters = _parameters(self._source)
        self._readable = len(parameters) == count
        self.names: Sequence[str] = list(parameters) if self._readable else [f"arg{i}" for i in range(count)]
        scalars = [i for i, kind in enumerate(parameters.values()) if "*" not in kind]
        self.scalars = scalars if self._readable else None

    def grid(self, values: Sequence[Any]) -> Grid:
        return 1, 1, 1

    def compiled(self) -> KernelArtefacts:
        return KernelArtefacts(
            hash=hashlib.blake2b((self._source or self.name).encode(), digest_size=16).hexdigest(),
            target="cpu",
            settings={},
            constants={},
            artefacts={"cpp": self._source} if self._source else {},
            declared=self._declared,
        )

    def _declared(self) -> Declared:
        unknown: dict[str, Role] = dict.fromkeys(self.names, "unknown")
        return Declared(declared_roles(self._source) if self._readable else unknown)


@contextmanager
def installed(listener: Listener) -> Iterator[None]:
    """While active, `listener` receives every launch of Inductor's C++ kernels, compiled before or meanwhile.

    Not covered: kernels that are called from C++ (cpp_wrapper, AOTInductor), and the trial runs by which
    max-autotune chooses C++ templates.
    """

    def loading(wait: Method) -> Method:
        def wait_and_wrap(compiler: Any, scope: dict[str, Any]) -> None:
            wait(compiler, scope)  # up to this call a kernel may be a future
            _wrap(scope, listener, stack)

        return wait_and_wrap

    with ExitStack() as stack:
        stack.enter_context(around_loading(loading))
        for module in generated_modules():
            _wrap(vars(module), listener, stack)
        yield


def _wrap(scope: dict[str, Any], listener: Listener, stack: ExitStack) -> None:
    for name, kernel in list(scope.items()):
        if name.startswith("cpp_") and callable(kernel):
            stack.enter_context(patched(scope, name, functools.partial(_shown, name, listener)))


def _shown(name: str, listener: Listener, kernel: Method) -> Method:
    site: CppSite | None = None

    @functools.wraps(kernel)
    def launch(*values: Any) -> Any:
        nonlocal site
        if not hooks.shown():
            return kernel(*values)
        if site is None:
            site = CppSite(name, kernel, len(values))
        token = listener.before(site, values, 0, (1, 1, 1))
        result = kernel(*values)  # it may be that of another recorder, which records it, too
        listener.after(token)
        return result

    return launch


# ---- the text of a kernel ----


def _source(kernel: Callable[..., Any]) -> str:
    # The kernel is a function of an extension module, <key>.main.so, compiled from <key>.main.cpp.
    # The rest of that file binds it to Python, equally for all kernels.
    module = getattr(inspect.unwrap(kernel), "__self__", None)
    path = getattr(module, "__file__", None)
    if path is None:
        return ""
    try:
        text = Path(path).with_suffix(".cpp").read_text()
    except OSError:
        return ""
    return text.partition("\n// Python bindings")[0].strip() + "\n"


# extern "C" void kernel(const float* in_ptr0, const int64_t ks0)
_SIGNATURE = re.compile(r"\bvoid\s+kernel\s*\(([^)]*)\)")


def _parameters(source: str) -> dict[str, str]:
    # name -> type
    signature = _SIGNATURE.search(source)
    if signature is None:
        return {}
    pairs = (re.fullmatch(r"\s*(.*\W)(\w+)\s*", part, re.DOTALL) for part in signature[1].split(","))
    return {pair[2]: pair[1] for pair in pairs if pair}


def declared_roles(source: str) -> dict[str, Role]:
    """The role of each pointer of a C++ kernel of Inductor, in their order.

    source -- the C++ text, with one function `kernel`

    "in": a pointer to const. "out": the first statement that names the pointer stores to an element whose
    index does not depend on loaded values; later loads read the stored values, because Inductor orders a
    kernel's loops by dependence. "in_out": all other pointers, also one that is only passed on (templates,
    atomics). "none": not named in the body.

    Source: CppKernel.store and CppTile2DKernel.store in torch/_inductor/codegen/cpp.py.
    """
    signature = _SIGNATURE.search(source)
    body = _without_aliases(source[signature.end() :]) if signature else ""
    return {name: _role(name, kind, body) for name, kind in _parameters(source).items() if "*" in kind}


def _without_aliases(body: str) -> str:
    # a buffer that is updated in place has a second name: `auto out_ptr0 = in_out_ptr0;`
    for statement, alias, name in re.findall(r"(\bauto (\w+) = (in_out_ptr\d+);)", body):
        body = re.sub(rf"\b{alias}\b", name, body.replace(statement, ""))
    return body


def _role(name: str, kind: str, body: str) -> Role:
    first = re.search(rf"\b{name}\b", body)
    if first is None:
        return "none"
    if "const" in kind.split():
        return "in"
    statement = body[_statement_start(body, first.start()) : body.find(";", first.end())]
    return "out" if _only_stores(statement, name) else "in_out"


def _statement_start(body: str, position: int) -> int:
    return max(body.rfind(mark, 0, position) for mark in ";{}") + 1


def _only_stores(statement: str, name: str) -> bool:
    # an index that is a loaded value (`tmp`) may leave out elements: those keep what they held
    patterns = (
        rf"\s*{name}\[(?P<index>.*?)\] = (?P<value>.*)",
        rf"\s*(?P<value>.*)\.store\({name}(?: \+ (?P<index>.*))?\)\s*",
        rf"\s*(?:at::vec::)?transpose_mxn<[^>]*\bfalse>"
        rf"\((?P<value>tmp\w*), [^,]*, {name}(?: \+ (?P<index>.*))?\)\s*",
    )
    for pattern in patterns:
        matched = re.fullmatch(pattern, statement, re.DOTALL)
        if matched:
            named = re.search(rf"\b{name}\b", matched["value"])
            return named is None and "tmp" not in (matched["index"] or "")
    return False
