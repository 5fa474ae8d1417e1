"""Judges one property of a text: `judge.py PROPERTY FILE [LANGUAGE]`; the exit status is the verdict.

It reads every language of a compilation; if a language does not show the property, it exits with 125.
"""

import re
import subprocess
import sys
from pathlib import Path


def without(pattern):
    return lambda text, language: not re.search(pattern, text)


def has(pattern):
    return lambda text, language: bool(re.search(pattern, text))


def largest_is_taken_from_the_rest(text, language):
    # of LLVM IR: whether no score is taken from the largest one
    largest = set(re.findall(r"(%\S+) = .*call .*@llvm\.max(?:num|imum)", text))
    taken = re.findall(r"fsub (?:\w+ )*float (%[^\s,]+), (%[^\s,]+)", text)
    return not any(whole in largest and part not in largest for whole, part in taken)


def waits(text, language):
    # of PTX: no wait leaves in flight as many copies as were ever started before it
    started = 0
    for line in text.splitlines():
        started += "cp.async.commit_group" in line
        wait = re.search(r"cp\.async\.wait_group\s+(\d+)", line)
        if wait and int(wait[1]) >= started:
            return False
    return True


def barriers(text, language):
    # where threads exchange through shared memory, they wait for each other
    if language in ("ttir", "ttgir") or "tt.reduce" in text:
        return True  # not yet lowered
    return bool(
        re.search(
            r"nvvm\.barrier|rocdl\.s\.barrier|bar\.sync|barrier0|s_barrier|BAR|S_BARRIER|s\.barrier", text
        )
    )


def cubin(pattern):
    def right(path, language):
        tool = sys.argv[4]
        sass = subprocess.run([tool, path], capture_output=True, text=True, check=True).stdout
        return not re.search(pattern, sass)

    right.reads_path = True
    return right


RIGHT = {
    "maximum": without(r"minnum|minimum|\bmin\.(?:NaN\.)?f32|v_(?:pk_)?min_|FMIN|V_MIN"),
    "exponential": without(r"(?i)sqrt"),
    "infinity": has(r"0xFF800000|0xFFF0000000000000|0fFF800000|-8388608|0xff800000|0xFF80"),
    "division": has(r"\bdiv\.|rcp\.|v_div_|v_rcp_|fdiv|arith\.divf"),
    "program": without(r"ctaid\.y|get_program_id y|workgroup\.id\.y|workgroup_id_y 1"),
    "difference": largest_is_taken_from_the_rest,
    "waits": waits,
    "barriers": barriers,
    "maximum-in-sass": cubin(r"FMNMX[^\n]*, PT ;"),
}


def main():
    what, path, *rest = sys.argv[1:]
    language = rest[0] if rest else path.rpartition(".")[2]
    right = RIGHT[what]
    subject = path if hasattr(right, "reads_path") else Path(path).read_text()
    sys.exit(0 if right(subject, language) else 1)


main()
