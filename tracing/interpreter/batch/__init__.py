"""Executes the programs of a launch together, as far as they do the same to different memory.

Triton's interpreter spends its time in Python, not in NumPy. Here a batch of programs passes through Python
once: a value that differs between programs is a `BatchedArray`, with one array for each program. The results
have the bits, and watchers note the accesses, of programs that are executed one after another:

- programs that take different branches are executed in groups, one for each branch;
- programs are executed one at a time if one accesses what another writes, if they use atomics or print, and
  after any exception; stores that were made before are undone.
"""
