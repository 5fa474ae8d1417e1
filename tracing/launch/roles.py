"""Determine which pointer arguments of a kernel may be read or written, and which arguments hold addresses.

The answer follows from the kernel's TTIR: a role for every pointer and tensor descriptor, over all paths,
whether a launch takes them or not. MLIR parses the text, in a context of its own; then each value
gets the arguments that it may point into, or was loaded from, until nothing changes. A call is
followed once for each set of arguments.

An argument holds addresses if its value, or what is loaded from it, becomes a pointer. What is added to a
pointer that is an argument is an offset. Of two integers that are added before they become a pointer, both
count, unless one of them is a product.

It over-approximates accesses: an address whose use cannot be followed (an unknown operation,
memory, recursion) makes its argument `unknown`, as does an address that was itself loaded from the
argument. Limits:

- aliasing: a role is about access through that argument, and two arguments may share memory;
- the memory at an address that is passed as an integer, or loaded: it belongs to no argument;
- a loaded integer that inline assembly uses as an address;
- dialects other than those of `ir.load_dialects`: TTIR with their operations is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias

from tracing.launch.ttir import Op, TtirModule, parse
from tracing.model import Role

# Operand 0 of each of these is the address. Those with atomic_load, _poll and _store begin with Triton 3.9.
_READS = {"tt.load", "tt.descriptor_load", "tt.descriptor_gather", "tt.atomic_load", "tt.atomic_poll"}
_WRITES = {"tt.store", "tt.descriptor_store", "tt.descriptor_scatter", "tt.atomic_store"}
_READS_AND_WRITES = {"tt.atomic_rmw", "tt.atomic_cas", "tt.descriptor_reduce"}

# Operations that access nothing, with the operands whose addresses they return.
_ALL, _FIRST, _NONE = slice(None), slice(1), slice(0)
_CARRIED = {
    **dict.fromkeys(("tt.splat", "tt.unsplat", "tt.broadcast", "tt.expand_dims", "tt.reshape"), _ALL),
    **dict.fromkeys(("tt.trans", "tt.cat", "tt.join", "tt.split", "tt.gather"), _ALL),
    **dict.fromkeys(("tt.bitcast", "tt.int_to_ptr", "tt.ptr_to_int"), _ALL),
    **dict.fromkeys(("tt.make_tensor_descriptor", "tt.make_tensor_ptr", "tt.advance"), _FIRST),
    **dict.fromkeys(("arith.cmpi", "arith.cmpf", "tt.print", "tt.assert"), _NONE),
    "arith.select": slice(1, None),
}
# An integer that is an address is still one after these, and after operations that rearrange tensors.
_KEEP_ADDRESSES = {"arith.addi", "arith.subi", "arith.andi", "arith.ori", "arith.select"}


class Origin(NamedTuple):
    """The arguments from which a value is computed."""

    argument: int  # position in the TTIR function
    # address: the pointer that is an argument, or one derived from it. data: what was loaded through it.
    # word: an integer argument, or what was loaded, from which nothing but an address was computed so far
    kind: Literal["address", "data", "word"]


Origins: TypeAlias = frozenset[Origin]


class Declared(NamedTuple):
    """The declarations of a kernel's TTIR about its arguments, by name."""

    roles: Mapping[str, Role]  # roles of pointers and tensor descriptors, in order
    addresses: frozenset[str] = frozenset()  # arguments whose value or content is used as addresses


@dataclass(frozen=True, slots=True)
class Effects:
    """The arguments of the kernel to which something happens, by position."""

    read: set[int] = field(default_factory=set)
    written: set[int] = field(default_factory=set)
    unknown: set[int] = field(default_factory=set)
    addresses: set[int] = field(default_factory=set)

    def role(self, argument: int) -> Role:
        if argument in self.unknown:
            return "unknown"
        if argument in self.read:
            return "in_out" if argument in self.written else "in"
        return "out" if argument in self.written else "none"


