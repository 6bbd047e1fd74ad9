"""Chapter 13: what became of E, an idea a file."""
