"""Several networks in one arena."""
