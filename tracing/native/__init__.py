"""The parts of the recorder that are compiled: C++ forms of what runs for every launch and operator."""
