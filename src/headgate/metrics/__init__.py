"""What is measured: every batch in a file, and sums per query in memory."""