def declared(ttir: str, signature: Mapping[str, Any]) -> Declared:
    """The declared roles of a kernel's pointers and tensor descriptors, and its arguments with addresses.

    ttir       -- text of the kernel's TTIR, `compiled.asm["ttir"]`
    signature  -- name -> type of all arguments, as the kernel's parameters are ordered:
                  `compiled.src.signature`. Members of a tuple `t` are called `t.0`, `t.1`

    "none": never accessed. "unknown": see above; treat it as read and written. The names in the text are
    not used: `q = x` in a kernel renames the argument `x` to `q` there. Integers that hold
    addresses are unknown if the shape of a tensor descriptor has another form than in Triton 3.6 to 3.9.

    Cost: about 1.5 ms, and 15 µs an operation.

    Raises ValueError if MLIR refuses the text (its reason is on stderr), or if text and signature differ
    in the number of pointers and descriptors.
    """
    module = parse(ttir)
    members = [*parameters(signature).items()]
    pointers = [name for name, kind in members if kind.startswith(("*", "tensordesc"))]
    if len(pointers) != len(module.pointers):
        what = f"TTIR of {module.entry} has {len(module.pointers)} pointer arguments"
        raise ValueError(f"{what}, its signature {len(pointers)}: {', '.join(pointers)}")
    effects = Effects()
    arguments = module.blocks[module.functions[module.entry]][0]
    Walk(module, effects, {}, (module.entry,)).run([_given(module, k) for k in range(len(arguments))])
    names = dict(zip(module.pointers, pointers, strict=True)) | _integers(members, module, len(arguments))
    roles = {name: effects.role(k) for name, k in zip(pointers, module.pointers, strict=True)}
    return Declared(roles, frozenset(names[k] for k in effects.addresses if k in names))


def _given(module: TtirModule, argument: int) -> Origins:
    if argument in module.pointers:
        return frozenset({Origin(argument, "address")})
    return frozenset({Origin(argument, "word")} if argument in module.words else ())


def parameters(signature: Mapping[str, Any]) -> dict[str, str]:
    """The arguments of a kernel without its constants, in the order of its TTIR: name -> type."""
    return {name: kind for name, kind in _members(signature.items()) if kind != "constexpr"}


def _members(signature: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, str]]:
    for name, kind in signature:
        if isinstance(kind, tuple):
            yield from _members((f"{name}.{i}", member) for i, member in enumerate(kind))
        else:
            yield name, str(kind)


def _integers(members: Sequence[tuple[str, str]], module: TtirModule, count: int) -> dict[int, str]:
    # a descriptor is followed by its shape and its strides
    positions, position = {}, 0
    for name, kind in members:
        positions[position] = name
        position += 1 + 2 * (kind.count(",") + 1) if kind.startswith("tensordesc") else 1
    return {k: name for k, name in positions.items() if k in module.words} if position == count else {}


