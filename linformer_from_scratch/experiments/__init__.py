"""What is run for hours and recorded: `python -m linformer_from_scratch.experiments 12_recall`.

experiment: what one is. training, efficient, recall, writing, capstone: those of chapters 08, 09 and 12.
registry: all of them by name. runner: measures the rows that are missing.
"""
