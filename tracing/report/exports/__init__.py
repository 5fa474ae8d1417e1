"""Runs in the file formats of other tools: Perfetto, SARIF, tritonparse."""
