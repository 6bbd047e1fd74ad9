// A map of which attention to use, by task and tokens, and what says so. The table is that of course/decision.py.

const [ROW, LOW_ROW] = [56, 46]; // units from one row of the map to the next, on a wide page and on a phone
const NAME = 22; // units of it above the bar
const UNDER = 40; // units below the rows: what was timed
const NOTE = "by task and tokens n; hatched: not tried there";

export default widget(({ model, stage }) => {
  const { lengths, tasks, rules, devices, spans, turn, several, flags, kinds } = model.get("facts");
  const rows = Object.keys(tasks), places = Object.keys(kinds);
  const margin = { top: 24, right: 2, bottom: 24, left: 2 };
  const height = (width) => (rows.length * (width < 46 ? LOW_ROW : ROW) + UNDER + margin.top + margin.bottom) / 16;
  const map = chart(stage, { title: "", note: NOTE, width: 80, height, margin });
  map.element.classList.add("lw-advised");
  const asked = [menu(model, "device", { label: "Device" }), slider(model, "machines", { label: "Machines", values: powersOfTwo(0, 6) })];
  const advice = html("dl", { class: "lw-advice" }), summary = html("summary", {}, "Why, and what would change it");
  stage.append(html("div", { class: "lw-controls" }, ...asked.map(({ element }) => element)), html("details", { class: "lw-besides" }, summary, advice));
  const half = 0.5 / lengths.length; // of a cell: a share of the axis
  const chosen = map.handle(slider(model, "n", { label: "Tokens n", values: lengths }), { ends: () => [half, 1 - half] });
  const x = d3.scaleLog([lengths[0] / Math.SQRT2, lengths.at(-1) * Math.SQRT2], [0, 1]); // cells of an octave
  const hatch = `lw-${Math.random().toString(36).slice(2)}`;
  let pitch = ROW; // a row's units as drawn last

  const state = () => keyed(Object.keys(model.get("defaults")), model.get);
  const isOf = (one, task) => Object.entries(tasks[task]).every(([name, value]) => one[name] === value);
  const rowOf = (one) => rows.findIndex((task) => isOf(one, task));
  const taskIn = (row) => tasks[rows[clamp(row, 0, rows.length - 1)]];
  const on = (machines) => (machines === 1 ? "one machine" : `${machines} machines`);

  /** n and task of a place on the map. */
  function there(left, top) {
    const n = lengths[nearest(lengths.map(Math.log2), Math.log2(x.invert(left - margin.left)))];
    return { n, ...taskIn(Math.floor((top - margin.top) / pitch)) };
  }
  function move({ n, ...task }) {
    choose(model, "n", n, task);
  }
  dragged(map.svg, (left, top) => move(there(left, top)), "pointer");
  chosen.element.addEventListener("keydown", (event) => {
    const down = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (!down) return;
    event.preventDefault();
    move({ n: model.get("n"), ...taskIn(rowOf(state()) + down) });
  });

  /** The first rule that fits a case. */
  function ruleOf(one) {
    const fitting = ["any", one.n >= turn ? "from" : "below"], is = { ...one, split: one.machines > 1 };
    const fits = ({ when }) => Object.entries(when).every(([name, wanted]) => is[name] === wanted);
    return rules.find((rule) => fitting.includes(rule.span) && fits(rule));
  }
  const within = (n, ends) => Boolean(ends) && n >= ends[0] && n <= ends[1];
  const tried = (one) => within(one.n, ruleOf(one).tested);

  /** What would change the advice, and what one would take then. */
  function changes(one) {
    const { take } = ruleOf(one), machines = one.machines > 1 ? 1 : several, isLong = one.n >= turn;
    const others = {
      ...Object.fromEntries(Object.entries(flags).map(([name, shown]) => [`with ${shown} ${one[name] ? "off" : "on"}`, { [name]: !one[name] }])),
      [`on ${on(machines)}`]: { machines },
      [isLong ? `below n = ${thousands(turn)}` : `from n = ${thousands(turn)} on`]: { n: isLong ? turn - 1 : turn },
    };
    const found = {};
    for (const [words, other] of Object.entries(others)) (found[ruleOf({ ...one, ...other }).take] ??= []).push(words);
    delete found[take];
    return Object.entries(found).map(([other, words]) => `${words.join(", ")}: ${other}`);
  }

  /** How far the evidence goes. */
  function reach(one) {
    const { timed, texts } = devices[one.device], rule = ruleOf(one), said = [rule.reach];
    if (rule.tested && !tried(one)) said.push(`How well it works at n = ${thousands(one.n)} was not tested.`);
    if (rule.timed && timed && !within(one.n, timed)) said.push(`Nothing was timed at n = ${thousands(one.n)}.`);
    if (rule.timed && timed && one.batch > texts)
      said.push(`At most ${texts} texts at a time were timed, not ${one.batch}.`);
    return said.join(" ");
  }

  /** Evidence, with a link where this page is a notebook, or a page of the book, and the other one lies beside it. */
  function cited({ shows, place, address }) {
    const ending = location.pathname.match(/\/\d\d_\w+(\.ipynb|\.html)$/)?.[1] ?? "", isNotebook = ending === ".ipynb";
    if (!address || !(isNotebook || (ending && "held" in window))) return html("dd", {}, `${shows} (${place})`);
    const href = address.replace(".ipynb", ending);
    return html("dd", {}, `${shows} (`, html("a", { href, target: isNotebook ? "_blank" : null }, place), ")");
  }

  /** What there is to say of a case, below the map. */
  function tell(one) {
    const rule = ruleOf(one), known = devices[one.device];
    const part = (name, ...said) => html("div", {}, html("dt", {}, name), ...said.map((line) =>
      (typeof line === "string" ? html("dd", {}, line) : line)));
    advice.replaceChildren(
      part("Why", rule.why.replace("{n}", thousands(one.n))),
      part("What says so", ...[...rule.evidence, ...known.evidence].map(cited)),
      part("How far that reaches", reach(one)),
      part("Runner-up", rule.runner_up), part("What would change it", ...changes(one)),
      part("For which n", spans[rule.span]), part("Where Linformer would save time", known.since),
    );
  }

  function show(one, { taken: takenIn, tried: triedIn }, theme) {
    const { pays, timed, texts } = devices[one.device], colours = PALETTE[theme].lines.slice(0, places.length);
    map.show((group, width, height) => {
      x.range([0, width]);
      pitch = (height - UNDER) / rows.length;
      const step = width / lengths.length, low = rows.length * pitch + 12;
      const cell = (j, row, cells, fill) => bar(group, j * step, row * pitch + NAME, cells * step, pitch - NAME, fill);
      colours.forEach((fill, kind) => {
        const pattern = group.append("pattern").attr("id", `${hatch}-${kind}`).attr("width", 8).attr("height", 8)
          .attr("patternUnits", "userSpaceOnUse").attr("patternTransform", "rotate(45)");
        bar(pattern, 0, 0, 8, 8, fill).attr("opacity", 0.12);
        bar(pattern, 0, 0, 1.5, 8, fill);
      });
      rows.forEach((task, row) => {
        const taken = takenIn[row], known = triedIn[row];
        const fill = (j) => (known[j] ? colours[taken[j]] : `url(#${hatch}-${taken[j]})`);
        const starts = (of) => range(0, lengths.length - 1).filter((j) => !j || of(j) !== of(j - 1));
        write(group, task, 0, row * pitch + NAME - 6).style("font-weight", isOf(one, task) ? "bold" : null);
        starts(fill).forEach((j, i, all) => cell(j, row, (all[i + 1] ?? lengths.length) - j, fill(j)));
        for (const j of starts((j) => taken[j]))
          write(group, kinds[places[taken[j]]], j * step + 8, row * pitch + (pitch + NAME) / 2 + 5).style("font-weight", "bold");
      });
      if (pays) {
        stroke(group, `M${x(pays)},0V${rows.length * pitch}`, "key", 1.5, "5 4");
        write(group, "Linformer saves time →", x(pays) + 6, -8).style("fill", "var(--key)");
      }
      if (timed) stroke(group, `M${x(timed[0])},${low}H${x(timed[1])}`, "grey", 5);
      const many = texts < one.batch ? `, with at most ${texts} texts at a time` : "";
      const said = timed ? `timed on this device${many}` : "nothing was timed on this device";
      write(group, said, timed ? x(timed[0]) : 0, low + 20).attr("class", "lw-quiet");
      const every = Math.ceil((70 * lengths.length) / width), xTicks = lengths.filter((_, i) => i % every === 0);
      const axis = d3.axisBottom(x).tickValues(xTicks).tickFormat(thousands).tickSizeOuter(0);
      group.append("g").attr("transform", `translate(0, ${height})`).call(axis);
    }, { title: `Take ${ruleOf(one).take}.` });
    const below = (rows.length - 1 - rowOf(one)) * pitch + (pitch - NAME) / 2; // from the dot to the lowest row's end
    chosen.element.querySelector("input").style.bottom = `${(margin.bottom + UNDER + below) / 16}em`;
  }

  return {
    controls: [
      chosen, ...asked,
    ],
    more: [
      slider(model, "batch", { label: "Batch", values: powersOfTwo(0, 8) }),
      tick(model, "causal", { label: "Causal" }), tick(model, "exact_recall", { label: "Exact look-up" }),
    ],
    hint: "Drag the dot to your case, by mouse or arrow keys. Where does the colour change?",
    draw(theme) {
      const one = state(), rule = ruleOf(one), cells = rows.map((task) => lengths.map((n) => ({ ...one, ...tasks[task], n })));
      const numbers = {
        from_n: rule.span === "from" ? turn : 1,
        taken: cells.map((row) => row.map((cell) => places.indexOf(ruleOf(cell).kind))),
        tried: cells.map((row) => row.map(tried)),
      };
      show(one, numbers, theme);
      tell(one);
      const texts = one.batch === 1 ? "one text" : `${one.batch} texts`;
      const chosen = Object.entries(flags).flatMap(([name, shown]) => (one[name] ? [shown] : []));
      const words = [`${thousands(one.n)} tokens`, `${texts} at a time`, ...chosen, one.device, on(one.machines)];
      return { words: `${words.join(", ")}: take ${rule.take}.`, numbers };
    },
  };
});
