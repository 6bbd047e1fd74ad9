"""What every module may use: checks of arguments, files, random numbers, tables of text."""
