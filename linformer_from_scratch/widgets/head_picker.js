// How many singular values each head needs: rank at a threshold. The numbers are in head_picker.py.

const COLOURS = { "this head": "--query", "untrained": "--value", "random softmax": "--key", "identity": "--grey" };
const STROKES = ["", "7 4", "9 3 2 3", "2 3"]; // of these lines, as matplotlib draws them

export default widget(({ model, stage }) => {
  const { blocks, missing } = model.get("facts"), data = model.get("data"), texts = Object.keys(model.get("choices").text);
  const [maps, sigma, untrained, random] = missing ? [] : ["maps", "sigma", "untrained", "random"].map((name) => numbers(model, name));
  const [, layers, heads, n] = missing ? [0, 6, 12, 0] : data.sigma.shape, m = data.maps?.shape.at(-1);
  const table = figure(stage, "", "");
  const map = heatMap(stage, {
    title: "", rows: () => blocks[model.get("text")],
    read: (weight, i, j) => `“${blocks[model.get("text")][i]}” gives ${fixed(100 * weight, 1)}% of its attention to “${blocks[model.get("text")][j]}”`,
  });
  const lines = chart(stage, { title: "Sum of the first r singular values", width: 34, height: 25 });
  lines.element.style.flexBasis = "20em";
  const text = () => texts.indexOf(model.get("text"));
  const place = () => heads * (model.get("layer") - 1) + model.get("head") - 1;
  const analysed = remember(), ranked = remember(), numbersNow = {};

  /** Cumulative spectra of all heads of the chosen text, and of the network before training. */
  const ofText = () => analysed(text(), () => {
    const all = (from, count) => range(0, count - 1).map((i) => cumulative(from.subarray((text() * count + i) * n, (text() * count + i + 1) * n)));
    return { trained: all(sigma, layers * heads), before: all(untrained, layers) };
  });
  const ranks = () => ranked([text(), model.get("share")], () => ofText().trained.map((shares) => rankAt(shares, model.get("share"))));
  const rank = (layer, head) => ranks()[heads * (layer - 1) + head - 1];

  const grid = headGrid(model, {
    caption: "",
    shade: (layer, head) => (missing ? 0 : (0.45 * rank(layer, head)) / n),
    say: (layer, head) => (missing ? "" : `rank ${rank(layer, head)}`),
    write: (layer, head) => (missing ? "" : String(rank(layer, head))),
  });
  table.element.append(grid.element);

  const inside = () => lines.svg.viewBox.baseVal.height - lines.margin.top - lines.margin.bottom;
  dragged(lines.svg, (_, y) => {
    const share = 1 - (y - lines.margin.top) / inside();
    choose(model, "share", clamp(Math.round(100 * share), 50, 99) / 100);
  }, "ns-resize");

  function draw(spectra, share) {
    return (group, width, height) => {
      const x = d3.scaleLinear([0, n], [0, width]), y = d3.scaleLinear([0, 1], [height, 0]);
      axes(group, x, y, { width, height, across: "r; drag the line to set the threshold", xTicks: range(0, n, n / 4), yTicks: range(0, 5).map((i) => i / 5), yFormat: percent });
      group.append("path").attr("d", `M0,${y(share)}H${width}`).attr("stroke", "var(--ink)").attr("stroke-width", 1.5);
      const here = x(rankAt(spectra["this head"], share));
      group.append("path").attr("d", `M${here},${y(share)}V${height}`).attr("stroke", "var(--query)").attr("stroke-dasharray", "3 3");
      const path = d3.line((_, r) => x(r), (total) => y(total));
      Object.entries(spectra).forEach(([name, shares], i) => {
        const colour = `var(${COLOURS[name]})`, found = rankAt(shares, share);
        group.append("path").attr("d", path([0, ...shares])).attr("fill", "none").attr("stroke", colour)
          .attr("stroke-width", i ? 2 : 3.5).attr("stroke-dasharray", STROKES[i]);
        group.append("circle").attr("cx", x(found)).attr("cy", y(shares[found - 1])).attr("r", i ? 4 : 6).style("fill", colour);
        const line = height - 20 * (4 - i);
        group.append("text").attr("x", width - 4).attr("y", line).attr("text-anchor", "end").style("fill", colour)
          .style("font-weight", i ? null : "bold").text(`${name}: ${found}`);
      });
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
      const [share, layer, head] = ["share", "layer", "head"].map(model.get);
      const at = (text() * layers * heads + place()) * m * m;
      const shown = Float64Array.from(maps.subarray(at, at + m * m), (root) => (root / 255) ** 2);
      const here = sigma.subarray((text() * layers * heads + place()) * n, (text() * layers * heads + place() + 1) * n);
      const spectra = {
        "this head": ofText().trained[place()],
        "untrained": ofText().before[layer - 1],
        "random softmax": cumulative(random),
        "identity": cumulative(new Float32Array(n).fill(1)),
      };
      table.small.textContent = `layers down, heads across; ${n} would be all`;
      table.heading.textContent = `How many σ make up ${percent(share)} of their sum`;
      const limit = Math.max(0.05, quantile(shown, 0.99)), note = `a cell: ${n / m} queries down, ${n / m} keys across`;
      map.show(shown, m, m, { theme, limit, note, title: `Layer ${layer}, head ${head} reads ${n} tokens` });
      lines.show(draw(spectra, share), { note: "as a share of the sum of all" });
      Object.assign(numbersNow, { ranks: ranks(), map: shown, sigma: here, spectra });
      const [own, ...others] = Object.entries(spectra).map(([name, shares]) => [name, rankAt(shares, share)]);
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
  return sums.map((sum) => sum / sums[sums.length - 1]);
}

/** The smallest r whose share reaches the threshold. */
function rankAt(shares, threshold) {
  const found = shares.findIndex((share) => share >= threshold);
  return found < 0 ? shares.length : found + 1;
}
