# How gdb runs a program without asking or telling; the break and the run are given by -ex.
set confirm off
set pagination off
set debuginfod enabled off
set auto-load off
set breakpoint pending on
set print thread-events off
# or gdb looks for a `main` in all debug information at the stop
set backtrace past-main on
