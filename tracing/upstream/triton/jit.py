"""JITFunctions and ASTSources of Triton. Imports no torch."""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

from triton.compiler.compiler import ASTSource, IRSource
from triton.experimental.gluon._runtime import GluonASTSource, GluonJITFunction
from triton.runtime.jit import (
    ConstexprFunction,
    JITCallable,
    JITFunction,
    TensorWrapper,
    type_canonicalisation_dict,
)

from tracing.upstream.contract import require, require_methods, require_parameters
from tracing.upstream.patch import Wrapper, patched, replaced

__all__ = [
    "ASTSource",
    "ConstexprFunction",
    "GluonJITFunction",
    "IRSource",
    "JITFunction",
    "TensorWrapper",
    "around_language_reads",
    "around_launches",
    "callable_helpers",
    "source_of",
]


def source_of(function: Any) -> str:
    """The text of a function, with its decorators, as Triton compiles it; empty if it has none.

    It is that of its file, unless the program replaced it.

    function -- a JITFunction or ConstexprFunction
    """
    lines = getattr(function, "raw_src", None) or ()
    text, compiled = "".join(lines), function.src if lines else ""
    if textwrap.dedent(text).endswith(compiled):
        return text
    decorators = itertools.takewhile(lambda line: not line.lstrip().startswith("def "), lines)
    return textwrap.dedent("".join(decorators)) + compiled


def torch_names(dtype: object) -> list[str]:
    """The names by which torch may know a dtype of Triton: "float8_e5m2" for tl.float8e5."""
    canonical = type_canonicalisation_dict.get(str(dtype).removeprefix("torch."))
    return [name for name, one in type_canonicalisation_dict.items() if one == canonical]


def around_launches(wrapper: Wrapper) -> AbstractContextManager[None]:
    """While active, each launch `fn[grid](...)` calls `wrapper(original)`.

    The arguments are those of JITFunction.run: function, *args, grid=, warmup=, **kwargs. A launch under
    TRITON_INTERPRET=1 and a launch by Inductor's generated code do not pass here.
    """
    return patched(JITFunction, "run", wrapper)


@contextmanager
def around_language_reads(wrapper: Wrapper) -> Iterator[None]:
    """While active, the two steps of a compile that read `triton.language` call `wrapper(original)`.

    The two steps hash a function with everything that it uses, and generate IR; all later steps are C++.
    """
    cache_key = property(wrapper(vars(JITCallable)["cache_key"].fget))
    with ExitStack() as stack:
        for source in (ASTSource, GluonASTSource):
            stack.enter_context(patched(source, "make_ir", wrapper))
        stack.enter_context(replaced(JITCallable, "cache_key", cache_key))
        yield


@contextmanager
def callable_helpers(call: Callable[..., Any], bind: Callable[..., Any]) -> Iterator[None]:
    """While active, a JITFunction can be called outside of a compile, by `call`, and is bound by `bind`.

    call -- as __call__; Triton's raises an error
    bind -- as __get__; Triton's functions are no descriptors
    """
    with replaced(JITFunction, "__call__", call), replaced(JITFunction, "__get__", bind):
        yield


def contract() -> None:
    """Raise Broken or another error if torch or Triton has changed what this file relies on."""
    require_methods(JITFunction, "run")
    require(isinstance(getattr(JITCallable, "src", None), property), "the source of a function as a property")
    require_parameters(TensorWrapper.__init__, "base", "dtype")
    require("float8_e5m2" in torch_names("fp8e5"), "Triton's names of torch's dtypes")
    require_parameters(JITFunction.run, "grid", "warmup")
    require(issubclass(JITFunction, JITCallable), "JITFunction with the hash of JITCallable")
    require(isinstance(vars(JITCallable)["cache_key"], property), "the hash of a function as a property")
    for source in (ASTSource, GluonASTSource):
        require_methods(source, "make_ir")
    require_parameters(ASTSource.__init__, "fn", "signature", "constexprs")
    require_parameters(IRSource.__init__, "path")
