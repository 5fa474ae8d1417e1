"""Create the Python environment: torch, the Triton that belongs to it, and this project.

Existing parts are kept: a second run does nothing, and a run after an interruption completes the environment.
Standard library only. Exit status: 0 the environment is complete, 2 it is not, with the reason.
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from scripts import doctor, pins, script
from scripts.machine import GB, free, gpus, installed, output, room
from scripts.pins import Pair, Pins, Problem

ROOT = Path(__file__).resolve().parent.parent
HERE = (sys.version_info[0], sys.version_info[1])
say = script.speaker("venv")
OTHER_SOURCES = (
    "for a proxy set HTTPS_PROXY; with wheels in a directory PIP_NO_INDEX=1 PIP_FIND_LINKS=…;"
    " `make venv SITE=1` uses the torch and Triton that PYTHON has"
)


@dataclass(frozen=True)
class Method:
    """One method of installing something: its commands run in order, all must succeed."""

    says: str  # text: the step and its cost
    commands: tuple[tuple[str, ...], ...]
    needs: int = 0  # bytes free


def pip(venv: Path, *arguments: str) -> tuple[str, ...]:
    return (str(venv / "bin/python"), "-m", "pip", "install", "--quiet", *arguments)


def uv(venv: Path, backend: str, *arguments: str) -> tuple[tuple[str, ...], ...]:
    """Install with uv, which knows PyTorch's index of each backend."""
    python = str(venv / "bin/python")
    install = (python, "-m", "uv", "pip", "install", "--quiet", "--python", python)
    return (pip(venv, "uv"), (*install, f"--torch-backend={backend}", *arguments))


def torch_methods(venv: Path, torch: str, *, gpu: bool) -> list[Method]:
    """Methods of installing torch, the best first; a later one is tried if the earlier ones fail."""
    plain = pip(venv, f"torch=={torch}")
    if gpu:
        return [
            Method(
                f"torch {torch} for this GPU, 5 GB on disk", uv(venv, "auto", f"torch=={torch}"), room(True)
            ),
            Method(f"torch {torch} from pip's own index, 5 GB on disk", (plain,), room(True)),
        ]
    return [
        Method(
            f"torch {torch} for the CPU, 0.8 GB on disk", (pip(venv, f"torch=={torch}+cpu"),), room(False)
        ),
        Method(
            "pip finds no CPU wheel; the same through uv", uv(venv, "cpu", f"torch=={torch}"), room(False)
        ),
        Method(
            f"uv finds none either: torch {torch} with the CUDA libraries, unused here, 5 GB on disk"
            " (avoid them: stop this and give pip an index with CPU wheels, in PIP_EXTRA_INDEX_URL)",
            (plain,),
            room(True),
        ),
    ]


def triton_method(venv: Path, triton: str) -> Method:
    # A torch for CUDA requires its own Triton; without --no-deps pip would refuse any other.
    return Method(f"Triton {triton}, 0.9 GB on disk", (pip(venv, "--no-deps", f"triton=={triton}"),))


def project_methods(venv: Path, *, test: bool, site: bool) -> list[Method]:
    what = ".[test]" if test else "."
    editable = ("--editable", str(ROOT) + what.removeprefix("."))
    says = f"this project and what it imports, 0.2 GB on disk ({what})"
    # Where the system has setuptools, it builds the project: no network is needed for that.
    if not site:
        return [Method(says, (pip(venv, *editable),))]
    return [
        Method(says, (pip(venv, "--no-build-isolation", *editable),)),
        Method("the system's setuptools is too old; the same with a new one", (pip(venv, *editable),)),
    ]


# ---------------------------------------------------------------- running it


def try_method(venv: Path, method: Method) -> str:
    """Run one method; return the output of its failing command, empty on success."""
    room = free(venv)
    if room < method.needs:
        remedy = "free some, or put the environment elsewhere: make VENV=/elsewhere/venv"
        raise Problem(f"{room / GB:.1f} GB of disk are free, {method.needs / GB:.0f} GB were needed", remedy)
    say(method.says)
    for command in method.commands:
        done = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if done.returncode:
            return done.stderr.strip() or f"{' '.join(command)} ended with status {done.returncode}"
    return ""


def take(venv: Path, what: str, methods: list[Method]) -> None:
    """Try the methods one after another until one succeeds. Raises Problem if none does."""
    wrote = ""
    for method in methods:
        wrote = try_method(venv, method)
        if not wrote:
            return
        if diagnosis := diagnose(wrote):
            raise diagnosis
    last = "\n    ".join(wrote.splitlines()[-4:])
    raise Problem(f"{what} could not be installed; the installer's last words:\n    {last}", OTHER_SOURCES)


def diagnose(wrote: str) -> Problem | None:
    """The cause of an installer's failure that no other method avoids."""
    if "No space left on device" in wrote:
        remedy = "free some; wheels are unpacked in TMPDIR and kept in PIP_CACHE_DIR, which can lie elsewhere"
        return Problem("the disk is full", remedy)
    signs = ("Max retries exceeded", "NewConnectionError", "name resolution", "Network is unreachable")
    if any(sign in wrote for sign in signs):
        return Problem("no package index was reached, one was needed", OTHER_SOURCES)
    return None


# ---------------------------------------------------------------- the environment


