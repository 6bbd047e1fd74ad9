// The square of exact attention and Linformer's strip, drawn to one scale while the text grows. The numbers are in strip_explorer.py.

const FIRST = 4800; // tokens whose square is surely seen as a whole
const LINE = 1024; // tokens between two lines of the square
const [AXIS, APART] = [58, 22]; // units: below the scene; between strip and square
const MEASURED = 1024; // tokens whose attention is worked out here, and rows of it at a time
const ROWS = 32;

export default widget(({ model, stage, redraw }) => {
  const { lengths, dims, names, heads, d_head: d, memory_units, time_units } = model.get("facts");
  const counters = html("div", { class: "lw-counters" });
  stage.append(counters);
  const picture = chart(stage, {
    title: "", width: 80, margin: { top: 0, right: 12, bottom: AXIS, left: 12 },
    height: (width) => (width < 46 ? 18 : 21),
    note: `One layer, ${heads} heads. Seconds: JavaScript, timed here at n = ${thousands(MEASURED)}, then scaled.`,
  });
  const length = picture.handle(slider(model, "n", { label: "Tokens n", values: lengths }));
  let corner = null; // where the square ends, if that is seen, and units a token
  let pace = null; // seconds for a multiplication and an addition, on this machine
  measure({ d, isWanted: () => stage.isConnected }, (seconds) => { pace = seconds; redraw(); });

  // A hand on the corner of the square changes its size.
  picture.svg.addEventListener("pointerdown", (event) => {
    const [x, y] = placeIn(picture.svg, event);
    if (corner && Math.hypot(x - corner.x, y - corner.y) < 28) picture.svg.setPointerCapture(event.pointerId);
  });
  picture.svg.addEventListener("pointermove", (event) => {
    const [x, y] = placeIn(picture.svg, event), isHeld = picture.svg.hasPointerCapture(event.pointerId);
    picture.svg.style.cursor = isHeld || (corner && Math.hypot(x - corner.x, y - corner.y) < 28) ? "nwse-resize" : "";
    if (isHeld && corner) choose(model, "n", lengths[nearest(lengths, Math.max(x - corner.left, y) / corner.scale)]);
  });

  /** The scene over an axis of lengths. */
  function scene(n, k) {
    return (group, across, axisAt) => {
      const { left, right } = picture.margin, width = left + across + right, high = axisAt - 36;
      const scale = high / FIRST, side = n * scale, at = group.append("g").attr("transform", `translate(${-left}, 0)`);
      bar(at, 0, 0, k * scale, Math.min(side, high), "key");
      const start = k * scale + APART, room = width - start;
      const isWhole = side <= room && side <= high, seenX = Math.min(side, room), seenY = Math.min(side, high);
      square(at, start, seenX, seenY, LINE * scale);
      if (seenX > 150 && seenY > 60) write(at, `${thousands(n)} × ${thousands(n)}`, start + seenX / 2, seenY / 2 + 7, "middle").attr("class", "lw-inside");
      corner = isWhole ? { x: start + side, y: side, left: start, scale } : null;
      if (isWhole) twice(at, start, side, room, high);
      else inset(at, { x: width - 12, y: 12, size: 0.4 * high, seenX: seenX / side, seenY: seenY / side, thin: k / n });
      axis(group, across, axisAt, n);
    };
  }

  /** What is seen of the square. */
  function square(at, start, width, height, pitch) {
    bar(at, start, 0, width, height, "query").attr("fill-opacity", 0.82);
    for (let line = pitch; line < width; line += pitch) stroke(at, `M${start + line},0V${height}`, "paper", 0.5);
    for (let line = pitch; line < height; line += pitch) stroke(at, `M${start},${line}H${start + width}`, "paper", 0.5);
  }

  /** The corner that is held, and the square of twice the text, as far as there is room. */
  function twice(at, start, side, room, high) {
    const double = 2 * side, right = start + Math.min(double, room), low = Math.min(double, high);
    stroke(at, `M${start + side},0H${right}${double < room ? `V${low}` : ""}`, "query", 1.5, "4 5");
    stroke(at, `M${start},${side}V${low}${double < high ? `H${right}` : ""}`, "query", 1.5, "4 5");
    if (double + 280 < room) write(at, "twice the text, four times the square", start + double + 12, 16).attr("class", "lw-quiet");
    dot(at, start + side, side, 8, "query").attr("stroke", "var(--paper)").attr("stroke-width", 2.5).style("touch-action", "none");
  }

  /** The whole square and the whole strip, small, with what is seen of the square. */
  function inset(at, { x, y, size, seenX, seenY, thin }) {
    const words = `you see ${shareSeen(seenX * seenY)} of it`, wide = Math.max(size, 7.4 * words.length) + 20, left = x - (wide + size) / 2;
    bar(at, x - wide, y, wide, size + 42, "paper").attr("rx", 5);
    bar(at, left, y + 10, size, size, "query").attr("fill-opacity", 0.3);
    bar(at, left - 4 - Math.max(1, thin * size), y + 10, Math.max(1, thin * size), size, "key");
    bar(at, left, y + 10, Math.max(2, seenX * size), Math.max(2, seenY * size), "query");
    write(at, words, x - wide / 2, y + size + 30, "middle");
  }

  function axis(group, across, y, n) {
    const x = d3.scalePoint(lengths, [0, across]), wanted = Object.entries(names).filter((_, i) => across > 620 || i % 2 === 0);
    stroke(group, `M0,${y}H${across}`, "edge", 4);
    stroke(group, `M0,${y}H${x(n)}`, "query", 4);
    wanted.forEach(([length, name], i) => {
      const anchor = ["start", "middle", "end"][Math.sign(i) + (i === wanted.length - 1 ? 1 : 0)];
      write(group, thousands(+length), x(+length), y + 27, anchor);
      write(group, name, x(+length), y + 45, anchor).attr("class", "lw-quiet");
    });
    write(group, `n = ${thousands(n)}`, clamp(x(n), 40, across - 44), y - 15, "middle").style("font-weight", "bold");
  }

  return {
    controls: [length, slider(model, "proj_dim", { label: "Slots k", values: dims })],
    hint: "drag the dot from a page to a novel. The strip stays; what happens to the square, its memory, its seconds?",
    draw() {
      const n = model.get("n"), k = model.get("proj_dim");
      const memory = { square: 4 * heads * n * n, strip: 4 * heads * n * k };
      const work = { square: 2 * heads * d * n * n, strip: 4 * heads * d * n * k }; // the strip's includes EK and FV
      const counter = (name, colour, size) => html("div", { style: `border-color: var(--${colour})` }, html("span", {}, size),
        ...[quantity(memory[name], memory_units), pace ? lasting(work[name] * pace, time_units) : "…"]
          .map((amount) => html("b", { style: `color: var(--${colour})` }, amount)));
      counters.replaceChildren(
        counter("strip", "key", `Linformer's strip: ${thousands(n)} × ${k}`),
        counter("square", "query", `attention's square: ${thousands(n)} × ${thousands(n)}`));
      picture.show(scene(n, k), { title: `A text of ${thousands(n)} tokens, to one scale: a line every ${thousands(LINE)}` });
      const words =
        `A layer's ${heads} squares of ${thousands(n)} × ${thousands(n)} numbers take ${quantity(memory.square, memory_units)}, ` +
        `its strips of ${thousands(n)} × ${k} ${quantity(memory.strip, memory_units)}: ` +
        `${n === k ? "no" : `${+(n / k).toPrecision(3)} times`} less.`;
      return { words, numbers: { memory, work } };
    },
  };
});

/** Seconds in words, in two digits: more would claim too much. */
const lasting = (seconds, units) => quantity(+seconds.toPrecision(2), units).replace(/[\d.]+/, (number) => String(+(+number).toPrecision(2)));

/** A share in words that never says 0%. */
const shareSeen = (x) => (x < 0.001 ? "less than 0.1%" : x < 0.1 ? `${fixed(100 * x, 1)}%` : percent(x));

/**
 * Seconds that this machine takes for a multiplication and an addition of attention, from one head with d features: the
 * median over parts, each short enough that the page stays awake.
 */
function measure({ d, isWanted }, done) {
  const some = (count) => Float64Array.from({ length: count }, (_, i) => Math.sin(i)), [keys, values] = [some(MEASURED * d), some(MEASURED * d)];
  const times = [];
  (function part() {
    if (!isWanted() && times.length) return; // the picture is gone
    const q = some(ROWS * d), start = performance.now();
    product(softmax(scoresOf(q, keys, d, Math.sqrt(d)), MEASURED), values, MEASURED);
    times.push(performance.now() - start);
    if (times.length < MEASURED / ROWS) setTimeout(part, 0);
    else done(quantile(times, 0.5) / 1000 / (2 * ROWS * MEASURED * d));
  })();
}
