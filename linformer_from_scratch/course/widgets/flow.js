// A text that flows through slots into one query, and below it the same query with exact attention.

const [RIBBON, SLOT, PILL, BARS, NAMES] = [10, 14, 26, 30, 20]; // units high; what is left is for the bands
const [FAINT, THIN] = [0.004, 0.15]; // a band that is a smaller share of its slot, or as many units wide, is not drawn
const NAMED = 5; // tokens named above the bars

/** How strong a weight is among those of its slot: 0 … 1. */
const shareOf = (row, i) => Math.abs(row[i]) / Math.max(...row.map(Math.abs), 1e-9);

/** Where the parts of a whole lie that fills from … to, in order: starts[i] to starts[i + 1]. */
function stacked(weights, from, to) {
  const starts = [from], all = weights.reduce((sum, weight) => sum + Math.abs(weight), 0) || 1;
  weights.forEach((weight) => starts.push(starts.at(-1) + (Math.abs(weight) / all) * (to - from)));
  return starts;
}

/** A band from [left, right] at one height to [left, right] at another, added to a path. */
function band(path, [a, b], top, [c, d], bottom) {
  const middle = (top + bottom) / 2;
  path.moveTo(a, top);
  path.bezierCurveTo(a, middle, c, middle, c, bottom);
  path.lineTo(d, bottom);
  path.bezierCurveTo(d, middle, b, middle, b, top);
  path.closePath();
}

/**
 * From top to bottom: what the query gets from each token through the slots, the text, its slots, the query, the text
 * again, and what exact attention gets from each token. A slot has the colours of what it mixes.
 *
 * tokens: of the text; hover: what is pointed at, { key } or { slot }; pick: (token) called on a click or Enter;
 * say: ({ key, slot }) -> words.
 */
