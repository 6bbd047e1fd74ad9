// What a layer costs against n. The formulas are those of cost.py: cost_model.py sends them as tables.

export default widget(({ model, stage }) => {
  const { opponents, lengths, lines, units, bases, bytes, formulas, pays } = model.get("facts");
  const names = Object.keys(lines), shown = Object.keys(units), crosses = names.length > 1; // else it is the wall of full attention
  const curves = growth(stage, model, { lengths }), bars = shares(stage, crosses ? { count: names.length } : { count: 3, row: 70 });
  if (!crosses) stage.prepend(bars.element);
  const layersNow = remember(), curvesNow = remember();
  const device = () => model.get("facts").devices[model.get("device")];
  const devices = () => Object.fromEntries(Object.entries(model.get("choices").device).filter(([name]) => !model.alone || name in model.get("facts").devices));

  /** Name of a line -> its steps, as formulas of n alone. */
  function layers() {
    const sizes = ["d_model", "num_heads", "proj_dim", "batch"].map(model.get).concat(bytes[model.get("number")]);
    const inN = ({ name, flops, moved, result }) => {
      const [operations, traffic, stored] = [flops, moved, result].map((terms) => inPowersOfN(terms, sizes));
      return { name, operations, traffic, bytes: stored };
    };
    return keyed(names, (name) => formulas[model.get("order")][name].map(inN));
  }

  /** A step at n: its cost, and whether what it is counted in grows with n². */
  function share(step, n, show) {
    if (show !== "seconds") return { value: atN(step[show], n), strong: growsAsSquare(step[show]) };
    const { flops_per_s, bytes_per_s } = device();
    const computing = atN(step.operations, n) / flops_per_s[bytes[model.get("number")]], moving = atN(step.traffic, n) / bytes_per_s;
    const isComputing = computing >= moving;
    return {
      value: Math.max(computing, moving), strong: growsAsSquare(isComputing ? step.operations : step.traffic),
      why: isComputing ? "; its operations take longest" : "; its bytes take longest",
    };
  }
  const cost = (steps, n, show) => steps.reduce((sum, step) => sum + share(step, n, show).value, 0);

  /** As crossover of cost.py: the first n at which ours lies below theirs; null if there is none. */
  function crossover(ours, theirs, show, longest = 2 ** 20) {
    let [low, high] = [1, longest + 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (cost(ours, middle, show) < cost(theirs, middle, show)) high = middle; else low = middle + 1;
    }
    return low <= longest ? low : null;
  }

  function refusal() {
    const [d, heads] = [model.get("d_model"), model.get("num_heads")];
    if (d % heads) return `${heads} heads do not divide d_model = ${d}.`;
    if (!device()) return "This machine's two ceilings are being measured.";
    return bytes[model.get("number")] in device().flops_per_s ? null : `${model.get("device")} has no ceiling for ${model.get("number")} numbers.`;
  }

  return {
    controls: [
      menu(model, "show", { label: "Show" }),
      slider(model, "n", { label: "Tokens n", values: lengths }),
    ],
    hint: crosses ? "drag across the curves. Where does Linformer start to pay, in operations and then in seconds?"
      : "drag n to the right. As the text doubles, what doubles, and what becomes four times as much?",
    more: [
      ...(crosses ? [slider(model, "proj_dim", { label: "Slots k", values: powersOfTwo(5, 10) }), menu(model, "order", { label: "Linformer" })] : []),
      slider(model, "d_model", { label: "d_model", values: powersOfTwo(6, 12) }),
      slider(model, "num_heads", { label: "Heads", values: powersOfTwo(0, 5) }),
      slider(model, "batch", { label: "Batch", values: powersOfTwo(0, 5) }),
      menu(model, "number", { label: "Numbers" }),
      menu(model, "device", { label: "Device", choices: devices }),
    ],
    draw(theme) {
      const refused = refusal();
      if (refused) return { refusal: refused };
      const [show, n] = [model.get("show"), model.get("n")], settings = model.get("defaults");
      const state = Object.keys(settings).filter((name) => name !== "n").map(model.get);
      const say = (value) => quantity(value, units[show]);
      const steps = layersNow(state, layers);
      const { drawn, crossed } = curvesNow([state, device()], () => ({
        drawn: keyed(names, (name) => lengths.map((at) => cost(steps[name], at, show))),
        crossed: keyed(crosses ? opponents : [], (name) => crossover(steps.Linformer, steps[name], show)),
      }));
      const crossings = keyed(Object.keys(crossed).filter((name) => crossed[name]), (name) => crossed[name]);
      const costs = keyed(names, (name) => shown.map((what) => cost(steps[name], n, what)));
      const colour = (name) => PALETTE[theme].lines[lines[name][0]], points = show === "seconds" ? model.get("facts").measured : {};
      const title = { ...model.get("choices").show }[show], total = (name, at = n) => cost(steps[name], at, show);
      const isMeasured = crosses && pays && show === "seconds", measured = isMeasured ? `Measured, Linformer pays from about n = ${thousands(pays)} on` : "";
      curves.show({
        title: measured || `${title[0].toUpperCase()}${title.slice(1)} of one layer`,
        note: crosses ? `dashed: from there on Linformer${isMeasured ? "'s floor is lower; squares: measured" : " takes less"}` : "exact attention alone, by tokens n; both axes in powers",
        curves: names.map((name) => ({ name, colour: colour(name), width: lines[name][1], values: drawn[name], now: total(name), points: points[name] ?? [] })),
        ticks: ticksAround([...Object.values(drawn), ...Object.values(points).map((pairs) => pairs.map(([, value]) => value))].flat(), bases[show]),
        say, marks: Object.entries(crossings).map(([name, at]) => [`${name} ${thousands(at)}`, at]), pays: isMeasured && pays,
      });
      const rows = crosses ? names.map((name) => [name, name, n]) : [n, 2 * n, 4 * n].map((at) => [`n = ${thousands(at)}`, "full", at]);
      const parts = keyed(rows.map(([row]) => row), (_, i) => steps[rows[i][1]].map((step) => ({ name: step.name, ...share(step, rows[i][2], show) })));
      const more = fixed(total("full", 2 * n) / total("full"), 1);
      bars.show({
        title: crosses ? `At n = ${thousands(n)}; strong: grows with n²` : `Twice the text, ${more} times the ${show}`,
        note: crosses ? "" : "strong colour: grows with n²",
        rows: rows.map(([row, name, at]) => ({
          name: row, colour: colour(name), words: say(total(name, at)),
          parts: parts[row].map(({ name: step, value, strong, why = "" }) => ({ name: step, value, strong, words: `${step}: ${say(value)}, ${percent(value / total(name, at))} of ${row}${why}` })),
        })),
      });
      const less = opponents.map((name) => (name in crossings ? `than ${name} from n = ${thousands(crossings[name])} on` : `than ${name} at no length`));
      const words =
        `At n = ${thousands(n)} on ${model.get("device")}, ${model.get("number")}: full ${say(total("full"))}` +
        (crosses ? `, Linformer ${say(total("Linformer"))}. Linformer takes less ${less.join(", ")}.${measured && ` ${measured}.`}`
          : `. Twice the text takes ${say(total("full", 2 * n))}, ${more} times as much.`);
      return { words, numbers: { costs, curves: drawn, crossings, shares: keyed(Object.keys(parts), (row) => parts[row].map(({ value }) => value)) } };
    },
  };
});

/** Powers of a base around all values. */
function ticksAround(values, base) {
  const log = (value) => Math.log(value) / Math.log(base);
  return range(Math.floor(log(Math.min(...values))), Math.ceil(log(Math.max(...values)))).map((i) => base ** i);
}
