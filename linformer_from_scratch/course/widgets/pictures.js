// The pictures of widgets: maps, charts, texts, what the hand points at, and their colours.

/** 256 colours as pixels, from the lowest value to the highest. */
function shadesOf(interpolate) {
  return Uint32Array.from({ length: 256 }, (_, i) => {
    const { r, g, b } = d3.rgb(interpolate(i / 255));
    return 0xff000000 | (b << 16) | (g << 8) | r;
  });
}

const DARK_BLUES = d3.interpolateRgbBasis(["#16181c", "#12386b", "#2a6bb8", "#6fa8e6", "#d6e8ff"]);
const DARK_REDS = d3.interpolateRgbBasis(["#16181c", "#6b2012", "#c0482c", "#f08a66", "#ffe0d6"]);
const SHADES = {
  // Weights: the page's colour is 0. Signed numbers: blue above 0, as weights are, red below.
  light: { weights: shadesOf(d3.interpolateBlues), signed: shadesOf(d3.interpolateRdBu) },
  dark: {
    weights: shadesOf(DARK_BLUES),
    signed: shadesOf((t) => (t < 0.5 ? DARK_REDS(1 - 2 * t) : DARK_BLUES(2 * t - 1))),
  },
};

const RAINBOW = d3.interpolateRgbBasis(["#3f6fd8", "#2aa6b8", "#4fae5a", "#e8b31c", "#f0703f", "#b557b8"]); // along a text
const NEGATIVE = { light: "#b2182b", dark: "#f08a66" };

/** Colours that are mixed by weights, as paint is: [red, green, blue]. */
function mixed(colours, weights) {
  let all = 0;
  const sum = [0, 0, 0];
  weights.forEach((weight, i) => {
    const part = Math.abs(weight);
    all += part;
    for (const c of [0, 1, 2]) sum[c] += part * colours[i][c];
  });
  return sum.map((channel) => channel / (all || 1));
}

const painted = (colour, opacity = 1) => `rgba(${colour.map(Math.round).join()}, ${opacity})`;

/** Draw numbers (rows, columns) as pixels; weights run from 0 to limit, signed numbers from −limit to limit. */
function paint(canvas, values, rows, columns, limit, signed, theme) {
  Object.assign(canvas, { width: columns, height: rows });
  const context = canvas.getContext("2d"), image = context.createImageData(columns, rows);
  const pixels = new Uint32Array(image.data.buffer), shades = SHADES[theme][signed ? "signed" : "weights"];
  const scale = 255 / (signed ? 2 * limit : limit), zero = signed ? 127.5 : 0.5;
  for (let p = 0; p < pixels.length; p++) pixels[p] = shades[clamp(values[p] * scale + zero, 0, 255) | 0];
  context.putImageData(image, 0, 0);
}

/**
 * A picture with its title; the sentence below the widget is its description. tell(words) says in the place of the note
 * what is pointed at, so that it covers nothing of the picture; without words the note is back.
 */
function figure(stage, title, note) {
  const heading = html("b", {}, title), small = html("span", {}, note), tip = html("span", { class: "lw-tip", hidden: "" });
  const element = html("figure", {}, html("figcaption", {}, heading, small, tip));
  stage.append(element);
  function tell(words = "") {
    tip.hidden = !words;
    tip.textContent = words;
    tip.style.left = "0";
    if (!words) return;
    const widget = element.closest(".lw"), box = widget.getBoundingClientRect(); // what leaves its widget may be cut
    const over = ((tip.getBoundingClientRect().right - box.right) * widget.offsetWidth) / box.width;
    if (over > 0) tip.style.left = `${-over}px`;
  }
  return { element, heading, small, tell };
}

const MOST_NAMED = 40; // tokens; a map of so many is made large enough to name them all, where there is room
const [GAP, LEAST_SIDE] = [1.6, 6.2]; // em, of maps beside each other; the largest is --side of the style
const LEAST_FLAT = 0.45; // of the pictures, below which a map shrinks until it has no names
const PHONE = 27; // em of a phone, where slanted names have no room
const READABLE = 12; // px of a cell from which on every token is named beside its row

