"""Writes each compiled kernel once, and keeps what its launches have in common."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tracing.launch.kernel_module import kernel_module
from tracing.launch.launch_site import KernelArtefacts, LaunchSite
from tracing.launch.roles import Declared
from tracing.launch.tuple_arguments import named_fields
from tracing.launch.whole_writes import WholeWrites
from tracing.model import CopiedFunction, Kernel
from tracing.store import RunWriter
from tracing.upstream.inductor.user_kernels import copied_functions
from tracing.upstream.triton.jit import GluonJITFunction, source_of


@dataclass(frozen=True, slots=True)
class RecordedKernel:
    """The facts of a compiled kernel that each of its launches needs."""

    number: int
    declared: Declared
    whole_writes: WholeWrites | None  # None: it has no readable TTIR
    binary: object  # held, so that its address stays its own


class RecordedKernels:
    """Makes each once for what a launch executes, and finds it afterwards."""

    def __init__(self, writer: RunWriter, not_covered: Callable[[str, str], None]) -> None:
        """not_covered -- receives what was not covered, and the setting that covers it"""
        self._writer, self._not_covered = writer, not_covered
        self._numbers: dict[tuple[str, str, str], int] = {}  # by name, hash and target
        self._known: dict[int, RecordedKernel] = {}  # by the address of `binary`
        self._unread: dict[str, str] = {}  # the first kernel whose TTIR cannot be read, by the reason

    def of(self, site: LaunchSite) -> RecordedKernel:
        """The kernel that the next launch at a site executes, or that the last one executed."""
        binary = site.binary
        known = self._known.get(id(binary)) if binary is not None else None
        if known is None:
            known = self._new(site, binary)
            if binary is not None:
                self._known[id(binary)] = known
        return known

    def _new(self, site: LaunchSite, binary: object) -> RecordedKernel:
        compiled = site.compiled()
        key = (site.name, compiled.hash, compiled.target)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._numbers)
            self._writer.append(self._describe(number, site, compiled))
        declared = self._declared_by(site, compiled)
        return RecordedKernel(number, declared, _whole_writes(site, compiled), binary)

    def _declared_by(self, site: LaunchSite, compiled: KernelArtefacts) -> Declared:
        try:
            return compiled.declared()
        except (KeyError, ValueError) as error:
            if isinstance(compiled.function, GluonJITFunction):
                reason, remedy = "a Gluon kernel has no TTIR", ""
            else:
                reason, remedy = f"no TTIR to read ({error})", "a fresh Triton cache"
            first = self._unread.setdefault(reason, site.name)
            self._not_covered(f"what some kernels read and write, as {first}: {reason}", remedy)
            return Declared({})

    def _describe(self, number: int, site: LaunchSite, compiled: KernelArtefacts) -> Kernel:
        function = compiled.function
        code = getattr(getattr(function, "fn", None), "__code__", None)
        source = source_of(function)
        module = kernel_module(function, compiled.passed)
        return Kernel(
            id=number,
            name=site.name,
            hash=compiled.hash,
            target=compiled.target,
            num_warps=compiled.settings.get("num_warps", 0),
            num_stages=compiled.settings.get("num_stages", 0),
            num_ctas=compiled.settings.get("num_ctas", 0),
            constants={name: str(value) for name, value in compiled.constants.items()},
            options=compiled.options,
            fields=dict(named_fields(compiled.types)),
            stages={stage: self._writer.blob(content) for stage, content in compiled.artefacts.items()},
            source=self._writer.blob(source) if source else None,
            file=f"{code.co_filename}:{code.co_firstlineno}" if code is not None else None,
            kind=site.kind,
            module=self._writer.blob(module.text) if module else None,
            undefined=module.undefined if module else (),
            copied=tuple(
                CopiedFunction(copy.file, copy.line, copy.count, user.file, user.line)
                for copy, user in copied_functions(function)
            ),
        )


def _whole_writes(site: LaunchSite, compiled: KernelArtefacts) -> WholeWrites | None:
    ttir = compiled.artefacts.get("ttir")
    if site.kind != "triton" or ttir is None:
        return None
    try:
        return WholeWrites(str(ttir), compiled.types)
    except ValueError:  # `declared` refuses it as well, which is reported
        return None
