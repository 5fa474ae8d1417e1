"""What commands print for people and, with --json, for programs; the commands to type next."""
