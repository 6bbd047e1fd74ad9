// All heads of the model side by side, one of them large. The numbers are in head_gallery.py.

export default widget(({ model, stage }) => {
  const { tokens, query, pick, map: mapOf, maps, isWord, said, controls } = sentenceOf(model);
  const all = figure(stage, "All heads: layers down, heads across", "arrow keys walk; a click shows a head large");
  const large = heatMap(stage, { title: "The chosen head", abreast: 1, rows: tokens, pick });
  const entropies = remember(), painted = remember();

  /** Mean entropy of each head's rows in bits, (layers, heads). */
  const bits = () => entropies(tokens(), () => {
    const n = tokens().length, all = maps();
    return range(0, 71).map((head) => entropy(all.subarray(head * n * n, (head + 1) * n * n)) / n);
  });
  const bitsOf = (layer, head) => bits()[12 * layer + head - 13];

  /** What a token of a map gives on average, by whom it gives it to. */
  function shares(P, n) {
    const rests = range(0, n - 1).filter((i) => !isWord(i));
    const mean = (count, weight) => range(0, count - 1).reduce((sum, i) => sum + weight(i), 0) / count;
    return {
      "the previous token": mean(n - 1, (i) => P[(i + 1) * n + i]),
      itself: mean(n, (i) => P[i * n + i]),
      "the next token": mean(n - 1, (i) => P[i * n + i + 1]),
      "[CLS] and [SEP]": mean(n, (i) => rests.reduce((sum, j) => sum + P[i * n + j], 0)),
    };
  }

  const grid = headGrid(model, { say: (layer, head) => `${fixed(bitsOf(layer, head), 1)} bits` });
  const canvases = [...grid.element.querySelectorAll("button")].map((button) => button.appendChild(html("canvas")));
  grid.element.classList.add("lw-pictures");
  all.element.append(grid.element);

  return {
    controls: [controls.text, controls.own, grid],
    hint: "look for diagonals just off the middle: those heads copy from a neighbour. Where do all rows look at one column?",
    more: [controls.query],
    draw(theme) {
      const n = tokens().length, layer = model.get("layer"), head = model.get("head"), P = mapOf(layer, head);
      painted([tokens(), theme], () => canvases.forEach((canvas, i) => paint(canvas, maps().subarray(i * n * n), n, n, 1, false, theme)));
      large.show(P, n, n, { limit: 1, theme, query: query(), title: `Layer ${layer}, head ${head}`, cell: 1.4 });
      const weights = P.subarray(query() * n, (query() + 1) * n), most = largest(weights);
      const numbers = { map: P, weights, entropies: bits(), shares: shares(P, n) };
      const words =
        `Layer ${layer}, head ${head}: “${tokens()[query()]}” attends to “${tokens()[most]}” most, weight ${fixed(weights[most], 2)}. ` +
        `Mean entropy ${fixed(bitsOf(layer, head), 2)} bits of at most ${fixed(Math.log2(n), 2)}. On average a token gives ` +
        `${Object.entries(numbers.shares).map(([where, share]) => `${percent(share)} to ${where}`).join(", ")}.`;
      return { ...said(words), numbers };
    },
  };
});
