"""A kernel compiled while its passes are observed, so that each runs in a pass manager of its own."""

from kernels import compile_add

from tracing.compiler.pipeline import observed


class Observer:
    """Receives every notification, and does nothing."""

    def __getattr__(self, name):
        return lambda *ignore: None


if __name__ == "__main__":
    with observed(lambda *compilation: Observer()):
        compile_add()
