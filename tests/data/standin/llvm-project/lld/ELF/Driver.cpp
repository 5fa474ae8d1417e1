int lld_elf() { return 0; }
