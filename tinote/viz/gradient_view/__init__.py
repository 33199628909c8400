"""The view of a tape's gradients."""
