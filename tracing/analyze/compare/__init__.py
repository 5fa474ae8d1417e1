"""Where two runs of one case differ, and who is to blame."""
