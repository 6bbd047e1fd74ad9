import sys; sys.path.insert(0,'/tmp/lead')
from nb import NB
nb=NB('/work/main/chapters/12_limits.ipynb')
nb.set('12-303','''
By its title a page is found most often through the best of its chunks. By a paragraph counting words wins, at every length: a paragraph shares rare words with its page, names above all, and BM25 needs nothing else. (A question in other words than the page's would be harder for it. None was tried.) The mean of chunks and exact attention over the whole page come next, close together. The slots come last, and twice as many of them change little.

Which of these differences are more than chance?
''')
nb.sub('12-305','\n\nTEXT305','\n\nMost brackets lie wholly below zero: 128 slots find less than chunks, and less than exact attention. In none do they find more for sure, not even more than counting words.')
nb.sub('12-307','''gigabytes = {way: [long_costs[n]["bytes"][way] / 1e9 for n in long_n] for way in ("exact", *rivals)}
print(aligned("GB at the peak, n =", long_n, gigabytes, ".2f"))''','''megabytes = {way: [long_costs[n]["bytes"][way] / 1e6 for n in long_n] for way in ("exact", *rivals)}
print(aligned("MB at the peak, n =", long_n, megabytes, ".0f"))''')
nb.set('12-308','''
Slots do save time on long pages, as chapter 10 said they would. But chunks save nearly as much or more, they need a small part of the memory, because one chunk is encoded after the other, and they find more.

**To take home:** to find long pages, count words, and encode them in chunks; keep the vector of every chunk if you can. Reading the page as a whole did not find it better, neither through slots nor exactly.

How far does this reach? One encoder, pretrained on short texts; one fit of each way with one seed, so the brackets say nothing of another fit; pages of manuals, 150 at most of a length and 49 of 8,192 tokens. And a page can be found by what stands in one place of it. Slots would earn their keep on a question that needs two distant places at once, since no chunk holds both. Nothing here asks one.
''')
nb.sub('12-115','found less than chunks did, which take less time, and counting words found as much or more.','found less than chunks did, at about the same cost, and no more than counting words.')
nb.save()
p='README.md'; s=open(p).read()
s=s.replace('''were found less often through 128 slots than through averaged chunks, which take less time, and counting words
found as many or more. It cannot write''','''were found less often through 128 slots than through averaged chunks, which take about as long, and counting
words did no worse. It cannot write''')
open(p,'w').write(s)
p='linformer_from_scratch/data/shipped/minilm_linformer_k128.md'; s=open(p).read()
s=s.replace('''found less than averaged exact chunks
  of 256 tokens did, which take less time (chapter 12).''','''found less than averaged exact chunks
  of 256 tokens did, which take about as long (chapter 12).''')
open(p,'w').write(s)
