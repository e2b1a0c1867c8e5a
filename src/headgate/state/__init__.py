"""State that cannot be lost: a running query's checkpoint, kept in erasure-coded fragments at several places."""
