"""What is run for hours and recorded: `python -m linformer_from_scratch.experiments 12_recall`.

recorded/: the rows, a file for each experiment. training, efficient, recall, writing, capstone, lengths,
benchmark/: what measures them, for chapters 08, 09, 12 and 10. experiment, registry, runner: what an experiment
is, all of them by name, and what measures missing rows. results, curves: rows read. sources: hashes of code.
"""
