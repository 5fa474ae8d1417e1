"""The text that LLVM prints, parsed into passes: both generations of pass managers, and what each omits."""

from __future__ import annotations

from tracing.compiler.codegen.llvm_text import LlvmPassText, printed_passes

START = "BISECT: running pass (1) forceattrs on [module]\n; *** IR Dump Before 1-ForcePass on [module] ***\n"
BARE = 'source_filename = "m"\ndefine void @f() {\n  ret void\n}\n'  # a module that was parsed from text
A, B = f"; ModuleID = 'm'\n{BARE}", "; ModuleID = 'm'\ndeclare void @f()\n"
MACHINE = "# Machine code for function f: NoPHIs\n\nbb.0:\n  COPY $r0\n"


def read(*said: str, llir: str = "", died: bool = False) -> list[LlvmPassText]:
    return list(printed_passes("".join(said), llir, died=died))


def ended(title: str, unit: str, text: str) -> str:
    return f"; *** IR Dump After {title} on {unit} ***\n{text}"


def generated(title: str, text: str, kind: str = " (function: f)") -> str:
    return f"*** IR Dump After {title} ***{kind}\n{text}"


FIRST = START + A + "Running pass: ForcePass on [module]\n" + ended("ForcePass", "[module]", A)


def test_a_pass_of_the_middle_end_has_the_number_and_the_name_of_the_bisection() -> None:
    second = "BISECT: running pass (2) sroa on f\nRunning pass: SROAPass on f (1 instruction)\n"

    assert read(FIRST, second, ended("SROAPass", "f", B)) == [
        LlvmPassText(1, "forceattrs", "[module]", False, A, A),
        LlvmPassText(2, "sroa", "f", False, A, B),
    ]


def test_a_pass_that_llvm_never_leaves_out_has_no_number() -> None:
    passes = read(FIRST, "Running pass: CoroEarlyPass on [module]\n", ended("CoroEarlyPass", "[module]", A))

    assert passes[1] == LlvmPassText(None, "CoroEarlyPass", "[module]", False, A, A)


def test_a_pass_that_contains_others_is_listed_before_them() -> None:
    wrapper = "BISECT: running pass (2) inliner on [module]\nRunning pass: Wrapper on [module]\n"
    inner = "BISECT: running pass (3) inline on (f)\nRunning pass: InlinerPass on (f)\n"

    passes = read(FIRST, wrapper, inner, ended("InlinerPass", "(f)", B))

    assert [(one.index, one.after) for one in passes] == [(1, A), (2, None), (3, B)]


def test_a_number_inside_of_a_pass_does_not_replace_its_name() -> None:
    outer = "BISECT: running pass (2) promote on f\nRunning pass: PromotePass on f (1 instruction)\n"
    within = "BISECT: running pass (3) promote on function (f)\n"

    passes = read(FIRST, outer, within, ended("PromotePass", "f", B))

    assert [(one.index, one.unit, one.after) for one in passes[1:]] == [
        (2, "f", B),
        (3, "function (f)", None),
    ]


def test_a_pass_that_triton_has_llvm_skip_changes_nothing() -> None:
    skipped = "BISECT: running pass (2) vector-combine on f\nSkipping pass: VectorCombinePass on f\n"

    assert read(FIRST, skipped)[1] == LlvmPassText(2, "vector-combine", "f", False, A, A)


def test_the_input_of_the_code_generator_is_the_artefact_without_its_name() -> None:
    first = generated("ObjC ARC contraction (objc-arc-contract)", BARE)
    second = "BISECT: running pass (2) Speculatively execute instructions on function (f)\n"
    third = "BISECT: running pass (3) sroa on function (f)\n" + generated("SROA (sroa)", BARE)

    passes = read(FIRST, first, second, third, llir=A)

    assert passes[1] == LlvmPassText(None, "to-code-generator", "[module]", True, BARE, BARE)
    assert [(one.index, one.generator, one.after) for one in passes[2:]] == [(2, True, None), (3, True, BARE)]


def test_machine_code_follows_the_function_and_has_no_slot_numbers() -> None:
    selected = generated("Selection (isel)", MACHINE, kind=":")
    slots = generated(
        "Slot index numbering (slotindexes)", MACHINE.replace("  COPY", "16B\t  COPY"), kind=":"
    )

    passes = read(FIRST, generated("First (first)", BARE), f"# {selected}", f"# {slots}")

    assert [(one.name, one.unit, one.before, one.after) for one in passes[2:]] == [
        ("isel", "function (f)", BARE, MACHINE),
        ("slotindexes", "function (f)", MACHINE, MACHINE),
    ]


def test_a_function_that_is_printed_by_itself_is_put_into_its_module() -> None:
    changed = "define void @f() {\n  unreachable\n}\n"
    whole = BARE.replace("ret void", "unreachable")

    passes = read(FIRST, generated("First (first)", BARE), generated("Lower (lower)", changed, kind=""))

    assert (passes[2].unit, passes[2].before, passes[2].after) == ("function (f)", BARE, whole)


def test_blocks_of_a_region_are_incomplete_ir_and_not_compared() -> None:
    region = generated("Structurize (structurizecfg)", "  ret void\n", kind="")

    assert read(FIRST, generated("First (first)", BARE), region)[2].after is None


def test_the_pass_that_llvm_died_in_is_the_last_with_the_ir_before_it() -> None:
    begun = "BISECT: running pass (2) sroa on f\n; *** IR Dump Before SROAPass on f ***\n" + B

    assert read(FIRST, begun, died=True)[-1] == LlvmPassText(2, "sroa", "f", False, B, None)


def test_a_pass_without_a_number_that_llvm_died_in_is_the_last() -> None:
    begun = f"*** IR Dump Before Atomics (atomic-expand) *** (function: f)\n{BARE}Assertion `x' failed.\n"

    last = read(FIRST, generated("First (first)", BARE), begun, died=True)[-1]

    assert (last.index, last.name, last.unit) == (None, "atomic-expand", "function (f)")
