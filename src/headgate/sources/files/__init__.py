"""The files source: new files in a folder, each read exactly once."""
