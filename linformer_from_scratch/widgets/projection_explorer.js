// What E and F make of a real map: P̄ = softmax(q (E k)ᵀ / √d), and P̄F in the place of P. The numbers are in projection_explorer.py.

const ABREAST = 3.4; // maps beside each other: three, of which the middle one is narrow
const HIGH = 9; // em, of E and F whatever k is, so that nothing below them moves

export default widget(({ model, stage }) => {
  const { tokens, dims, short: shortNames } = model.get("facts"), data = model.get("data");
  const { head: heads, kind: kinds } = model.get("choices");
  const sent = Object.fromEntries(Object.keys(data).map((name) => [name, numbers(model, name)]));
  const [, , n, d] = data.qkv.shape, most = dims[dims.length - 1], rows = data.learned.shape[2];
  const places = { head: Object.keys(heads), kind: Object.keys(kinds) };
  const headNow = () => places.head.indexOf(model.get("head")), kindNow = () => places.kind.indexOf(model.get("kind"));
  const slotNow = () => Math.min(model.get("slot"), model.get("proj_dim")) - 1; // the last one where k is smaller
  const slots = range(1, most).map((slot) => `slot ${slot}`), pickSlot = (slot) => choose(model, "slot", slot + 1);
  const exactly = remember(), approximately = remember(), numbersNow = {};

  // Maps: E above P and F above P̄F share their columns, the keys; P̄ and P̄F share their rows, the queries.
  const pointed = pointing(), board = html("div", { class: "lw-product" }), side = html("div", { class: "lw-beside" });
  stage.append(board);
  const matrix = (name, role, area) => {
    const map = heatMap(board, {
      title: name, note: "slots down, tokens across; click one", abreast: ABREAST, signed: true,
      rows: () => slots, columns: () => tokens, hover: axesOf(pointed, "slot", "key"), pick: pickSlot, picks: "takes the slot",
      read: (weight, slot, token) => `slot ${slot + 1} takes ${signed(weight)} of the ${role} of “${tokens[token]}”`,
    });
    const bars = chart(board, { title: "", height: 5, margin: { top: 4, right: 0, bottom: 4, left: 0 } });
    map.element.style.gridArea = area;
    map.element.querySelector("b").style.color = `var(--${role})`;
    bars.element.style.gridArea = `${area}-bars`;
    return { map, bars, name, colour: role };
  };
  const mixers = [matrix("E", "key", "e"), matrix("F", "value", "f")];
  const tokensOn = { abreast: ABREAST, rows: () => tokens };
  const exact = heatMap(board, { ...tokensOn, title: "P", hover: axesOf(pointed, "query", "key") });
  const strip = heatMap(board, {
    ...tokensOn, title: "P̄", note: "queries down, slots across", columns: () => slots, hover: axesOf(pointed, "query", "slot"),
    pick: (query, slot) => pickSlot(slot), picks: "takes the slot",
    read: (weight, query, slot) => `“${tokens[query]}” reads slot ${slot + 1}: ${signed(weight)}`,
  });
  const product_ = heatMap(board, { ...tokensOn, title: "P̄F: what it amounts to", signed: true, hover: axesOf(pointed, "query", "key") });
  [exact, strip, product_].forEach((map, i) => { map.element.style.gridArea = ["exact", "strip", "product"][i]; });
  strip.element.classList.add("lw-right");

  board.append(side);
  const curve = chart(side, {
    title: "Error of the head's output", note: "drag to set k; answering zero has 100%", height: 13,
    margin: { top: 14, right: 124, bottom: 44, left: 52 },
  });
  const name = namedPoints(curve);
  dragged(curve.svg, (x) => {
    const inside = curve.svg.viewBox.baseVal.width - curve.margin.left - curve.margin.right;
    choose(model, "proj_dim", dims[clamp(Math.round(((x - curve.margin.left) / inside) * (dims.length - 1)), 0, dims.length - 1)]);
  });
  const written = html("div", { class: "lw-mixed" }), heading = html("b");
  const legend = html("span", {}, "below each token the colour of its weight in E");
  side.append(written);
  written.append(heading, legend);
  const text = sentence(written, { tokens: () => tokens, hover: axesOf(pointed, "query", "key") });

  /** E and F of the chosen kind, (k, n) each. */
  function projections(k) {
    const kind = model.get("kind"), from = headNow(), width = n / k;
    const own = (all, at, count) => all.subarray(at * count * n, at * count * n + k * n);
    if (kind === "best") return Array(2).fill(own(sent.right, from, most));
    if (kind === "mean" || kind === "strided") {
      const inWindow = (slot, token) => (Math.floor(token / width) === slot ? 1 / width : 0);
      const first = (slot, token) => (token === slot * width ? 1 : 0);
      const weight = kind === "mean" ? inWindow : first;
      return Array(2).fill(Float64Array.from({ length: k * n }, (_, p) => weight(Math.floor(p / n), p % n)));
    }
    const all = kind === "learned" ? sent.learned.subarray(2 * from * rows * n) : sent.gaussian;
    return [0, rows].map((start) => all.subarray((start + k - 2) * n, (start + 2 * k - 2) * n)); // 2 + 4 + … are k − 2 rows before
  }

  const qkv = () => range(3 * headNow(), 3 * headNow() + 2).map((at) => sent.qkv.subarray(at * n * d, (at + 1) * n * d));

  function curves(errors, k) {
    return (group, width, height) => {
      const size = { width, height }, { x, y } = errorAxes(group, dims, Object.values(errors).flatMap((some) => [...some]), size);
      stroke(group, `M${x(k)},0V${height}`, "edge", 12).lower();
      const line = d3.line((_, i) => x(dims[i]), y), isChosen = (kind) => kind === model.get("kind");
      const colour = (kind) => (isChosen(kind) ? "query" : kind === "best" ? "ink" : "grey");
      for (const kind of [...places.kind].sort((one) => (isChosen(one) ? 1 : -1))) // the chosen one on top
        stroke(group, line(errors[kind]), colour(kind), isChosen(kind) ? 3.5 : 1.5, kind === "best" ? "6 4" : null);
      endNames(group, places.kind.map((kind) =>
        ({ name: shortNames[kind], y: y(errors[kind].at(-1)), colour: `var(--${colour(kind)})`, bold: isChosen(kind) })), size);
      const now = errors[model.get("kind")][dims.indexOf(k)];
      group.append("circle").attr("cx", x(k)).attr("cy", y(now)).attr("r", 6).style("fill", "var(--query)");
      name(places.kind.flatMap((kind) => dims.map((size, i) =>
        ({ x: x(size), y: y(errors[kind][i]), say: `${kinds[kind]}, k = ${size}: off by ${percent(errors[kind][i])}` }))));
    };
  }

  /** One row of E or F as a bar for each token. */
  function weights(row, colour) {
    return (group, width, height) => {
      const highest = Math.max(1e-9, ...row, 0), lowest = Math.min(...row, 0), wide = width / n;
      const y = d3.scaleLinear([lowest, highest], [height, 0]);
      const bar = (token) => `M${token * wide},${y(0)}V${y(row[token])}h${wide}V${y(0)}Z`;
      const marked = pointed.cell?.key;
      group.append("path").attr("d", Array.from(row, (_, token) => bar(token)).join("")).style("fill", `var(--${colour})`);
      if (marked >= 0) group.append("path").attr("d", bar(marked)).style("fill", "var(--ink)");
      group.append("line").attr("x2", width).attr("y1", y(0)).attr("y2", y(0)).style("stroke", "var(--grey)");
    };
  }

  let shown = null; // what the bars and the text show
  function showSlot() {
    if (!shown) return;
    const { E, F, slot, theme } = shown, marked = pointed.cell?.key, row = (all) => all.subarray(slot * n, (slot + 1) * n);
    mixers.forEach(({ bars, name: matrixName, colour }, i) => {
      const mixed = row([E, F][i]), at = marked >= 0 ? `: “${tokens[marked]}” ${signed(mixed[marked])}` : `, its ${colour}s`;
      bars.show(weights(mixed, colour), { title: `Slot ${slot + 1} of ${matrixName}${at}` });
    });
    const mixed = row(E), strongest = Math.max(...mixed.map(Math.abs)), shades = SHADES[theme].signed;
    heading.textContent = `What slot ${slot + 1} mixes`;
    [...text.element.children].forEach((token, i) => {
      const pixel = shades[clamp(127.5 * (mixed[i] / strongest + 1), 0, 255) | 0];
      token.style.borderBottomColor = `rgb(${pixel & 255}, ${(pixel >> 8) & 255}, ${(pixel >> 16) & 255})`;
    });
  }
  pointed.listen(showSlot);

  return {
    numbers: numbersNow,
    controls: [
      menu(model, "head", { label: "Map", wide: true }),
      menu(model, "kind", { label: "E and F" }),
      slider(model, "proj_dim", { label: "Slots k", values: dims }),
      slider(model, "slot", {
        label: "Look at slot", values: () => range(1, model.get("proj_dim")), say: () => `${slotNow() + 1} of ${model.get("proj_dim")}`,
      }),
    ],
    draw(theme) {
      const k = model.get("proj_dim"), best = model.get("kind") === "best", slot = slotNow(), [q, keys, v] = qkv();
      const { P, output, limit } = exactly([model.get("head")], () => {
        const P = softmax(scoresOf(q, keys, d, Math.sqrt(d)), n);
        return { P, output: product(P, v, n), limit: Math.max(0.05, quantile(P, 0.98)) };
      });
      const state = [model.get("head"), model.get("kind"), k];
      const { E, F, P_bar, effective, error, sums, negative, strongest, read } = approximately(state, () => {
        const [E, F] = projections(k);
        const P_bar = best ? firstColumns(sent.left.subarray(headNow() * n * most, (headNow() + 1) * n * most), most, k)
          : softmax(scoresOf(q, product(E, keys, n), d, Math.sqrt(d)), k);
        const effective = product(P_bar, F, k), sums = rowSums(effective, n);
        const negative = effective.reduce((count, weight) => count + (weight < 0 ? 1 : 0), 0) / effective.length;
        const strongest = [E, F].map((all) => all.reduce((largest, weight) => Math.max(largest, Math.abs(weight)), 1e-3));
        const read = quantile(P_bar.map(Math.abs), 0.98); // a few weights may be darker
        return { E, F, P_bar, effective, sums, negative, strongest, read, error: relativeError(product(effective, v, n), output) };
      });
      const at = headNow() * places.kind.length * dims.length;
      const ofKind = (all, kind) => all.subarray(at + kind * dims.length, at + (kind + 1) * dims.length);
      const errors = Object.fromEntries(places.kind.map((kind, i) => [kind, ofKind(sent.errors, i)]));
      mixers.forEach(({ map, bars, name: matrixName, colour }, i) => {
        const title = best ? `Vᵀ in place of ${matrixName}: ${k} × ${n}` : `${matrixName}: ${k} × ${n}, for ${colour}s`;
        map.show([E, F][i], k, n, { limit: strongest[i], theme, high: HIGH, marked: { i: slot }, title });
        bars.element.style.maxWidth = map.canvas.parentElement.style.width;
      });
      exact.show(P, n, n, { limit, theme, title: `P: ${n} × ${n}` });
      strip.element.style.minWidth = `${parseFloat(exact.canvas.parentElement.style.width) * (most / n)}em`; // for every k
      const stripTitle = `${best ? "UΣ" : "P̄"}: ${n} × ${k}`;
      strip.show(P_bar, n, k, { limit: read, theme, signed: best, marked: { j: slot }, title: stripTitle });
      const title = best ? "UΣVᵀ: the best map" : "P̄F: what it amounts to";
      product_.show(effective, n, n, { limit, theme, title, note: "queries down, keys across; red below 0" });
      curve.show(curves(errors, k));
      text.refresh();
      shown = { E, F, slot, theme };
      showSlot();
      Object.assign(numbersNow, { P, E, F, P_bar, effective, error, errors });
      const rank = ofKind(sent.ranks, kindNow())[dims.indexOf(k)], row = E.subarray(slot * n, (slot + 1) * n);
      const token = row.reduce((largest, weight, i) => (Math.abs(weight) > Math.abs(row[largest]) ? i : largest), 0);
      return (
        `k = ${k} slots for ${n} tokens. The rows of P̄F sum to ${fixed(Math.min(...sums), 2)} … ` +
        `${fixed(Math.max(...sums), 2)}, ${percent(negative)} of its entries are negative, its rank is ${rank}. ` +
        `The head's output is off by ${percent(error)} ` +
        `(best map of rank ${k}: ${percent(errors.best[dims.indexOf(k)])}; answering zero: 100%). ` +
        `Slot ${slot + 1}: E weighs “${tokens[token]}” most, ${fixed(row[token], 2)}; F gives it ${fixed(F[slot * n + token], 2)}.`
      ).replaceAll("-", "−");
    },
  };
});

/** What a map with these axes sees of a pointer that many maps share: its cell is { query, key, slot }, as far as known. */
function axesOf(shared, down, across) {
  return {
    get cell() { return shared.cell && { i: shared.cell[down], j: shared.cell[across] }; },
    get source() { return shared.source; },
    listen: (listener) => shared.listen(listener),
    point: (cell, source) => shared.point(cell && { [down]: cell.i, [across]: cell.j }, source),
  };
}

/** Σ over each row of n. */
function rowSums(all, n) {
  return Float64Array.from({ length: all.length / n }, (_, i) => all.subarray(i * n, (i + 1) * n).reduce((sum, x) => sum + x));
}
