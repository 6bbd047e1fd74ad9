"""What is run for hours and writes rows: `python -m lab` lists it, `python -m lab 12_recall` measures.

experiment: what one is, and how its missing rows are measured. pages: long texts. The others are the
experiments of chapters 08, 09 and 12 to 14, all listed in __main__.
"""
