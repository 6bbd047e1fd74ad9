// All heads of a layer side by side, one of them large; the grid shows all heads of the model. The numbers are in head_gallery.py.

export default widget(({ model, stage }) => {
  const { tokens, query, pick, map: mapOf, maps, isWord, refusal, controls } = sentenceOf(model);
  const hover = pointing(), numbersNow = {}, place = html("div", { class: "lw-gallery" });
  stage.append(place);
  const small = range(1, 12).map((head) => smallMap(place, { head, hover, query, pick: () => choose(model, "head", head) }));
  const large = heatMap(stage, { title: "The chosen head", abreast: 2, rows: tokens, hover, pick });
  const text = sentence(stage, { tokens, hover, query, pick });
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

  return {
    numbers: numbersNow,
    controls: [...controls, grid],
    draw(theme) {
      const n = tokens().length, layer = model.get("layer"), head = model.get("head"), P = mapOf(layer, head);
      painted([tokens(), theme], () => canvases.forEach((canvas, i) => paint(canvas, maps().subarray(i * n * n), n, n, 1, false, theme)));
      small.forEach((map, i) => map.show(mapOf(layer, i + 1), n, { theme, chosen: head === i + 1, bits: bitsOf(layer, i + 1) }));
      large.show(P, n, n, { limit: 1, theme, query: query(), title: `Layer ${layer}, head ${head}`, cell: 1.75 });
      text.refresh();
      const weights = P.subarray(query() * n, (query() + 1) * n), most = largest(weights);
      Object.assign(numbersNow, { map: P, weights, entropies: bits(), shares: shares(P, n) });
      const words =
        `Layer ${layer}, head ${head}: “${tokens()[query()]}” reads “${tokens()[most]}” most, weight ${fixed(weights[most], 2)}. ` +
        `Mean entropy ${fixed(bitsOf(layer, head), 2)} bits of at most ${fixed(Math.log2(n), 2)}. On average a token gives ` +
        `${Object.entries(numbersNow.shares).map(([where, share]) => `${percent(share)} to ${where}`).join(", ")}.`;
      return refusal() ? { refusal: refusal() } : words;
    },
  };
});

/** The map of one head without names; where any map is pointed at, its weight at the same place. A click takes the head. */
function smallMap(stage, { head, hover, query, pick }) {
  const { element, small } = figure(stage, `head ${head}`, "");
  const canvas = html("canvas", { role: "img" }), box = html("div", { class: "lw-small" }, canvas);
  const overlay = d3.select(box).append("svg").attr("aria-hidden", "true").attr("preserveAspectRatio", "none");
  const [chosenRow, row, column] = ["query", "query", "key"].map((colour, i) =>
    overlay.append("rect").attr("fill", "none").attr("vector-effect", "non-scaling-stroke")
      .attr("stroke-width", i ? 1.5 : 2).style("stroke", `var(--${colour})`));
  let map = { values: null, n: 0, bits: 0 };
  element.append(box);
  element.addEventListener("click", pick);
  box.addEventListener("pointermove", (event) => {
    const frame = box.getBoundingClientRect();
    const cell = (share) => clamp(Math.floor(share * map.n), 0, map.n - 1);
    hover.point({ i: cell((event.clientY - frame.top) / frame.height), j: cell((event.clientX - frame.left) / frame.width) }, map);
  });
  box.addEventListener("pointerleave", () => hover.point(null, map));
  hover.listen(mark);

  function mark() {
    const { n, values, bits } = map, { i, j } = hover.cell ?? { i: -1, j: -1 };
    overlay.attr("viewBox", `0 0 ${n} ${n}`);
    const put = (rect, shown, x, y, width, height) =>
      rect.attr("display", shown ? null : "none").attr("x", x).attr("y", y).attr("width", width).attr("height", height);
    put(chosenRow, true, 0, query(), n, 1);
    put(row, i >= 0, 0, i, n, 1);
    put(column, j >= 0, j, 0, 1, n);
    small.textContent = i < 0 ? `${fixed(bits, 1)} bits` : fixed(values[i * n + j], 2);
  }

  return {
    show(values, n, { theme, chosen, bits }) {
      map = { values, n, bits };
      element.classList.toggle("lw-chosen", chosen);
      canvas.setAttribute("aria-label", `Head ${head}: ${fixed(bits, 1)} bits`);
      paint(canvas, values, n, n, 1, false, theme);
      mark();
    },
  };
}
