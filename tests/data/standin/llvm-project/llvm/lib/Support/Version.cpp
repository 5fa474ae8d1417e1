extern "C" const char *llvm_version() { return "LLVM version 0.0.0git (" LLVM_REVISION ")"; }
