"""Explain why two cubins of one PTX differ.

- ptxas writes the size and modification time of every source file into its line table, but nothing for a
  missing file, as Inductor's generated ones are after a run;
- ptxas of some releases occasionally allocates registers differently for the same text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tracing import elf
from tracing.compiler.codegen.ptxas import assemble
from tracing.compiler.resume import options_of

_DEBUG = (".debug", ".rela.debug", ".rel.debug", ".nv_debug")


@dataclass(frozen=True, slots=True)
class CubinDifference:
    """The reason why two cubins of one PTX differ."""

    assembler: bool  # True: repeated calls of the assembler differ
    reason: str


def difference(
    ptx: str, recorded: bytes, made: bytes, *, target: str, options: Mapping[str, str], tries: int = 6
) -> CubinDifference:
    """Explain two different cubins of one PTX; reassembles it if more than debug data differs.

    target, options -- those of the `Compilation`

    Cost: up to `tries` processes of 0.05-5 s each. Raises Problem if ptxas refuses the text.
    """
    parts = differing_sections(recorded, made)
    if parts and all(name.startswith(_DEBUG) for name in parts):
        reason = f"only {', '.join(parts)}: ptxas notes there when source files were changed"
        return CubinDifference(True, reason)
    arch = int(target.removeprefix("cuda:"))
    repeated = [assemble(ptx, arch, options=options_of(options)) for _ in range(tries)]
    cubins = {made, *repeated}
    if len(cubins) > 1 or recorded in cubins:
        return CubinDifference(
            True, f"ptxas is not deterministic: {tries + 1} calls made {len(cubins)} cubins"
        )
    reason = (
        f"ptxas made this cubin in {tries + 1} calls, and never the recorded one: another version of ptxas?"
    )
    return CubinDifference(False, reason)


def differing_sections(a: bytes, b: bytes) -> list[str]:
    """The names of the sections in which two ELF files differ; empty if they differ in none."""
    first, second = _sections(a), _sections(b)
    return [name for name in first | second if first.get(name) != second.get(name)]


def _sections(data: bytes) -> dict[str, bytes]:
    file = elf.ElfFile(data)
    return {section.name: file.content(section) for section in file.sections}
