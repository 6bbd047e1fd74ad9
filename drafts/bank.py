import torch; torch.set_num_threads(1)
from linformer_from_scratch.exercises.engine.checking import judge, exam_seeds, sentence_of
from linformer_from_scratch.exercises.descendants import EXERCISES
for e in EXERCISES:
    r=judge(e,e.reference); assert r.status=='passed',(e.id,r)
    r=judge(e,e.reference,exam_seeds(0)); assert r.status=='passed',(e.id,r)
    for m in e.mistakes:
        r=judge(e,m)
        if r.status!='failed' or r.message!=sentence_of(m): print('BAD',e.id,m.__name__,r.status,r.message[:150])
    for w in (lambda *a: None, lambda *a: torch.zeros(3), lambda *a: a[0]):
        assert judge(e,w).status=='failed'
print('done')
