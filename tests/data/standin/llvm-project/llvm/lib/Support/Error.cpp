int llvm_error() { return 1; }
