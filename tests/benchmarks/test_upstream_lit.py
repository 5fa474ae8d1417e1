"""How many of Triton's own lit tests pass through `tracing opt`, by directory, and why the others do not.

    TRITON_SRC=CHECKOUT python -m pytest -s tests/benchmarks/test_upstream_lit.py

The checkout should be that of the installed Triton: other versions have other operations and passes. A test
is one process or more, 0.3 to 2 s each: some four minutes in all.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

import pytest

LIT = Path(__file__).parent.parent / "lit"
ABSENT = {  # what the output of a failed test holds -> what a wheel of Triton does not have
    r"': command not found": "a tool that the wheel has not",
    r"no pass \S*test-": "a pass for tests, not in the wheel",
}
REASONS = ABSENT | {  # the first that fits
    r"tracing: this Triton has no pass": "no adder for the pass, or not in this Triton",
    r"tracing: .*(no option|fix |no default)": "an option that no adder sets",
    r"tracing: --": "a flag that only triton-opt has",
    r"was not produced|unexpected (error|note|warning|remark):": "another diagnostic",
    r"Assertion|LLVM ERROR|the compiler failed": "the compiler aborts",
    r"\.mlir:\d+:\d+: error: (?!\S*[A-Z0-9]{2}\S*: )": "does not parse or verify: IR of another version",
    r"\.mlir:\d+:\d+: error: ": "FileCheck: another result",
    r"'<stdin>' is empty": "nothing came out, and the test hides why",
}


@pytest.mark.timeout(3600)
def test_triton_s_own_tests_through_the_stand_in(tmp_path: Path) -> None:
    source = os.environ.get("TRITON_SRC")
    if source is None:
        pytest.skip("TRITON_SRC names no checkout of Triton")
    suite, results = Path(source) / "test", tmp_path / "results.json"
    lit = [sys.executable, "-c", "from lit.main import main; main()", "-q", "-j2"]
    call = [*lit, "-D", f"suite={suite}", "-o", str(results), str(LIT)]
    environment = {**os.environ, "PYTHONPATH": str(LIT.parent.parent)}
    subprocess.run(call, stdout=subprocess.DEVNULL, env=environment, check=False)
    tests = json.loads(results.read_text())["tests"]

    print(f"\n{table(tests)}")
    assert any(test["code"] == "PASS" for test in tests)


def table(tests: list[dict[str, str]]) -> str:
    """One line a directory, the whole, what of it a wheel has passes and tools for, and one line a reason."""
    codes: defaultdict[str, Counter[str]] = defaultdict(Counter)
    reasons: Counter[str] = Counter()
    for test in tests:
        directory = test["name"].split(" :: ")[1].split("/")[0]
        codes[directory][test["code"]] += 1
        if test["code"] == "FAIL":
            reasons[why(test["output"])] += 1
    total = sum(codes.values(), Counter[str]())
    lines = [share(name, count) for name, count in [*sorted(codes.items()), ("all", total)]]
    absent = sum(reasons[reason] for reason in ABSENT.values())
    lines.append(share("with the wheel", total - Counter(FAIL=absent)))
    return "\n".join([*lines, "", *(f"{number:5}  {reason}" for reason, number in reasons.most_common())])


def share(name: str, count: Counter[str]) -> str:
    """A line of the table; what lit does not run here is no part of the whole."""
    passed, unsupported = count["PASS"] + count["XFAIL"], count["UNSUPPORTED"]
    return f"{name:16}{passed:5} of {count.total() - unsupported:4}, and {unsupported} unsupported"


def why(output: str) -> str:
    """The reason of a failure, from what lit printed."""
    return next((reason for sign, reason in REASONS.items() if re.search(sign, output)), "other")
