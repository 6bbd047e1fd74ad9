// Which attention for which case, and what says so. The table is that of course/decision.py.

const ROW = 40; // units from one row of the chart to the next

export default widget(({ model, stage }) => {
  const { lengths, rules, devices, spans, turn, several, flags, kinds } = model.get("facts");
  const margin = { top: 4, right: 24, bottom: 24, left: 14 };
  const picture = chart(stage, { title: "What to take, by tokens n", note: "drag to set n", width: 40, height: (3 * ROW + margin.top + margin.bottom) / 16, margin });
  const beside = html("dl", { class: "lw-text lw-advice" }), under = html("dl", { class: "lw-text lw-advice" }), numbersNow = {}, x = d3.scaleLog().domain([lengths[0], 2 * lengths.at(-1)]);
  const headline = html("p", { class: "lw-text lw-take" });
  stage.append(html("div", { class: "lw-decision" }, headline, picture.element, beside, under));
  dragged(picture.svg, (at) => choose(model, "n", lengths[nearest(lengths.map(Math.log2), Math.log2(x.invert(at - margin.left)))]));

  const state = () => Object.fromEntries(Object.keys(model.get("defaults")).map((name) => [name, model.get(name)]));
  const on = (machines) => (machines === 1 ? "one machine" : `${machines} machines`);

  /** The first rule that fits a case. */
  function ruleOf(one) {
    const isLong = one.n >= turn, is = { ...one, split: one.machines > 1 };
    const fits = ({ span, when }) => span === "any" || (span === "from") === isLong ? Object.entries(when).every(([name, wanted]) => is[name] === wanted) : false;
    return rules.find(fits);
  }

  /** What would change the advice, and what one would take then. */
  function changes(one) {
    const { take } = ruleOf(one), machines = one.machines > 1 ? 1 : several;
    /** @type {[string, object][]} */
    const others = Object.entries(flags).map(([name, shown]) => [`with ${shown} ${one[name] ? "off" : "on"}`, { [name]: !one[name] }]);
    others.push([`on ${on(machines)}`, { machines }]);
    others.push(one.n >= turn ? [`below n = ${thousands(turn)}`, { n: turn - 1 }] : [`from n = ${thousands(turn)} on`, { n: turn }]);
    const found = {};
    for (const [words, other] of others) (found[ruleOf({ ...one, ...other }).take] ??= []).push(words);
    return Object.entries(found).filter(([other]) => other !== take).map(([other, words]) => `${words.join(", ")}: ${other}`);
  }

  /** How far the evidence goes. */
  function reach(one, rule) {
    const { timed, texts } = devices[one.device], said = [rule.reach], isIn = ([low, high]) => one.n >= low && one.n <= high;
    if (rule.tested && !isIn(rule.tested)) said.push(`How well it works at n = ${thousands(one.n)} was not tested.`);
    if (rule.timed && timed && !isIn(timed)) said.push(`Nothing was timed at n = ${thousands(one.n)}.`);
    if (rule.timed && timed && one.batch > texts) said.push(`At most ${texts} texts at a time were timed, not ${one.batch}.`);
    return said.join(" ");
  }

  /** A piece of evidence, with a link where this page is a notebook and that one lies beside it. */
  function cited({ shows, place, address }) {
    const isLinked = address && location.pathname.endsWith(".ipynb");
    return html("dd", {}, `${shows} (`, isLinked ? html("a", { href: address, target: "_blank" }, place) : place, ")");
  }

  function show(one, rule, theme) {
    const taken = [];
    for (const n of lengths) {
      const { kind } = ruleOf({ ...one, n });
      if (taken.at(-1)?.kind === kind) taken.at(-1).high = 2 * n; else taken.push({ low: n, high: 2 * n, kind });
    }
    const { timed } = devices[one.device], places = Object.keys(kinds), { tested } = rule;
    const ends = (pair, words) => (pair ? `${words}: n = ${[...new Set(pair)].map(thousands).join(" to ")}` : `${words}: nothing`);
    picture.show((group, width, height) => {
      x.range([0, width]);
      const bar = (low, high, row, colour, opacity = 1) =>
        group.append("rect").attr("x", x(low)).attr("width", Math.max(6, x(high) - x(low))).attr("y", row * ROW + 18).attr("height", 13)
          .attr("fill", colour).attr("opacity", opacity);
      const write = (at, row, words) => group.append("text").attr("x", at).attr("y", row * ROW + 13).text(words);
      for (const { low, high, kind } of taken) bar(low, high, 0, PALETTE[theme].lines[places.indexOf(kind)], kind === rule.kind ? 1 : 0.4);
      [timed, tested].forEach((pair, i) => pair && bar(...pair, i + 1, "var(--grey)"));
      stroke(group, `M${x(one.n)},0V${height}`, "ink", 2);
      for (const { low, kind } of taken) write(x(low), 0, kinds[kind]).style("font-weight", kind === rule.kind ? "bold" : null);
      write(0, 1, ends(timed, "timed on this device"));
      write(0, 2, ends(tested, "tried how well it works"));
      const every = Math.ceil((70 * lengths.length) / width), xTicks = lengths.filter((_, i) => i % every === 0);
      group.append("g").attr("transform", `translate(0, ${height})`).call(d3.axisBottom(x).tickValues(xTicks).tickFormat(thousands).tickSizeOuter(0));
    });
  }

  return {
    numbers: numbersNow,
    controls: [
      slider(model, "n", { label: "Tokens n", values: lengths }),
      slider(model, "batch", { label: "Batch", values: powersOfTwo(0, 8) }),
      slider(model, "machines", { label: "Machines", values: powersOfTwo(0, 6) }),
      menu(model, "device", { label: "Device" }),
      ...Object.entries({ causal: "Causal", exact_recall: "Exact look-up" }).map(([name, label]) => tick(model, name, { label })),
    ],
    draw(theme) {
      const one = state(), rule = ruleOf(one), known = devices[one.device];
      Object.assign(numbersNow, { from_n: rule.span === "from" ? turn : 1 });
      const evidence = [...rule.evidence, ...known.evidence];
      const part = (name, ...said) => html("div", {}, html("dt", {}, name), ...said);
      const lines = (all) => all.map((line) => html("dd", {}, line));
      headline.textContent = `Take ${rule.take}.`;
      under.replaceChildren(part("Runner-up", ...lines([rule.runner_up])), part("What would change it", ...lines(changes(one))));
      beside.replaceChildren(
        part("For which n", ...lines([spans[rule.span]])), part("Where Linformer would save time", ...lines([known.since])),
        part("What says so", ...evidence.map(cited)),
        part("How far that reaches", ...lines([reach(one, rule)])),
      );
      show(one, rule, theme);
      const texts = one.batch === 1 ? "one text" : `${one.batch} texts`;
      const chosen = Object.entries(flags).flatMap(([name, shown]) => (one[name] ? [shown] : []));
      const words = [`${thousands(one.n)} tokens`, `${texts} at a time`, ...chosen, one.device, on(one.machines)];
      return `${words.join(", ")}: take ${rule.take}. ${rule.why.replace("{n}", thousands(one.n))}`;
    },
  };
});
