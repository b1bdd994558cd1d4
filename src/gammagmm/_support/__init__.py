"""Tools that every room uses: checks, processes, progress, platform, files, documents, text."""
