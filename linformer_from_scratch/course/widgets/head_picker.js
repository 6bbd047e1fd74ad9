// How many singular values each head needs: rank at a threshold. The numbers are in head_picker.py.

const COLOURS = { "this head": "query", "untrained": "value", "random softmax": "key", "identity": "grey" };
const DASHES = { "untrained": "7 4", "random softmax": "9 3 2 3", "identity": "2 3" }; // as matplotlib draws them

export default widget(({ model, stage }) => {
  const { missing } = model.get("facts"), data = model.get("data"), texts = Object.keys(model.get("choices").text);
  const [layers, heads] = [6, 12], read = textOf(model), tokens = read.tokens, sent = arrays(model);
  const table = figure(stage, "", "");
  const map = heatMap(stage, {
    title: "", rows: tokens, abreast: 2.4,
    read: (weight, i, j) => `“${tokens()[i]}” gives ${fixed(100 * weight, 1)}% of its attention to “${tokens()[j]}”`,
  });
  const lines = chart(stage, { title: "Share of the first r σ", width: 34, height: (wide) => clamp(1.1 * wide, 14, 20), margin: { top: 14, right: 18, bottom: 44, left: 46 } });
  lines.element.style.flexBasis = "12em";
  const analysed = remember(), ranked = remember();
  const place = () => heads * (model.get("layer") - 1) + model.get("head") - 1;

  /** What the heads do with a text of the menu: singular values by place, maps of m × m blocks, and what they are compared with. */
  function sentFor(text) {
    const { maps: all, sigma, untrained, random } = sent;
    const n = data.sigma.shape.at(-1), m = data.maps.shape.at(-1), at = texts.indexOf(text);
    const one = (from, i, size) => from.subarray(i * size, (i + 1) * size);
    return {
      n, m,
      sigma: range(0, layers * heads - 1).map((i) => one(sigma, at * layers * heads + i, n)),
      map: (i) => Float64Array.from(one(all, at * layers * heads + i, m * m), (root) => (root / 255) ** 2),
      untrained: range(0, layers - 1).map((layer) => cumulative(one(untrained, at * layers + layer, n))),
      random: cumulative(random),
    };
  }

  /** The same of the reader's own text, which the untrained network has not read. */
  function ofOwn(text) {
    const [q, k] = ownHeads(model, text), n = tokens().length, d = q.length / (layers * heads * n), most = data.scores.shape[0];
    const maps = mapsOf(q, k, n, d), corner = firstColumns(sent.scores, most, n).subarray(0, n * n);
    return {
      n, m: n,
      sigma: maps.map((map) => decompose(map, n).sigma),
      map: (i) => maps[i],
      untrained: null,
      random: cumulative(decompose(softmax(corner, n), n).sigma),
    };
  }

  const now = () => analysed(read.shown(), () => {
    const found = (read.isOwn() ? ofOwn : sentFor)(read.shown());
    return { ...found, spectra: found.sigma.map(cumulative) };
  });
  const ranks = () => ranked([read.shown(), model.get("share")], () => now().spectra.map((shares) => rankAt(shares, model.get("share"))));
  const rank = (layer, head) => ranks()[heads * (layer - 1) + head - 1];

  const grid = headGrid(model, {
    shade: (layer, head) => (missing ? 0 : (0.45 * rank(layer, head)) / now().n),
    say: (layer, head) => (missing ? "" : `rank ${rank(layer, head)}`),
    write: (layer, head) => (missing ? "" : String(rank(layer, head))),
  });
  table.element.append(grid.element);

  const shares = slider(model, "share", { label: "Threshold", values: range(50, 99).map((i) => i / 100), say: percent });
  const threshold = lines.handle(shares, { upright: true, ends: () => [0.5, 0.99] });

  function draw(spectra, share) {
    const { n } = now(), step = Math.ceil(n / 64), lowest = Object.keys(spectra).length;
    return (group, width, height) => {
      const x = d3.scaleLinear([0, n], [0, width]), y = d3.scaleLinear([0, 1], [height, 0]);
      const ticks = { xTicks: range(0, 4).map((i) => Math.round((i * n) / 4)), yTicks: range(0, 5).map((i) => i / 5), yFormat: percent };
      axes(group, x, y, { width, height, across: "r; drag the line", ...ticks });
      stroke(group, `M0,${y(share)}H${width}`, "ink");
      stroke(group, `M${x(rankAt(spectra["this head"], share))},${y(share)}V${height}`, "query", 1, "3 3");
      const path = d3.line((_, r) => x(r), (total) => y(total));
      Object.entries(spectra).forEach(([line, shares], i) => {
        const found = rankAt(shares, share), colour = COLOURS[line], wide = i ? 2 : 3.5;
        stroke(group, path([0, ...shares]), colour, wide, DASHES[line]);
        dot(group, x(found), y(shares[found - 1]), wide + 2, colour);
        write(group, `${line}: ${found}`, width - 4, height - 20 * (lowest - i), "end").style("fill", `var(--${colour})`).style("font-weight", i ? null : "bold");
      });
      return Object.entries(spectra).flatMap(([line, shares]) => range(step, n, step).map((r) =>
        ({ x: x(r), y: y(shares[r - 1]), say: `${line}: the first ${r} make up ${percent(shares[r - 1])}` })));
    };
  }

  return {
    controls: [read.controls.text, read.controls.own, threshold, grid],
    hint: "pick a cell with a small number and one with a large one. What does their map have, or lack?",
    draw(theme) {
      if (missing) return { refusal: missing };
      const [share, layer, head] = ["share", "layer", "head"].map(model.get), { n, m, sigma, map: mapOf, untrained, random } = now();
      const here = sigma[place()], shown = mapOf(place());
      const spectra = {
        "this head": now().spectra[place()],
        ...(untrained && { "untrained": untrained[layer - 1] }),
        "random softmax": random,
        "identity": cumulative(new Float32Array(n).fill(1)),
      };
      table.heading.textContent = `How many σ make up ${percent(share)} of their sum`;
      table.small.textContent = `layers down, heads across; ${n} would be all`;
      const limit = Math.max(0.05, quantile(shown, 0.99)), note = `a cell: ${n / m} queries down, ${n / m} keys across`;
      map.show(shown, m, m, { theme, limit, note, cell: 16 / m, title: `Layer ${layer}, head ${head}` });
      lines.show(draw(spectra, share));
      const [own, ...others] = Object.entries(spectra).map(([line, shares]) => [line, rankAt(shares, share)]);
      const means = range(1, layers).map((l) => fixed(range(1, heads).reduce((sum, h) => sum + rank(l, h), 0) / heads, 0));
      const stable = here.reduce((sum, s) => sum + s * s, 0) / here[0] ** 2;
      const words =
        `Layer ${layer}, head ${head}: ${own[1]} of ${n} singular values make up ${percent(share)} ` +
        `of their sum (${others.map((one) => one.join(" ")).join(", ")}); stable rank ${fixed(stable, 1)}. Mean over the heads of ` +
        `layers 1 to ${layers}: ${means.join(", ")}; smallest ${Math.min(...ranks())}, largest ${Math.max(...ranks())}.`;
      return { ...read.said(words), numbers: { ranks: ranks(), map: shown, sigma: here, spectra } };
    },
  };
});

/** Share of the first r numbers in the sum of all, for r = 1, 2, … */
function cumulative(sigma) {
  const sums = new Float64Array(sigma.length);
  sigma.forEach((s, r) => { sums[r] = s + (sums[r - 1] ?? 0); });
  return sums.map((sum) => sum / sums.at(-1));
}

/** The smallest r whose share reaches the threshold. */
function rankAt(shares, threshold) {
  const found = shares.findIndex((share) => share >= threshold);
  return found < 0 ? shares.length : found + 1;
}
