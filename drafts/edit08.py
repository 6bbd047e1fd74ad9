import sys, subprocess
sys.path.insert(0,'/tmp/lead')
from nb import NB
P='/work/main/chapters/08_training.ipynb'
subprocess.run(['git','checkout','-q','HEAD','--','chapters/08_training.ipynb'],cwd='/work/main')
nb=NB(P)

nb.sub('08-051',"This is a large caveat for all that follows: after 2,000 updates these models hardly know more than counting does. Further down we train for three times as long.\n\nLinformer ends only a little below the model without attention. Is that all its attention is worth?",
"So after 2,000 updates these models hardly know more than counting does, and Linformer ends only a little below the model without attention. Is that all its attention is worth? Or did we ask too early?")

# ---- the bar
nb.set('08-065','''
## A task that can tell: the bar first, then the runs

*The need: where attention gains next to nothing, a tie with it says nothing.*

Suppose Linformer came out level with the Transformer. Would you believe it? Not if a model that reads nothing came out level, too. So we set a bar before we look at any Linformer. Full attention must beat two controls by at least ten times the spread over seeds, at two lengths:

- a model with **no attention, but as many weights**: a feed-forward layer takes attention's place;
- a model with **one slot**: every query reads the same thing, the mean of the whole text.
''')
nb.after('08-065','08-210','code','''
def longer(length, **kind):  # 6,000 updates, three times those of the race
    kind |= {"seq_len": length}
    return recorded("longer", **kind) or recorded("longer_sizes", **kind)


def plus_minus(found, digits=3):  # one run has no spread
    mean, spread = found
    return f"{mean:.{digits}f}" + ("" if math.isnan(spread) else f" ± {spread:.{digits}f}")


controls = {"no attention, as many weights": {"attention": "mlp"}}
controls["one slot"] = {"proj_dim": 1, "projection": "mean"}
for length in (128, 512):
    for name, kind in controls.items():
        lead, spread = ahead(longer(length, attention="full"), longer(length, **kind))
        assert lead > 10 * spread
        print(f"n = {length}: {plus_minus((lead, spread))} below {name}, {lead / spread:.0f} times the spread")
''',slide='fragment',tags=['no-code'])
nb.after('08-210','08-211','markdown','''
The bar is cleared. (A lead is taken seed by seed; ± is its standard deviation over three seeds.) What it took was time: 6,000 updates in place of the race's 2,000. Longer texts help, too. Now a tie would mean something, and so would a gap.
''')
nb.after('08-211','08-212','markdown','''
## How much of attention's gain does Linformer keep?

*The test: the paper's figure 3a in small, with four values of k and three seeds.*

The **attention gain** of a model is how much lower its held-out loss ends than that of the same model without attention. In the paper's figure 3a, at n = 512, Linformer with k = 128 ends nearly level with the Transformer.

**Predict.** What share of the Transformer's gain will Linformer have at n = 512 with k = n, n/2, n/4 and n/8? And with one slot?
''',slide='slide')
nb.move('08-066','08-212')
nb.set('08-066','''
def kinds_at(length):
    widths = [length // part for part in (1, 2, 4, 8)]
    kinds = {"Transformer": {"attention": "full"}}
    kinds |= {f"Linformer, k = {k}": {"proj_dim": k, "projection_rate": 0.1} for k in widths}
    kinds[f"fixed windows, k = {widths[2]}"] = {"proj_dim": widths[2], "projection": "mean"}
    return kinds | controls | {"no attention": {"attention": "none"}}


at_end = {length: {name: longer(length, **kind) for name, kind in kinds_at(length).items()} for length in (512, 128)}
at_end = {length: {name: rows for name, rows in found.items() if rows} for length, found in at_end.items()}
drawn = {name: curves_of(rows) for name, rows in at_end[512].items() if "windows" not in name}
title = "n = 512, 6,000 updates; bands span three seeds"
plots.learning_curves(drawn, "held-out loss, nats", title, between=(2.4, 3.3))
''')
nb.delete('08-144')
nb.move('08-149','08-066')
nb.set('08-149','''
def show(found, full, nothing):
    for name, rows in found.items():
        share, about = (100 * part for part in kept(rows, full, nothing))
        print(f"{name:29} loss {plus_minus(final_loss(rows)):13}, share of the gain {plus_minus((share, about), 0)} %")


for length, found in at_end.items():
    print(f"n = {length}")
    show(found, found["Transformer"], found["no attention"])
''')
nb.move('08-068','08-149')
nb.set('08-068','''
The picture is the paper's figure 3a in small. Every Linformer, in orange, lies between the Transformer and the models that read nothing, and it lies where its k puts it: k = n hardly above the Transformer, half the slots halfway, a quarter and an eighth of them lower still.

The table says the same in numbers, with the share of the Transformer's gain that each model has. (± is one standard deviation over three seeds, computed seed by seed. Lines without it are one run.)

**To take home:** half the slots, half the gain. At n = 512 and k = 128, the paper's pair, Linformer keeps XX % of what attention brings, and one slot YY %. That is far more than nothing and far from par.

How far does this reach? Two layers of 64 features, one text, 6,000 updates. The paper's model is hundreds of times larger and makes forty times as many updates; its figure has no model without attention, so it cannot tell a small share of a gain from a large one. We can't see from here what makes the difference. But we can look at what the models do.
''')
nb.move('08-073','08-068')

