"""Linformer (Wang et al. 2020, arXiv 2006.04768), built up from softmax: one module a chapter."""
