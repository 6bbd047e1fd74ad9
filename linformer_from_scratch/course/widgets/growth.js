// What widgets share that show how a cost grows with n: formulas put into numbers, curves, bars of shares.

/** A formula that Python sent as a table, as coefficients of 1, n, n²; values are those of the letters after n. */
function inPowersOfN(terms, values) {
  const coefficients = [0, 0, 0];
  for (const [coefficient, power, ...powers] of terms)
    coefficients[power] += powers.reduce((product, p, i) => product * values[i] ** p, coefficient);
  return coefficients;
}

const atN = ([constant, linear, square], n) => constant + n * (linear + n * square);
const growsAsSquare = ([, , square]) => square > 0;

/** A number in three digits with the largest unit that leaves at least 1; units: name -> size, the smallest first. */
function quantity(value, units) {
  const all = Object.entries(units), [unit, size] = all.filter(([, size]) => value >= size).at(-1) ?? all[0];
  const number = value / size, digits = Math.max(0, 2 - Math.floor(Math.log10(number || 1)));
  return `${Number(fixed(number, digits))} ${unit}`;
}

const NARROW = 28; // em of a chart from which on names stand at the ends of its curves

/**
 * Curves over n on log axes. A drag sets n, pointing names the nearest point.
 *
 * lengths: where the curves have points, and the n that can be set.
 */
function growth(stage, model, { lengths }) {
  const high = (width) => (width < NARROW ? 12 : clamp(0.42 * width, 13, 19)), margin = { top: 28, right: 20, bottom: 44, left: 84 };
  const picture = chart(stage, { title: "", width: 52, height: high, margin });
  const x = d3.scaleLog(), octaves = Math.log2(lengths.at(-1) / lengths[0]);
  dragged(picture.svg, (at) => choose(model, "n", lengths[nearest(lengths.map(Math.log2), Math.log2(x.invert(at - margin.left)))]));

  /**
   * curves: [{ name, colour, width, values, now, points }], now at the chosen n, points [[n, value]] as squares;
   * ticks of the values; say: a value in words; marks: [[words, n]] of dashed lines, at most two; pays: n of a whole one.
   */
  function show({ title, note, curves, ticks, say, marks, pays = false }) {
    const isWide = picture.element.clientWidth / emOf(picture.element) > NARROW;
    margin.right = isWide ? 130 : 34;
    picture.show((group, width, height) => {
      const y = d3.scaleLog([ticks[0], ticks.at(-1)], [height, 0]), n = model.get("n");
      x.domain([lengths[0], lengths.at(-1)]).range([0, width]);
      const everyX = Math.ceil((70 * octaves) / width), everyY = Math.ceil((18 * ticks.length) / height); // so that labels have room
      axes(group, x, y, {
        width, height, across: "tokens n; drag to set n", xFormat: thousands, yFormat: say,
        xTicks: lengths.filter((at) => Math.log2(at / lengths[0]) % everyX === 0), yTicks: ticks.filter((_, i) => i % everyY === 0),
      });
      marks.forEach(([words, at], i) => {
        if (at < lengths[0] || at > lengths.at(-1)) return;
        stroke(group, `M${x(at)},0V${height}`, "key", 1.2, "5 4");
        const ends = Math.max(x(at) - 4, 7.5 * words.length - margin.left); // no farther left than the chart
        write(group, words, i ? x(at) + 4 : ends, -8, i ? "start" : "end").style("fill", "var(--key)");
      });
      if (pays) stroke(group, `M${x(pays)},0V${height}`, "key", 3);
      stroke(group, `M${x(n)},0V${height}`, "ink", 1.2);
      const widestFirst = [...curves].sort((a, b) => b.width - a.width); // so that all are seen where they meet
      for (const curve of widestFirst)
        stroke(group, d3.line()(curve.values.map((value, i) => [x(lengths[i]), y(value)])), curve.colour, curve.width);
      for (const { now, points, colour, width } of widestFirst) {
        dot(group, x(n), y(now), width / 2 + 3.5, colour).attr("stroke", "var(--ink)");
        for (const [at, value] of points) bar(group, x(at) - 5, y(value) - 5, 10, 10, colour).attr("stroke", "var(--ink)");
      }
      const side = x(n) > width / 2 ? -1 : 1;
      write(group, `n = ${thousands(n)}`, x(n) + 6 * side, height - 8, side < 0 ? "end" : "start");
      if (isWide)
        apart(curves.map((curve) => y(curve.values.at(-1))), 19, 0, height).forEach((at, i) =>
          write(group, curves[i].name, width + 10, at + 5).style("fill", curves[i].colour).style("font-weight", "bold"));
      const point = (words, at, value) => ({
        x: x(at), y: y(value),
        get say() { return `${words}, n = ${thousands(at)}: ${say(value)}`; }, // written when it is pointed at
      });
      return curves.flatMap((curve) => [
        ...curve.points.map(([at, value]) => point(`${curve.name}, measured`, at, value)),
        ...curve.values.map((value, i) => point(curve.name, lengths[i], value)),
      ]);
    }, { title, note });
  }
  return { show };
}

const ROW = 38;

/** Bars made of parts, `count` of them one below the other, on one scale; pointing names a part. row: units from one to the next. */
function shares(stage, { count, row = ROW }) {
  const picture = chart(stage, { title: "", width: 40, height: (count * row) / 16, margin: { top: 4, right: 0, bottom: 0, left: 0 } });
  picture.element.style.flexBasis = "22em";

  /** rows: [{ name, colour, words, parts: [{ name, value, strong, words }] }]. */
  function show({ title, note, rows }) {
    const total = ({ parts }) => parts.reduce((sum, { value }) => sum + value, 0), points = [];
    picture.show((group, width, height) => {
      const x = d3.scaleLinear([0, Math.max(...rows.map(total))], [0, width - 1]), pitch = height / count;
      rows.forEach((row, i) => {
        const line = group.append("g").attr("transform", `translate(0, ${i * pitch})`);
        write(line, row.name, 0, 14).style("fill", row.colour).style("font-weight", "bold");
        write(line, row.words, width, 14, "end");
        let from = 0;
        for (const part of row.parts) {
          const left = x(from), wide = Math.max(1, x(part.value));
          from += part.value;
          bar(line, left, 18, wide, pitch - 22, row.colour).attr("fill-opacity", part.strong ? 1 : 0.3)
            .attr("stroke", row.parts.length > 1 ? "var(--paper)" : null);
          if (wide > 8 * part.name.length + 8)
            write(line, part.name, left + wide / 2, 12 + pitch / 2, "middle").style("stroke", "none").style("fill", `var(--${part.strong ? "paper" : "ink"})`);
          const along = Math.ceil(wide / 30); // a point for each stretch of it
          points.push(...range(1, along).map((at) => ({ x: left + ((at - 0.5) / along) * wide, y: i * pitch + 6 + pitch / 2, say: part.words })));
        }
      });
      return points;
    }, { title, note });
  }
  return { element: picture.element, show };
}