# ---- later sections
nb.sub('08-078','''(The table is made from the recorded runs of "How much of attention's gain does Linformer keep?", with three seeds each.)''','(These are the models of the race, n = 128 and 2,000 updates, three seeds each.)')
nb.sub('08-080','''If rank is what is missing, then k = n should lose nothing. But in the table it kept only 78 % of the gain. Why?''','''If rank is what is missing, then k = n should lose nothing, and in the table above it lost hardly anything. That took some care with E, and finding out why was a surprise.''')
nb.set('08-085',nb.get('08-085').replace('''show({"Transformer": full, "E at the full rate": plain, "no attention": nothing})''','''full, nothing = recorded("size", attention="full"), recorded("size", attention="none")
show({"Transformer": full, "E at the full rate": plain, "no attention": nothing}, full, nothing)'''))
nb.sub('08-084',"E learns at the rate of all other weights.","E learns at the rate of all other weights. We go back to the short runs, n = 128 and 2,000 updates.")
t=nb.get('08-146'); t=t.replace('show(at_n)','show(at_n, full, nothing)').replace('''show({"full rate / √n": recorded("size"), "full rate / 10√n": recorded("controls", projection_rate=0.1)})''','''slower = {"full rate / √n": recorded("size"), "full rate / 10√n": recorded("controls", projection_rate=0.1)}
show(slower, full, nothing)'''); nb.set('08-146',t)
import re
t=nb.get('08-089'); t=re.sub(r'show\((\{.*\})\)',r'show(\1, full, nothing)',t); nb.set('08-089',t)
nb.save()

# ---- must E be learned: the longer runs too
nb.sub('08-147','''for name, (first, second) in leads.items():''','''quarter = longer(512, proj_dim=128, projection="mean"), longer(512, proj_dim=128, projection_rate=0.1)
leads["n = 512, k = 128, 6,000 updates: the same"] = quarter
for name, (first, second) in leads.items():''')
nb.sub('08-147','{name:38}','{name:42}')

