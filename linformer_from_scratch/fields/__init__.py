"""Chapter 14: inputs in which a position is a place, and layers that mix by place or by content."""
