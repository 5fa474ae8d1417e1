"""A stand-in for triton-opt that uses the Python bindings of Triton's wheel."""
