import json
class NB:
    def __init__(s,p): s.p=p; s.nb=json.load(open(p)); s.c=s.nb['cells']
    def i(s,id): return next(i for i,c in enumerate(s.c) if c['id']==id)
    def get(s,id): return ''.join(s.c[s.i(id)]['source'])
    def set(s,id,text): s.c[s.i(id)]['source']=text.strip('\n').splitlines(True)
    def sub(s,id,a,b,n=1):
        t=s.get(id); assert t.count(a)==n,(id,a,t.count(a)); s.set(id,t.replace(a,b))
    def after(s,id,new,kind,text,tags=(),slide='skip'):
        assert all(c['id']!=new for c in s.c),new
        m={}
        if slide: m['slideshow']={'slide_type':slide}
        if tags: m['tags']=list(tags)
        c={'cell_type':kind,'id':new,'metadata':m,'source':text.strip('\n').splitlines(True)}
        if kind=='code': c={'cell_type':kind,'execution_count':None,'id':new,'metadata':m,'outputs':[],'source':c['source']}
        s.c.insert(s.i(id)+1,c)
    def delete(s,*ids):
        for id in ids: s.c.pop(s.i(id))
    def move(s,id,after):
        c=s.c.pop(s.i(id)); s.c.insert(s.i(after)+1,c)
    def save(s):
        with open(s.p,'w') as f: json.dump(s.nb,f,indent=1,ensure_ascii=False); f.write('\n')