/**
 * A map of n × m numbers. It names what is pointed at, by pointer or by arrow keys, and marks row and column.
 *
 * abreast: how many maps stand beside each other where there is room; rows, columns: () -> names of the tokens (or slots); pick: (i, j) called on a click or Enter;
 * picks: what Enter does then; hover: shared by maps of the same tokens, so that pointing at one points at all; a map
 * that shares one axis only is given a cell without i or without j; read: (value, i, j) -> words.
 *
 * @param {HTMLElement} stage
 * @param {{title: string, rows: () => string[], columns?: () => string[], note?: string, abreast?: number, hover?: any,
 *   pick?: (i: number, j: number) => void, picks?: string, read?: (value: number, i: number, j: number) => string, signed?: boolean}} options
 */
function heatMap(stage, { title, note = "queries down, keys across", abreast = 3, rows, columns = rows, hover,
  pick, picks = "takes the row as query", read, signed: isSigned = false }) {
  const { element, heading, small, tell } = figure(stage, title, note);
  const canvas = html("canvas", { role: "img", "aria-label": title }), picture = d3.create("svg").attr("aria-hidden", "true");
  const frame = html("div", { class: "lw-frame", tabindex: 0, role: "group" }, canvas, picture.node());
  frame.style.cursor = pick ? "pointer" : "crosshair";
  const scale = html("canvas", { "aria-hidden": "true" }), least = html("span"), most = html("span");
  element.append(frame, html("div", { class: "lw-scale" }, least, scale, most));
  const map = { values: new Float64Array(0), n: 0, m: 0, query: -1, theme: "light", besides: false };
  hover ??= pointing();

  const cellAt = (event) => {
    const box = canvas.getBoundingClientRect();
    const j = Math.floor(((event.clientX - box.left) / box.width) * map.m);
    const i = Math.floor(((event.clientY - box.top) / box.height) * map.n);
    return i >= 0 && j >= 0 && i < map.n && j < map.m ? { i, j } : null;
  };
  for (const kind of ["pointermove", "pointerdown"]) frame.addEventListener(kind, (event) => hover.point(cellAt(event), map));
  for (const kind of ["pointerleave", "blur"]) frame.addEventListener(kind, () => hover.point(null, map));
  frame.addEventListener("click", (event) => {
    const cell = cellAt(event);
    if (cell && pick) pick(cell.i, cell.j);
  });
  frame.addEventListener("keydown", (event) => {
    const [down, right] = ARROWS[event.key] ?? [0, 0], { i = Math.max(0, map.query), j = 0 } = hover.cell ?? {};
    if (event.key === "Enter" && pick) pick(i, j);
    else if (event.key === "Escape") hover.point(null, map);
    else if (down || right) hover.point({ i: clamp(i + down, 0, map.n - 1), j: clamp(j + right, 0, map.m - 1) }, map);
    else return;
    event.preventDefault();
  });

  function mark() {
    const { i, j } = hover.cell ?? {}, isRow = i < map.n, isColumn = j < map.m;
    const em = emOf(frame) / 16;
    const width = frame.offsetWidth / em, height = frame.offsetHeight / em; // in units that grow with the type
    const colours = PALETTE[map.theme], across = width / map.m, down = height / map.n;
    picture.attr("viewBox", `0 0 ${width || 1} ${height || 1}`).selectAll("*").remove();
    const outline = (x, y, w, h, colour, dashes = null) => // what is chosen is whole, what is pointed at dashed
      bar(picture, x, y, w, h, "none").attr("stroke", colour).attr("stroke-width", 2).attr("stroke-dasharray", dashes);
    if (map.query >= 0) outline(-1, map.query * down - 1, width + 2, down + 2, colours.query);
    if (isRow) outline(0, i * down, width, down, colours.query, "3 3");
    if (isColumn) outline(j * across, 0, across, height, colours.key, "3 3");
    if (!map.besides) label(rows(), down, isRow ? i : map.query, (text, middle) =>
      text.attr("x", -7).attr("y", middle).attr("text-anchor", "end").attr("dominant-baseline", "central"), colours.query);
    if (map.names) label(columns(), across, isColumn ? j : -1, (text, middle) =>
      text.attr("transform", `translate(${middle + 3}, -6) rotate(-50)`), colours.key);
    point(isRow && isColumn ? { i, j } : null);
  }

  function label(names, pitch, marked, place, colour) {
    if (map.named)
      names.forEach((name, i) => {
        const text = place(picture.append("text").text(shorten(name)), (i + 0.5) * pitch).style("font-size", `${clamp(0.75 * pitch, 12, 15)}px`);
        if (i === marked) text.style("font-weight", "bold").style("fill", colour);
      });
  }

  /** The map that is pointed at says whose number it is; those that share the pointer show theirs. */
  function point(at) {
    if (!at) return tell();
    const value = map.values[at.i * map.m + at.j];
    const say = read ?? (() => `“${rows()[at.i]}” attends to “${columns()[at.j]}”: ${signed(value)}`);
    tell(hover.source === map ? say(value, at.i, at.j) : signed(value));
  }

  hover.listen(mark);
  new ResizeObserver(mark).observe(frame); // what stands beside it may give it another width
  return {
    element, canvas,
    /**
     * Show numbers (n, m); limit is the number of the strongest colour; query marks a row; cell: the largest one, em; high:
     * of a map that is not square, em; besides: what stands to the left names the rows.
     */
    show(values, n, m, { limit, theme, query = -1, cell = Infinity, besides = false, high = null,
      title: now = title, note: below = note, signed: both = isSigned }) {
      Object.assign(map, { values, n, m, theme, query, besides });
      heading.textContent = now;
      small.textContent = below;
      canvas.setAttribute("aria-label", `${now}; ${below}`);
      frame.setAttribute("aria-label", `${now}: arrow keys walk from cell to cell${pick ? `, Enter ${picks}` : ""}`);
      const room = element.parentElement.clientWidth / emOf(element), gap = room < 46 ? GAP / 2 : GAP;
      const style = getComputedStyle(element), flat = +style.getPropertyValue("--flat"), allowed = flat * +style.getPropertyValue("--side");
      const longest = Math.max(n, m), names = besides ? 2.5 : 9; // em: rows on the left, slanted columns beyond the right
      const isNamed = longest <= MOST_NAMED && (besides || flat > LEAST_FLAT), shrunk = Math.min(1, flat);
      const readable = isNamed ? (longest * READABLE) / 16 : Math.min(LEAST_SIDE, allowed);
      const largestSide = Math.min((room - gap * (abreast - 1)) / abreast, cell * longest);
      const side = Math.min(Math.max(Math.min(shrunk * largestSide, allowed), readable), largestSide);
      const isSquare = n === m, wide = Math.min(side * (isSquare ? 1 : clamp(m / n, 0.05, 1)), room);
      map.named = (Math.min(side, room - names) * 16) / longest >= READABLE;
      map.names = map.named && room > PHONE; // of the columns too
      element.style.paddingRight = map.names ? "2.5em" : ""; // where the last of the slanted names ends
      const width = map.named ? Math.min(wide, room - names) : wide;
      Object.assign(frame.style, { width: `${width}em`, height: `${isSquare ? width : (high ?? Math.min(side, room))}em` });
      Object.assign(frame.style, { marginLeft: map.named && !besides ? "6.5em" : "", marginTop: map.names ? "5.5em" : "" });
      paint(canvas, values, n, m, limit, both, theme);
      const steps = Float64Array.from({ length: 96 }, (_, i) => (both ? (2 * i) / 95 - 1 : i / 95) * limit);
      paint(scale, steps, 1, 96, limit, both, theme);
      least.textContent = both ? `−${short(limit)}` : "0";
      most.textContent = short(limit);
      mark();
    },
  };
}

