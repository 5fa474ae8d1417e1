"""triton-opt on the wheel of Triton."""
