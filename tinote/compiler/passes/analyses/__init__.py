"""Questions that several transformations ask; nothing is changed."""
