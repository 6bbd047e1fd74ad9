// Tokens flow through k slots into a query: P̄ = softmax(q (E k)ᵀ / √d), and P̄F in the place of P. The numbers are in projection_explorer.py.

const RATE = 0.003, STEPS = 4; // of Adam; updates a frame

export default widget(({ model, stage, redraw }) => {
  const { dims: allDims, short: shortNames } = model.get("facts"), data = model.get("data"), sent = arrays(model), readText = textOf(model);
  const { head: heads, kind: kinds } = model.get("choices");
  const [, , whole, d] = data.qkv.shape, rows = data.learned.shape[2]; // tokens of the stored text
  const tokens = readText.tokens, size = () => tokens().length, dims = () => allDims.filter((k) => 2 * k <= size());
  const slotsNow = () => Math.min(model.get("proj_dim"), dims().at(-1));
  const places = { head: Object.keys(heads), kind: Object.keys(kinds) };
  const headAt = () => places.head.indexOf(model.get("head")), kindNow = () => places.kind.indexOf(model.get("kind"));
  const asked = () => (model.get("query") <= size() ? model.get("query") : size() >> 1) - 1, ask = (token) => choose(model, "query", token + 1);
  const exactly = remember(), approximately = remember(), factors = remember(), measured = remember();

  // The text above, the flow below it, and beside it how much is lost: all light up what is pointed at.
  const pointed = pointing(), text = ribbon(stage, { tokens, isUnknown: readText.isUnknown, hover: pointed, query: asked, pick: ask });
  const lost = html("p", { class: "lw-large" }), scene = html("div", { class: "lw-flowing" }, lost);
  stage.append(scene);
  const stream = flow(scene, { tokens, hover: pointed, pick: ask, say }), maps = matrices(scene, { tokens, most: allDims.at(-1), hover: pointed });
  const curve = chart(scene, { title: "How far off, by k", height: 12, margin: { top: 14, right: 112, bottom: 50, left: 46 } });
  const slots = curve.handle(slider(model, "proj_dim", { label: "Slots k", values: dims, value: slotsNow }));

  /** E and F that learn on the head in view, beginning with the chosen kind; another head, kind or k begins anew. */
  let pupil = null;
  const place = () => JSON.stringify([readText.shown(), model.get("head"), model.get("kind"), slotsNow()]);
  const here = () => (pupil?.place === place() ? pupil : null);
  const learn = runner({
    label: "Learn", running: "Stop", can: () => model.get("kind") !== "best", // the best map has no E
    forget() { pupil = null; },
    step() {
      pupil = here() ?? Object.assign(learner(head(), ...projections(slotsNow()), RATE), { place: place() });
      for (let i = 0; i < STEPS; i++) pupil.step();
      redraw();
    },
  });

  const isWide = () => stage.clientWidth > 46 * emOf(stage); // the curves have room for their names
  const kind = menu(model, "kind", { label: "E and F" });
  scene.append(html("div", { class: "lw-teach" }, kind.element, learn.element));

  /** E and F of a kind, (k, n) each; of the learned and the Gaussian ones a shorter text has the first columns. */
  function projections(k, kind = model.get("kind")) {
    const n = size();
    if (kind === "best") return Array(2).fill(best().right.subarray(0, k * n));
    if (kind === "mean" || kind === "strided") {
      const weight = kind === "mean" ? inWindow : (slot, token, each) => (token === Math.floor(slot * each + 1e-9) ? 1 : 0);
      return Array(2).fill(Float64Array.from({ length: k * n }, (_, p) => weight(Math.floor(p / n), p % n, n / k)));
    }
    const all = kind === "learned" ? sent.learned.subarray(2 * headAt() * rows * whole) : sent.gaussian;
    const own = (start) => all.subarray((start + k - 2) * whole, (start + 2 * k - 2) * whole); // 2 + 4 + … are k − 2 rows before
    return [0, rows].map((start) => (n === whole ? own(start) : firstColumns(own(start), whole, n)));
  }

  /** What stands in the place of P̄ for a kind, (n, k). */
  const stripOf = (kind, E, k) => {
    if (kind === "best") return firstColumns(best().left, best().left.length / size(), k);
    const { q, keys } = head();
    return softmax(scoresOf(q, product(E, keys, size()), d, Math.sqrt(d)), k);
  };

  /** Of the head in view: U diag(σ), n rows, and Vᵀ, n columns; k of both are the best map. */
  const best = () => factors([readText.shown(), model.get("head")], () => {
    const n = size(), of = (all) => all.subarray((headAt() * all.length) / places.head.length, ((headAt() + 1) * all.length) / places.head.length);
    if (!readText.isOwn()) return { left: of(sent.left), right: of(sent.right) };
    const { u, sigma, vt } = decompose(head().P, n);
    return { left: u.map((x, p) => x * sigma[p % n]), right: vt };
  });

  /** Kind -> error of the head's output for each of dims. */
  const errorsOf = () => measured([readText.shown(), model.get("head")], () => keyed(places.kind, (kind, i) => {
    const at = (headAt() * places.kind.length + i) * allDims.length, { v, wanted } = head();
    if (!readText.isOwn()) return sent.errors.subarray(at, at + allDims.length);
    return Float64Array.from(dims(), (k) => {
      const [E, F] = projections(k, kind);
      return relativeError(product(stripOf(kind, E, k), product(F, v, size()), k), wanted);
    });
  }));

  /** The head in view: queries, keys, values, its map, and its output, which slots should give. */
  const head = () => exactly([readText.shown(), model.get("head")], () => {
    const n = size(), [layer, own] = model.get("head").split(".").map(Number), at = 12 * (layer - 1) + own - 1;
    const ofHead = (all, i) => all.subarray(i * n * d, (i + 1) * n * d);
    const [q, keys, v] = readText.isOwn() ? ownHeads(model, readText.shown()).map((all) => ofHead(all, at))
      : range(0, 2).map((i) => ofHead(sent.qkv, 3 * headAt() + i));
    const P = softmax(scoresOf(q, keys, d, Math.sqrt(d)), n);
    return { q, keys, v, d, P, wanted: product(P, v, n), limit: Math.max(0.05, quantile(P, 0.98)) };
  });

  /** What k slots make of it. */
  const through = (k) => approximately([readText.shown(), model.get("head"), model.get("kind"), k, here()?.updates], () => {
    const { v, wanted } = head(), [E, F] = here()?.projections ?? projections(k), P_bar = stripOf(model.get("kind"), E, k);
    const effective = product(P_bar, F, k);
    return { E, F, P_bar, effective, error: relativeError(product(effective, v, size()), wanted) };
  });

  const row = (all, i) => all.subarray(i * (all.length / size()), (i + 1) * (all.length / size()));

  /** What is pointed at, in words. */
  function say({ key, slot }) {
    const k = slotsNow(), n = size(), { E, F, P_bar, effective } = through(k), query = `“${tokens()[asked()]}”`;
    if (slot >= 0) {
      const part = ([t, weight]) => `“${tokens()[t]}” ${signed(weight)}`;
      const top = (all) => strongest(all.subarray(slot * n, (slot + 1) * n), 2).map(part).join(", ");
      return `Slot ${slot + 1} of ${k}: keys ${top(E)}, …; values ${top(F)}, …; ${query} attends to it: ${signed(row(P_bar, asked())[slot])}`;
    }
    if (!(key >= 0)) return "";
    const [got, exact] = [effective, head().P].map((all) => signed(row(all, asked())[key]));
    return `${query} gets of “${tokens()[key]}” (token ${key + 1}): through the slots ${got}, exactly ${exact}`;
  }

  function curves(errors, k, error) {
    const ks = dims();
    return (group, width, height) => {
      const box = { width, height }, { x, y } = errorAxes(group, ks, [error, ...Object.values(errors).flatMap((some) => [...some])], box);
      stroke(group, `M${x(k)},0V${height}`, "edge", 12).lower();
      const line = d3.line((_, i) => x(ks[i]), y), isChosen = (kind) => kind === model.get("kind");
      const colour = (kind) => (isChosen(kind) ? "query" : kind === "best" ? "ink" : "grey");
      for (const kind of [...places.kind].sort((one) => (isChosen(one) ? 1 : -1))) // the chosen one on top
        stroke(group, line(errors[kind]), colour(kind), isChosen(kind) ? 3.5 : 1.5, kind === "best" ? "6 4" : null);
      if (isWide()) endNames(group, places.kind.map((kind) =>
        ({ name: shortNames[kind], y: y(errors[kind].at(-1)), colour: `var(--${colour(kind)})`, bold: isChosen(kind) })), box);
      const began = errors[model.get("kind")][ks.indexOf(k)];
      stroke(group, `M${x(k)},${y(began)}V${y(error)}`, "query", 3); // what has been learned here
      dot(group, x(k), y(error), 6, "query");
      if (here()) write(group, "learned here", x(k) - 12, y(error) + 5, "end").style("fill", "var(--query)").style("font-weight", "bold");
      return places.kind.flatMap((kind) => ks.map((slots, i) =>
        ({ x: x(slots), y: y(errors[kind][i]), say: `${kinds[kind]}, k = ${slots}: off by ${percent(errors[kind][i])}` })));
    };
  }

  return {
    controls: [slots, readText.controls.own, kind, learn],
    more: [
      menu(model, "head", { label: "Head", wide: true }),
      readText.controls.text,
      slider(model, "query", { label: "Query", values: () => range(1, size()), value: () => asked() + 1, say: (i) => shorten(tokens()[i - 1]) }),
      tick(model, "matrices", { label: "Show matrices" }),
    ],
    hint: "drag the lower dot of the curve. Then choose mean pooling, press Learn, and watch the bands move. Point at a slot, or click a word.",
    draw(theme) {
      const n = size(), k = slotsNow(), best = model.get("kind") === "best", updates = here()?.updates ?? 0;
      const { P, limit } = head(), { E, F, P_bar, effective, error } = through(k), query = asked();
      const errors = errorsOf(), at = dims().indexOf(k);
      const [read, exact, got] = [P_bar, P, effective].map((all) => row(all, query));
      lost.replaceChildren(html("b", {}, `${percent(error)} off`), ` the head's output through ${k} slots`);
      stream.show({ k, F, read, exact, through: got, asked: query, theme, words: [`▲ through ${k} slots`, "▼ exact attention"] }, {
        title: `What “${tokens()[query]}” gets from each token`,
        note: "A slot has the colours of the tokens it mixes. Bars: square roots; red: below zero.",
      });
      text.show(stream.colours, F);
      curve.margin.right = isWide() ? 112 : 12;
      curve.show(curves(errors, k, error), { note: isWide() ? "" : "dashed: nearest to P" });
      const sums = range(0, n - 1).map((i) => row(effective, i).reduce((sum, x) => sum + x, 0));
      const negative = effective.reduce((count, weight) => count + (weight < 0 ? 1 : 0), 0) / effective.length;
      const shown = model.get("matrices");
      maps.element.hidden = !shown;
      stream.element.hidden = shown;
      if (shown) maps.show({ E, F, P, P_bar, effective, limit, best }, k, theme);
      const [[most_, weight]] = strongest(exact, 1), [[other, gotten]] = strongest(got, 1);
      const rank = () => (readText.isOwn() ? rankOf(effective, n) : sent.ranks[(headAt() * places.kind.length + kindNow()) * allDims.length + at]);
      const words = (
        `With k = ${k} slots for ${n} tokens, the head's output is off by ${percent(error)}; ` +
        `the map of rank ${k} nearest to P is off by ${percent(errors.best[at])}. ` +
        (updates ? `E and F have learned on this very text for ${updates} updates. ` : "") +
        `“${tokens()[query]}” attends most to “${tokens()[most_]}”, ${fixed(weight, 2)}; ` +
        `through the slots it gets most from “${tokens()[other]}”, ${fixed(gotten, 2)}.` +
        (shown ? ` The rows of P̄F sum to ${fixed(Math.min(...sums), 2)} … ${fixed(Math.max(...sums), 2)}, ` +
          `${percent(negative)} of its entries are negative, its rank is ${rank()}.` : "")
      ).replaceAll("-", "−");
      return { ...readText.said(words), numbers: { P, E, F, P_bar, effective, error, errors } };
    },
  };
});

