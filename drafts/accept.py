import json,sys; sys.path.insert(0,'/work/main')
from pathlib import Path
from linformer_from_scratch.experiments.sources import sources, changed
R=Path('/work/main')
for p in (R/'chapters/scenes').glob('[0-9]*.py'):
    j=R/'chapters/scenes/media'/f'{p.stem}.json'; d=json.loads(j.read_text())
    c=changed(d['sources'],p,R)
    if c:
        print(p.stem,c); new=sources(p,R); d['sources']={k:new[k] for k in new}
        t=j.read_text(); ind=1 if '\n "' in t else 2
        j.write_text(json.dumps(d,indent=ind,ensure_ascii=False)+'\n')
