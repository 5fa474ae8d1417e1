"""Which operators and Triton kernels a program runs, in order: torch's DebugMode, with whole kernel calls.

torch's DebugMode knows a Triton kernel by its name and its arguments' text, and only if Inductor launches it.
Here each launch that `tracing.record.hooks` sees becomes a `TritonKernelCall` among torch's own calls: grid,
named arguments, hashes before and after, and which arguments were written. Launches of every thread are
taken, as CUDA's backward runs on threads of its own.

Nothing waits for the device unless hashes are asked for: then every launch is waited for. Clones are ordered
by streams alone. What is computed to record is not recorded: it is hidden from modes and hooks.
"""

from __future__ import annotations

import copy
import functools
import numbers
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils._debug_mode import DebugMode as TorchDebugMode

from tracing.errors import Problem
from tracing.model import Role
from tracing.record import digest, hooks
from tracing.record.aside import aside
from tracing.record.sites import Grid, Site, tensor_of
from tracing.record.user_hash import HashFn

try:
    from torch.utils._debug_mode._calls import _TritonKernelCall
    from torch.utils._debug_mode._utils import _arg_to_str, hash_tensor_fn, norm_hash_fn
except ImportError:  # torch < 2.13: _debug_mode is one file, not a package
    from torch.utils._debug_mode import (  # type: ignore[attr-defined, no-redef, unused-ignore]
        _arg_to_str,
        _TritonKernelCall,
        hash_tensor_fn,
        norm_hash_fn,
    )

_WRITTEN: tuple[Role, ...] = ("out", "in_out", "unknown")
_READ: tuple[Role, ...] = ("in", "in_out", "unknown")


class TritonKernelCall(_TritonKernelCall):
    """One launch of a Triton kernel; indices are positions in `args`.

    grid           -- programs in x, y and z; empty if the launch failed
    args           -- the values, constants left out. A tensor is its short text, `t: f32[128, 128]`, unless
                      the mode has store_original_args; then it may be written again by later kernels
    kwargs         -- empty: a launch has named every argument
    pre_hashes     -- index -> hash of each tensor argument before the launch, also of one that is not read:
                      a buffer for output holds whatever was there. An argument that is a tuple is written
                      as a whole, and its hashes are a tuple
    post_hashes    -- the same after it
    modified_args  -- what is declared written by the kernel's TTIR, or may be, and what was seen to change.
                      A declared write may rewrite the same bytes or be masked off; a change may come through
                      another argument that shares the memory. Without hashes, the declared alone
    log            -- "hash": of the tensors written, "input_hash": of those read, in argument order;
                      "hash_error" or "not_recorded" where there are none, and why
    record         -- "output": clones of the tensors written, in argument order

    Source: torch.utils._debug_mode, which takes it for a call of its own. Its check_hash_mismatches()
    subtracts hashes that differ: log numbers for it, such as "norm".
    """

    pre_hashes: dict[int, Any]  # type: ignore[assignment]
    post_hashes: dict[int, Any]  # type: ignore[assignment]
    log: dict[str, Any]
    record: dict[str, Any]

    def __init__(
        self, kernel_name: str, arg_names: Sequence[str], args: Sequence[Any], call_depth: int
    ) -> None:
        super().__init__(kernel_name, {}, call_depth)
        self.grid: tuple[int, ...] = ()
        self.arg_names = tuple(arg_names)
        self.args = tuple(args)
        self.modified_args: set[int] = set()
        self.pre_hashes, self.post_hashes = {}, {}
        self.log, self.record = {}, {}
        self._margin = ""  # of the lines after the first

    def stringify_args(self, attributes: list[str], tensor_memo: Any = None) -> None:
        """Let go of the tensors: keep their text."""
        self.args = tuple(
            _text(value, attributes, tensor_memo) if _tensors(value) else value for value in self.args
        )

    def render(self, attributes: list[str]) -> str:
        """The call, one argument a line; attributes are those of tensors to show."""
        marks = ("[OUT] " if i in self.modified_args else "" for i in range(len(self.args)))
        arguments = ",\n".join(
            f"{self._margin}    {mark}{name}={_text(value, attributes)}"
            for mark, name, value in zip(marks, self.arg_names, self.args, strict=True)
        )
        notes = self._notes()
        head = f"[Triton] {self.kernel_name}[grid={self.grid}]"
        return f"{head}(\n{arguments}\n{self._margin})" + (f"  # {notes}" if notes else "")

    def indented(self) -> TritonKernelCall:
        """The same call, whose lines stand where debug_string() puts the first of them."""
        other = copy.copy(self)
        other._margin = "  " * (self.call_depth + 1)
        return other

    def _notes(self) -> dict[str, Any]:
        if not self.post_hashes:
            return self.log
        outputs = [self.arg_names[i] for i in sorted(self.modified_args)]
        hashes = {"pre_hashes": self.pre_hashes, "post_hashes": self.post_hashes}
        return {"outputs": outputs, **hashes, **self.log}


