"""As much of Triton's interface as the proof's kernel uses; to compile is to run the one pass."""

from triton._C import libtriton

__version__ = "3.8.0"


def jit(function):
    return function


class Compiled:
    def __init__(self):
        self.asm = {"ptx": ".target sm_90a", "cubin": b"\x7fELF"}


def compile(source, target):
    assert libtriton.run()[0] == 1
    return Compiled()
