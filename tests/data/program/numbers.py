"""A module that `arguments` imports relatively."""

FIRST = 7