def _tensors(value: object) -> list[torch.Tensor]:
    if isinstance(value, tuple):
        return [tensor for member in value for tensor in _tensors(member)]
    tensor = tensor_of(value)
    return [] if tensor is None else [tensor]


def _all(tensors: Mapping[int, list[torch.Tensor]]) -> list[torch.Tensor]:
    return [tensor for found in tensors.values() for tensor in found]


def _text(value: object, attributes: list[str], memo: Any = None) -> str:
    if isinstance(value, tuple):
        return f"({', '.join(_text(member, attributes, memo) for member in value)})"
    tensor = tensor_of(value)
    if tensor is None:
        return str(value)
    text = str(_arg_to_str(tensor, attributes, memo))
    return text if tensor is value else f"{type(value).__name__}({text})"  # a descriptor of the tensor


# ---- hashes ----


@dataclass(frozen=True, slots=True)
class _Hashing:
    # A user's function may fail in any way, in the middle of a model: that is kept until a call can say it.
    fn: HashFn
    inputs: bool = False
    failures: list[str] = field(default_factory=list)

    def __call__(self, tensor: torch.Tensor) -> Any:
        try:
            value = self.fn(tensor)
        except Exception as error:
            self.failures.append(f"hash_fn raised {type(error).__name__}: {error}")
            return None
        if _is_hash(value):
            return value
        found = f"hash_fn returned a {type(value).__name__}"
        self.failures.append(f"{found}; it must be a number, str, bytes, None or a tuple of these")
        return None

    def failure(self, *_dispatched: Any) -> dict[str, Any] | None:
        """What failed since the last question: for the call that is being recorded."""
        if not self.failures:
            return None
        found = {"hash_error": self.failures[0]}
        self.failures.clear()
        return found

    def of(self, tensors: Mapping[int, list[torch.Tensor]], values: Sequence[Any]) -> dict[int, Any]:
        hashes = {i: tuple(map(self, found)) for i, found in tensors.items()}
        return {i: found if isinstance(values[i], tuple) else found[0] for i, found in hashes.items()}


def _is_hash(value: object) -> bool:
    if isinstance(value, tuple):
        return all(map(_is_hash, value))
    return value is None or isinstance(value, (numbers.Number, str, bytes))


def _hash_fn(chosen: HashFn | str | list[str] | None) -> HashFn:
    # names that are not upstream's were refused by upstream
    if chosen is None:
        return lambda tensor: digest.bits(tensor)[0]
    if isinstance(chosen, list):
        several = [_hash_fn(name) for name in chosen]
        return lambda tensor: tuple(fn(tensor) for fn in several)
    if isinstance(chosen, str):
        return functools.partial(norm_hash_fn if chosen == "norm" else hash_tensor_fn, use_scalar=True)
    return chosen


# Process-wide, as upstream's are: a backward on another thread is of the same program. The last one counts.
_hashing: list[_Hashing] = []
_recording_outputs: list[bool] = []


# ---- the mode ----


@dataclass(frozen=True, slots=True)
class _Launched:
    # a launch between `before` and `after`; the call may have let go of the tensors
    call: TritonKernelCall
    site: Site
    values: Sequence[Any]
    tensors: Mapping[int, list[torch.Tensor]]
    stream: int
    hashing: _Hashing | None
    outputs: bool  # to be cloned


