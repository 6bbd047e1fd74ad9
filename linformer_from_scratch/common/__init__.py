"""The ground of the library: checks of arguments, files and locks, random numbers, tables of text."""
