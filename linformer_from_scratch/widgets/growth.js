// What widgets share that show how a cost grows with n: formulas put into numbers, curves, bars of shares.

/** A formula that Python sent as a table, as coefficients of 1, n, n²; values are those of the letters after n. */
function inPowersOfN(terms, values) {
  const coefficients = [0, 0, 0];
  for (const [coefficient, power, ...powers] of terms)
    coefficients[power] += powers.reduce((product, p, i) => product * values[i] ** p, coefficient);
  return coefficients;
}

/** name -> make(name). */
const keyed = (names, make) => Object.fromEntries(names.map((name) => [name, make(name)]));

const atN = ([constant, linear, square], n) => constant + n * (linear + n * square);
const growsAsSquare = ([, , square]) => square > 0;

/** A number in three digits with the largest unit that leaves at least 1; units: name -> size, the smallest first. */
function quantity(value, units) {
  const all = Object.entries(units), [unit, size] = all.filter(([, size]) => value >= size).at(-1) ?? all[0];
  const number = value / size, digits = Math.max(0, 2 - Math.floor(Math.log10(number || 1)));
  return `${Number(fixed(number, digits))} ${unit}`;
}

/** Heights at least so far apart, from the top down. */
function spread(heights, distance) {
  const placed = [], order = range(0, heights.length - 1).sort((i, j) => heights[i] - heights[j]);
  order.reduce((least, i) => (placed[i] = Math.max(heights[i], least)) + distance, -Infinity);
  return placed;
}

/** Words beside the pointer: read(event) gives { words, x, y, mark }, in units of the picture, or nothing. */
function tips({ element, svg }, read) {
  const tip = html("div", { class: "lw-tip", hidden: "" });
  element.style.position = "relative";
  element.append(tip);
  const hide = () => {
    tip.hidden = true;
    d3.select(svg).selectAll(".pointed").remove();
  };
  svg.addEventListener("pointerleave", hide);
  svg.addEventListener("pointermove", (event) => {
    hide();
    const box = svg.getBoundingClientRect(), unit = box.width / svg.viewBox.baseVal.width;
    const found = event.buttons ? null : read((event.clientX - box.left) / unit, (event.clientY - box.top) / unit, event.target);
    if (!found) return;
    tip.hidden = false;
    tip.textContent = found.words;
    if (found.ring) d3.select(svg).append("circle").attr("class", "pointed").attr("cx", found.x).attr("cy", found.y).attr("r", 9)
      .attr("fill", "none").attr("stroke", "var(--ink)").attr("stroke-width", 2);
    Object.assign(tip.style, { left: `${Math.max(0, Math.min(found.x * unit + 12, box.width - tip.offsetWidth))}px`, top: `${box.top - element.getBoundingClientRect().top + found.y * unit + 14}px` });
  });
  return hide;
}

const NARROW = 36; // em of a chart from which on names stand at the ends of its curves
const REACH = 28; // units around the pointer in which the nearest point is named

/**
 * Curves over n on log axes. A drag sets n, pointing names the nearest point.
 *
 * lengths: where the curves have points; values: the n that can be set.
 */
