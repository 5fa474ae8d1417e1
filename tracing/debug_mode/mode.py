"""torch's DebugMode with complete calls of Triton kernels: a program's operators and kernels, in order.

torch's DebugMode records only the name and the arguments' text of a Triton kernel, and only if Inductor
launches it. Here each launch that `tracing.launch.hooks` intercepts becomes a `TritonKernelCall` among
torch's own calls: grid, named arguments, hashes before and after, and the arguments that were written.
Launches of all threads are included, because CUDA's backward runs on threads of its own.

The device is synchronised only if hashes are requested: then after every launch. Clones are ordered
only by streams. The recorder's own computations are hidden from modes and hooks.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from tracing.debug_mode.hashing import NAMES, Hashing, hash_fn_of, hidden_hash
from tracing.debug_mode.kernel_call import TritonKernelCall, tensors_of
from tracing.debug_mode.own_frames import remove_own_frames
from tracing.errors import Problem
from tracing.launch import hooks
from tracing.launch.launch_site import Grid, LaunchSite
from tracing.launch.on_stream import unrecorded
from tracing.model import Role, may_read, may_write
from tracing.record.launches.user_hash import HashFn
from tracing.upstream.torch.dynamo import untraced
from tracing.upstream.torch.torch_debug_mode import DebugMode as TorchDebugMode
from tracing.upstream.torch.torch_debug_mode import tensor_memo

# Process-wide, as upstream's are: a backward on another thread is of the same program. The last one counts.
_hashing: list[Hashing] = []
_recording_outputs: list[bool] = []


@dataclass(frozen=True, slots=True)
class _Launched:
    # a launch between `before` and `after`; the call itself may not keep its tensors
    call: TritonKernelCall
    site: LaunchSite
    values: Sequence[Any]
    tensors: Mapping[int, list[torch.Tensor]]
    stream: int
    hashing: Hashing | None
    outputs: bool  # to be cloned


class DebugMode(TorchDebugMode):  # type: ignore[no-untyped-call, unused-ignore]
    """torch's DebugMode, with a `TritonKernelCall` in `operators` for every launch of a Triton kernel.

    record_triton_kernels -- False: no launch is recorded, neither by this nor by torch's DebugMode
    options               -- torch's own; store_original_args keeps the arguments of Triton calls as well

    While it is entered, Inductor's kernels are launched by Inductor's slow path, as for torch's DebugMode.

    Raises Problem on exit if a hash_fn failed: log["hash_error"] of the call has the error, and the program
    has run to its end.
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
        remove_own_frames(self.operators)
        failed = [op for op in self.operators if op.log and "hash_error" in op.log]
        if failed and exception[:1] in ((), (None,)):
            first_error = failed[0].log["hash_error"]
            raise Problem(
                f"{len(failed)} of {len(self.operators)} recorded calls lack a hash: {first_error}",
                "without hash_fn, log_tensor_hashes() takes a digest of any tensor",
            )

    def record_triton_kernel(self, kernel_name: str, kwargs: dict[str, Any]) -> Any:
        """Record nothing and return None: Inductor would synchronise the device for any other value."""

    def debug_string(self, show_stack_trace: bool | None = None) -> str:
        """All calls as text, indented by depth."""
        remove_own_frames(self.operators)
        shown = copy.copy(self)
        shown.operators = [op.indented() if isinstance(op, TritonKernelCall) else op for op in self.operators]
        return str(super(DebugMode, shown).debug_string(show_stack_trace))

    @staticmethod
    @contextmanager
    def log_tensor_hashes(
        hash_fn: HashFn | str | list[str] | None = None, hash_inputs: bool = False
    ) -> Iterator[None]:
        """While active, calls are recorded with hashes of their tensors; synchronises the device at each.

        hash_fn     -- tensor -> number, str, bytes, None or a tuple of these; torch's names "norm" and
                       "hash_tensor", or a list of them. None: for Triton calls the 128-bit digest of
                       tracing.digest.host in hexadecimal, for operators torch's default
        hash_inputs -- also log["input_hash"]; of a Triton call, of the arguments that the kernel reads

        A Triton call always has the hashes before and after it.
        """
        hashing = Hashing(hash_fn_of(hash_fn), hash_inputs)
        options: dict[str, Any] = {"hash_inputs": hash_inputs}
        if hash_fn is None or hash_fn in NAMES:
            options["hash_fn"] = hidden_hash(hash_fn or "norm")
        else:
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

    # ---- tracing.launch.hooks.Listener ----

    @untraced
    def before(self, site: LaunchSite, values: Sequence[Any], stream: int, grid: Grid | None) -> _Launched:
        call = TritonKernelCall(site.name, site.names, values, self.call_depth + 1)
        tensors = {i: members for i, value in enumerate(values) if (members := tensors_of(value))}
        hashing = _hashing[-1] if _hashing else None
        outputs = bool(_recording_outputs)
        with unrecorded(stream, _all(tensors) if hashing or outputs else ()) as capturing:
            if capturing:  # a graph runs nothing now, and waiting would end its capture
                call.log["not_recorded"] = "a CUDA graph was being captured"
                hashing, outputs = None, False
            if hashing:
                call.pre_hashes = hashing.of(tensors, values)
            if not self.store_original_args:
                call.stringify_args(self.record_tensor_attributes, tensor_memo(self))
        call.grid = grid or ()
        self.operators.append(call)
        return _Launched(call, site, values, tensors, stream, hashing, outputs)

    @untraced
    def after(self, token: _Launched) -> None:
        call, site, tensors, hashing = token.call, token.site, token.tensors, token.hashing
        call.grid = call.grid or site.grid(token.values)
        roles = self._declared(site)
        written = {i for i in tensors if _any_role(may_write, roles, call.arg_names[i])}
        with unrecorded(token.stream, _all(tensors) if hashing or token.outputs else ()):
            if hashing:
                call.post_hashes = hashing.of(tensors, token.values)
                # by repr, in which a NaN is a NaN
                written |= {i for i, h in call.post_hashes.items() if repr(h) != repr(call.pre_hashes[i])}
            if token.outputs:
                call.record["output"] = [t.clone() for i in sorted(written) for t in tensors[i]]
        call.modified_args = written
        if hashing:
            call.log |= _logged(call, roles, hashing)

    def _declared(self, site: LaunchSite) -> Mapping[str, Role]:
        if id(site) in self._roles:
            return self._roles[id(site)]
        try:
            roles = site.compiled().declared().roles
        except (ValueError, KeyError):  # no TTIR that can be read: what changes is all there is
            roles = {}
        if site.kind != "interpreted":  # those are of one launch
            self._roles[id(site)] = roles
        return roles


def _all(tensors: Mapping[int, list[torch.Tensor]]) -> list[torch.Tensor]:
    return [tensor for members in tensors.values() for tensor in members]


def _any_role(test: Callable[[Role], bool], roles: Mapping[str, Role], name: str) -> bool:
    # members of a tuple `t` are called `t.0`, `t.1`
    return any(test(role) for key, role in roles.items() if key == name or key.startswith(f"{name}."))


def _logged(call: TritonKernelCall, roles: Mapping[str, Role], hashing: Hashing) -> dict[str, Any]:
    logged: dict[str, Any] = {"hash": [call.post_hashes[i] for i in sorted(call.modified_args)]}
    if hashing.inputs:
        logged["input_hash"] = [
            value
            for i, value in call.pre_hashes.items()
            if (_any_role(may_read, roles, call.arg_names[i]) if roles else i not in call.modified_args)
        ]
    return logged | (hashing.failure() or {})


@contextmanager
def _pushed(stack: list[Any], value: object) -> Iterator[None]:
    stack.append(value)
    try:
        yield
    finally:
        stack.pop()
