"""The built-in functions of the language."""
