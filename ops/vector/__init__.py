"""Elementwise programs, rows and reductions in compiled vector code."""
