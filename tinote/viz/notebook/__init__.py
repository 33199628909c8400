"""Front ends, widgets, errors and progress in a notebook."""
