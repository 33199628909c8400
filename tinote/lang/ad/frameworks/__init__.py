"""Programs as functions of the arrays of other frameworks, with derivatives that these compose with their own."""
