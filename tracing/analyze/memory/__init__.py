"""Find the launches that access memory in a manner that no correct kernel does."""
