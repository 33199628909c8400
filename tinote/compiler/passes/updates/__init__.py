"""What several iterations add to the same element: atomic updates, reductions, private copies."""
