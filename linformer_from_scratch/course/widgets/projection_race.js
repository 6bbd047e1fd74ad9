// How the error of a head's output falls with k, for every kind of E and F. The numbers are in projection_race.py.

export default widget(({ model, stage }) => {
  const { n, dims: allDims, names, looks, random, theorem } = model.get("facts"), sent = numbers(model, "errors");
  const heads = Object.keys(model.get("choices").head), kinds = Object.keys(names), draws = model.get("data").errors.shape[2];
  const perHead = kinds.length * draws * allDims.length;
  const picture = chart(stage, {
    title: "Error of the head's output", width: 78, height: (wide) => clamp(0.5 * wide, 14, 24),
    margin: { top: 14, right: 128, bottom: 44, left: 56 },
    note: "band: eight of ten draws; theorem 1 and the best of rank k need P itself",
  });

  /** kind -> for each chosen k, the errors of the chosen seeds. */
  function chosenErrors(dims) {
    const seeds = model.get("seeds"), from = heads.indexOf(model.get("head")) * perHead;
    const error = (kind, seed, k) => sent[from + (kind * draws + seed) * allDims.length + allDims.indexOf(k)];
    return keyed(kinds, (kind, i) => dims.map((k) => range(0, random.includes(kind) ? seeds - 1 : 0).map((seed) => error(i, seed, k))));
  }

  let seedsShown = draws; // by the last picture
  function curves(dims, { errors, medians, low, high }, ofHead, colours) {
    const isAdded = model.get("seeds") > seedsShown || (model.get("seeds") === 1 && seedsShown > 1);
    seedsShown = model.get("seeds");

    return (group, width, height) => {
      const size = { width, height }, { x, y } = errorAxes(group, dims, ofHead, size);
      const across = (_, i) => x(dims[i]), line = d3.line(across, y);
      for (const kind of random) {
        const band = d3.area(across, (_, i) => y(low[kind][i]), (_, i) => y(high[kind][i]));
        group.append("path").attr("d", band(dims)).attr("fill", colours[kind]).attr("opacity", 0.18);
        const newest = errors[kind][0].length - 1;
        for (const seed of range(0, newest)) {
          const runs = seed === newest && isAdded; // the seed that was added runs from the smallest k to the largest
          stroke(group, line(errors[kind].map((some) => some[seed])), colours[kind], runs ? 2.5 : 1)
            .attr("opacity", runs ? 1 : 0.3).attr("pathLength", 1).attr("class", runs ? "lw-drawn" : null);
        }
      }
      const root = dims.map((k) => medians[theorem][0] * Math.sqrt(dims[0] / k));
      stroke(group, line(root), "grey", 1.5, "2 4");
      for (const kind of kinds) {
        stroke(group, line(medians[kind]), colours[kind], 3, looks[kind].dashed ? "7 5" : null);
        for (const [i, error] of medians[kind].entries()) dot(group, across(0, i), y(error), 4, colours[kind]);
      }
      const last = (some) => y(some[some.length - 1]);
      endNames(group, [...kinds.map((kind) => ({ name: names[kind], y: last(medians[kind]), colour: colours[kind], bold: true })),
        { name: "like 1/√k", y: last(root), colour: "var(--grey)", bold: false }], size);
      return kinds.flatMap((kind) => dims.map((k, i) => ({
        x: x(k), y: y(medians[kind][i]),
        say: `${names[kind]}, k = ${k}: off by ${looks[kind].dashed ? tenths(medians[kind][i]) : percent(medians[kind][i])}`
          + (low[kind] ? `, eight of ten draws ${percent(low[kind][i])} to ${percent(high[kind][i])}` : ""),
      })));
    };
  }

  return {
    controls: [
      menu(model, "head", { label: "Map" }),
      slider(model, "seeds", { label: "Seeds", values: range(1, draws), pace: 500 }),
    ],
    hint: "press play: each seed throws its own Gaussian slots. How much luck is in that band, and does anybody catch the learned ones?",
    more: [
      slider(model, "first", { label: "From k", values: allDims }),
      slider(model, "last", { label: "To k", values: allDims }),
    ],
    draw(theme) {
      const ends = [model.get("first"), model.get("last")], dims = allDims.filter((k) => k >= Math.min(...ends) && k <= Math.max(...ends));
      const errors = chosenErrors(dims), each = (some, make) => keyed(some, (kind) => errors[kind].map(make));
      const medians = each(kinds, (some) => [...some].sort((a, b) => a - b)[(some.length - 1) >> 1]); // torch's: the lower of two
      const low = each(random, (some) => quantile(some, 0.1)), high = each(random, (some) => quantile(some, 0.9));
      const from = heads.indexOf(model.get("head")) * perHead, ofHead = sent.subarray(from, from + perHead);
      const colours = keyed(kinds, (kind) => PALETTE[theme].lines[looks[kind].line]);
      const slope = dims.length > 1 ? exponent(dims, medians[theorem]) : NaN;
      picture.show(curves(dims, { errors, medians, low, high }, ofHead, colours));
      const at = (kind) => percent(medians[kind][dims.length - 1]);
      const words = (
        `Through ${dims[dims.length - 1]} slots of ${n} tokens: learned ${at("learned")}, mean pooling ${at("mean")}, ` +
        `every n/k-th token ${at("strided")}, Gaussian ${at("gaussian")} (median of ${model.get("seeds")}). Silence would be 100%. ` +
        (dims.length > 1 ? `Theorem 1's error goes like k to the power ${fixed(slope, 2)}.` : "Pick two k to see how theorem 1's error falls.")
      ).replace("power -", "power −");
      return { words, numbers: { dims, medians, low, high, slope } };
    },
  };
});

/** A share with one decimal: the best map's error can be a third of a percent. */
const tenths = (x) => `${fixed(100 * x, 1)}%`;

/** The a of y ≈ c · xᵃ, by least squares on the logarithms. */
function exponent(x, y) {
  const centred = (some) => some.map((value) => Math.log(value) - some.reduce((sum, other) => sum + Math.log(other), 0) / some.length);
  const [a, b] = [centred(x), centred(y)], dot = (one, other) => one.reduce((sum, value, i) => sum + value * other[i], 0);
  return dot(a, b) / dot(a, a);
}
