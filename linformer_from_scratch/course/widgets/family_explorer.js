// The n×n map that each relative of Linformer puts in the place of a head's own. The numbers are in family_explorer.py.

const MOST = 2; // the error at which bars end: 200 %

export default widget(({ model, stage }) => {
  const { tokens, budgets, relatives, errors } = model.get("facts"), { head: heads, relative: names } = model.get("choices");
  const { qk, learned, omega } = arrays(model), [, , n, d] = model.get("data").qk.shape, [, , rows] = model.get("data").learned.shape;
  const hover = pointing(), exactly = remember(), replaced = remember();
  const pair = html("div", { class: "lw-pair" }), { element, tell } = figure(stage, "Output error; the line: answering zero", "");
  stage.prepend(pair);
  const [exact, own] = ["P: exact", ""].map((title) => heatMap(pair, { title, abreast: 2, rows: () => tokens, hover }));
  const ranked = ranking(model, Object.keys(names), tell);
  element.append(ranked.element);

  /** Of rows that follow each other for every budget, those of the chosen one. */
  function ofBudget(all, sizes, width) {
    const at = budgets.indexOf(model.get("budget")), before = sizes.slice(0, at).reduce((sum, size) => sum + size, 0);
    return all.subarray(before * width, (before + sizes[at]) * width);
  }

  /** The map of the chosen relative, of a size. */
  function mapOf(q, k, name, size) {
    const scores = scoresOf(q, k, d, Math.sqrt(d)), query = (p) => Math.floor(p / n), key = (p) => p % n;
    const among = (mayRead) => softmax(scores.map((score, p) => (mayRead(query(p), key(p)) ? score : -Infinity)), n);
    const throughSlots = (E, F) => product(softmax(scoresOf(q, product(E, k, n), d, Math.sqrt(d)), size), F, size);
    if (name === "sliding window") return among((i, j) => Math.abs(i - j) <= size);
    if (name === "strided + global") return among((i, j) => (i - j) % Math.ceil(n / size) === 0 || i === 0 || j === 0);
    if (name === "two levels") {
      const blocks = Math.ceil(n / size), block = (token) => Math.floor(token / size);
      const E = averages(range(0, blocks - 1).map((b) => [b * size, Math.min(n, (b + 1) * size)]), n);
      const far = scoresOf(q, product(E, k, n), d, Math.sqrt(d)); // each token of another block counts as the mean of its block
      const isNear = (p) => block(query(p)) === block(key(p));
      return softmax(scores.map((score, p) => (isNear(p) ? score : far[query(p) * blocks + block(key(p))])), n);
    }
    if (name === "Linformer, mean pooling") {
      const E = averages(range(0, size - 1).map((i) => [Math.floor((i * n) / size), Math.ceil(((i + 1) * n) / size)]), n);
      return throughSlots(E, E);
    }
    if (name === "Linformer, learned") {
      const ofHead = 2 * rows * n * Object.keys(heads).indexOf(model.get("head"));
      return throughSlots(...[0, 1].map((i) => ofBudget(learned.subarray(ofHead + i * rows * n), relatives[name].sizes, n)));
    }
    if (name === "Nyström") return nystrom(q, k, n, d, size);
    const eluPlusOne = (x) => x.map((one) => Math.exp(Math.min(one, 0)) + Math.max(one, 0));
    if (name === "linear") return kernelMap(eluPlusOne(Float64Array.from(q)), eluPlusOne(Float64Array.from(k)), d);
    if (name === "Performer") return performer(q, k, n, d, ofBudget(omega, relatives[name].sizes, d));
    return softmax(scores, n); // tiled exact
  }

  /** A relative with its size and its cost, in words. */
  function costOf(name, at) {
    const { unit, sizes, costs } = relatives[name], keys = `costs ${fixed(costs[at], 0)}`;
    if (sizes[at] === null) return `${names[name]} ${keys} keys per query, the budget is ${budgets[at]}.`;
    return `${names[name]}${unit && ` with ${sizes[at]} ${unit}`} ${keys} of ${n} keys per query`;
  }

  return {
    controls: [slider(model, "budget", { label: "Keys per query", values: budgets }), ranked],
    hint: "go from bar to bar. Who keeps the diagonal, who keeps the columns, and what does it cost in error?",
    more: [menu(model, "head", { label: "Map", wide: true })],
    draw(theme) {
      const [head, relative, budget] = ["head", "relative", "budget"].map(model.get), at = budgets.indexOf(budget);
      const size = relatives[relative].sizes[at], place = 2 * Object.keys(heads).indexOf(head);
      const [q, k] = [place, place + 1].map((i) => qk.subarray(i * n * d, (i + 1) * n * d));
      const { P, limit } = exactly([head], () => {
        const P = softmax(scoresOf(q, k, d, Math.sqrt(d)), n);
        return { P, limit: Math.max(0.05, quantile(P, 0.98)) };
      });
      const effective = replaced([head, relative, budget], () => (size === null ? new Float64Array(n * n) : mapOf(q, k, relative, size)));
      const negative = effective.reduce((count, weight) => count + (weight < -1e-6 ? 1 : 0), 0) / effective.length, signed = negative > 0;
      const found = keyed(Object.keys(errors[head]), (name) => errors[head][name][at] ?? NaN);
      exact.show(P, n, n, { limit, theme });
      const note = size === null ? "nothing: too dear at this budget" : "in its place";
      own.show(effective, n, n, { limit, theme, signed, note, title: relative });
      ranked.show(found, (name) => costOf(name, at));
      const off = ` and is off by ${percent(found[relative])}; ${percent(negative)} of its weights are negative.`;
      return { words: costOf(relative, at) + (size === null ? "" : off), numbers: { P, effective, errors: found } };
    },
  };
});

