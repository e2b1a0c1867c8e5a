"""Reports of benchmarks: one static HTML page each, with tables, pictures and targets, that needs nothing else."""
