import json
from pathlib import Path
from linformer_from_scratch.experiments.sources import sources, changed
R=Path('/var/tmp/w13')
for p in sorted((R/'chapters/scenes').glob('[0-9]*.py')):
    j=R/'chapters/scenes/media'/f'{p.stem}.json'; t=j.read_text(); d=json.loads(t)
    c=changed(d['sources'],p,R)
    if c:
        print(p.stem,c); new=sources(p,R); d['sources']=dict(sorted(new.items())) if list(d['sources'])==sorted(d['sources']) else new
        ind=1 if '\n "' in t else 2
        j.write_text(json.dumps(d,indent=ind,ensure_ascii=False)+('\n' if t.endswith('\n') else ''))
