"""Bad input, faults and long use: what the short tests do not have the time for."""
