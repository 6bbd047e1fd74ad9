"""What is run for hours and writes rows: `python -m lab` lists it, `python -m lab 12_recall` measures.

experiment: what one is, and how its missing rows are measured. pages: long texts. The others are the
experiments of chapters 08, 09, 12 and 13, all listed in __main__.
"""
