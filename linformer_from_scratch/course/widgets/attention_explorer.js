// What one token attends to: bars, bands from the keys to the query, and the map of which they are one row.
// The numbers are in attention_explorer.py.

const [CELL, LOW_CELL, SIGN] = [1.3, 1.2, 7.6]; // em: a row of bands and map; of the bands alone; the map, where it is a sign of itself
const [STACKED, MOST_ROWS] = [46, 26]; // em: below this width, or with more tokens, the rows are not continued in the map
const PRINTED = 0.05; // weights from here on have their number beside the bar

export default widget(({ model, stage }) => {
  const { tokens, query, pick, map: mapOf, maps, isWord, said, controls } = sentenceOf(model);
  const hover = pointing(), bands = reading(stage, { tokens, query, pick, hover });
  const map = heatMap(stage, { title: "The attention map", abreast: 1, rows: tokens, hover, pick });
  const all = figure(stage, "Layers down, heads across", "shaded: attends to another word");
  stage.classList.add("lw-reading");
  const heads = remember();

  /** The largest weight that the query gives to another word, in each head: its key and the weight. */
  const elsewhere = () => heads([tokens(), query()], () => {
    const n = tokens().length, row = range(0, n - 1);
    return range(0, 71).map((head) => {
      const weights = maps().subarray(head * n * n + query() * n, head * n * n + (query() + 1) * n);
      const words = row.map((j) => (j !== query() && isWord(j) ? weights[j] : 0));
      return { key: largest(words), weight: Math.max(...words) };
    });
  });
  const ofHead = (layer, head) => elsewhere()[12 * layer + head - 13];

  const grid = headGrid(model, {
    shade: (layer, head) => ofHead(layer, head).weight,
    say: (layer, head) => `attends to “${tokens()[ofHead(layer, head).key]}”, ${fixed(ofHead(layer, head).weight, 2)}`,
  });
  all.element.append(grid.element);

  return {
    controls: [controls.text, controls.own, grid],
    hint: "click a word to make it the query. Which heads look one word back? Which find the verb?",
    more: [
      controls.query,
      slider(model, "temperature", { label: "Temperature", values: range(-20, 20).map((i) => 10 ** (i / 20)), say: (t) => fixed(t, 2) }),
    ],
    draw(theme) {
      const n = tokens().length, [layer, head, temperature] = ["layer", "head", "temperature"].map(model.get);
      const P = softmax(mapOf(layer, head).map(Math.log), n, temperature);
      const weights = P.subarray(query() * n, (query() + 1) * n), most = largest(weights);
      const stacked = n > MOST_ROWS || stage.clientWidth < STACKED * emOf(stage), title = `Layer ${layer}, head ${head}`;
      const look = stacked ? { cell: SIGN / n, note: "" } : { cell: CELL, note: "rows: queries; they sum to one" };
      map.show(P, n, n, { limit: 1, theme, query: query(), title, besides: !stacked, ...look });
      bands.show(weights, stacked ? null : map.element.querySelector(".lw-frame"));
      const numbers = { map: P, weights, entropy: entropy(weights), elsewhere: elsewhere().map(({ weight }) => weight) };
      const words =
        `“${tokens()[query()]}” attends to “${tokens()[most]}” most: weight ${fixed(weights[most], 2)}. ` +
        `Its attention is as spread out as if ${fixed(2 ** entropy(weights), 1)} of the ${n} tokens shared it equally.`;
      return { ...said(words), numbers };
    },
  };
});

/**
 * Keys with a bar for each weight, and a band from each to the query: each as thick as its weight, together as a row.
 *
 * frame: of the map whose rows these are continued in, or null where the map stands beneath.
 */
