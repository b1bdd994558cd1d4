"""What every room uses and no room owns: checks, processes, progress, files, text."""
