import sys; sys.path.insert(0,'/tmp/lead')
from nb import NB
nb=NB('/work/main/chapters/12_limits.ipynb')
nb.sub('12-008','## With 16 slots, recall is lost as the text grows','## With 16 slots, recall is lost as there is more to recall')
nb.set('12-121','''
If E and F begin at the values, the model recalls everything, on every seed. If they begin as windows, the same 128 slots reach 0.90 on one seed, 0.82 on another, and on the third only 0.07, which is no better than guessing. So the number of slots is not the obstacle here: what training finds depends on where E and F begin, and on luck. (At a third of the learning rate, the one seed that we tried reached 0.30. Longer training was not tried.)

A beginning at the values won't help you much. It was possible only because here the values always stand in the same places. And if every value needs a slot, k has to grow with n, and the cost is quadratic again. Does it? Look at the task once more: whenever the text grew, the number of facts to remember grew with it. Which of the two was too much?
''')
nb.after('12-121','12-200','markdown','''
### Too long, or too much to remember?

We vary the two apart. Facts, each a key with its value, stand at random places among noise. One series of texts always has 16 of them, the other has n / 4 as before. Both are read through 16 slots, the means of windows. Texts double in length, and a model starts with the weights that it had for the next shorter ones, so that it need not learn the task anew.
''')
nb.after('12-200','12-201','code','''
facts_rows, doubled = read_rows("12_facts"), [64, 128, 256, 512, 1024, 2048]


def recalled_facts(facts):  # from the worst to the best of three seeds; empty where it was not tried
    curves = [row["curves"] for row in select(facts_rows, facts=facts)]
    by_n = [[curve[f"{n}"][-1][1] for curve in curves if f"{n}" in curve] for n in doubled]
    return [f"{min(shares):.2f}–{max(shares):.2f}" if shares else "" for shares in by_n]


by_facts = {f"{facts} facts": recalled_facts(facts) for facts in ("16", "n / 4")}
print(aligned("recalled through 16 slots, n =", doubled, by_facts, ""))
''',tags=['claim-g','no-code'])
nb.c[nb.i('12-011')]['metadata']['tags']=[t for t in nb.c[nb.i('12-011')]['metadata'].get('tags',[]) if t!='claim-g']
if not nb.c[nb.i('12-011')]['metadata']['tags']: del nb.c[nb.i('12-011')]['metadata']['tags']
nb.after('12-201','12-202','markdown','''
It was too much to remember. With 16 facts the share recalled hardly falls while the noise around them grows from nothing to thirty times their number, at 1,024 tokens; with n / 4 facts it falls from the first doubling on. So what k has to grow with is the number of facts that may be asked for, and not the length of the text.

At 2,048 tokens the three seeds end far apart, one of them at the level of guessing: there the training failed to carry over what it had learned. We did not train longer, and full attention was not put through this series (above, it recalls everything). What makes a look-up hard for slots? One reason is in its map.
''')
nb.sub('12-107','| g | 256 slots suffice for 32,768 tokens; k need not grow with n | tutorials: blog posts and READMEs that follow the paper | **not reproduced** |','| g | 256 slots suffice for 32,768 tokens; k need not grow with n | tutorials: blog posts and READMEs that follow the paper | **only if what may be asked for does not grow with n** |')
t=nb.get('12-109'); i=t.index('**Claim g'); j=t.index('**Claim nonuniform')
nb.set('12-109',t[:i]+'''**Claim g: only if what may be asked for does not grow with n.** Through 16 slots, 16 facts among noise are recalled nearly as well in 1,024 tokens as in 128, on every seed. If the number of facts grows with n, the share recalled falls, and with 16 slots and 128 facts it is no better than guessing (in models that were trained at this length from the beginning). At n = 32,768 we trained nothing, and know of no published result except times (chapter 10).

'''+t[j:])
nb.sub('12-115','1. With 16 slots, recall and copying got worse as the text grew. A slot for every value was enough at 512 tokens, if E and F began at the values.','1. With 16 slots, recall got worse as the number of facts grew, and hardly as noise grew around 16 facts, up to 1,024 tokens. A slot for every value was enough at 512 tokens, if E and F began at the values.')
nb.save()