def require_machine(venv: Path) -> None:
    """Raise Problem for the first requirement of an environment that this machine lacks."""
    for check in (doctor.check_system, doctor.check_python, doctor.check_venv, doctor.check_compiler):
        result = check(venv)
        if result.level == "blocker":
            raise Problem(f"{result.name}: found {result.found}, needed {result.needed}", result.remedy)


def create(venv: Path, *, site: bool) -> None:
    """Create the venv, or keep it if its Python and its access to the system's packages are as requested."""
    config = venv / "pyvenv.cfg"
    if venv.exists() and any(venv.iterdir()) and not config.exists():
        raise Problem(f"{venv} exists and is no Python environment", "choose another: make VENV=…")
    packages = venv / "lib" / f"python{HERE[0]}.{HERE[1]}" / "site-packages"
    works = packages.exists() and output(str(venv / "bin/python"), "-m", "pip", "--version")
    if works and (packages / "system.pth").exists() == site:
        return
    say(f"new environment in {venv}, Python {HERE[0]}.{HERE[1]}")
    # As a command, from the root: in this directory `import venv` is this file.
    command = [sys.executable, "-m", "venv", "--clear", str(venv.resolve())]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise Problem(f"no environment was made: {done.stdout.strip()}{done.stderr.strip()}", "make doctor")
    if site:
        (packages / "system.pth").write_text(system_path(sys.path), encoding="utf-8")


def system_path(path: list[str]) -> str:
    """Write a .pth file that appends the packages of this Python to the path of another environment.

    --system-site-packages would not do: where this Python is itself of a venv (as in many images with
    torch), it shows the packages below that one. addsitedir also reads the .pth files there.
    """
    seen = [entry for entry in path if entry.endswith(("site-packages", "dist-packages"))]
    return "".join(f"import site; site.addsitedir({entry!r})\n" for entry in seen)


def has_pair(venv: Path, pair: Pair) -> bool:
    there = installed(venv)
    if there["triton_source"]:  # `make triton` installed it on purpose
        return there["torch"].partition("+")[0] == pair.torch
    return (pair.torch, pair.triton) == tuple(there[name].partition("+")[0] for name in ("torch", "triton"))


def install_pair(venv: Path, pair: Pair, *, gpu: bool) -> None:
    if installed(venv)["torch"].partition("+")[0] != pair.torch:
        take(venv, f"torch {pair.torch}", torch_methods(venv, pair.torch, gpu=gpu))
    if not has_pair(venv, pair):
        take(venv, f"Triton {pair.triton}", [triton_method(venv, pair.triton)])


def require_system_pair(venv: Path, known: Pins) -> None:
    """Raise Problem unless the torch and Triton of the system, which this environment sees, are a pair."""
    there = installed(venv)
    if not known.known(there["torch"], there["triton"]):
        versions = f"torch {there['torch'] or '(none)'} with Triton {there['triton'] or '(none)'}"
        raise Problem(f"the system has {versions}; known are{known}", "`make venv` without SITE=1")


class Receipt:
    """What was last installed for this project, recorded in the environment; its own code is editable."""

    def __init__(self, venv: Path) -> None:
        self.path = venv / ".debug-triton"
        self.declared = hashlib.sha256((ROOT / "pyproject.toml").read_bytes()).hexdigest()

    def covers(self, *, test: bool) -> bool:
        words = self.path.read_text(encoding="utf-8").split() if self.path.exists() else []
        return self.declared in words and (not test or "test" in words)

    def write(self, *, test: bool) -> None:
        self.path.write_text(f"{self.declared} {'test' if test else ''}\n", encoding="utf-8")


def set_up(venv: Path, *, torch: str, triton: str, test: bool, site: bool) -> None:
    """Bring an environment to the requested state. Raises Problem with the reason if that fails."""
    start, known, gpu = time.monotonic(), pins.read(), bool(gpus())
    require_machine(venv)
    pair = None if site else pins.pick(known, torch=torch, triton=triton, gpu=gpu, python=HERE)
    create(venv, site=site)
    if pair is None:
        require_system_pair(venv, known)
    receipt = Receipt(venv)
    lacks_pair, lacks_project = pair is not None and not has_pair(venv, pair), not receipt.covers(test=test)
    for stamp in venv.glob(".stamp-*") if lacks_pair or lacks_project else ():
        stamp.unlink()  # stamps of the Makefile, of other choices of versions
    if pair is not None and lacks_pair:
        install_pair(venv, pair, gpu=gpu)
    if lacks_project:
        take(venv, "this project", project_methods(venv, test=test, site=site))
        receipt.write(test=test)
    there = installed(venv)
    done = f"{time.monotonic() - start:.0f} s" if lacks_pair or lacks_project else "nothing to do"
    say(f"{venv} has torch {there['torch']}, Triton {there['triton']} and this project: {done}")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--venv", type=Path, default=Path(".venv"), help="where the environment will be")
    parser.add_argument("--torch", default="", help="another version than the default of pins.toml")
    parser.add_argument("--triton", default="", help="version of Triton; default: the one that fits torch")
    parser.add_argument("--test", action="store_true", help="what the tests need, too")
    parser.add_argument("--site", action="store_true", help="use the system's torch and Triton, install none")
    options = parser.parse_args()
    return script.run("venv", lambda: set_up(**vars(options)))


if __name__ == "__main__":
    sys.exit(main())
