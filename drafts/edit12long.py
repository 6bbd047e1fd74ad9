"""Chapter 12: the section on long texts. Run when 12_long, 12_long_others, 12_long_unfitted, 12_long_costs are whole."""
import sys; sys.path.insert(0,'/tmp/lead')
from nb import NB
nb=NB('/work/main/chapters/12_limits.ipynb')
nb.sub('a1c40e09','So much for 512 tokens on one machine. What should you take for a case of your own?','So much for 512 tokens. But 512 tokens were never the point.')
nb.after('12-148','12-300','markdown','''
## Long texts: does it read what it makes affordable?

*The test: whole pages of manuals, 1,024 to 8,192 tokens, looked up by title, by a paragraph, by the page before.*

MiniLM has positions for 512 tokens. We repeat them, and fit every encoder alike, for 100 updates, to pull a page's vector towards its title and towards a paragraph that was cut out of it. Then we look up pages that nobody has trained on.
''',slide='slide')
nb.after('12-300','12-301','markdown','''
The pages come from three manuals that Debian packages (Python, PostgreSQL, Rust; copies and near-copies left out, a fifth... of the pages held out). Neither the title nor the paragraph stands in the text that is encoded. Exact attention is fitted as well, so that Linformer is compared with something that can read such texts. The rivals: **mean of chunks** and **best of chunks** (256 tokens each, exact; the second keeps all their vectors and takes the best match, as search engines do), the first 512 tokens, a sliding window with a global token, the exact encoder in 8 bits.
''')
nb.after('12-301','12-302','code','''
from linformer_from_scratch.experiments.long_texts import KINDS as ASKED

long_rows = read_rows("12_long") + read_rows("12_long_others")


def reciprocal(way, n, kind):  # (seeds, pages)
    return 1 / torch.tensor([row[kind] for row in select(long_rows, way=way, n=n)])


def found_by(way, n, kind):
    shares = reciprocal(way, n, kind)
    return paired_bootstrap(shares, torch.zeros_like(shares))


ways_long = list(dict.fromkeys(row["way"] for row in long_rows))
lengths_long = sorted({row["n"] for row in long_rows})
for kind in ASKED:
    table = {way: [f"{reciprocal(way, n, kind).mean():.2f}" for n in lengths_long] for way in ways_long}
    print(aligned(f"found by {kind}, n =", lengths_long, table, ""), "\\n")
''',tags=['no-code','answer'],slide='fragment')
nb.after('12-302','12-303','code','''
costs_long = {row["n"]: row for row in read_rows("12_long_costs")}
lines, bars = {}, {}
for way in ("exact", "128 slots", "mean of chunks"):
    tried = [n for n in lengths_long if select(long_rows, way=way, n=n)]
    intervals = [found_by(way, n, "paragraph") for n in tried]
    lines[way] = [costs_long[n]["seconds"][way] for n in tried], [i.middle for i in intervals]
    bars[way] = [i.low for i in intervals], [i.high for i in intervals]
plots.paths(lines, "seconds for a text", "mean reciprocal rank", "1,024 to 8,192 tokens, found by a paragraph", bars=bars, lowest=0.4)
''',tags=['no-code'],slide='fragment')
nb.save()