/** A token that is too long for its place, cut. */
const shorten = (name, length = 13) => (name.length > length ? `${name.slice(0, length - 1)}…` : name);

/** A number in at most three digits. */
const short = (x) => String(+x.toPrecision(2));

/** The cell that is pointed at, for all who listen. */
function pointing() {
  const listeners = [];
  return {
    cell: null, source: null,
    listen(listener) { listeners.push(listener); },
    point(cell, source) {
      if (JSON.stringify(cell) === JSON.stringify(this.cell) && source === this.source) return;
      Object.assign(this, { cell, source });
      listeners.forEach((listener) => listener());
    },
  };
}

/**
 * The text itself, in its own direction: the tokens of the row and column that are pointed at are marked; a click picks a
 * query. Without a stage it is one of the controls under "More".
 *
 * @param {HTMLElement | null} stage
 * @param {{tokens: () => string[], hover: any, isUnknown?: (token: string) => boolean, query?: () => number, pick?: (i: number) => void}} options
 */
function sentence(stage, { tokens, hover, isUnknown = () => false, query = () => -1, pick }) {
  const element = html("p", { class: "lw-text", dir: "auto" });
  let spans = [], shown = null;
  stage?.append(element);
  function mark() {
    spans.forEach((span, i) => {
      span.classList.toggle("lw-query", i === hover.cell?.i);
      span.classList.toggle("lw-key", i === hover.cell?.j);
      if (pick) span.setAttribute("aria-pressed", String(i === query()));
    });
  }
  hover.listen(mark);
  return {
    element,
    refresh() {
      if (shown !== tokens()) {
        shown = tokens();
        spans = shown.map((token, i) => html(pick ? "button" : "span", {
          ...(pick && { type: "button", click: () => pick(i) }),
          dir: token.startsWith("[") ? "ltr" : null, // [CLS] says nothing of the text's direction
          ...(isUnknown(token) && { class: "lw-unknown", title: "unknown to the model" }),
        }, token));
        element.replaceChildren(...spans.flatMap((span) => [span, " "]));
      }
      mark();
    },
  };
}

