"""A kernel compiled in a worker of Inductor's sidecar, like the kernels of torch.compile."""

from kernels import compile_add
from torch._inductor.compile_worker.subproc_pool import SubprocKind, SubprocPool

if __name__ == "__main__":
    pool = SubprocPool(1, kind=SubprocKind.FORK)
    pool.submit(compile_add).result()
    pool.shutdown()
    print("done", flush=True)
