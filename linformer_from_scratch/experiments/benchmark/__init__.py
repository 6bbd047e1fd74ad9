"""The benchmark as a recorded experiment: its command, its file, what is read off it."""
