"""Long runs: bad input, faults and repeated use. `make fuzz` and `make soak` call them."""
