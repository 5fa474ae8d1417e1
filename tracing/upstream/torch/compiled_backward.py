"""The backward of compiled graphs, as autograd executes it: a torch.autograd.Function of AOTAutograd.

Compiled autograd does not execute it: it compiles what the function does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, Protocol

import torch
from torch.autograd.function import BackwardCFunction
from torch.autograd.graph import Node, get_gradient_edge

from tracing.upstream.contract import require
from tracing.upstream.patch import Method, Wrapper, patched
from tracing.upstream.torch.dynamo import forget_compiled

# Of autograd's Function. The second one, since torch 2.13, gets a list, so that gradients can be freed early.
_METHODS = ("apply", "apply_boxed")
_NAME = "CompiledFunctionBackward"  # of the class of its nodes


class BackwardListener(Protocol):
    """Receives each backward of a torch.autograd.Function, on the thread that executes it."""

    def began(self, node: Any, gradients: Sequence[torch.Tensor | None]) -> Any:
        """It begins, with the gradients of the function's results; returns what `ended` receives."""

    def ended(self, token: Any, gradients: Sequence[torch.Tensor | None]) -> None:
        """It has returned the gradients of the function's arguments, whether tensors or not."""


@contextmanager
def backwards_followed(listener: BackwardListener) -> Iterator[None]:
    """While active, `listener` receives backwards."""
    with ExitStack() as stack:
        for name in _METHODS:
            if hasattr(BackwardCFunction, name):
                stack.enter_context(patched(BackwardCFunction, name, _following(listener)))
        yield


def _following(listener: BackwardListener) -> Wrapper:
    def wrapper(original: Method) -> Method:
        def apply(node: Any, *arguments: Any) -> Any:
            boxed = len(arguments) == 1 and isinstance(arguments[0], list)
            token = listener.began(node, arguments[0] if boxed else arguments)
            made = original(node, *arguments)
            listener.ended(token, made if isinstance(made, (tuple, list)) else [made])
            return made

        return apply

    return wrapper


def is_compiled_backward(node: Node) -> bool:
    """True if a node of autograd's graph executes the backward of a graph that AOTAutograd has compiled."""
    return type(node).__name__ == _NAME


def gradients_needed(node: Any) -> tuple[bool, ...]:
    """Whether each argument of a torch.autograd.Function has a gradient; `next_functions` has those only."""
    return tuple(node.needs_input_grad)


def contract() -> None:
    """Raise Broken or another error if torch has changed what this file relies on."""
    called: list[tuple[Any, int]] = []

    class Counter:
        def began(self, node: Any, gradients: Sequence[torch.Tensor | None]) -> Any:
            called.append((node, len(gradients)))
            return node

        def ended(self, token: Any, gradients: Sequence[torch.Tensor | None]) -> None:
            called.append((token, len(gradients)))

    forget_compiled()
    x = torch.ones(2, requires_grad=True)
    compiled, eager = torch.compile(torch.sin, backend="aot_eager")(x), torch.sin(x)
    forget_compiled()
    node = get_gradient_edge(compiled).node
    require(is_compiled_backward(node), f"nodes named {_NAME}")
    require(not is_compiled_backward(get_gradient_edge(eager).node), f"{_NAME} of compiled graphs only")
    require(gradients_needed(node) == (True,), "needs_input_grad of such a node")
    with backwards_followed(Counter()):
        compiled.sum().backward()  # type: ignore[no-untyped-call, unused-ignore]
    require(called == [(node, 1)] * 2, f"one of {', '.join(_METHODS)} of BackwardCFunction")
