"""What launches leave in host memory: exact accesses, last writers, uninitialised bytes."""
