"""Records graphs of torch.compile, and the compiles of frames."""
