"""Objects of Inductor and of torch.compile that are not public API, a file for each subject."""
