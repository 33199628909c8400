"""Programs as functions of other frameworks' arrays, with derivatives that these frameworks compose with their own."""
