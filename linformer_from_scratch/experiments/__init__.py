"""What is run for hours and recorded: `python -m linformer_from_scratch.experiments 12_recall`.

recorded/: the rows, a file for each experiment. training, efficient, recall, writing, capstone, lengths,
descendants, benchmark/: what measures them, for chapters 08, 09, 12, 13 and 10. experiment: what one is.
registry: all of them by name. runner: measures the rows that are missing. results, curves: rows read.
sources: hashes of code.
"""
