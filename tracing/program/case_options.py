"""The options of a case: the keyword arguments of its `build` that have a default.

`NAME:option=value,option=value` gives them values, which are converted to the type of the default. An
argument that is annotated with `Literal[...]` takes only these.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args, get_origin

from tracing.errors import Problem
from tracing.model.redaction import REDACTED

_FIRST_OPTION, _NEXT_OPTION = r":(?=[A-Za-z_]\w*=)", r",(?=[A-Za-z_]\w*=)"
_BOOLEANS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


class CaseOption(NamedTuple):
    """One option."""

    default: object
    choices: tuple[object, ...] = ()  # empty: any value of the default's type


CaseOptions = Mapping[str, CaseOption]


def split_options(name: str) -> tuple[str, list[str]]:
    """A case's name or path, and its options: `option=value`, where a value holds any characters.

    The first option follows a colon, the others a comma. A comma that is not followed by `name=` belongs to
    the value.
    """
    case, *options = re.split(_FIRST_OPTION, name, maxsplit=1)
    return (case, re.split(_NEXT_OPTION, options[0])) if case and options else (name, [])


def options_of(build: Callable[..., Any]) -> CaseOptions:
    """The options that a `build` takes."""
    parameters = list(inspect.signature(build).parameters.values())[1:]
    return {
        one.name: CaseOption(one.default, _choices(one.annotation))
        for one in parameters
        if one.default is not one.empty
    }


def written_options(path: Path) -> CaseOptions | None:
    """The options of a case as its file says, which is not executed.

    None: `build` is not one plain function, or a default is no literal. Raises SyntaxError or ValueError for
    a file that Python cannot read, and OSError.
    """
    top = ast.parse(path.read_bytes()).body
    built = [one for one in top if isinstance(one, ast.FunctionDef) and one.name == "build"]
    if len(built) != 1 or built[0].decorator_list:
        return None
    own = built[0].args
    positional = [*own.posonlyargs, *own.args]
    pairs = [*zip(positional[len(positional) - len(own.defaults) :], own.defaults, strict=True)]
    pairs += [(one, value) for one, value in zip(own.kwonlyargs, own.kw_defaults, strict=True) if value]
    try:
        return {
            one.arg: CaseOption(ast.literal_eval(value), _written_choices(one.annotation))
            for one, value in pairs
        }
    except ValueError:
        return None


def _choices(annotation: Any) -> tuple[object, ...]:
    if isinstance(annotation, str):  # under `from __future__ import annotations`
        with suppress(SyntaxError):
            return _written_choices(ast.parse(annotation, mode="eval").body)
    return get_args(annotation) if get_origin(annotation) is Literal else ()


def _written_choices(annotation: ast.expr | None) -> tuple[object, ...]:
    # of `Literal["a", "b"]` and `typing.Literal["a", "b"]`
    if isinstance(annotation, ast.Subscript):
        name = annotation.value
        if getattr(name, "id", getattr(name, "attr", "")) == "Literal":
            with suppress(ValueError):
                values = ast.literal_eval(annotation.slice)
                return values if isinstance(values, tuple) else (values,)
    return ()


def options_text(options: CaseOptions) -> str:
    """As `width=64, hidden=128`; an option with choices as `mask=causal (or full, window)`."""
    return ", ".join(f"{name}={one.default}{_others(one)}" for name, one in options.items())


def _others(option: CaseOption) -> str:
    others = [str(one) for one in option.choices if one not in (option.default, "")]
    return f" (or {', '.join(others)})" if others else ""


def converted_options(path: Path, known: CaseOptions, chosen: Sequence[str]) -> dict[str, object]:
    """The values of options, by name; raises Problem for one that a case does not take.

    path   -- of the case
    chosen -- as "option=value"
    """
    options: dict[str, object] = {}
    for one in chosen:
        name, _, text = one.partition("=")
        if name not in known:
            near = get_close_matches(name, known, n=1)
            listed = f"its options, with their defaults: {options_text(known) or 'none'}"
            raise Problem(f"{path} has no option {name}", f"nearest: {near[0]}; {listed}" if near else listed)
        if text == REDACTED:
            raise Problem(
                f"the option {name} of {path} was not recorded: its name says that it is secret",
                f"record the case yourself: `tracing run {path}:{name}=...`",
            )
        if name in options:
            raise Problem(f"the option {name} of {path} is given twice", "give each option once")
        options[name] = _converted(name, text, known[name])
    return options


def _converted(name: str, text: str, option: CaseOption) -> object:
    value: object = text
    if isinstance(option.default, bool):
        value = _BOOLEANS.get(text.lower())
        needed = "give true or false"
    elif isinstance(option.default, (int, float)):
        kind = "a whole number" if isinstance(option.default, int) else "a number"
        value, needed = None, f"give {kind}, as {option.default}"
        with suppress(ValueError):
            value = type(option.default)(text)
    if option.choices and value not in option.choices:
        value, needed = None, _choices_text(text, option.choices)
    if value is None:
        raise Problem(f"the option {name} cannot be {text}", needed)
    return value


def _choices_text(text: str, choices: Sequence[object]) -> str:
    names = [str(one) for one in choices if one != ""]
    near = get_close_matches(text, names, n=1, cutoff=0.5)
    return f"{f'nearest: {near[0]}; ' if near else ''}it is one of {', '.join(names)}"
