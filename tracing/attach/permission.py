"""Check whether this process may trace another one; report what forbids it and how to allow it."""

from __future__ import annotations

import ctypes
import errno
import os
import signal
from dataclasses import dataclass
from pathlib import Path

from tracing.attach.processes import status
from tracing.compiler.child import in_child
from tracing.errors import Problem

_PTRACE_SEIZE = 0x4206
_CAP_SYS_PTRACE = 1 << 19
_YAMA = Path("/proc/sys/kernel/yama/ptrace_scope")
_SYSCTL = "sudo sysctl kernel.yama.ptrace_scope="


@dataclass(frozen=True, slots=True)
class PtraceFacts:
    """The facts that decide why a ptrace was refused."""

    pid: int
    tracer: int = 0  # pid of the present tracer
    same_user: bool = True
    yama: int = 0  # 0: none, or classic permissions; 1: ancestors; 2: administrators; 3: nobody
    capable: bool = False  # this process has CAP_SYS_PTRACE
    container: bool = False
    closed: bool = False  # it forbids tracing: PR_SET_DUMPABLE, or a program that changed its user
    stronger: bool = False  # it has capabilities that this process lacks
    filtered: bool = False  # system calls of this process pass a seccomp filter
    root: bool = False  # this process is root's


def require(pid: int) -> None:
    """Raise Problem, with the reason and the remedy, if this process may not trace `pid`.

    A child process tries it and detaches immediately; the traced process does not stop. Cost: some 10 ms.
    """
    number = in_child(lambda: _seize(pid), 10).result
    if number == errno.ESRCH:
        raise Problem(
            f"there is no process {pid}", "`tracing attach --json` lists those that have Triton loaded"
        )
    if number:
        raise explained(_facts(pid))


def require_own() -> None:
    """Raise Problem, as `require` does, if this process may not trace those that it starts."""
    if in_child(_seize_own, 10).result:
        raise explained(_facts(os.getpid()))


def explained(facts: PtraceFacts) -> Problem:
    """The reason of a refused ptrace, and the remedy."""
    refused = f"process {facts.pid} may not be traced: "
    if facts.tracer:
        other = status(facts.tracer, "Name") or "a process of another container"
        return Problem(
            f"{refused}{other} ({facts.tracer}) traces it already", "use that one, or detach it there"
        )
    if not facts.same_user and not facts.capable:
        return Problem(f"{refused}it is another user's", "attach as that user, or with sudo")
    if facts.yama == 3:
        return Problem(
            f"{refused}Yama forbids ptrace until the next start (ptrace_scope 3)", "restart without"
        )
    if facts.yama == 2 and not facts.capable:
        return Problem(f"{refused}Yama allows it only to administrators (ptrace_scope 2)", f"{_SYSCTL}1")
    if facts.yama == 1 and not facts.capable:
        return Problem(
            f"{refused}Yama allows it only to ancestors (ptrace_scope 1)",
            f"start the program with `tracing debug`, which may; or {_SYSCTL}0",
        )
    if facts.closed and not facts.capable:
        return Problem(f"{refused}it has forbidden that itself (it is not dumpable)", "attach with sudo")
    if facts.stronger and not facts.capable:
        return Problem(f"{refused}it has capabilities that this process lacks", "attach with sudo")
    if facts.container and not facts.capable:
        return Problem(
            f"{refused}this container has no right to",
            "start it with --cap-add=SYS_PTRACE (docker, podman), or rebuild it from .devcontainer",
        )
    if facts.filtered:
        return Problem(
            f"{refused}a seccomp filter forbids it, as a sandbox or a container sets one",
            "attach from outside of it; or start the container with --security-opt seccomp=unconfined",
        )
    if facts.root:
        remedy = "attach outside of the sandbox; `make doctor` tries it on a child"
        return Problem(f"{refused}the system refuses it to root, too, as a sandbox does", remedy)
    return Problem(f"{refused}the system refused", "attach with sudo; `make doctor` tries it on a child")


def _seize(pid: int) -> int:
    # the errno, 0 if it may be traced; the kernel lets it go when this child ends
    libc = ctypes.CDLL(None, use_errno=True)
    done = libc.ptrace(_PTRACE_SEIZE, pid, None, None)
    return ctypes.get_errno() if done else 0


def _seize_own() -> int:
    child = os.fork()
    if not child:
        signal.pause()
    try:
        return _seize(child)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def _facts(pid: int) -> PtraceFacts:
    owner = int((status(pid, "Uid").split() or ["-1"])[0])
    own, its = _capabilities(os.getpid(), "CapEff"), _capabilities(pid, "CapPrm")
    return PtraceFacts(
        pid,
        tracer=int(status(pid, "TracerPid") or 0),
        same_user=owner == os.getuid(),
        yama=int(_YAMA.read_text()) if _YAMA.exists() else 0,
        capable=bool(own & _CAP_SYS_PTRACE),
        container=Path("/.dockerenv").exists() or Path("/run/.containerenv").exists(),
        closed=_owner(Path(f"/proc/{pid}/status"))
        != owner,  # the kernel gives such a process's files to root
        stronger=bool(its & ~own),
        filtered=status(os.getpid(), "Seccomp") == "2",
        root=os.geteuid() == 0,
    )


def _capabilities(pid: int, field: str) -> int:
    return int(status(pid, field) or "0", 16)


def _owner(path: Path) -> int:
    try:
        return path.stat().st_uid
    except OSError:  # the process has ended meanwhile
        return -1
