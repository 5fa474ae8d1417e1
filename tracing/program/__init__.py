"""What is run: a case on a device from a seed, with what it starts from and what it leaves."""