# ---- cost
nb.sub('08-107','for row in read_rows("08_speed"):','timed = {row["seq_len"]: row["seconds"] for row in read_rows("08_speed")}\nfor row in read_rows("08_speed"):')
nb.set('08-176','''
We apply ours to the recorded runs, at n = 128 and 512 with k = n/4, and to the two controls. (In the record of times the model with as many weights is called "mlp".)
''')
nb.set('08-109','''
def beside_full(length, kind):  # its time of an update, as a share of the Transformer's
    return ratio_spread(timed[length][kind], timed[length]["full"])


for length in (128, 512):
    curve = mean_curve(longer(length, attention="full"))
    others = {f"Linformer, k = {length // 4}": f"k = {length // 4}", "one slot": "one slot"}
    others["no attention, as many weights"] = "mlp"
    for name, kind in others.items():
        reached = updates_until(curve, final_loss(at_end[length][name])[0]) / curve[-1, 0]
        print(f"n = {length}, {name}: a whole run takes {beside_full(length, kind):.2f} of the Transformer's time;")
        print(f"         the Transformer is as low after {reached:.2f} of it")
''')
nb.after('08-109','08-213','code','''
kind_of = {"Transformer": "full", "one slot": "one slot", "no attention, as many weights": "mlp"}
kind_of |= {f"Linformer, k = {k}": f"k = {k}" for k in (512, 256, 128, 64)}
in_time = {}
for name, kind in kind_of.items():
    updates, losses = curves_of(at_end[512][name])
    in_time[name] = [u / updates[-1] * beside_full(512, kind).middle for u in updates], losses
title = "n = 512: the same runs against time"
plots.learning_curves(in_time, "held-out loss, nats", title, between=(2.4, 3.3), x_label="time, the Transformer's run = 1")
''',tags=['no-code'],slide='fragment')
nb.set('08-110','''
At n = 128 ... FILL
''')

# ---- appendix
nb.after('08-189','08-214','markdown','''
### The same after 2,000 updates, at n = 128

This is the race with other k, and its controls, at the rate 8e-3. Learned E have $1/\\sqrt n$ of it.
''')
nb.after('08-214','08-215','code','''
early = {"Transformer": full} | {f"Linformer, k = {k}": recorded("size", proj_dim=k) for k in (128, 64, 32, 16)}
early |= {f"fixed windows, k = {k}": recorded("size", proj_dim=k, projection="mean") for k in (64, 32, 16)}
early["one slot"] = recorded("controls", proj_dim=1, projection="mean")
early["no attention, as many weights"] = recorded("controls", attention="mlp")
show(early | {"no attention": nothing}, full, nothing)
''')
nb.after('08-215','08-216','markdown','''
One slot keeps about as much as 32 learned ones, and a learned E is not ahead of fixed windows at any k below n. At this point of the training the task cannot tell them apart; that's why we trained for longer.
''')
nb.set('08-190','''### Other rates, and other positions

Half and twice the learning rate, with three seeds each, 2,000 updates and n = 128:''')
nb.set('08-092','''
### Shared by heads, layers and roles (figure 3c)

The paper's figure 3c compares four ways of sharing, from a matrix of its own for every head, role (E or F) and layer ("none") to a single matrix for everything ("layerwise"). We repeat three of them at n = 512 and k = 128, with 6,000 updates and three seeds:
''')
nb.set('08-093','''
words = ("none", "key-value", "layerwise")
shared = {f"sharing {word}": longer(512, proj_dim=128, sharing=word, projection_rate=0.1) for word in words}
show(shared, at_end[512]["Transformer"], at_end[512]["no attention"])
print(aligned("", ["numbers to learn"], {way: [rows[0]["parameters"]] for way, rows in shared.items()}, ",d"))
''')
nb.set('08-151','''
for name, rows in [*shared.items()][:2]:
    print(f"{name} ends lower than layerwise by {plus_minus(ahead(rows, shared['sharing layerwise']))}")
''')
nb.set('08-094','''
TEXT094
''')
nb.set('08-098','''
### Longer texts at the same k (figure 3d)

In the paper's figure 3d, Linformer with k = 256 is trained at n = 512 to 4,096, and its final perplexity stays about the same. We compare n = 128 and n = 512 at k = 128, with 2,048 tokens in every batch, 6,000 updates and three seeds:
''')
nb.set('08-099','''
for length in (128, 512):
    ends = {"Transformer": at_end[length]["Transformer"], "Linformer, k = 128": at_end[length]["Linformer, k = 128"]}
    print(f"n = {length}")
    show(ends | {"no attention": at_end[length]["no attention"]}, ends["Transformer"], at_end[length]["no attention"])
''')
nb.set('08-100','''
TEXT100
''')
nb.save()
