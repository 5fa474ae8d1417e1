"""What two versions of torch make of one case: its graphs after each graph pass, its kernels, their IR."""
