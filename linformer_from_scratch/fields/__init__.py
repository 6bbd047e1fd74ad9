"""Chapter 14: when should you use it? Four fields, a layer for each."""
