// A real map, n×n, and the n×k strip in its place. The numbers are in strip_explorer.py.

export default widget(({ model, stage }) => {
  const { dims } = model.get("facts"), heads = Object.keys(model.get("choices").head);
  const [maps, strips] = ["maps", "strips"].map((name) => numbers(model, name));
  const [, n, wide] = model.get("data").strips.shape, numbersNow = {};
  const places = range(1, n).map((i) => `token ${i}`);
  const square = heatMap(stage, { title: "attention", note: "down: who reads; across: who is read", abreast: 3, rows: () => places });
  const strip = heatMap(stage, {
    title: "strip", note: "across: summaries", abreast: 3, rows: () => places, columns: () => range(1, wide).map((i) => `summary ${i}`),
    read: (weight, i, j) => `token ${i + 1} reads summary ${j + 1}: ${signed(weight)}`,
  });
  const limit = (weights) => Math.max(0.05, quantile(weights, 0.98)); // a few weights may be darker

  return {
    numbers: numbersNow,
    controls: [
      menu(model, "head", { label: "Map", wide: true }),
      slider(model, "proj_dim", { label: "Summaries k", values: dims }),
    ],
    draw(theme) {
      const k = model.get("proj_dim"), head = heads.indexOf(model.get("head"));
      const P = maps.subarray(head * n * n, (head + 1) * n * n), left = k - dims[0]; // 2 + 4 + … are k − 2 columns before
      const all = strips.subarray(head * n * wide, (head + 1) * n * wide);
      const P_bar = Float64Array.from({ length: n * k }, (_, p) => all[Math.floor(p / k) * wide + left + (p % k)]);
      square.show(P, n, n, { limit: limit(P), theme, title: `attention: ${n} × ${n}` });
      strip.element.style.minWidth = `${parseFloat(square.canvas.parentElement.style.width) * (dims.at(-1) / n)}em`; // for every k
      strip.show(P_bar, n, k, { limit: limit(P_bar), theme, title: `strip: ${n} × ${k}` });
      Object.assign(numbersNow, { P, P_bar });
      return (
        `L${model.get("choices").head[model.get("head")].slice(1)}. Attention: ${n} × ${n} = ${thousands(n * n)} numbers; ` +
        `the strip: ${n} × ${k} = ${thousands(n * k)}, ${Math.floor(n / k)} times fewer.`
      );
    },
  };
});
