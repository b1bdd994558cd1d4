"""The paper's evaluation; not installed, and never imported by the package."""
