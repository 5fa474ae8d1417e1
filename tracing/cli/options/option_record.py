"""Turns a command's parameter that is a record of options into one command-line option for each field."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from typing import Any, get_type_hints


def with_option_records(command: Callable[..., None]) -> Callable[..., None]:
    """A command as typer wants it: a parameter for each field of the dataclasses among its parameters."""
    types = get_type_hints(command, include_extras=True)
    records: dict[str, Any] = {name: type_ for name, type_ in types.items() if is_dataclass(type_)}

    @wraps(command)
    def flat(**given: Any) -> None:
        for name, record in records.items():
            given[name] = record(**{field.name: given.pop(field.name) for field in fields(record)})
        command(**given)

    parameters = list(_flattened(command, types))
    vars(flat)["__signature__"] = inspect.Signature(parameters)
    flat.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return flat


def _flattened(command: Callable[..., None], types: dict[str, Any]) -> Iterator[inspect.Parameter]:
    for name, parameter in inspect.signature(command).parameters.items():
        if not is_dataclass(types[name]):
            yield _parameter(name, parameter.default, types[name])
            continue
        inner = get_type_hints(types[name], include_extras=True)
        for field in fields(types[name]):
            default = inspect.Parameter.empty if field.default is MISSING else field.default
            yield _parameter(field.name, default, inner[field.name])


def _parameter(name: str, default: object, annotation: object) -> inspect.Parameter:
    # by keyword: a parameter without a default may then come after one that has a default
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
