"""Run-time checks: passes that insert, move and merge them."""
