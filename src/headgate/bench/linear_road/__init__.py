"""The Linear Road benchmark: the papers' cells and beyond them, Headgate against stock Spark and the papers' rules."""
