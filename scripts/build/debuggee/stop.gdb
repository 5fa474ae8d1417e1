# Lets gdb run a program without questions and messages; -ex gives the breakpoint and `run`.
set confirm off
set pagination off
set debuginfod enabled off
set auto-load off
set breakpoint pending on
set print thread-events off
# or gdb looks for a `main` in all debug information at the stop
set backtrace past-main on
