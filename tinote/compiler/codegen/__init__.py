"""IR to a target, one file a target."""
