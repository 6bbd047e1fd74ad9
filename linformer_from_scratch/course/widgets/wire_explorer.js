// Ranks in a circle and what travels between them, in arrows as thick as their bytes. The formulas are those of distributed/wire.py: wire_explorer.py sends them as tables.

const [CENTRE, RADIUS, THICK, HAIR] = [100, 78, 28, 0.4]; // of a circle; widths of the thickest and of the thinnest arrow
const [HEAD, MIDDLE] = [8, 46]; // of an arrow; of the circle, where the number stands

export default widget(({ model, stage }) => {
  const { formulas, lengths, units, bytes, lines, ways, most_drawn } = model.get("facts");
  const methods = Object.keys(lines), [ring, ulysses, linformer] = methods, others = [ring, ulysses];
  const inBytes = (value) => quantity(value, units), { element, small } = figure(stage, "What each rank sends for one layer, forward", "");
  const panels = keyed(methods, () => ({ picture: d3.create("svg").attr("viewBox", "0 0 200 200").attr("role", "img"), said: html("p") }));
  element.append(html("div", { class: "lw-wires" }, ...methods.map((name) => html("div", {}, panels[name].picture.node(), panels[name].said))));

  return {
    controls: [
      slider(model, "ranks", { label: "Ranks P", values: powersOfTwo(1, 8) }),
      slider(model, "n", { label: "Tokens n", values: lengths }),
    ],
    hint: "double the ranks, then double n. Whose arrows don't care?",
    more: [
      slider(model, "proj_dim", { label: "Slots k", values: powersOfTwo(6, 10) }),
      slider(model, "d_model", { label: "d_model", values: powersOfTwo(8, 12) }),
      tick(model, "shared", { label: "E = F" }),
    ],
    draw(theme) {
      const [ranks, n, k, d, shared] = ["ranks", "n", "proj_dim", "d_model", "shared"].map(model.get);
      const of = formulas[shared ? "shared" : "apart"], values = [d, 1, k, 1, bytes, ranks];
      const inN = keyed(methods, (name) => inPowersOfN(of[name], values)), sent = keyed(methods, (name) => atN(inN[name], n)), tokens = n / ranks;
      const above = keyed(others, (name) => Math.round((n * sent[linformer]) / sent[name]));
      const exchanges = { [ring]: ranks - 1, [ulysses]: 4, [linformer]: 1 }, matrixBytes = (shared ? 1 : 2) * k * tokens * bytes;
      const matrices = shared ? "columns of E = F" : "columns of E and F", each = (name) => inBytes(sent[name] / exchanges[name]);
      const says = {
        [ring]: `${exchanges[ring]} ${ranks === 2 ? "pass" : "passes"} of ${each(ring)}: K and V of ${thousands(tokens)} tokens`,
        [ulysses]: `4 all-to-alls of ${each(ulysses)}; it needs ${ranks} heads`,
        [linformer]: `1 all-reduce of ${shared ? "" : "2 × "}${k} rows, whatever n; not exact`,
      };
      const along = { ...sent, [ulysses]: sent[ulysses] / (ranks - 1) }, widest = atN(inN[ring], lengths.at(-1)); // bytes that go along an arrow
      methods.forEach((name) => {
        const colour = PALETTE[theme].lines[lines[name]], { picture, said } = panels[name];
        const last = name === linformer ? `${matrices}, ${inBytes(matrixBytes)}, stay and grow with n` : `more than Linformer above n = ${thousands(above[name])}`;
        picture.attr("aria-label", `${name}: ${inBytes(sent[name])}`).selectAll("*").remove();
        circle(picture, { count: Math.min(ranks, most_drawn), how: ways[name], colour, width: Math.max(HAIR, (THICK * along[name]) / widest) });
        write(picture, inBytes(sent[name]), CENTRE, CENTRE + 7, "middle").style("font-size", "20px").style("fill", colour).style("font-weight", "bold");
        said.replaceChildren(html("b", { style: `color: ${colour}` }, name), says[name], html("span", {}, last));
      });
      small.textContent = `an arrow is as thick as the bytes that go its way${ranks > most_drawn ? `; ${most_drawn} of the ${ranks} ranks are drawn` : ""}`;
      const compared = others.map((name) => times(sent[name] / sent[linformer])), least = Math.max(...Object.values(above));
      const words =
        `${thousands(n)} tokens on ${ranks} ranks: Linformer sends ${inBytes(sent[linformer])}, ${ring} ${compared[0]}, ${ulysses} ${compared[1]}. Linformer sends less than both above n = ${thousands(least)}, ` +
        `${n > least ? "as here" : "but not here"}.`;
      return { words, numbers: { sent, above, matrix_bytes: matrixBytes } };
    },
  };
});

/** Boxes in a circle, and below them what travels: from each to the next, to all others, or to the sum in the middle. */
function circle(picture, { count, how, colour, width }) {
  const places = range(0, count - 1).map((i) => [Math.sin((2 * Math.PI * i) / count), -Math.cos((2 * Math.PI * i) / count)].map((x) => CENTRE + RADIUS * x));
  const box = Math.min(24, (3 * RADIUS) / count), cut = 0.65 * box; // so far from its middle an arrow begins
  places.forEach((place, i) => {
    if (how === "round") arrow(picture, place, places[(i + 1) % count], { cut, end: cut, colour, width });
    else if (how === "inwards") arrow(picture, place, [CENTRE, CENTRE], { cut, end: MIDDLE, colour, width });
    else for (const other of places.slice(0, i)) stroke(picture, `M${place}L${other}`, colour, width);
  });
  for (const [x, y] of places) bar(picture, x - box / 2, y - box / 2, box, box, "edge").attr("rx", 3).attr("stroke", "var(--ink)").attr("stroke-width", 1.5);
}

/** An arrow between two places, of which it keeps away. */
function arrow(picture, from, to, { cut, end, colour, width }) {
  const across = to.map((x, c) => x - from[c]), long = Math.hypot(...across), [x, y] = across.map((one) => one / long), half = width / 2 + 4;
  const at = (along, aside = 0) => [from[0] + along * x - aside * y, from[1] + along * y + aside * x], neck = Math.max(cut, long - end - HEAD);
  stroke(picture, `M${at(cut)}L${at(neck)}`, colour, width);
  picture.append("path").attr("d", `M${[at(neck, half), at(neck, -half), at(long - end)].join("L")}Z`).attr("fill", colour);
}

/** A ratio of powers of two in words. */
function times(ratio) {
  if (ratio === 1) return "just as much";
  return ratio > 1 ? `${thousands(Math.round(ratio))} times as much` : `1/${thousands(Math.round(1 / ratio))} as much`;
}
