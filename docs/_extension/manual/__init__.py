"""What the manual's site is made of next to the pages of `docs/`: tutorials, gallery, reference, formulas."""
