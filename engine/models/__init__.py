"""Models by their names: files, and networks of the zoo with options."""
