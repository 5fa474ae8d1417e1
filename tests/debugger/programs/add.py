"""Two kernels, compiled in this process."""

from kernels import compile_add, compile_silu

if __name__ == "__main__":
    compile_silu()
    compile_add()
    print("done", flush=True)
