"""Searches for addresses that many workers share."""
