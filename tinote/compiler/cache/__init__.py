"""The disk cache of compiled code: lookup, description by value, and storage."""
