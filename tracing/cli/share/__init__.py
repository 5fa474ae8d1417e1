"""Commands that query, write and delete runs."""