function flow(stage, { tokens, hover, pick, say }) {
  const { element, heading, small, tell } = figure(stage, "", "");
  const canvas = html("canvas", { role: "img" }), words = d3.create("svg").attr("aria-hidden", "true");
  const frame = html("div", { class: "lw-flow", tabindex: 0, role: "group" }, canvas, words.node());
  element.append(frame);
  let n = 0, colours = []; // of the text
  let now = null, places = null; // what is shown, and where it lies

  /** The token or slot at a place. */
  function at(event) {
    const box = frame.getBoundingClientRect(), x = (event.clientX - box.left) / box.width;
    const y = ((event.clientY - box.top) / box.height) * places.height, one = (count) => clamp(Math.floor(x * count), 0, count - 1);
    const isSlot = y > (places.text + places.slots) / 2 && y < places.query - PILL / 2;
    return isSlot ? { slot: one(now.k) } : { key: one(n) };
  }
  for (const kind of ["pointermove", "pointerdown"]) frame.addEventListener(kind, (event) => hover.point(at(event), frame));
  frame.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && hover.point(null, frame));
  frame.addEventListener("blur", () => hover.point(null, frame));
  frame.addEventListener("click", (event) => { const { key } = at(event); if (key >= 0) pick(key); });
  frame.addEventListener("keydown", (event) => {
    const { key = null, slot = null } = hover.cell ?? { key: now.asked };
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (event.key === "Enter" && key !== null) pick(key);
    else if (event.key === "Escape") hover.point(null, frame);
    else if (event.key === "ArrowDown" && key !== null) hover.point({ slot: Math.floor((key * now.k) / n) }, frame);
    else if (event.key === "ArrowUp" && slot !== null) hover.point({ key: Math.floor((slot * n) / now.k) }, frame);
    else if (step) hover.point(slot === null ? { key: clamp(key + step, 0, n - 1) } : { slot: clamp(slot + step, 0, now.k - 1) }, frame);
    else return;
    event.preventDefault();
  });

  /** Where things lie, in units that grow with the type. */
  function layOut() {
    const { k, F, read, exact, asked } = now, em = emOf(frame) / 16;
    const width = frame.clientWidth / em, height = frame.clientHeight / em, cell = width / n, wide = width / k;
    const room = height - 2 * (NAMES + BARS + RIBBON) - SLOT - PILL;
    const text = NAMES + BARS + RIBBON, slots = text + 0.5 * room, query = slots + SLOT + 0.25 * room + PILL / 2;
    const again = height - NAMES - BARS - RIBBON, pill = clamp(0.22 * width, 110, 260);
    const left = clamp((asked + 0.5) * cell - pill / 2, 0, width - pill), gap = Math.min(6, 0.2 * wide);
    const slotEnds = range(0, k - 1).map((j) => [j * wide + gap / 2, (j + 1) * wide - gap / 2]);
    const byToken = transposed(F, n), rows = range(0, k - 1).map((j) => F.subarray(j * n, (j + 1) * n));
    const into = rows.map((row, j) => stacked(row, ...slotEnds[j]));
    const from = range(0, n - 1).map((t) => stacked(byToken.subarray(t * k, (t + 1) * k), t * cell, (t + 1) * cell));
    return {
      em, width, height, cell, text, slots, query, again, pill, left, slotEnds, rows, into, from,
      got: stacked(read, left, left + pill), attended: stacked(exact, left, left + pill),
    };
  }

  /** The bands of token t, to all slots or to one. */
  function bandsOf(t, only) {
    const path = new Path2D(), { into, from, slotEnds, text, slots } = places;
    for (let j = only ?? 0; j <= (only ?? now.k - 1); j++) {
      const [start, end] = slotEnds[j], left = into[j][t], right = into[j][t + 1];
      if (right - left > Math.max(FAINT * (end - start), THIN)) band(path, [from[t][j], from[t][j + 1]], text, [left, right], slots);
    }
    return path;
  }

  /** A sheet of the size of the picture. */
  function sheet(canvas) {
    const { em, width, height } = places, sharp = (window.devicePixelRatio || 1) * em, context = canvas.getContext("2d");
    Object.assign(canvas, { width: Math.round(width * sharp), height: Math.round(height * sharp) });
    context.scale(sharp, sharp);
    return context;
  }

  /** The bands of all tokens, drawn once for all that may be pointed at. */
  function allBands() {
    const canvas = document.createElement("canvas"), context = sheet(canvas);
    colours.forEach((colour, t) => { context.fillStyle = painted(colour, 0.5); context.fill(bandsOf(t)); });
    return canvas;
  }

  function draw() {
    if (!now || !frame.clientWidth) return;
    const { k, read, exact, through, asked, theme } = now, { key, slot } = hover.cell ?? {};
    const { width, height, cell, text, slots, query, again, pill, left, slotEnds, rows, got, attended } = places;
    const context = sheet(canvas), page = PALETTE[theme];
    const isQuiet = key >= 0 || slot >= 0, fill = (colour, path) => { context.fillStyle = colour; context.fill(path); };
    const box = (x, y, w, h) => { const path = new Path2D(); path.rect(x, y, w, h); return path; };
    const one = (ends, y, others, to) => { const path = new Path2D(); band(path, ends, y, others, to); return path; };
    const paints = rows.map((row) => mixed(colours, row)), most = Math.max(...read.map(Math.abs), 1e-9);
    const mostExact = Math.max(...exact, 1e-9), tallest = Math.max(...through.map(Math.abs), mostExact);
    const long = (weight) => BARS * Math.sqrt(Math.abs(weight) / tallest);

    context.globalAlpha = isQuiet ? 0.2 : 1;
    context.drawImage(places.bands ??= allBands(), 0, 0, width, height);
    context.globalAlpha = 1;
    if (key >= 0) fill(painted(colours[key], 0.95), bandsOf(key));
    if (slot >= 0) colours.forEach((colour, t) => fill(painted(colour, 0.95), bandsOf(t, slot)));
    for (let j = 0; j < k; j++) {
      const [start, end] = slotEnds[j], half = ((end - start) / 2) * (Math.abs(read[j]) / most), middle = (start + end) / 2;
      const lit = !isQuiet || j === slot ? 1 : key >= 0 ? shareOf(rows[j], key) : 0.12;
      fill(painted(paints[j], 0.6 * lit), one([middle - half, middle + half], slots + SLOT, [got[j], got[j + 1]], query - PILL / 2));
      fill(painted(paints[j], Math.max(0.25, lit)), box(start, slots, end - start, SLOT));
    }
    for (let t = 0; t < n; t++) {
      const lit = !isQuiet || t === key ? 1 : slot >= 0 ? shareOf(rows[slot], t) : 0.12, x = t * cell;
      const half = (cell / 2) * (exact[t] / mostExact), middle = x + cell / 2;
      fill(painted(colours[t], 0.6 * lit), one([attended[t], attended[t + 1]], query + PILL / 2, [middle - half, middle + half], again));
      for (const top of [text - RIBBON, again]) fill(painted(colours[t], Math.max(0.25, lit)), box(x, top, cell + 0.3, RIBBON));
      const up = long(through[t]), down = long(exact[t]), wide = Math.max(1, cell - 1);
      fill(through[t] < 0 ? NEGATIVE[theme] : painted(colours[t], Math.max(0.35, lit)), box(x, text - RIBBON - 2 - up, wide, up));
      fill(painted(colours[t], Math.max(0.35, lit)), box(x, again + RIBBON + 2, wide, down));
    }
    fill(painted(mixed(paints, read)), box(left, query - PILL / 2, pill, 5));
    fill(painted(mixed(colours, exact)), box(left, query + PILL / 2 - 5, pill, 5));

    const isRight = (asked + 0.5) * cell > width / 2;
    words.attr("viewBox", `0 0 ${width} ${height}`).selectAll("*").remove();
    write(words, shorten(tokens()[asked], 18), left + pill / 2, query + 5, "middle").style("font-weight", "bold");
    const [edge, anchor] = isRight ? [0, "start"] : [width, "end"];
    now.words.forEach((way, i) => write(words, way, edge, query - 5 + 20 * i, anchor));
    const name = (values, y) => {
      const taken = [], order = values.map(Math.abs), ranked = range(0, n - 1).sort((a, b) => order[b] - order[a]);
      for (const t of key >= 0 ? [key] : ranked.slice(0, NAMED)) {
        const what = shorten(tokens()[t]), half = 4 * what.length + 4, x = clamp((t + 0.5) * cell, half, width - half);
        if (taken.some(([other, its]) => Math.abs(other - x) < half + its)) continue;
        taken.push([x, half]);
        write(words, what, x, y, "middle").style("font-weight", t === key ? "bold" : null);
      }
    };
    name(Array.from(through), NAMES - 6);
    name(Array.from(exact), height - 5);
    if (key >= 0)
      for (const top of [text - RIBBON, again])
        bar(words, key * cell - 1, top - 1, cell + 2, RIBBON + 2, "none").attr("stroke", page.ink).attr("stroke-width", 2);
  }

  hover.listen(() => {
    draw();
    tell(hover.cell && now ? say(hover.cell) : "");
  });
  new ResizeObserver(() => { if (now && frame.clientWidth) { places = layOut(); draw(); } }).observe(frame);
  return {
    element, canvas,
    get colours() { return colours; },
    /**
     * k slots that F (k, n) fills; read: how much the query `asked` attends to each; through, exact: what it gets from each token;
     * words: of both ways, beside the query.
     */
    show(state, { title: heads, note }) {
      now = state;
      n = tokens().length;
      colours = tokens().map((_, i) => { const { r, g, b } = d3.rgb(RAINBOW(i / (n - 1))); return [r, g, b]; });
      heading.textContent = heads;
      small.textContent = note;
      canvas.setAttribute("aria-label", `${heads} ${note}`);
      frame.setAttribute("aria-label", `${heads}: left and right walk over tokens, down goes to the slots, Enter takes a token as query`);
      places = layOut();
      draw();
    },
  };
}
