"""The digest of a tensor: the same bits give the same digest, on every device."""
