"""Triton's setup.py in miniature: the environment variables it reads, and CMake in the same folder."""

import os
import shlex
import subprocess
import sysconfig
from pathlib import Path

from setuptools import Extension, find_packages, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

ROOT = Path(__file__).parent.resolve()


class CMakeBuild(build_ext):
    def run(self):
        folder = ROOT / "build" / f"cmake.{sysconfig.get_platform()}"
        folder.mkdir(parents=True, exist_ok=True)
        variables = {
            "CMAKE_BUILD_TYPE": "Debug" if os.environ["DEBUG"] == "1" else "Release",
            "CMAKE_LIBRARY_OUTPUT_DIRECTORY": ROOT / "python/triton/_C",
            "CMAKE_EXPORT_COMPILE_COMMANDS": "ON",
            "LLVM_SYSPATH": os.environ["LLVM_SYSPATH"],
            "Python3_INCLUDE_DIR": sysconfig.get_path("platinclude"),
        }
        arguments = [f"-D{name}={value}" for name, value in variables.items()]
        arguments += shlex.split(os.environ["TRITON_APPEND_CMAKE_ARGS"])
        subprocess.check_call(["cmake", "-G", "Ninja", str(ROOT), *arguments], cwd=folder)
        subprocess.check_call(["cmake", "--build", ".", "-j" + os.environ["MAX_JOBS"]], cwd=folder)


class BuildWithLibrary(build_py):
    def run(self):
        self.run_command("build_ext")
        super().run()


setup(
    name="triton",
    version="3.8.0",
    packages=[*find_packages(where="python"), "triton.backends.nvidia"],
    package_dir={"": "python", "triton.backends.nvidia": "third_party/nvidia/backend"},
    ext_modules=[Extension("triton._C.libtriton", sources=[])],
    cmdclass={"build_ext": CMakeBuild, "build_py": BuildWithLibrary},
)