function growth(stage, model, { lengths, values }) {
  const picture = chart(stage, { title: "", width: 52, height: 23, margin: { top: 34, right: 20, bottom: 44, left: 84 } });
  let named = [];
  const hide = tips(picture, (x, y) => {
    const away = (point) => Math.hypot(point.x - x, point.y - y);
    const nearestOne = named.reduce((best, point) => (away(point) < away(best) ? point : best), { x: Infinity, y: Infinity });
    return away(nearestOne) < REACH ? { ...nearestOne, ring: true } : null;
  });
  let scale = null;
  dragged(picture.svg, (x) => choose(model, "n", values[nearest(values.map(Math.log2), Math.log2(scale.invert(x - picture.margin.left)))]));

  /**
   * curves: [{ name, colour, width, values, dot, points }], dot at the chosen n, points [[n, value]] as squares;
   * ticks of the values; say: a value in words; marks: [[words, n]] of dashed lines, at most two.
   */
  function show({ title, note, curves, ticks, say, marks = [] }) {
    hide();
    const isWide = picture.element.clientWidth / parseFloat(getComputedStyle(picture.element).fontSize) > NARROW;
    picture.margin.right = isWide ? 130 : 26;
    const { left, top } = picture.margin;
    picture.show((group, width, height) => {
      const x = d3.scaleLog([lengths[0], lengths.at(-1)], [0, width]), y = d3.scaleLog([ticks[0], ticks.at(-1)], [height, 0]);
      const n = model.get("n"), octaves = Math.log2(lengths.at(-1) / lengths[0]), skip = Math.ceil((70 * octaves) / width);
      const xTicks = lengths.filter((at) => Math.log2(at / lengths[0]) % skip === 0);
      axes(group, x, y, { width, height, across: "tokens n; drag to set n", xTicks, yTicks: ticks, xFormat: thousands, yFormat: say });
      const upright = (at, colour, dashes) => group.append("path").attr("d", `M${x(at)},0V${height}`)
        .attr("stroke", `var(--${colour})`).attr("stroke-width", 1.2).attr("stroke-dasharray", dashes);
      marks.forEach(([words, at], i) => {
        if (at < lengths[0] || at > lengths.at(-1)) return;
        upright(at, "key", "5 4");
        group.append("text").attr("x", x(at) + (i ? 4 : -4)).attr("y", -8).attr("text-anchor", i ? "start" : "end").style("fill", "var(--key)").text(words);
      });
      upright(n, "ink", null);
      named = [];
      const widestFirst = [...curves].sort((a, b) => b.width - a.width); // so that all are seen where they meet
      const name = (curve, at, value, what) => named.push({ x: left + x(at), y: top + y(value), words: `${curve.name}${what}, n = ${thousands(at)}: ${say(value)}` });
      for (const curve of widestFirst) {
        group.append("path").attr("fill", "none").attr("stroke", curve.colour).attr("stroke-width", curve.width)
          .attr("d", d3.line()(curve.values.map((value, i) => [x(lengths[i]), y(value)])));
        curve.values.forEach((value, i) => name(curve, lengths[i], value, ""));
      }
      for (const curve of widestFirst) {
        group.append("circle").attr("cx", x(n)).attr("cy", y(curve.dot)).attr("r", curve.width / 2 + 3.5).attr("fill", curve.colour).attr("stroke", "var(--ink)");
        for (const [at, value] of curve.points ?? []) {
          group.append("rect").attr("x", x(at) - 5).attr("y", y(value) - 5).attr("width", 10).attr("height", 10).attr("fill", curve.colour).attr("stroke", "var(--ink)");
          name(curve, at, value, ", measured");
        }
      }
      const onRight = x(n) > width / 2;
      group.append("text").attr("x", x(n) + (onRight ? -6 : 6)).attr("y", height - 8).attr("text-anchor", onRight ? "end" : "start").text(`n = ${thousands(n)}`);
      if (isWide)
        spread(curves.map((curve) => y(curve.values.at(-1))), 19).forEach((at, i) =>
          group.append("text").attr("x", width + 10).attr("y", at + 5).style("fill", curves[i].colour).style("font-weight", "bold").text(curves[i].name));
      scale = x;
    }, { title, note });
  }
  return { show };
}

const ROW = 54; // units from one bar to the next

/** Bars made of parts, `count` of them one below the other, on one scale; pointing names a part. */
function shares(stage, { count }) {
  const picture = chart(stage, { title: "", width: 40, height: (count * ROW) / 16, margin: { top: 4, right: 0, bottom: 0, left: 0 } });
  picture.element.style.flexBasis = "22em";
  const hide = tips(picture, (x, y, part) => part.dataset?.words && { words: part.dataset.words, x, y });

  /** rows: [{ name, colour, words, parts: [{ name, value, strong, words }] }]. */
  function show({ title, note, rows }) {
    hide();
    const total = ({ parts }) => parts.reduce((sum, { value }) => sum + value, 0);
    picture.show((group, width) => {
      const x = d3.scaleLinear([0, Math.max(...rows.map(total))], [0, width - 1]);
      rows.forEach((row, i) => {
        const line = group.append("g").attr("transform", `translate(0, ${i * ROW})`);
        line.append("text").attr("y", 14).style("fill", row.colour).style("font-weight", "bold").text(row.name);
        line.append("text").attr("x", width).attr("y", 14).attr("text-anchor", "end").text(row.words);
        let from = 0;
        for (const { name, value, strong, words } of row.parts) {
          line.append("rect").attr("data-words", words).attr("x", x(from)).attr("y", 20).attr("width", Math.max(1, x(value))).attr("height", 25)
            .attr("fill", row.colour).attr("fill-opacity", strong ? 1 : 0.3).attr("stroke", row.parts.length > 1 ? "var(--paper)" : null);
          if (x(value) > 8 * name.length + 8)
            line.append("text").attr("x", x(from + value / 2)).attr("y", 38).attr("text-anchor", "middle").style("stroke", "none")
              .style("pointer-events", "none").style("fill", `var(--${strong ? "paper" : "ink"})`).text(name);
          from += value;
        }
      });
    }, { title, note });
  }
  return { show };
}
