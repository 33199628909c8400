"""What a program does between launches, as data: operations on memory and numbers, and transformations of them."""
