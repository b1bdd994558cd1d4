"""Long use and bad input: what the short tests do not have the time for."""
