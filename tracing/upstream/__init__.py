"""Objects of torch and Triton that are not public API, one file each."""
