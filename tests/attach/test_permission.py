"""Why the system refuses ptrace, and what allows it; refusals are real ones if the machine can make them."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tracing.attach import permission
from tracing.attach.permission import PtraceFacts, explained
from tracing.errors import Problem

NOBODY = 65534
YAMA = Path("/proc/sys/kernel/yama/ptrace_scope")
TRACER = """
import ctypes, sys, time
assert ctypes.CDLL(None, use_errno=True).ptrace(0x4206, int(sys.argv[1]), None, None) == 0, ctypes.get_errno()
print("traced", flush=True)
time.sleep(60)
"""
# Each statement changes its own process. All imports come first: the user nobody may read no library.
IMPORTS = "import ctypes, os, platform, struct, time"
TO_NOBODY = f"os.setgroups([]); os.setresgid(*[{NOBODY}] * 3); os.setresuid(*[{NOBODY}] * 3)"
# PR_SET_DUMPABLE is 4; a change of user has cleared it
OPEN, CLOSED = (f"ctypes.CDLL(None).prctl(4, {value}, 0, 0, 0)" for value in (1, 0))
# capset: version 3, this process, three words of 32 bits, twice
NO_CAPABILITIES = """
header, sets = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
assert ctypes.CDLL(None).capset(header, sets) == 0
"""
# BPF: load the system call's number; for ptrace give EPERM, else allow; needs PR_SET_NO_NEW_PRIVS first
FILTER = """
ptrace = {"x86_64": 101, "aarch64": 117}[platform.machine()]
steps = [(0x20, 0, 0, 0), (0x15, 0, 1, ptrace), (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7FFF0000)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
program = struct.pack("HxxxxxxQ", len(steps), ctypes.addressof(code))
assert ctypes.CDLL(None).prctl(38, 1, 0, 0, 0) == 0
assert ctypes.CDLL(None).prctl(22, 2, program, 0, 0) == 0
"""
ROOT_ONLY = pytest.mark.skipif(
    os.geteuid() != 0, reason="only root can become another user or give up rights"
)


@contextmanager
def process(*changes: str) -> Iterator[int]:
    """A process that executed these statements."""
    code = "\n".join([IMPORTS, *changes, "print('ready', flush=True); time.sleep(60)"])
    started = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    try:
        assert started.stdout is not None and started.stdout.readline() == "ready\n"
        yield started.pid
    finally:
        started.kill()
        started.wait()


def asked(pid: int | None, *changes: str) -> str:
    """The refusal of `permission.require` in a process that executed these statements; "" if it allows.

    pid -- None: of a process that it starts
    """
    ask = f"""
try:
    {f"permission.require({pid})" if pid else "permission.require_own()"}
except Problem as problem:
    print(problem.problem)
"""
    imports = "from tracing.attach import permission; from tracing.errors import Problem"
    code = "\n".join([IMPORTS, imports, *changes, ask])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout


def require_no_yama() -> None:
    if YAMA.exists() and YAMA.read_text().strip() != "0":
        pytest.skip(f"Yama refuses first here: ptrace_scope is {YAMA.read_text().strip()}")


@ROOT_ONLY
def test_a_process_of_another_user_is_refused_with_that_reason() -> None:
    with process() as pid:
        assert "it is another user's" in asked(pid, TO_NOBODY)


@ROOT_ONLY
def test_a_users_own_process_may_be_traced() -> None:
    require_no_yama()
    with process(TO_NOBODY, OPEN) as pid:
        assert asked(pid, TO_NOBODY) == ""


@ROOT_ONLY
def test_a_process_that_is_not_dumpable_is_refused_with_that_reason() -> None:
    require_no_yama()
    with process(TO_NOBODY, CLOSED) as pid:
        assert "it is not dumpable" in asked(pid, TO_NOBODY)


@ROOT_ONLY
def test_a_process_with_more_capabilities_is_refused_with_that_reason() -> None:
    require_no_yama()
    if not int(permission.status(os.getpid(), "CapPrm"), 16):
        pytest.skip("root has no capabilities here, so no process has more rights than another")
    with process() as pid:
        assert "capabilities that this process lacks" in asked(pid, NO_CAPABILITIES)


def test_a_seccomp_filter_is_named_as_the_reason() -> None:
    if platform.machine() not in ("x86_64", "aarch64"):
        pytest.skip("the number of ptrace is not known for this processor")
    if permission._facts(os.getpid()).container and not permission._facts(os.getpid()).capable:
        pytest.skip("this container has no right to trace, which is named first")
    require_no_yama()
    with process() as pid:
        assert "seccomp filter" in asked(pid, FILTER)
        assert "seccomp filter" in asked(None, FILTER)
        assert not asked(None)


def test_yama_is_named_as_the_reason() -> None:
    if not YAMA.exists() or YAMA.read_text().strip() != "1":
        pytest.skip("this kernel has no Yama, or it is not set to ancestors only (ptrace_scope 1)")
    changes = [TO_NOBODY] if os.geteuid() == 0 else []
    with process(*changes, OPEN) as pid:
        assert "Yama allows it only to ancestors" in asked(pid, *changes)


@pytest.mark.parametrize(
    ("facts", "problem", "remedy"),
    [
        (PtraceFacts(7, tracer=os.getpid()), "traces it already", "detach it there"),
        (PtraceFacts(7, same_user=False), "another user's", "sudo"),
        (PtraceFacts(7, yama=1), "only to ancestors", "tracing debug"),
        (PtraceFacts(7, yama=2), "only to administrators", "ptrace_scope=1"),
        (PtraceFacts(7, yama=3, capable=True), "until the next start", "restart"),
        (PtraceFacts(7, container=True), "this container", "--cap-add=SYS_PTRACE"),
        (PtraceFacts(7, closed=True), "not dumpable", "sudo"),
        (PtraceFacts(7, stronger=True), "capabilities", "sudo"),
        (PtraceFacts(7, filtered=True), "seccomp", "seccomp=unconfined"),
        (PtraceFacts(7), "the system refused", "with sudo"),
        (PtraceFacts(7, root=True), "to root, too", "outside of the sandbox"),
    ],
)
def test_a_refused_ptrace_is_explained_with_its_remedy(facts: PtraceFacts, problem: str, remedy: str) -> None:
    refusal = explained(facts)

    assert problem in refusal.problem and remedy in refusal.remedy


def test_a_traced_process_is_refused_with_the_name_of_its_tracer() -> None:
    sleeper = subprocess.Popen(["sleep", "60"])
    tracer = subprocess.Popen(
        [sys.executable, "-c", TRACER, str(sleeper.pid)], stdout=subprocess.PIPE, text=True
    )
    assert tracer.stdout is not None
    traced = tracer.stdout.readline() == "traced\n"
    try:
        if not traced:
            pytest.skip("ptrace of a sibling is not permitted here")
        with pytest.raises(Problem, match=rf"python\S* \({tracer.pid}\) traces it already"):
            permission.require(sleeper.pid)
    finally:
        tracer.kill()
        sleeper.kill()


def test_a_missing_process_is_refused_with_that_reason() -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()

    with pytest.raises(Problem, match=f"there is no process {gone.pid}"):
        permission.require(gone.pid)
