// The matrices of one head: E above P and F above P̄F share their columns, the keys; P̄ and P̄F their rows, the queries.

const ABREAST = 3.4; // maps beside each other: three, of which the middle one is narrow
const HIGH = 6; // em, of E and F whatever k is, so that nothing below them moves

/** hover: what is pointed at, { query, key, slot }, as far as known; most: the largest k. */
function matrices(stage, { tokens, most, hover }) {
  const board = html("div", { class: "lw-product", hidden: "" }), slots = range(1, most).map((slot) => `slot ${slot}`);
  const map = (area, [down, across], more) => {
    const made = heatMap(board, {
      title: "", abreast: ABREAST, hover: axesOf(hover, down, across), rows: () => (down === "slot" ? slots : tokens()),
      columns: () => (across === "slot" ? slots : tokens()), ...more,
    });
    made.element.style.gridArea = area;
    return made;
  };
  const mixer = (role, area) => map(area, ["slot", "key"], {
    note: "slots down, tokens across", signed: true,
    read: (weight, slot, token) => `slot ${slot + 1} takes ${signed(weight)} of the ${role} of “${tokens()[token]}”`,
  });
  const mixers = [mixer("key", "e"), mixer("value", "f")];
  mixers.forEach((one, i) => { one.element.querySelector("b").style.color = `var(--${["key", "value"][i]})`; });
  const exact = map("exact", ["query", "key"]);
  const strip = map("strip", ["query", "slot"], {
    note: "queries down, slots across", read: (weight, query, slot) => `“${tokens()[query]}” attends to slot ${slot + 1}: ${signed(weight)}`,
  });
  const effective = map("product", ["query", "key"], { signed: true });
  strip.element.classList.add("lw-right");
  stage.append(board);
  return {
    element: board,
    /** E, F (k, n), P, P̄, P̄F of a head; best: they are those of the best map of rank k. */
    show({ E, F, P, P_bar, effective: product_, limit, best }, k, theme) {
      const n = tokens().length, strongest = (all) => all.reduce((largest, weight) => Math.max(largest, Math.abs(weight)), 1e-3);
      mixers.forEach((one, i) => {
        const name = "EF"[i], title = best ? `Vᵀ in place of ${name}: ${k} × ${n}` : `${name}: ${k} × ${n}, for ${["key", "value"][i]}s`;
        one.show([E, F][i], k, n, { limit: strongest([E, F][i]), theme, high: HIGH, title });
      });
      exact.show(P, n, n, { limit, theme, title: `P: ${n} × ${n}` });
      strip.element.style.minWidth = `${parseFloat(exact.canvas.parentElement.style.width) * (Math.min(most, n / 2) / n)}em`; // for every k
      const darkest = quantile(P_bar.map(Math.abs), 0.98); // a few weights may be darker
      strip.show(P_bar, n, k, { limit: darkest, theme, signed: best, title: `${best ? "UΣ" : "P̄"}: ${n} × ${k}` });
      effective.show(product_, n, n, { limit, theme, title: best ? "UΣVᵀ: nearest to P" : "P̄F: what it amounts to" });
    },
  };
}

/** What a map with these axes sees of a pointer that many pictures share. */
function axesOf(shared, down, across) {
  return {
    get cell() { return shared.cell && { i: shared.cell[down], j: shared.cell[across] }; },
    get source() { return shared.source; },
    listen: (listener) => shared.listen(listener),
    point: (cell, source) => shared.point(cell && { [down]: cell.i, [across]: cell.j }, source),
  };
}
