"""Runs notebooks: what they may be told, how far they are, what a finished run looks like."""