class Walk:
    """One function, called with arguments of known origins."""

    def __init__(
        self,
        module: TtirModule,
        effects: Effects,
        calls: dict[tuple[str, tuple[Origins, ...]], list[Origins]],  # values that were followed already
        callers: tuple[str, ...],  # the entry first, this function last
    ) -> None:
        self._module, self._effects, self._calls, self._callers = module, effects, calls, callers
        self._origins: dict[int, Origins] = {}
        self._returned: list[Origins] = []
        self._changed = True

    def run(self, given: Sequence[Origins]) -> list[Origins]:
        """Follow the function until nothing changes; gives the origins of its return values."""
        region = self._module.functions[self._callers[-1]]
        for value, origins in zip(self._module.blocks[region][0], given, strict=True):
            self._add(value, origins)
        while self._changed:
            self._changed = False
            self._region(region, None)
        return self._returned

    def _region(self, region: int, owner: Op | None) -> None:
        for op in self._module.ops.get(region, ()):  # none: an scf.if without else
            self._step(op, region, owner)
            for inner in op.regions:
                self._region(inner, op)

    def _step(self, op: Op, region: int, owner: Op | None) -> None:
        if op.name in _READS or op.name in _WRITES or op.name in _READS_AND_WRITES:
            self._access(op)
        elif op.name == "tt.addptr":  # an address stays the base's, whatever the offset is made from
            base, offset = op.operands
            self._add(op.results[0], self._of(base) or self._of(offset))
        elif op.name in _CARRIED or op.name.startswith(("arith.", "math.")):
            self._carry(op)
        elif op.name == "tt.call":
            self._call(op)
        elif op.name == "tt.return":
            self._return(op)
        elif op.name.startswith(("scf.", "cf.")):
            self._control(op, region, owner)
        else:
            self._lose(op)

    def _carry(self, op: Op) -> None:
        origins = self._of(*op.operands[_CARRIED.get(op.name, _ALL)])
        if op.name == "tt.int_to_ptr":  # loaded data becomes an address of unknown memory
            self._effects.unknown.update(_arguments(origins, "data"))
            self._point(origins)
        computes = op.name.startswith(("arith.", "math.")) and op.name not in _KEEP_ADDRESSES
        if computes or op.name == "tt.int_to_ptr":
            origins = _without_words(origins)
        for result in op.results:
            self._add(result, origins)

    def _point(self, origins: Origins) -> None:
        # builds a pointer: from a pointer argument, with offsets, or from integers
        if not _arguments(origins, "address"):
            self._effects.addresses.update(_arguments(origins, "word"))

    def _access(self, op: Op) -> None:
        address, rest = self._of(op.operands[0]), self._of(*op.operands[1:])
        direct = _arguments(address, "address")
        if op.name not in _WRITES:
            self._effects.read.update(direct)
        if op.name not in _READS:
            self._effects.written.update(direct)
            # any code may load and use an address in memory
            self._effects.unknown.update(_arguments(rest, "address"))
        # a pointer to pointers
        self._effects.unknown.update(_arguments(address, "data"))
        origins = rest.union(Origin(argument, "data") for argument, _ in address)
        for result in op.results:
            self._add(result, origins.union(Origin(argument, "word") for argument in direct))

    def _control(self, op: Op, region: int, owner: Op | None) -> None:
        blocks = self._module.blocks
        if op.name == "scf.for":  # lower, upper, step, initial values; the first block argument counts
            self._bind(op.operands[3:], op.results, blocks[op.regions[0]][0][1:])
        elif op.name == "scf.while":
            self._bind(op.operands, blocks[op.regions[0]][0])
        elif op.name == "scf.condition" and owner:
            self._bind(op.operands[1:], owner.results, blocks[owner.regions[1]][0])
        elif op.name == "scf.yield" and owner and owner.name == "scf.while":
            self._bind(op.operands, blocks[owner.regions[0]][0])
        elif op.name == "scf.yield" and owner and owner.name == "scf.for":
            self._bind(op.operands, owner.results, blocks[region][0][1:])
        elif op.name == "scf.yield" and owner and owner.name == "scf.if":
            self._bind(op.operands, owner.results)
        elif op.name in ("cf.br", "cf.cond_br"):
            self._branch(op.operands[op.name == "cf.cond_br" :], region)
        elif op.name != "scf.if":
            self._lose(op)

    def _branch(self, passed: tuple[int, ...], region: int) -> None:
        # The bindings do not say where a branch goes. What it passes are the arguments of its first target,
        # then those of its second: so a block's are the beginning or the end, if it is a target at all.
        for arguments in self._module.blocks[region][1:]:
            count = len(arguments)
            if 0 < count <= len(passed):
                self._bind(passed[:count], arguments)
                self._bind(passed[-count:], arguments)

    def _call(self, op: Op) -> None:
        callee, given = op.callee, tuple(self._of(value) for value in op.operands)
        if callee is None or callee not in self._module.functions or callee in self._callers:
            self._lose(op)
            return
        if (callee, given) not in self._calls:
            walk = Walk(self._module, self._effects, self._calls, (*self._callers, callee))
            self._calls[callee, given] = walk.run(given)
        for result, origins in zip(op.results, self._calls[callee, given], strict=True):
            self._add(result, origins)

    def _return(self, op: Op) -> None:
        before = self._returned or [frozenset()] * len(op.operands)
        self._returned = [known | self._of(value) for known, value in zip(before, op.operands, strict=True)]

    def _lose(self, op: Op) -> None:
        # an unknown operation may access any address, and does not change data
        origins = _without_words(self._of(*op.operands))
        self._effects.unknown.update(_arguments(origins, "address"))
        for result in op.results:
            self._add(result, frozenset(Origin(argument, "data") for argument, _ in origins))

    def _bind(self, values: tuple[int, ...], *targets: tuple[int, ...]) -> None:
        for target in targets:
            for value, bound in zip(values, target, strict=True):
                self._add(bound, self._of(value))

    def _of(self, *values: int) -> Origins:
        return frozenset().union(*(self._origins.get(value, ()) for value in values))

    def _add(self, value: int, origins: Origins) -> None:
        known = self._origins.get(value, frozenset())
        if not origins <= known:
            self._origins[value] = known | origins
            self._changed = True


def _arguments(origins: Origins, kind: str) -> set[int]:
    return {argument for argument, its_kind in origins if its_kind == kind}


def _without_words(origins: Origins) -> Origins:
    return frozenset(origin for origin in origins if origin.kind != "word")
