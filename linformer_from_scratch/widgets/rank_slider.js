// A map rebuilt from its first r singular values: P_r = U_r diag(σ_r) Vᵀ_r. The numbers are in rank_slider.py.

export default widget(({ model, stage }) => {
  const { period, tokens: words, missing } = model.get("facts"), data = model.get("data");
  const [n] = data.random.shape, [random, order] = ["random", "order"].map((name) => numbers(model, name));
  const [queries, keys, untrained, stable] = missing ? [] : ["queries", "keys", "untrained", "stable"].map((name) => numbers(model, name));
  const d = data.queries?.shape.at(-1), places = range(1, n).map(String);
  const tokens = () => (["head", "untrained"].includes(model.get("preset")) ? words : places);
  const hover = pointing(), decomposed = remember(), rebuilt = remember();
  const missed = (weight, i, j) =>
    `“${tokens()[i]}” reads “${tokens()[j]}”: ${signed(Math.abs(weight))} too ${weight < 0 ? "much" : "little"}`;
  const maps = ["P", "P_r", "P − P_r"].map((title, i) => heatMap(stage, { title, rows: tokens, hover, read: i === 2 ? missed : undefined }));
  const margin = { top: 54, right: 20, bottom: 44, left: 64 }; // above the bars stands what they are
  const spectrum = chart(stage, { title: "Singular values σ₁, σ₂, …", width: 58, height: 14.5, margin });
  const text = sentence(stage, { tokens, hover });
  const numbersNow = {};

  /** Scores whose softmax is the map, as in rank_slider.py. */
  function scores() {
    const preset = model.get("preset"), layer = model.get("layer") - 1, place = 12 * layer + model.get("head") - 1;
    const ofHead = (all, at) => scoresOf(...all.map((one) => one.subarray(at * n * d, (at + 1) * n * d)), d, Math.sqrt(d));
    const half = untrained?.length / 2;
    if (preset === "untrained") return ofHead([untrained.subarray(0, half), untrained.subarray(half)], layer);
    if (preset === "random") return Float64Array.from(random);
    if (preset === "local") return Float64Array.from({ length: n * n }, (_, p) => -Math.abs(Math.floor(p / n) - (p % n)) / 2);
    if (preset === "induction") return Float64Array.from({ length: n * n }, (_, p) => (Math.floor(p / n) - (p % n) === period - 1 ? 6 : 0));
    const real = ofHead([queries, keys], place);
    return preset === "head" ? real : real.map((_, p) => real[p - (p % n) + order[p]]);
  }

  dragged(spectrum.svg, (x) => {
    const inside = spectrum.svg.viewBox.baseVal.width - spectrum.margin.left - spectrum.margin.right;
    choose(model, "rank", clamp(Math.ceil(((x - spectrum.margin.left) / inside) * n), 1, n));
  });

  function bars(sigma, rank) {
    return (group, width, height) => {
      const x = d3.scaleLinear([0.5, n + 0.5], [0, width]), y = d3.scalePow([0, sigma[0]], [height, 0]).exponent(0.5);
      axes(group, x, y, { width, height, across: "index of the singular value; drag to set r", xTicks: [1, ...range(n / 4, n, n / 4)],
        yTicks: [0, sigma[0] / 16, sigma[0] / 4, sigma[0]], yFormat: (s) => fixed(s, 2) });
      for (const [kept, from, to] of [[true, 0, rank], [false, rank, n]])
        group.append("path").attr("class", kept ? "kept" : "lost").attr("fill", `var(--${kept ? "query" : "key"})`)
          .attr("d", Array.from(sigma.subarray(from, to), (s, i) => `M${x(from + i + 0.6)},${height}V${Math.min(y(s), height - 1)}H${x(from + i + 1.4)}V${height}Z`).join(""));
      group.append("text").attr("x", width).attr("y", -30).attr("text-anchor", "end").style("fill", "var(--query)").text(`kept: ${rank}`);
      group.append("text").attr("x", width).attr("y", -12).attr("text-anchor", "end").style("fill", "var(--key)").text(`lost: ${n - rank}; the first is the spectral error`);
    };
  }

  /** Largest singular value of a map, by power iteration from a vector v. */
  function spectralNorm(map, v) {
    for (let turn = 0; turn < 12; turn++) {
      const back = product(product(map, v, n), map, n), size = norm(back); // Dᵀ(D v) as (D v)ᵀ D
      if (size < 1e-15) return 0;
      v = back.map((b) => b / size);
    }
    return norm(product(map, v, n));
  }

  return {
    numbers: numbersNow,
    controls: [
      menu(model, "preset", { label: "Map", wide: true }),
      slider(model, "rank", { label: "Rank r", values: range(1, n) }),
      slider(model, "temperature", { label: "Temperature", values: range(-10, 10).map((i) => 10 ** (i / 10)), say: (t) => fixed(t, 2) }),
      headGrid(model, {
        caption: "Layer ↓ and head →; shaded: stable rank",
        shade: (layer, head) => stable && Math.min(1, stable[12 * layer + head - 13] / 20),
        say: (layer, head) => stable && `stable rank ${fixed(stable[12 * layer + head - 13], 1)}`,
      }),
    ],
    draw(theme) {
      if (missing && ["head", "untrained", "shuffled"].includes(model.get("preset"))) return { refusal: missing };
      const [rank, temperature, state] = [model.get("rank"), model.get("temperature"), ["preset", "temperature", "layer", "head"].map(model.get)];
      const { P, parts, strongest } = decomposed(state, () => {
        const P = softmax(scores(), n, temperature);
        return { P, parts: decompose(P, n), strongest: Math.max(0.05, quantile(P, 0.999)) }; // a few outliers may be darker
      });
      const { map, difference } = rebuilt([state, rank], () => {
        const map = rebuild(parts, rank);
        return { map, difference: P.map((weight, p) => weight - map[p]) };
      });
      const look = { limit: strongest, theme };
      maps[0].show(P, n, n, { ...look, title: `P: ${n} × ${n} tokens` });
      maps[1].show(map, n, n, { ...look, title: `its best map of rank ${rank}`, note: "red below 0", signed: true });
      maps[2].show(difference, n, n, { ...look, title: "the difference", note: "blue: too little is there, red: too much", signed: true });
      spectrum.show(bars(parts.sigma, rank), { note: "height: square root of σ, so that small ones show" });
      text.refresh();
      const lost = parts.sigma.subarray(rank), frobenius = norm(difference);
      const spectral = rank < n ? spectralNorm(difference, transposed(parts.vt.subarray(rank * n, (rank + 1) * n), 1)) : 0;
      const isUnique = rank === n || parts.sigma[rank - 1] - parts.sigma[rank] > 1e-4; // else there are several best maps
      Object.assign(numbersNow, { P, sigma: parts.sigma, error: [frobenius, spectral], rebuilt: map });
      if (!isUnique) delete numbersNow.rebuilt;
      const squares = parts.sigma.map((s) => s * s), total = squares.reduce((a, b) => a + b), sum = parts.sigma.reduce((a, b) => a + b);
      const nats = Math.LN2 * entropy(parts.sigma.map((s) => s / sum));
      return (
        `Rank ${rank} of ${n}: Frobenius error ${fixed(frobenius, 4)}, root of the lost σ² ${fixed(norm(lost), 4)}; ` +
        `spectral error ${fixed(spectral, 4)}, ${rank < n ? `σ${subscript(rank + 1)}` : "nothing lost"} ${fixed(lost[0] ?? 0, 4)}. ` +
        `In the Frobenius norm ${percent(frobenius / norm(P))} of the map is lost. ` +
        `Stable rank ${fixed(total / squares[0], 1)}, entropy rank ${fixed(Math.exp(nats), 1)}.`
      );
    },
  };
});

/** Digits below the line. */
function subscript(number) {
  return [...String(number)].map((digit) => "₀₁₂₃₄₅₆₇₈₉"[+digit]).join("");
}