class DebugMode(TorchDebugMode):  # type: ignore[no-untyped-call, unused-ignore]
    """torch's DebugMode, with a `TritonKernelCall` in `operators` for every launch of a Triton kernel.

    record_triton_kernels -- False: no launch is recorded, neither by this nor by torch's DebugMode
    options               -- torch's own; store_original_args keeps the arguments of Triton calls as well

    While it is entered, Inductor's kernels are launched by Inductor's slow path, as for torch's DebugMode.

    Raises Problem when it is left, if a hash_fn failed: the call says so in log["hash_error"], and the
    program has run undisturbed.
    """

    def __init__(self, *, record_triton_kernels: bool = True, **options: Any) -> None:
        super().__init__(**options)
        self.record_triton_kernels = record_triton_kernels
        self._roles: dict[int, Mapping[str, Role]] = {}  # by id of a site, which lives while we are installed
        self._exit = ExitStack()

    def __enter__(self) -> DebugMode:
        if self.record_triton_kernels:
            self._exit.enter_context(hooks.installed(self))
        super().__enter__()  # type: ignore[no-untyped-call, unused-ignore]
        return self

    def __exit__(self, *exception: Any) -> None:
        self._exit.close()
        self._roles.clear()
        super().__exit__(*exception)  # type: ignore[no-untyped-call, unused-ignore]
        failed = [op for op in self.operators if op.log and "hash_error" in op.log]
        if failed and exception[:1] in ((), (None,)):
            found = failed[0].log["hash_error"]
            raise Problem(
                f"{len(failed)} of {len(self.operators)} recorded calls lack a hash: {found}",
                "without hash_fn, log_tensor_hashes() takes a digest of any tensor",
            )

    def record_triton_kernel(self, kernel_name: str, kwargs: dict[str, Any]) -> Any:
        """Nothing, and None: Inductor would have what is given wait for the device after the launch."""

    def debug_string(self, show_stack_trace: bool | None = None) -> str:
        """All calls as text, indented by depth."""
        shown = copy.copy(self)
        shown.operators = [op.indented() if isinstance(op, TritonKernelCall) else op for op in self.operators]
        return str(super(DebugMode, shown).debug_string(show_stack_trace))

    @staticmethod
    @contextmanager
    def log_tensor_hashes(
        hash_fn: HashFn | str | list[str] | None = None, hash_inputs: bool = False
    ) -> Iterator[None]:
        """While active, calls are recorded with hashes of their tensors; waits for the device at each.

        hash_fn     -- tensor -> number, str, bytes, None or a tuple of these; torch's names "norm" and
                       "hash_tensor", or a list of them. None: for Triton calls the 128-bit digest of
                       tracing.record.digest in hexadecimal, for operators torch's default
        hash_inputs -- also log["input_hash"]; of a Triton call, of the arguments that the kernel reads

        The hashes of a Triton call before and after it are there in any case.
        """
        hashing = _Hashing(_hash_fn(hash_fn), hash_inputs)
        options: dict[str, Any] = {"hash_inputs": hash_inputs}
        if hash_fn is not None:
            options["hash_fn"] = hashing if callable(hash_fn) else hash_fn
        logging = TorchDebugMode.log_tensor_hashes(**options)
        with logging, TorchDebugMode.dispatch_hooks(log_hook=hashing.failure), _pushed(_hashing, hashing):
            yield

    @staticmethod
    @contextmanager
    def record_outputs() -> Iterator[None]:
        """While active, calls are recorded with clones of their outputs, in record["output"]."""
        with TorchDebugMode.record_outputs(), _pushed(_recording_outputs, True):
            yield

    # ---- tracing.record.hooks.Listener ----

    @torch._dynamo.disable  # type: ignore[untyped-decorator, unused-ignore]
    def before(self, site: Site, values: Sequence[Any], stream: int, grid: Grid | None) -> _Launched:
        call = TritonKernelCall(site.name, site.names, values, self.call_depth + 1)
        tensors = {i: found for i, value in enumerate(values) if (found := _tensors(value))}
        hashing = _hashing[-1] if _hashing else None
        outputs = bool(_recording_outputs)
        with aside(stream, _all(tensors) if hashing or outputs else ()) as capturing:
            if capturing:  # a graph runs nothing now, and waiting would end its capture
                call.log["not_recorded"] = "a CUDA graph was being captured"
                hashing, outputs = None, False
            if hashing:
                call.pre_hashes = hashing.of(tensors, values)
            if not self.store_original_args:
                call.stringify_args(
                    self.record_tensor_attributes, self._tensor_memo if self.record_ids else None
                )
        call.grid = grid or ()
        self.operators.append(call)
        return _Launched(call, site, values, tensors, stream, hashing, outputs)

    @torch._dynamo.disable  # type: ignore[untyped-decorator, unused-ignore]
    def after(self, token: _Launched) -> None:
        call, site, tensors, hashing = token.call, token.site, token.tensors, token.hashing
        call.grid = call.grid or site.grid(token.values)
        roles = self._declared(site)
        written = {i for i in tensors if _role_in(_WRITTEN, roles, call.arg_names[i])}
        with aside(token.stream, _all(tensors) if hashing or token.outputs else ()):
            if hashing:
                call.post_hashes = hashing.of(tensors, token.values)
                # by repr, in which a NaN is a NaN
                written |= {i for i, h in call.post_hashes.items() if repr(h) != repr(call.pre_hashes[i])}
            if token.outputs:
                call.record["output"] = [t.clone() for i in sorted(written) for t in tensors[i]]
        call.modified_args = written
        if hashing:
            call.log |= _logged(call, roles, hashing)

    def _declared(self, site: Site) -> Mapping[str, Role]:
        if id(site) in self._roles:
            return self._roles[id(site)]
        try:
            roles = site.compiled().roles()
        except (ValueError, KeyError):  # no TTIR that can be read: what changes is all there is
            roles = {}
        if site.kind != "interpreted":  # those are of one launch
            self._roles[id(site)] = roles
        return roles


def _role_in(wanted: tuple[Role, ...], roles: Mapping[str, Role], name: str) -> bool:
    # members of a tuple `t` are called `t.0`, `t.1`
    return any(role in wanted for key, role in roles.items() if key == name or key.startswith(f"{name}."))


def _logged(call: TritonKernelCall, roles: Mapping[str, Role], hashing: _Hashing) -> dict[str, Any]:
    logged: dict[str, Any] = {"hash": [call.post_hashes[i] for i in sorted(call.modified_args)]}
    if hashing.inputs:
        logged["input_hash"] = [
            found
            for i, found in call.pre_hashes.items()
            if (_role_in(_READ, roles, call.arg_names[i]) if roles else i not in call.modified_args)
        ]
    return logged | (hashing.failure() or {})


@contextmanager
def _pushed(stack: list[Any], value: object) -> Iterator[None]:
    stack.append(value)
    try:
        yield
    finally:
        stack.pop()
