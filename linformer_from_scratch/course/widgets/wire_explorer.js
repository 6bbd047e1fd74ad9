// Ranks in a circle and what travels between them, in arrows as thick as their bytes. The formulas are those of distributed/wire.py: wire_explorer.py sends them as tables.

const [CENTRE, RADIUS, THICK, HAIR] = [100, 78, 28, 0.4]; // of a circle; widths of the thickest and of the thinnest arrow
const HEAD = 8; // of an arrow

export default widget(({ model, stage }) => {
  const { formulas, lengths, units, bytes, lines, most_drawn } = model.get("facts");
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
        circle(picture, { count: Math.min(ranks, most_drawn), travels: { [ring]: round, [ulysses]: across, [linformer]: inwards }[name], colour, width: Math.max(HAIR, (THICK * along[name]) / widest) });
        write(picture, inBytes(sent[name]), CENTRE, CENTRE + 8, "middle").style("font-size", "23px").style("fill", colour).style("font-weight", "bold");
        said.replaceChildren(html("b", { style: `color: ${colour}` }, name), says[name], html("span", {}, last));
      });
      small.textContent = `an arrow is as thick as the bytes that go its way${ranks > most_drawn ? `; ${most_drawn} of the ${ranks} ranks are drawn` : ""}`;
      const compared = others.map((name) => times(sent[name] / sent[linformer])), least = Math.max(...Object.values(above));
      const words =
        `${thousands(n)} tokens on ${ranks} ranks: beside Linformer, ${ring} sends ${compared[0]}, ${ulysses} ${compared[1]}. Linformer sends less than both above n = ${thousands(least)}, ` +
        `${n > least ? "as here" : "but not here"}.`;
      return { words, numbers: { sent, above, exchanges, tokens, matrix_bytes: matrixBytes } };
    },
  };
});

/** Boxes in a circle, and below them what travels. */
function circle(picture, { count, travels, colour, width }) {
  const angles = range(0, count - 1).map((i) => (2 * Math.PI * i) / count), box = Math.min(24, (3 * RADIUS) / count);
  travels(picture, { angles, box, colour, width });
  for (const angle of angles) {
    const [x, y] = at(RADIUS, angle);
    bar(picture, x - box / 2, y - box / 2, box, box, "edge").attr("rx", 3).attr("stroke", "var(--ink)").attr("stroke-width", 1.5);
  }
}

/** A place by its distance from the centre and its angle, clockwise from the top. */
const at = (radius, angle) => [CENTRE + radius * Math.sin(angle), CENTRE - radius * Math.cos(angle)];

/** From each box to the next. */
function round(picture, { angles, box, colour, width }) {
  const gap = (0.65 * box) / RADIUS, head = HEAD / RADIUS, step = (2 * Math.PI) / angles.length;
  for (const angle of angles) {
    const end = angle + step - gap - head, [from, to] = [angle + gap, end].map((one) => at(RADIUS, one));
    stroke(picture, `M${from}A${RADIUS},${RADIUS} 0 0 1 ${to}`, colour, width);
    point(picture, [at(RADIUS - width / 2 - 4, end), at(RADIUS + width / 2 + 4, end), at(RADIUS, end + head)], colour);
  }
}

/** From each box to all others. */
function across(picture, { angles, colour, width }) {
  angles.forEach((angle, i) => angles.slice(0, i).forEach((other) => stroke(picture, `M${at(RADIUS, angle)}L${at(RADIUS, other)}`, colour, width)));
}

/** From each box to the middle, where the sum is. */
function inwards(picture, { angles, box, colour, width }) {
  const middle = 44;
  for (const angle of angles) {
    const end = middle + HEAD, half = (width / 2 + 4) / end;
    stroke(picture, `M${at(RADIUS - 0.6 * box, angle)}L${at(end, angle)}`, colour, width);
    point(picture, [at(end, angle - half), at(end, angle + half), at(middle, angle)], colour);
  }
}

const point = (picture, corners, colour) => picture.append("path").attr("d", `M${corners.join("L")}Z`).attr("fill", colour);

/** A ratio of powers of two in words. */
function times(ratio) {
  if (ratio === 1) return "just as much";
  return ratio > 1 ? `${thousands(Math.round(ratio))} times as much` : `1/${thousands(Math.round(1 / ratio))} as much`;
}
