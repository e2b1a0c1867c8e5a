"""Records and queries to measure with: Linear Road, and a plain counter."""
