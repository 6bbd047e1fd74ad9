// How many singular values each head needs: rank at a threshold. The numbers are in head_picker.py.

const COLOURS = { "this head": "query", "untrained": "value", "random softmax": "key", "identity": "grey" };
const DASHES = [null, "7 4", "9 3 2 3", "2 3"]; // of these lines, as matplotlib draws them

export default widget(({ model, stage }) => {
  const { blocks, missing } = model.get("facts"), data = model.get("data"), texts = Object.keys(model.get("choices").text);
  const sent = ["maps", "sigma", "untrained", "random"].map((name) => (missing ? [] : numbers(model, name)));
  const [maps, sigma, untrained, random] = sent, [, layers, heads, n] = missing ? [0, 6, 12, 0] : data.sigma.shape;
  const m = data.maps?.shape.at(-1), tokens = () => blocks[model.get("text")];
  const table = figure(stage, "", "");
  const map = heatMap(stage, {
    title: "", rows: tokens,
    read: (weight, i, j) => `“${tokens()[i]}” gives ${fixed(100 * weight, 1)}% of its attention to “${tokens()[j]}”`,
  });
  const lines = chart(stage, { title: "Sum of the first r singular values", width: 34, height: 25 });
  lines.element.style.flexBasis = "20em";
  const name = namedPoints(lines), analysed = remember(), ranked = remember(), numbersNow = {};
  const text = () => texts.indexOf(model.get("text")), place = () => heads * (model.get("layer") - 1) + model.get("head") - 1;
  const ofHead = (all, size) => all.subarray((text() * layers * heads + place()) * size, (text() * layers * heads + place() + 1) * size);

  /** Cumulative spectra of all heads on the chosen text, and of the network before training. */
  const spectraOf = () => analysed(text(), () => {
    const all = (from, count) => range(text() * count, (text() + 1) * count - 1).map((i) => cumulative(from.subarray(i * n, (i + 1) * n)));
    return { trained: all(sigma, layers * heads), before: all(untrained, layers) };
  });
  const ranks = () => ranked([text(), model.get("share")], () => spectraOf().trained.map((shares) => rankAt(shares, model.get("share"))));
  const rank = (layer, head) => ranks()[heads * (layer - 1) + head - 1];

  const grid = headGrid(model, {
    caption: "",
    shade: (layer, head) => (missing ? 0 : (0.45 * rank(layer, head)) / n),
    say: (layer, head) => (missing ? "" : `rank ${rank(layer, head)}`),
    write: (layer, head) => (missing ? "" : String(rank(layer, head))),
  });
  table.element.append(grid.element);

  dragged(lines.svg, (_, y) => {
    const inside = lines.svg.viewBox.baseVal.height - lines.margin.top - lines.margin.bottom;
    choose(model, "share", clamp(Math.round(100 * (1 - (y - lines.margin.top) / inside)), 50, 99) / 100);
  }, "ns-resize");

  function draw(spectra, share) {
    return (group, width, height) => {
      const x = d3.scaleLinear([0, n], [0, width]), y = d3.scaleLinear([0, 1], [height, 0]);
      const ticks = { xTicks: range(0, n, n / 4), yTicks: range(0, 5).map((i) => i / 5), yFormat: percent };
      axes(group, x, y, { width, height, across: "r; drag the line to set the threshold", ...ticks });
      stroke(group, `M0,${y(share)}H${width}`, "ink");
      stroke(group, `M${x(rankAt(spectra["this head"], share))},${y(share)}V${height}`, "query", 1, "3 3");
      const path = d3.line((_, r) => x(r), (total) => y(total));
      Object.entries(spectra).forEach(([line, shares], i) => {
        const found = rankAt(shares, share), colour = COLOURS[line], wide = i ? 2 : 3.5;
        stroke(group, path([0, ...shares]), colour, wide, DASHES[i]);
        group.append("circle").attr("cx", x(found)).attr("cy", y(shares[found - 1])).attr("r", wide + 2).attr("fill", `var(--${colour})`);
        group.append("text").attr("x", width - 4).attr("y", height - 20 * (4 - i)).attr("text-anchor", "end")
          .style("fill", `var(--${colour})`).style("font-weight", i ? null : "bold").text(`${line}: ${found}`);
      });
      name(Object.entries(spectra).flatMap(([line, shares]) => range(4, n, 4).map((r) =>
        ({ x: x(r), y: y(shares[r - 1]), say: `${line}: the first ${r} make up ${percent(shares[r - 1])}` }))));
    };
  }

  return {
    numbers: numbersNow,
    controls: [
      menu(model, "text", { label: "Text" }),
      slider(model, "share", { label: "Threshold", values: range(50, 99).map((i) => i / 100), say: percent }),
      grid,
    ],
    draw(theme) {
      if (missing) return { refusal: missing };
      const [share, layer, head] = ["share", "layer", "head"].map(model.get), here = ofHead(sigma, n);
      const shown = Float64Array.from(ofHead(maps, m * m), (root) => (root / 255) ** 2);
      const spectra = {
        "this head": spectraOf().trained[place()],
        "untrained": spectraOf().before[layer - 1],
        "random softmax": cumulative(random),
        "identity": cumulative(new Float32Array(n).fill(1)),
      };
      table.heading.textContent = `How many σ make up ${percent(share)} of their sum`;
      table.small.textContent = `layers down, heads across; ${n} would be all`;
      const limit = Math.max(0.05, quantile(shown, 0.99)), note = `a cell: ${n / m} queries down, ${n / m} keys across`;
      map.show(shown, m, m, { theme, limit, note, title: `Layer ${layer}, head ${head} reads ${n} tokens` });
      lines.show(draw(spectra, share), { note: "as a share of the sum of all" });
      Object.assign(numbersNow, { ranks: ranks(), map: shown, sigma: here, spectra });
      const [own, ...others] = Object.entries(spectra).map(([line, shares]) => [line, rankAt(shares, share)]);
      const means = range(1, layers).map((l) => fixed(range(1, heads).reduce((sum, h) => sum + rank(l, h), 0) / heads, 0));
      const stable = here.reduce((sum, s) => sum + s * s, 0) / here[0] ** 2;
      return (
        `Layer ${layer}, head ${head}: ${own[1]} of ${n} singular values make up ${percent(share)} ` +
        `of their sum (${others.map((one) => one.join(" ")).join(", ")}); stable rank ${fixed(stable, 1)}. Mean over the heads of ` +
        `layers 1 to ${layers}: ${means.join(", ")}; smallest ${Math.min(...ranks())}, largest ${Math.max(...ranks())}.`
      );
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