function reading(stage, { tokens, query, pick, hover }) {
  const { element, heading } = figure(stage, "", "");
  const box = html("div"), picture = d3.select(box).append("svg").attr("role", "img");
  const pen = document.createElement("canvas").getContext("2d"), gradient = `lw-${Math.random().toString(36).slice(2)}`;
  const place = { wide: 1, top: 0, pitch: 1, keys: 0, queries: 0 }; // units that grow with the type; where keys end and queries begin
  let weights = [], bands, names, values; // what is marked
  element.append(box);
  hover.listen(mark);

  function draw() {
    const { wide, top, pitch } = place, most = largest(weights), chosen = query(), words = tokens().map((token) => shorten(token));
    const size = clamp(0.73 * pitch, 12, 16), y = (i) => top + (i + 0.5) * pitch;
    pen.font = `bold ${size}px ${getComputedStyle(element).fontFamily}`;
    const widths = words.map((word) => pen.measureText(word).width), widest = Math.max(...widths);
    const longest = clamp(wide / 7, 34, 112), bars = 2.6 * size + longest, keys = bars + 8, end = wide - widest - 16;
    Object.assign(place, { keys: keys + widest, queries: end });
    const high = top + words.length * pitch + 6;
    picture.attr("viewBox", `0 0 ${wide} ${high}`).style("height", `${high / 16}em`).attr("aria-label", heading.textContent);
    picture.selectAll("*").remove();
    const rect = (x, width, i, thick, colour) => bar(picture, x, y(i) - thick / 2, width, thick, colour);
    const column = (texts, x, anchor) => picture.append("g").selectAll("text").data(texts).join("text").text((text) => text)
      .attr("x", x).attr("y", (_, i) => y(i)).attr("text-anchor", anchor).attr("dominant-baseline", "central")
      .style("font-size", `${size}px`);
    const above = (text, x, anchor, colour) => write(picture, text, x, top - 10, anchor).style("fill", `var(--${colour})`);

    const shade = picture.append("linearGradient").attr("id", gradient).attr("gradientUnits", "userSpaceOnUse");
    shade.attr("x1", place.keys).attr("x2", end);
    ["key", "query"].forEach((colour, offset) => shade.append("stop").attr("offset", offset).style("stop-color", `var(--${colour})`));
    rect(end, wide - end, chosen, pitch, "query").style("opacity", 0.14); // the row of the map begins here
    rect(end, 4, chosen, pitch, "query");
    let filled = y(chosen) - pitch / 2; // of the query's row, by the bands above
    const lines = Array.from(weights, (weight, i) => {
      filled += weight * pitch;
      const [x0, x1, y1] = [keys + widths[i] + 6, end, filled - (weight * pitch) / 2], middle = (x0 + x1) / 2;
      return { i, weight, path: `M${x0},${y(i)}C${middle},${y(i)} ${middle},${y1} ${x1},${y1}` };
    });
    lines.sort((a, b) => a.weight - b.weight); // the heaviest on top
    bands = picture.append("g").attr("fill", "none").selectAll("path").data(lines).join("path").attr("d", ({ path }) => path)
      .attr("stroke", `url(#${gradient})`).attr("stroke-width", ({ weight }) => Math.max(1, weight * pitch));
    const lengths = Array.from(weights, (weight) => Math.max(1, longest * weight));
    lengths.forEach((length, i) => rect(bars - length, length, i, 0.6 * pitch, "key"));
    values = column(Array.from(weights, (weight) => fixed(weight, 2)), (_, i) => bars - lengths[i] - 6, "end");
    names = column(words, keys, "start");
    column(words, wide - 8, "end").filter((_, i) => i === chosen)
      .style("font-weight", "bold").style("fill", "var(--query)").style("stroke", "none");
    above("weight", bars, "end", "key");
    above("keys ↓", keys, "start", "key");
    above("queries ↓", wide - 8, "end", "query");
    mark();
  }

  /** The key that is pointed at stands out, or else the one that is read most. */
  function mark() {
    if (!bands) return;
    const pointed = hover.cell?.i === query() ? hover.cell.j : -1, shown = pointed < 0 ? largest(weights) : pointed;
    bands.style("opacity", ({ i, weight }) => (pointed < 0 ? 0.25 + 0.65 * Math.sqrt(weight) : i === pointed ? 1 : 0.1));
    names.style("font-weight", (_, i) => (i === shown ? "bold" : null)).style("fill", (_, i) => (i === shown ? "var(--key)" : null));
    values.style("display", (_, i) => (i === pointed || weights[i] >= PRINTED ? null : "none"));
  }

  /** What the hand is on: { key: its place }, { query: its place }, or nothing. */
  function under(event) {
    const [x, y] = placeIn(picture.node(), event), i = Math.floor((y - place.top) / place.pitch);
    if (i < 0 || i >= weights.length) return {};
    return x < place.keys ? { key: i } : x > place.queries ? { query: i } : {};
  }
  box.addEventListener("pointermove", (event) => {
    const { key, query: row } = under(event);
    box.style.cursor = key === undefined && row === undefined ? "" : "pointer";
    hover.point(key === undefined ? null : { i: query(), j: key }, place);
  });
  box.addEventListener("pointerleave", () => hover.point(null, place));
  box.addEventListener("click", (event) => {
    const { key, query: row } = under(event);
    if (key !== undefined || row !== undefined) pick(key ?? row);
  });

  return {
    show(now, frame) {
      const em = emOf(element) / 16;
      weights = now;
      heading.textContent = `What “${tokens()[query()]}” attends to: lines as thick as weights`;
      place.wide = (box.clientWidth || 320) / em;
      place.top = frame ? (frame.offsetTop - box.offsetTop) / em : 26;
      place.pitch = frame ? frame.offsetHeight / em / now.length : Math.max(12, 16 * LOW_CELL * +getComputedStyle(element).getPropertyValue("--flat"));
      draw();
    },
  };
}
