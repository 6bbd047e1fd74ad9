// One sentence, and what a query reads of it: slots above, tokens below. The numbers are in block_explorer.py.

const CELL = 0.6; // em: the board above names the tokens
const STRONGEST = 0.25; // the strongest colour of a map: what a token gets of a query that attends to its block of four alone

export default widget(({ model, stage }) => {
  const { tokens, memory } = model.get("facts"), n = tokens.length, square = n * n;
  const [states, heads] = ["edit", "head"].map((name) => Object.keys(model.get("choices")[name]));
  const { slots, tokens: near, mixes, scores, exact: exacts, errors, counts } = arrays(model);
  const most = model.get("data").mixes.shape[1], hover = pointing();
  const pick = (i) => choose(model, "query", i), names = () => tokens;
  const row = board(stage, { tokens, pick });
  const maps = ["exact, causal", "what it amounts to"].map((title) => heatMap(stage, { title, abreast: 2, rows: names, hover, pick }));

  return {
    controls: [
      menu(model, "edit", { label: "State" }),
      slider(model, "query", { label: "Query", values: range(0, n - 1), say: (i) => `“${tokens[i]}”` }),
    ],
    hint: "go through the states from the top: which edit closes the future, and which brings the neighbours back?",
    more: [menu(model, "head", { label: "Head", wide: true })],
    draw(theme) {
      const state = states.indexOf(model.get("edit")), head = heads.indexOf(model.get("head")), t = model.get("query");
      const place = head * states.length + state, count = counts[state];
      const onSlots = firstColumns(slots.subarray(place * n * most, (place + 1) * n * most), most, count);
      const onTokens = near.subarray(place * square, (place + 1) * square);
      const mix = mixes.subarray(place * most * n, place * most * n + count * n);
      const effective = product(onSlots, mix, count).map((weight, i) => weight + onTokens[i]);
      const ofSlots = onSlots.subarray(t * count, (t + 1) * count), ofTokens = onTokens.subarray(t * n, (t + 1) * n);
      const chooses = state === states.length - 1; // slots are scored there, and nobody attends to them
      const wanted = chooses ? scores.subarray(head * n * count, (head + 1) * n * count) : new Float32Array(n * count);
      row.show({ t, mix, chooses, ofSlots: chooses ? wanted.subarray(t * count, (t + 1) * count) : ofSlots, ofTokens, effective: effective.subarray(t * n, (t + 1) * n) });
      [exacts.subarray(head * square, (head + 1) * square), effective].forEach((map, i) => maps[i].show(map, n, n, { limit: STRONGEST, theme, query: t, cell: CELL }));
      const sum = (weights) => weights.reduce((all, weight) => all + weight, 0), read = (weights) => weights.filter((w) => w > 0).length;
      const words =
        `“${tokens[t]}” attends to ${read(ofSlots)} slots (${percent(sum(ofSlots))}) and ${read(ofTokens)} tokens (${percent(sum(ofTokens))}); ` +
        `${percent(sum(effective.subarray(t * n + t + 1, (t + 1) * n)))} goes to the future. The head is off by ` +
        `${percent(errors[head * states.length + state])}. Its layer keeps ${thousands(memory[state])} numbers (exact: ${thousands(memory[0])}).`;
      return { words, numbers: { weights: { slots: onSlots, tokens: onTokens, mix, scores: wanted, effective } } };
    },
  };
});

/** The sentence from left to right: a box for each slot over the tokens that it mixes, and under each token what the query takes of it. */
function board(stage, { tokens, pick }) {
  const { element, small } = figure(stage, "What the query attends to", "");
  const box = html("div"), picture = d3.select(box).append("svg").attr("role", "img");
  const [HIGH, BAR, SLANT] = [20, 48, 40]; // of a cell and of a whole bar; what the last word needs to the right of its cell
  element.classList.add("lw-board");
  element.style.flex = "1 1 100%";
  element.append(box);
  return {
    show({ t, mix, chooses, ofSlots, ofTokens, effective }) {
      const n = tokens.length, count = ofSlots.length, largest = Math.max(1e-9, ...effective);
      const [above, below] = chooses ? ["blocks by score", "tokens"] : ["slots", "window"];
      small.textContent = `${above} above, ${below} below; bars: at most ${percent(Math.max(...effective))}`;
      const spans = range(0, count - 1).map((i) => {
        const filled = range(0, n - 1).filter((j) => mix[i * n + j] > 1e-6);
        return { i, from: filled[0], to: filled.at(-1), weight: ofSlots[i] };
      });
      const overlap = spans.some(({ i, from }) => i && from <= spans[i - 1].to), top = overlap ? 40 : 27;
      const em = emOf(element) / 16, wide = (element.clientWidth || 640) / em;
      const step = (wide - SLANT) / n, size = clamp(0.7 * step, 12, 15), high = top + HIGH + 4.6 * size + BAR;
      picture.attr("viewBox", `0 0 ${wide} ${high}`).style("height", `${high / 16}em`);
      picture.attr("aria-label", `What “${tokens[t]}” attends to`).selectAll("*").remove();
      const cell = (x, y, width, colour, share) =>
        bar(picture, x + 1, y, width - 2, HIGH, colour).attr("rx", 3).style("fill-opacity", share ? 0.15 + 0.85 * Math.sqrt(share) : 0)
          .style("stroke", `var(--${colour})`).style("stroke-opacity", share ? 1 : 0.35);
      spans.forEach(({ i, from, to, weight }) => {
        const own = overlap && i ? (from + to + 1) / 2 : from; // the box of a slot stands over its own block, a line over what it overlaps
        cell(own * step, overlap ? 15 : 2, (to - own + 1) * step, "key", weight);
        if (own > from) picture.append("path").attr("d", `M${from * step + 4},${i % 2 ? 10 : 5}H${(to + 1) * step - 4}`).attr("fill", "none").style("stroke", "var(--key)").style("opacity", weight ? 1 : 0.3);
      });
      tokens.forEach((token, j) => {
        cell(j * step, top, step, "value", ofTokens[j]);
        const label = picture.append("text").text(shorten(token, 10)).attr("transform", `translate(${(j + 0.35) * step},${top + HIGH + 0.9 * size}) rotate(60)`).style("font-size", `${size}px`).style("cursor", "pointer");
        if (j === t) label.style("font-weight", "bold").style("fill", "var(--query)");
        label.on("click", () => pick(j));
        const length = (BAR * effective[j]) / largest;
        bar(picture, (j + 0.25) * step, high - length, step / 2, length, "query").style("stroke", "var(--query)").style("fill-opacity", j > t ? 0 : 1); // the future is hollow
      });
      picture.append("path").attr("d", `M0,${high - 0.5}H${wide}`).style("stroke", "currentColor").style("opacity", 0.4);
    },
  };
}
