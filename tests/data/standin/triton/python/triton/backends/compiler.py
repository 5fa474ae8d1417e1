from typing import NamedTuple


class GPUTarget(NamedTuple):
    backend: str
    arch: int
    warp_size: int
