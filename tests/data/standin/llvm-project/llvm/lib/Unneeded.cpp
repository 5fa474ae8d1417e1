int llvm_unneeded() { return 0; }
