"""Tools of every subpackage: checks, processes, progress, platform, files, documents, text."""
