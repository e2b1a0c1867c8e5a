"""Hone's evaluation redrawn: largest backlog first against round robin, simulated and on Spark."""
