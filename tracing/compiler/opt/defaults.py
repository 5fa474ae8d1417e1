"""The defaults of a pass's options that triton-opt's command line leaves out.

The adders of Triton's bindings require all of their arguments and know no defaults, so the defaults of
Triton's Passes.td are listed here. Nothing else about passes is hard-coded. The tests compare them with the
passes that Triton's library creates by itself; those of Proton it does not. An option that is not listed
must be given.
"""

from __future__ import annotations

_BY_OPTION = {
    "allow-buffer-atomics": "true",
    "analyze-small-tensor-ofst": "false",
    "arch": "",
    "arch-generation-name": "",
    "buffer-size": "0",
    "buffer-strategy": "circular",
    "buffer-type": "shared",
    "clock-extension": "false",
    "compute-capability": "80",
    "disable-remat-splitting": "false",
    "dump-intermediate-steps": "false",
    "emu-tf32": "false",
    "enable-concurrency-sanitizer": "false",
    "ftz": "true",
    "gfx-arch": "",
    "granularity": "warp",
    "hoist-layout-conversion": "true",
    "hoist-out-of-if": "false",
    "homomorphic-casts": "false",
    "instrumented": "false",
    "kPack": "1",
    "matrix-instruction-size": "0",
    "max-shared-mem-size": "32768",
    "minimum-size": "0",
    "num-ctas": "1",
    "num-stages": "3",
    "num-warps": "4",
    "num_stages": "2",
    "post-pipeline": "false",
    "ptx-version": "80",
    "sampling-options": "",
    "sampling-strategy": "none",
    "scratch-mem-alignment": "128",
    "scratch-mem-size": "32768",
    "target": "",
    "threads-per-warp": "32",
    "use_async_copy": "false",
    "use_pingpong": "false",
}
_BY_PASS = {
    ("nvgpu-warp-specialization", "num-stages"): "0",
    ("triton-nvidia-gpu-fence-insertion", "compute-capability"): "90",
    ("triton-nvidia-gpu-hoist-mbarrier-lifecycle", "compute-capability"): "90",
    ("triton-nvidia-gpu-proxy-fence-insertion", "compute-capability"): "90",
    ("tritonamdgpu-block-pingpong", "num-stages"): "2",
}


def default(name: str, option: str) -> str | None:
    """The text of an option's default; None: it is not known.

    name   -- of the pass, "tritongpu-pipeline"
    option -- "num-stages"
    """
    return _BY_PASS.get((name, option), _BY_OPTION.get(option))
