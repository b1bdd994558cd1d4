"""Any table -> values, names and notes: the only preparation of rows there is."""
