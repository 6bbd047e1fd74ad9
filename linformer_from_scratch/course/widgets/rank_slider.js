// A map rebuilt from its first r singular values: P_r = U_r diag(σ_r) Vᵀ_r. The numbers are in rank_slider.py.

export default widget(({ model, stage }) => {
  const { period, missing } = model.get("facts"), data = model.get("data"), read = textOf(model);
  const [most] = data.random.shape, { random, order, queries, keys, untrained, stable } = arrays(model);
  const d = data.queries?.shape.at(-1), places = range(1, most).map(String);
  const isOwn = () => read.isOwn() && ["head", "shuffled"].includes(model.get("preset")); // the others have no text, or another
  const size = () => (isOwn() ? read.tokens().length : most);
  const words = { head: read.tokens, untrained: () => model.get("facts").tokens[""] };
  const tokens = () => words[model.get("preset")]?.() ?? places;
  const hover = pointing(), decomposed = remember(), rebuilt = remember();
  const missed = (weight, i, j) =>
    `“${tokens()[i]}” attends to “${tokens()[j]}”: ${signed(Math.abs(weight))} too ${weight < 0 ? "much" : "little"}`;
  const maps = ["P", "P_r", "P − P_r"].map((title, i) => heatMap(stage, { title, rows: tokens, hover, read: i === 2 ? missed : undefined }));
  const spectrum = chart(stage, { title: "Singular values σ₁, σ₂, …", width: 75, height: 11.5, margin: { top: 20, right: 20, bottom: 44, left: 64 } });
  const text = sentence(null, { tokens, isUnknown: read.isUnknown, hover });

  /** Scores whose softmax is the map (n, n), as in rank_slider.py. */
  function scores(n) {
    const preset = model.get("preset"), layer = model.get("layer") - 1, place = 12 * layer + model.get("head") - 1;
    const ofHead = (all, at) => scoresOf(...all.map((one) => one.subarray(at * n * d, (at + 1) * n * d)), d, Math.sqrt(d));
    const half = untrained?.length / 2;
    if (preset === "untrained") return ofHead([untrained.subarray(0, half), untrained.subarray(half)], layer);
    if (preset === "random") return Float64Array.from(random);
    if (preset === "local") return Float64Array.from({ length: n * n }, (_, p) => -Math.abs(Math.floor(p / n) - (p % n)) / 2);
    if (preset === "induction") return Float64Array.from({ length: n * n }, (_, p) => (Math.floor(p / n) - (p % n) === period - 1 ? 6 : 0));
    const real = ofHead(isOwn() ? ownHeads(model, read.shown()).slice(0, 2) : [queries, keys], place);
    return preset === "head" ? real : shuffled(real, n);
  }

  /** Each row's weights in the order that is drawn for it. */
  function shuffled(map, n) {
    const orders = range(0, n - 1).map((i) => order.subarray(i * most, (i + 1) * most).filter((j) => j < n));
    return map.map((_, p) => map[p - (p % n) + orders[Math.floor(p / n)][p % n]]);
  }

  /** Stable rank of all heads: of the widget's text it was sent. */
  const ranksOf = remember();
  const ranks = () => (isOwn() ? ranksOf(read.shown(), () => {
    const [q, k] = ownHeads(model, read.shown()), n = size();
    return mapsOf(q, k, n, d).map((P) => (norm(P) / spectralNorm(P, new Float64Array(n).fill(1), n)) ** 2);
  }) : stable);

  const rankNow = () => Math.min(model.get("rank"), size()), ends = () => [0.5 / size(), 1 - 0.5 / size()];
  const handle = spectrum.handle(slider(model, "rank", { label: "Rank r", values: () => range(1, size()), value: rankNow }), { ends });

  function bars(sigma, rank) {
    const n = sigma.length;
    return (group, width, height) => {
      const x = d3.scaleLinear([0.5, n + 0.5], [0, width]), y = d3.scalePow([0, sigma[0]], [height, 0]).exponent(0.5);
      axes(group, x, y, { width, height, across: "index; drag to set r", xTicks: [1, ...range(1, 4).map((i) => Math.round((i * n) / 4))],
        yTicks: [0, sigma[0] / 16, sigma[0] / 4, sigma[0]], yFormat: (s) => fixed(s, 2) });
      for (const [kept, from, to] of [[true, 0, rank], [false, rank, n]])
        group.append("path").attr("class", kept ? "kept" : "lost").attr("fill", `var(--${kept ? "query" : "key"})`)
          .attr("d", Array.from(sigma.subarray(from, to), (s, i) => `M${x(from + i + 0.6)},${height}V${Math.min(y(s), height - 1)}H${x(from + i + 1.4)}V${height}Z`).join(""));
      const words = write(group, "", width, 6, "end");
      words.append("tspan").style("fill", "var(--query)").text(`${rank} kept`);
      words.append("tspan").style("fill", "var(--key)").text(`, ${n - rank} lost`);
    };
  }

  /** Largest singular value of a map, by power iteration from a vector v. */
  function spectralNorm(map, v, n) {
    for (let turn = 0; turn < 12; turn++) {
      const back = product(product(map, v, n), map, n), size = norm(back); // Dᵀ(D v) as (D v)ᵀ D
      if (size < 1e-15) return 0;
      v = back.map((b) => b / size);
    }
    return norm(product(map, v, n));
  }

  return {
    controls: [menu(model, "preset", { label: "Map", wide: true }), read.controls.own, handle],
    hint: "drag the mark under the spectrum. How many singular values until you can't tell the two maps apart?",
    more: [
      read.controls.text,
      slider(model, "temperature", { label: "Temperature", values: range(-10, 10).map((i) => 10 ** (i / 10)), say: (t) => fixed(t, 2) }),
      headGrid(model, {
        caption: "Layer ↓ and head →; shaded: stable rank",
        shade: (layer, head) => stable && Math.min(1, ranks()[12 * layer + head - 13] / 20),
        say: (layer, head) => stable && `stable rank ${fixed(ranks()[12 * layer + head - 13], 1)}`,
      }),
      text,
    ],
    draw(theme) {
      if (missing && ["head", "untrained", "shuffled"].includes(model.get("preset"))) return { refusal: missing };
      const n = size(), rank = rankNow(), temperature = model.get("temperature");
      const state = [read.shown(), ...["preset", "temperature", "layer", "head"].map(model.get)];
      const { P, parts, strongest } = decomposed(state, () => {
        const P = softmax(scores(n), n, temperature);
        return { P, parts: decompose(P, n), strongest: Math.max(0.05, quantile(P, 0.98)) }; // a few outliers may be darker
      });
      const { map, difference } = rebuilt([state, rank], () => {
        const map = rebuild(parts, rank);
        return { map, difference: P.map((weight, p) => weight - map[p]) };
      });
      const look = { limit: strongest, theme };
      const lost = parts.sigma.subarray(rank), frobenius = norm(difference);
      const spectral = rank < n ? spectralNorm(difference, transposed(parts.vt.subarray(rank * n, (rank + 1) * n), 1), n) : 0;
      const squares = parts.sigma.map((s) => s * s), total = squares.reduce((a, b) => a + b), sum = parts.sigma.reduce((a, b) => a + b);
      const nats = Math.LN2 * entropy(parts.sigma.map((s) => s / sum));
      maps[0].show(P, n, n, { ...look, title: `P: ${n} × ${n} tokens` });
      maps[1].show(map, n, n, { ...look, title: `its best map of rank ${rank}`, note: "red below 0", signed: true });
      maps[2].show(difference, n, n, { ...look, title: "the difference", signed: true,
        note: `Frobenius ${fixed(frobenius, 4)}, spectral ${fixed(spectral, 4)}` });
      spectrum.show(bars(parts.sigma, rank), {
        title: `Singular values, stable rank ${fixed(total / squares[0], 1)}, entropy rank ${fixed(Math.exp(nats), 1)}`,
        note: `the lost: root of Σσ² ${fixed(norm(lost), 4)}, largest ${fixed(lost[0] ?? 0, 4)} (heights: √σ)`,
      });
      const isUnique = rank === n || parts.sigma[rank - 1] - parts.sigma[rank] > 1e-4; // else there are several best maps
      return {
        ...read.said(`Rank ${rank} of ${n} loses ${percent(frobenius / norm(P))} of the map (Frobenius error ${fixed(frobenius, 4)}), and no map of that rank loses less.`, isOwn()),
        numbers: { P, sigma: parts.sigma, error: [frobenius, spectral], ...(isUnique && { rebuilt: map }) },
      };
    },
  };
});
