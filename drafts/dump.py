import json,sys
nb=json.load(open(sys.argv[1])); out='o' in sys.argv[2:]
for i,c in enumerate(nb['cells']):
    print(f"--- [{i}] {c['id']} {c['cell_type']} {c['metadata'].get('tags','')} {c['metadata'].get('slideshow',{}).get('slide_type','')}")
    print(''.join(c['source']))
    if out and c['cell_type']=='code':
        for o in c['outputs']:
            t=o.get('text') or o.get('data',{}).get('text/plain')
            if t: print('>>>',''.join(t)[:1500])