/** All relatives as bars, the smallest error first, to choose one of; say: its cost in words. */
function ranking(model, names, tell) {
  const element = html("div", { class: "lw-ranking", role: "radiogroup", "aria-label": "Relative" }), group = `lw-${Math.random().toString(36).slice(2)}`;
  const parts = keyed(names, (name) => {
    const input = html("input", { type: "radio", name: group, class: "lw-hidden", change: () => choose(model, "relative", name) }), number = html("b");
    return { input, number, bar: html("label", { pointerleave: () => tell() }, input, html("span", {}, name), number) };
  });
  return {
    element, refresh: () => { parts[model.get("relative")].input.checked = true; },
    show(errors, say) {
      const last = (name) => (Number.isNaN(errors[name]) ? Infinity : errors[name]), order = [...names].sort((a, b) => last(a) - last(b));
      if (order.some((name, i) => element.children[i] !== parts[name].bar)) element.replaceChildren(...order.map((name) => parts[name].bar));
      for (const name of names) {
        const { number, bar } = parts[name], tooDear = Number.isNaN(errors[name]);
        number.textContent = tooDear ? "too dear" : percent(errors[name]);
        bar.style.setProperty("--share", tooDear ? 0 : Math.min(errors[name], MOST) / MOST);
        bar.onpointerenter = () => tell(say(name));
      }
    },
  };
}

/** Means over windows [from, to) of n tokens, as a matrix with a row for each window. */
function averages(windows, n) {
  return Float64Array.from({ length: windows.length * n }, (_, p) => {
    const [from, to] = windows[Math.floor(p / n)], token = p % n;
    return from <= token && token < to ? 1 / (to - from) : 0;
  });
}

/** softmax(Q K̃ᵀ/√d) · softmax(Q̃ K̃ᵀ/√d)⁺ · softmax(Q̃ Kᵀ/√d), with means of m segments as Q̃ and K̃. */
function nystrom(q, k, n, d, m) {
  const start = (i) => i * Math.floor(n / m) + Math.max(0, i - m + (n % m)); // the last n mod m segments are a token longer
  const means = averages(range(0, m - 1).map((i) => [start(i), start(i + 1)]), n);
  const [qMeans, kMeans] = [q, k].map((x) => product(means, x, n)), root = Math.sqrt(d);
  const mapOf = (a, b, width) => softmax(scoresOf(a, b, d, root), width);
  const left = mapOf(q, kMeans, m), middle = mapOf(qMeans, kMeans, m), right = mapOf(qMeans, k, n);
  return product(left, product(pseudoinverse(middle, m), right, m), m);
}

/** The Moore-Penrose inverse of an m × m matrix, approached in six steps. */
function pseudoinverse(a, m) {
  const rowSum = (x, i) => x.subarray(i * m, (i + 1) * m).reduce((sum, one) => sum + Math.abs(one), 0);
  const largestSum = (x) => Math.max(...range(0, m - 1).map((i) => rowSum(x, i)));
  const minus = (x, diagonal) => x.map((one, p) => (p % (m + 1) === 0 ? diagonal : 0) - one);
  const scale = largestSum(a) * largestSum(transposed(a, m));
  let z = transposed(a, m).map((one) => one / scale);
  for (let step = 0; step < 6; step++) {
    const az = product(a, z, m);
    z = product(z, minus(product(az, minus(product(az, minus(az, 7), m), 15), m), 13), m).map((one) => one / 4);
  }
  return z;
}

/** Weights by products of non-negative features, (n, m) each, every row divided by its sum. */
function kernelMap(q, k, m) {
  const weights = scoresOf(q, k, m, 1), n = k.length / m;
  const sums = range(0, q.length / m - 1).map((i) => weights.subarray(i * n, (i + 1) * n).reduce((sum, one) => sum + one, 0));
  return weights.map((weight, p) => weight / sums[Math.floor(p / n)]);
}

/** Kernel attention with positive random features in the directions omega. */
function performer(q, k, n, d, omega) {
  const m = omega.length / d;
  const features = (x) => {
    const small = Float64Array.from(x, (one) => one / d ** 0.25);
    const halves = range(0, n - 1).map((i) => small.subarray(i * d, (i + 1) * d).reduce((sum, one) => sum + one * one, 0) / 2);
    return scoresOf(small, omega, d, 1).map((one, p) => Math.exp(one - halves[Math.floor(p / m)]));
  };
  return kernelMap(features(q), features(k), m);
}
