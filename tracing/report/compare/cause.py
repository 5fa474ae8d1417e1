"""The cause of a different input as text: the writer to blame, and what it did differently."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from tracing.analyze.compare.cause_kinds import (
    Cause,
    Host,
    MoreCalls,
    OperatorCause,
    OtherInput,
    OtherOrder,
    OtherPoint,
    OtherResults,
    OtherTarget,
    OtherTensor,
    Overrun,
    StreamCause,
    Uninitialised,
    UnknownCause,
    Writer,
    WrittenElsewhere,
)
from tracing.report.text import plural

Names: TypeAlias = tuple[str, str]  # of the two runs, in the order of the command line


# Operators whose result is bytes of their inputs; every other one computes.
_COPIES = frozenset([
    "_foreach_copy_", "_to_copy", "as_strided_copy", "cat", "clone", "constant_pad_nd", "contiguous", "copy",
    "copy_", "detach_copy", "expand_copy", "flip", "gather", "index", "index_copy", "index_copy_",
    "index_put", "index_put_", "index_select", "masked_select", "permute_copy", "repeat", "roll",
    "select_copy", "slice_copy", "split_with_sizes_copy", "squeeze_copy", "stack", "unsqueeze_copy",
    "view_copy",
])  # fmt: skip


_UNDECIDED = "the program {} another tensor, or one of these writes goes to another tensor"


def cause_text(cause: Cause, names: Names) -> Iterator[str]:
    """The cause of a different input, line by line: its writer, and what passed it on."""
    through: tuple[str, ...] = getattr(cause, "through", ())
    for line in _written(cause, names):
        yield line.replace("this tensor", f"an input of {through[-1]}") if through else line
    yield from _called_at(cause, names)
    if isinstance(cause, OperatorCause):
        yield from _draws(cause, names)
    if through:
        yield f"then {', then '.join(map(_passing, reversed(through)))}"
    if isinstance(cause, OperatorCause) and not cause.proven and isinstance(cause.how, OtherInput):
        yield f"cannot be decided: {_UNDECIDED.format('calls it on')}"
    elif isinstance(cause, OperatorCause) and not cause.proven:
        suspects = ", ".join([cause.names[0] or cause.names[1], *cause.also, *reversed(through)])
        yield f"cannot be decided: the cause is {suspects}, or code outside of Triton and torch"


def _called_at(cause: Cause, names: Names) -> Iterator[str]:
    # the lines of the program that call the operator, or make the tensor
    pairs = zip(cause.sites, names, strict=True) if isinstance(cause, (OperatorCause, Host)) else ()
    lines = {name: str(site) for site, name in pairs if site is not None}
    if len(set(lines.values())) == 1:
        yield f"called at {next(iter(lines.values()))}"
    elif lines:
        yield f"called at {', at '.join(f'{line} in run {name}' for name, line in lines.items())}"


def _passing(operator: str) -> str:
    name = operator.rpartition("::")[2].partition(".")[0]
    return f"{operator} {'copies it' if name in _COPIES else 'computes with it'}"


def _written(cause: Cause, names: Names) -> Iterator[str]:
    if isinstance(cause, OperatorCause):
        yield from _operator(cause, names)
    elif isinstance(cause, Host):
        yield from _host(cause, names)
    elif isinstance(cause, OtherTensor):
        yield from _other_tensor(cause, names)
    elif isinstance(cause, WrittenElsewhere):
        here = _runs(cause.runs, names)
        yield f"{_writer_text(cause.writer, names)} wrote this tensor only in {here}; in the other run"
        yield f"the program passes that launch another tensor as {cause.writer.argument}"
    elif isinstance(cause, StreamCause):
        yield f"{_writer_text(cause.writer, names)} wrote equal bits on another stream:"
        yield "does this launch wait for that stream?"
    elif isinstance(cause, Uninitialised):
        yield from _uninitialised(cause, names)
    elif isinstance(cause, Overrun):
        where = "" if cause.runs == "ab" else f" in {_runs(cause.runs, names)}"
        yield f"{_writer_text(cause.writer, names)} wrote outside of its argument{where}, into this memory"
    elif isinstance(cause, UnknownCause):
        yield f"cannot be decided: {cause.why}"


def _other_tensor(cause: OtherTensor, names: Names) -> Iterator[str]:
    if cause.proven:
        yield f"the program passes another tensor: from {cause.a} in {names[0]},"
        yield f"from {cause.b} in {names[1]}"
    else:
        yield f"the last write to what is read is {cause.a} in {names[0]}, {cause.b} in {names[1]}"
        yield f"cannot be decided: {_UNDECIDED.format('passes')}"


def _redirected(cause: OperatorCause, how: OtherTarget, call: str, names: Names) -> Iterator[str]:
    here, there = names if cause.runs == "a" else names[::-1]
    instead = "another tensor" if how.what == "tensor" else "other elements of it"
    yield f"call {how.number} of {call} wrote this tensor in {here}, outside of Triton;"
    yield f"in {there} that call writes {instead}"
    if cause.also:
        yield f"likewise {', '.join(cause.also)}"


def _operator(cause: OperatorCause, names: Names) -> Iterator[str]:
    calls = [f"{name}({arguments})" for name, arguments in zip(cause.names, cause.arguments, strict=True)]
    if isinstance(cause.how, OtherResults):
        yield from _other_results(cause.how, cause.names[0], calls[0])
    elif isinstance(cause.how, OtherOrder):
        yield f"{calls[0]} wrote this tensor last, and the program calls it on the same tensors"
        yield f"in another order in {names[1]} than in {names[0]}"
    elif isinstance(cause.how, OtherTarget):
        yield from _redirected(cause, cause.how, calls[0], names)
    elif cause.runs != "ab":
        yield from _in_one_run(cause, calls["ab".index(cause.runs)], names)
    else:
        yield from _in_both_runs(cause, calls, names)


def _other_results(how: OtherResults, name: str, call: str) -> Iterator[str]:
    if how.why == "not deterministic":
        yield f"{call}: inputs are equal, results differ: this operator is not deterministic"
        yield from deterministic_form(name)
    elif how.why == "received":
        yield f"{call}: inputs are equal on this rank, results differ;"
        yield "cannot be decided: what other ranks gave it was not compared"
    else:
        yield f"{call}: inputs are equal, and it drew other random numbers"


def _in_one_run(cause: OperatorCause, call: str, names: Names) -> Iterator[str]:
    there, other = names if cause.runs == "a" else names[::-1]
    if isinstance(cause.how, OtherPoint):
        yield f"{call} wrote this tensor last, outside of Triton, in {there};"
        yield f"{other} calls that operator as often, at another point of the program"
    elif isinstance(cause.how, MoreCalls):
        times = "once" if cause.how.count == 1 else f"{cause.how.count} times"
        yield f"{call} wrote this tensor last, outside of Triton; by then"
        yield f"{there} has called that operator on it {times} more than {other}"
    else:
        yield f"{call} wrote this tensor last, outside of Triton, only in {there}"
        if cause.also:
            yield f"{', '.join(cause.also)} wrote other parts of it, only there, too"


def _in_both_runs(cause: OperatorCause, calls: Sequence[str], names: Names) -> Iterator[str]:
    # calls -- of each run
    if isinstance(cause.how, OtherInput):
        inputs = f"what {cause.how.a} wrote in {names[0]}, what {cause.how.b} wrote in {names[1]}"
        certain = ", and reads another tensor in each run:" if cause.proven else ";"
        yield f"{calls[0]} wrote this tensor last{certain}"
        yield inputs if cause.proven else f"it reads {inputs}"
    elif "" in cause.names:
        one, name = (calls[0], names[0]) if cause.names[0] else (calls[1], names[1])
        other = names[name == names[0]]
        yield f"{one} wrote this tensor last in {name}, outside of Triton; a launch wrote it in {other}"
    elif cause.proven and cause.names[0] == cause.names[1] and len({*cause.arguments}) > 1:
        yield f"{cause.names[0]} wrote this tensor last, with other arguments:"
        yield f"({cause.arguments[0]}) in {names[0]}, ({cause.arguments[1]}) in {names[1]}"
    elif cause.proven:
        yield "different operators wrote this tensor last:"
        yield f"{calls[0]} in {names[0]}, {calls[1]} in {names[1]}"
    else:
        which = ""
        if cause.numbers is not None:
            which = ": " + ", ".join(
                f"call {number} of it in {name}" for number, name in zip(cause.numbers, names, strict=True)
            )
        yield f"{calls[0]} wrote this tensor last in both runs{which}"


def _draws(cause: OperatorCause, names: Names) -> Iterator[str]:
    # the first draw of random numbers before it that only one run makes
    a, b = cause.draws or ("", "")
    if a and b:
        yield f"before it, {names[0]} draws random numbers by {a}, {names[1]} by {b}"
    elif a or b:
        yield f"before it, only {names[0] if a else names[1]} draws random numbers by {a or b}"
    if cause.draws_others:
        yield "seed the generator that it draws from, or draw from it equally often in both runs"


def deterministic_form(operator: str) -> Iterator[str]:
    """The switches of torch that replace an operator by a deterministic one, a sentence each.

    operator -- its name, "aten::index_add_"; one outside of ATen has none
    """
    if operator.startswith("aten::"):
        yield "torch.use_deterministic_algorithms(True) uses a deterministic form, or raises if there is none"
    if "_attention" in operator:
        yield "torch.nn.attention.sdpa_kernel(SDPBackend.MATH) uses another backend"


def _host(cause: Host, names: Names) -> Iterator[str]:
    if cause.made:
        yield "the program filled this tensor with other values, as torch.tensor does"
        if not cause.proven:
            yield "or changed it later, outside of torch; no launch and no operator computed it"
        return
    if cause.operator:
        where = f"in {_runs(cause.runs, names)}" if cause.runs else "in at least one of the runs"
        yield f"{cause.operator} wrote this tensor last, with equal bits in both runs;"
        yield f"code outside of Triton and torch changed those bits afterwards, {where}"
        return
    if cause.writer is None and cause.proven:
        where = f", in {_runs(cause.runs, names)}" if cause.runs else ""
        yield f"no launch and no operator caused the difference: the host program wrote this tensor{where}"
        return
    if cause.writer is None:
        yield "cannot be decided: no recorded launch or operator wrote this tensor;"
        yield "the host program may have written it"
        return
    writer = _writer_text(cause.writer, names)
    yield f"{writer} wrote this tensor last, as {cause.writer.argument}, with equal bits;"
    where = f"in {_runs(cause.runs, names)}" if cause.runs else "in at least one of the runs"
    elsewhere = "" if cause.proven else ", and perhaps in the other run"
    yield f"code outside of Triton and torch changed those bits afterwards, {where}{elsewhere}"


def _uninitialised(cause: Uninitialised, names: Names) -> Iterator[str]:
    if cause.elements is not None:
        start, count = cause.elements
        unwritten = plural(count, "element")
        yield f"no launch and no operator wrote {unwritten} of this tensor, from element {start} on"
    elif cause.writer is None:
        yield "no launch and no operator wrote this memory after its allocation"
    if cause.writer is not None:
        writer = _writer_text(cause.writer, names)
        yield f"{writer} wrote only part of this tensor, as {cause.writer.argument};"
        yield "the rest held other bits before, and is read here"


def _writer_text(writer: Writer, names: Names) -> str:
    if writer.a is None:
        return f"launch #{writer.b} {writer.kernel_name} of {names[1]}"
    return f"launch #{writer.a} {writer.kernel_name}"


def _runs(runs: str, names: Names) -> str:
    return names["ab".index(runs)] if runs in ("a", "b") else " and ".join(names)
