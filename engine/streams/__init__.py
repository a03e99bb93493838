"""Streams: images that never exist whole. Rows are read, computed and handed out stripe after stripe."""
