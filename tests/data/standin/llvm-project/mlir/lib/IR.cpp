int mlir_ir() { return 0; }
