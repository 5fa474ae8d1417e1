"""Commands that check a graph, the guards or this machine."""
