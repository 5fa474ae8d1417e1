"""The arguments that a call of an operator writes, and whether its results are views of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from tracing.operators.effects import undeclared_writes
from tracing.upstream.torch.operator_schemas import schema_of
from tracing.upstream.torch.pytrees import tree_tensors


def gives_views(func: Any) -> bool:
    """True if every result is a view of an argument, by the schema of the operator."""
    returns = schema_of(func).returns
    return bool(returns) and all(one.alias_info and not one.alias_info.is_write for one in returns)


def written_names(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> set[str]:
    """The names of the arguments that a call writes, also those of which the schema does not say so."""
    declared = {one.name for one in schema_of(func).arguments if one.alias_info and one.alias_info.is_write}
    return declared | {*undeclared_writes(func, args, kwargs)}


def written_tensors(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[torch.Tensor]:
    """The tensors among the arguments that a call writes."""
    names = written_names(func, args, kwargs)
    positional = zip((one.name for one in schema_of(func).arguments), args, strict=False)
    return [
        one for name, value in (*positional, *kwargs.items()) if name in names for one in tree_tensors(value)
    ]
