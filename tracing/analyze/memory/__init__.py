"""Say which launches access memory as correct kernels do not."""
