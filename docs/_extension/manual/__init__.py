"""What the manual's site is made of beside the pages of `docs/`: tutorials, gallery, reference, formulas."""
