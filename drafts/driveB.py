"""Rows of one word list, in order: python driveB.py 'experiment|way|n|seed' ..."""
import sys
from dataclasses import replace
from linformer_from_scratch.experiments.registry import EXPERIMENTS
from linformer_from_scratch.experiments.runner import measure
for word in sys.argv[1:]:
    name, way, ns, seed = word.split('|')
    e = EXPERIMENTS[name]
    grid=[g for g in e.grid if g['way']==way and str(g['n']) in ns.split(',')]
    assert grid, word
    measure(replace(e, grid=grid, seeds=None if seed=='' else (int(seed),)))