const [THUMB, LEAST_HIGH] = [1.25, 7]; // em: across; of a chart however flat

/**
 * A chart of lines, bars and axes, as wide as its place; draw receives an empty group and its size in units that grow with
 * the type, so that 14 units are always 0.875em. It returns the points of which pointing names the nearest, [{ x, y, say }],
 * in units of the group, or nothing. height: in em, or a function of the width.
 *
 * @param {HTMLElement} stage
 * @param {{title: string, note?: string, width?: number, height?: number | ((width: number) => number),
 *   margin?: {top: number, right: number, bottom: number, left: number}}} options
 */
function chart(stage, { title, note = "", width = 46, height = 12, margin = { top: 14, right: 20, bottom: 44, left: 64 } }) {
  const { element, heading, small, tell } = figure(stage, title, note);
  element.classList.add("lw-chart");
  element.style.maxWidth = `${width}em`;
  const picture = d3.select(element).append("svg").attr("role", "img"), svg = picture.node(), handles = [], inside = { wide: 1, high: 1 };
  let points = [];
  svg.addEventListener("pointermove", (event) => {
    const [left, top] = placeIn(svg, event), from = ({ x, y }) => Math.hypot(x + margin.left - left, y + margin.top - top);
    const point = points.reduce((best, other) => (from(other) < from(best) ? other : best), points[0]);
    if (!point) return;
    forget();
    if (from(point) > 40) return;
    tell(point.say);
    dot(picture, point.x + margin.left, point.y + margin.top, 9, "none").attr("class", "pointed").attr("stroke", "var(--ink)").attr("stroke-width", 2);
  });
  svg.addEventListener("pointerleave", forget);
  function forget() {
    if (points.length) tell();
    picture.selectAll(".pointed").remove();
  }
  return {
    element, margin, tell, svg,
    /**
     * Lay a slider on the axis: its thumb is the mark that one drags, and a drag anywhere on the chart moves it. Its
     * values lie evenly between two ends, shares of the axis; draw writes what it is.
     */
    handle(control, { upright = false, ends = () => [0, 1] } = {}) {
      const input = control.element.querySelector("input");
      control.element.classList.add("lw-handle");
      input.classList.toggle("lw-upright", upright);
      element.append(control.element);
      handles.push({ input, upright, ends });
      dragged(svg, (x, y) => {
        const share = upright ? 1 - (y - margin.top) / inside.high : (x - margin.left) / inside.wide;
        const [from, to] = ends();
        input.value = String(Math.round(((share - from) / (to - from)) * +input.max));
        input.dispatchEvent(new Event("input"));
      }, upright ? "ns-resize" : "ew-resize");
      return control;
    },
    show(draw, { title: now = title, note: below = note } = {}) {
      heading.textContent = now;
      small.textContent = below;
      picture.attr("aria-label", `${now} ${below}`);
      const style = getComputedStyle(element), wide = (16 * (element.clientWidth || 320)) / emOf(element);
      const whole = typeof height === "function" ? height(wide / 16) : height;
      const high = 16 * Math.max(Math.min(whole, LEAST_HIGH), whole * +style.getPropertyValue("--flat"));
      picture.attr("viewBox", `0 0 ${wide} ${high}`).style("height", `${high / 16}em`);
      picture.selectAll("*").remove();
      Object.assign(inside, { wide: wide - margin.left - margin.right, high: high - margin.top - margin.bottom });
      points = draw(picture.append("g").attr("transform", `translate(${margin.left}, ${margin.top})`), inside.wide, inside.high) ?? [];
      forget();
      for (const { input, upright, ends } of handles) {
        const [from, to] = ends().map((share) => (share * (upright ? inside.high : inside.wide)) / 16);
        input.style.left = `${margin.left / 16 + (upright ? 0 : from)}em`;
        input.style.bottom = `${margin.bottom / 16 + (upright ? from : 0)}em`;
        input.style[upright ? "height" : "width"] = `${to - from + THUMB}em`;
      }
    },
  };
}

