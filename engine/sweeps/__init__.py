"""Sweeps: many models planned and run with many options, by workers; one row for each."""
