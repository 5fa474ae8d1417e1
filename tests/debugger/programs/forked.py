"""A kernel compiled in a forked worker."""

import multiprocessing

from kernels import compile_add

if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(1) as pool:
        pool.map(compile_add, [0])
    print("done", flush=True)
