"""Objects of Triton that are not public API, a file for each subject."""