/** The places and values of the largest weights, whatever their sign: [[place, weight], …]. */
function strongest(weights, count) {
  return Array.from(weights, (weight, i) => [i, weight]).sort(([, a], [, b]) => Math.abs(b) - Math.abs(a)).slice(0, count);
}

/** The text itself: pointing at a word points at its token, a click makes it the query. Its colours are those of the flow. */
function ribbon(stage, { tokens, isUnknown, hover, query, pick }) {
  const at = { get cell() { return { i: query(), j: hover.cell?.key }; }, listen: (listener) => hover.listen(listener) };
  const { element, refresh } = sentence(stage, { tokens, isUnknown, hover: at });
  let shown = null;
  const place = (event) => [...element.children].indexOf(event.target);
  element.classList.add("lw-ribbon");
  element.tabIndex = 0; // on a phone it scrolls
  element.addEventListener("pointerover", (event) => hover.point(place(event) < 0 ? null : { key: place(event) }, element));
  element.addEventListener("pointerleave", () => hover.point(null, element));
  element.addEventListener("click", (event) => place(event) >= 0 && pick(place(event)));
  function tint() {
    const { slot } = hover.cell ?? {}, row = shown && slot >= 0 ? shown.F.subarray(slot * tokens().length, (slot + 1) * tokens().length) : null;
    [...element.children].forEach((word, i) => { word.style.background = row && i !== query() ? painted(shown.colours[i], 0.5 * shareOf(row, i)) : ""; });
  }
  hover.listen(tint);
  return {
    /** colours: of each token; F: what the slots mix. */
    show(colours, F) {
      shown = { colours, F };
      refresh();
      [...element.children].forEach((word, i) => { word.style.borderBottomColor = painted(colours[i]); });
      tint();
    },
  };
}

/** Weight of a token in a slot that is the mean of its window of so many tokens; windows share a token where that is no whole number. */
function inWindow(slot, token, each) {
  const first = Math.floor(slot * each + 1e-9), end = Math.ceil((slot + 1) * each - 1e-9);
  return token >= first && token < end ? 1 / (end - first) : 0;
}

/** Rank of a map (n, n); singular values below 1e-5 of the largest count as zero. */
const rankOf = (map, n) => decompose(map, n).sigma.filter((s, _, all) => s > 1e-5 * all[0]).length;
