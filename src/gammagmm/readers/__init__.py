"""A file -> a table of numbers, or a refusal that says where and why."""