/** Axes of a chart, with what they measure; the left one draws its grid. */
function axes(group, x, y, { width, height, across = "", up = "", xTicks = null, yTicks = null, xFormat = null, yFormat = null }) {
  const below = d3.axisBottom(x).tickSizeOuter(0), left = d3.axisLeft(y).tickSize(-width).tickSizeOuter(0);
  if (xTicks) below.tickValues(xTicks); else below.ticks(Math.max(2, width / 90));
  if (yTicks) left.tickValues(yTicks); else left.ticks(Math.max(2, height / 40));
  if (xFormat) below.tickFormat(xFormat);
  if (yFormat) left.tickFormat(yFormat);
  group.append("g").attr("transform", `translate(0, ${height})`).call(below);
  group.append("g").call(left);
  write(group, across, width / 2, height + 38, "middle").attr("class", "lw-quiet");
  write(group, up, 0, -4).attr("class", "lw-quiet");
}

/** Heights of labels that want to stand at ys, moved down or up until they lie a gap apart, within low … high. */
function apart(ys, gap, low, high) {
  const order = ys.map((_, i) => i).sort((a, b) => ys[a] - ys[b]), places = [];
  order.forEach((i, n) => { places[i] = Math.max(ys[i], n ? places[order[n - 1]] + gap : low); });
  order.reverse().forEach((i, n) => { places[i] = Math.min(places[i], n ? places[order[n - 1]] - gap : high); });
  return places;
}

// What drawings are made of; a colour is the name of one of the page's, or any other.

const inked = (colour) => (colour in PALETTE.light ? `var(--${colour})` : colour);
const stroke = (group, d, colour, width = 1.5, dashes = null) =>
  group.append("path").attr("d", d).attr("fill", "none").attr("stroke", inked(colour)).attr("stroke-width", width).attr("stroke-dasharray", dashes);
const dot = (group, x, y, r, colour) => group.append("circle").attr("cx", x).attr("cy", y).attr("r", r).attr("fill", inked(colour));
const bar = (group, x, y, width, height, colour) =>
  group.append("rect").attr("x", x).attr("y", y).attr("width", width).attr("height", height).attr("fill", inked(colour));
const write = (group, words, x, y, anchor = null) => group.append("text").attr("x", x).attr("y", y).attr("text-anchor", anchor).text(words);

/** Where an event is on a drawing, in units of its view box. */
function placeIn(svg, { clientX, clientY }) {
  const { left, top, width } = svg.getBoundingClientRect(), unit = svg.viewBox.baseVal.width / width;
  return [(clientX - left) * unit, (clientY - top) * unit];
}

/** Let a drag on an element say where it is: at(x, y), as `placeIn`. */
function dragged(svg, at, cursor = "ew-resize") {
  const say = (event) => at(...placeIn(svg, event));
  svg.style.cursor = cursor;
  svg.addEventListener("pointerdown", (event) => {
    svg.setPointerCapture(event.pointerId);
    say(event);
  });
  svg.addEventListener("pointermove", (event) => svg.hasPointerCapture(event.pointerId) && say(event));
}
