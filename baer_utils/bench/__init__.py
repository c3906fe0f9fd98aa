"""Measurements: what sharing and batching save, side by side with plain transformers and with peers."""
