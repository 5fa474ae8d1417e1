# Settings that make gdb quick and quiet in Triton's compiler; gdb_load.py reads them.

set breakpoint pending on
set debuginfod enabled off
set index-cache enabled on
# or gdb looks for a `main` in all debug information at each stop, to end a backtrace there
set backtrace past-main on
# a wrong pointer given to print-op ends the call, not the compile
set unwindonsignal on
# a stop and a backtrace name the operations that functions are given; print, watches and hovers show their IR
set print raw-frame-arguments on
set print thread-events off
set print inferior-events off
set pagination off
handle SIGUSR1 SIGUSR2 SIGCHLD nostop noprint pass

# step goes into the pass, not into what it is made of
skip -gfi */include/c++/*
skip -gfi */llvm/ADT/*.h
skip -gfi */llvm/Support/*.h
skip -gfi */mlir/IR/*.h
skip -gfi */mlir/Pass/Pass.h
skip -gfi */mlir/Support/*.h
