"""How a teacher grades a folder of notebooks: python -m linformer_from_scratch.exercises."""
