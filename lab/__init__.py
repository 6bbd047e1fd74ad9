"""What is run for hours and writes rows: `python -m lab` lists it, `python -m lab 12_recall` measures.

experiment: what one is. registry: all of them by name. runner: measures the rows that are missing. The others
are the experiments of chapters 08, 09, 12 and 13.
"""
