"""What any program becomes smaller or cheaper by: folding, common subexpressions, dead code."""
