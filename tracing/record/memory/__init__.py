"""The effects of launches on host memory: exact accesses, last writers, uninitialised bytes."""
