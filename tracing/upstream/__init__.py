"""Objects of torch and Triton that are not public API; the folders are named after what they wrap."""
