"""Places for fragments: a narrow port and what implements it."""
