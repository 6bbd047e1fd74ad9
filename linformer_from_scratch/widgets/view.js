// What all widgets share: controls, maps, charts, what the hand points at, the colours of the page, the bar below.
// It is put in front of each widget's own file; PALETTE, from colours.py, and the libraries stand in front of it.

const SVG = "http://www.w3.org/2000/svg";

/** An element with attributes and children; a function is a listener, null leaves an attribute out. */
function html(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value !== null) element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

const range = (first, last, step = 1) =>
  Array.from({ length: Math.floor((last - first) / step + 1.5) }, (_, i) => first + i * step);
const powersOfTwo = (first, last) => range(first, last).map((i) => 2 ** i);
const clamp = (x, low, high) => Math.min(high, Math.max(low, x));
const nearlyEqual = (a, b) => Math.abs(a - b) < 1e-9 * Math.max(1, Math.abs(a));

/** Numbers as Python's f-strings write them: a tie, as of 2.5, goes to the even digit. */
function fixed(x, digits) {
  const text = x.toFixed(digits), exact = x.toFixed(digits + 30);
  const rounded = /50{29}$/.test(exact) && /[13579]$/.test(text) ? exact.slice(0, text.length) : text;
  return rounded.replace(/^-(?=[0.]*$)/, "");
}
const signed = (x) => fixed(x, 3).replace("-", "−");
const percent = (x) => `${fixed(100 * x, 0)}%`;
const thousands = (x) => x.toLocaleString("en-US");

// Data.

const HALVES = new Float32Array(65536); // every float16 there is
for (let bits = 0; bits < 65536; bits++) {
  const exponent = (bits >> 10) & 31, fraction = bits & 1023;
  const size = exponent ? (1 + fraction / 1024) * 2 ** (exponent - 15) : (fraction / 1024) * 2 ** -14;
  HALVES[bits] = (bits & 32768 ? -1 : 1) * (exponent === 31 ? (fraction ? NaN : Infinity) : size);
}
const KINDS = {
  float32: Float32Array, uint8: Uint8Array, int8: Int8Array, int32: Int32Array, float16: Uint16Array,
};

/** The numbers of an array that Python packed, flat; its shape stands in model.get("data")[name].shape. */
function numbers(model, name) {
  const { dtype, bytes } = model.get("data")[name];
  const flat = new KINDS[dtype](bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength));
  return dtype === "float16" ? Float32Array.from(flat, (bits) => HALVES[bits]) : flat;
}

/** The result of the last call, as long as the keys are the same: make is called again when one changes. */
function remember() {
  let last = null, result = null;
  return (keys, make) => {
    const now = JSON.stringify(keys);
    if (now !== last) [last, result] = [now, make()];
    return result;
  };
}

// Colours.

/** The colour behind an element, [red, green, blue]: the first background that is not see-through, or white. */
function paperBehind(element) {
  for (let behind = element; behind; behind = behind.parentElement ?? behind.getRootNode().host) {
    const [r, g, b, opacity = 1] = getComputedStyle(behind).backgroundColor.match(/[\d.]+/g)?.map(Number) ?? [0, 0, 0, 0];
    if (opacity > 0.5) return [r, g, b];
  }
  return [255, 255, 255];
}

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

/** Draw numbers (rows, columns) as pixels; weights run from 0 to limit, signed numbers from −limit to limit. */
function paint(canvas, values, rows, columns, limit, signed, theme) {
  Object.assign(canvas, { width: columns, height: rows });
  const context = canvas.getContext("2d"), image = context.createImageData(columns, rows);
  const pixels = new Uint32Array(image.data.buffer), shades = SHADES[theme][signed ? "signed" : "weights"];
  const scale = 255 / (signed ? 2 * limit : limit), zero = signed ? 127.5 : 0.5;
  for (let p = 0; p < pixels.length; p++) pixels[p] = shades[clamp(values[p] * scale + zero, 0, 255) | 0];
  context.putImageData(image, 0, 0);
}

// Controls.

/** A labelled row for a control; its label names the control for everyone. */
function row(label, control, ...more) {
  control.id = `lw-${Math.random().toString(36).slice(2)}`;
  control.dataset.lmSuppressShortcuts = "true"; // on the control itself: else JupyterLab takes the arrow keys
  return html("div", { class: "lw-control" }, html("label", { for: control.id }, label), control, ...more);
}

/** Set a trait, and what changes with it. */
function choose(model, trait, value, also = {}) {
  for (const [name, one] of Object.entries({ [trait]: value, ...also })) model.set(name, one);
  model.save_changes();
}

/**
 * A slider over values, with its value beside it and a button that plays it.
 *
 * values: in order, or a function that gives them where they change; say: a value in words;
 * value: () -> the present one, where the trait may be empty.
 */
function slider(model, trait, { label, values, say = (value) => thousands(value), value: now = () => model.get(trait) }) {
  const list = () => (typeof values === "function" ? values() : values);
  const input = html("input", { type: "range", min: 0, step: 1, input: () => choose(model, trait, list()[+input.value]) });
  const output = html("output", { "aria-hidden": "true" });
  const button = html("button", { type: "button", click: () => (timer ? stop() : play()) });
  button.dataset.lmSuppressShortcuts = "true";
  let timer = 0;
  const show = () => button.replaceChildren(timer ? "❚❚" : "▶", html("span", { class: "lw-hidden" }, `${timer ? "Stop" : "Play"} ${label}`));
  const stop = () => { clearInterval(timer); timer = 0; show(); };
  const play = () => {
    const pace = matchMedia("(prefers-reduced-motion: reduce)").matches ? 500 : 125; // 8 pictures a second
    timer = setInterval(() => choose(model, trait, list()[(+input.value + 1) % list().length]), pace);
    show();
  };
  input.addEventListener("keydown", (event) => {
    if (event.key !== " ") return;
    event.preventDefault();
    if (timer) stop(); else play();
  });
  const element = row(label, input, output, button);
  show();
  return {
    element, stop,
    refresh() {
      const all = list(), value = now();
      const at = all.findIndex((other) => other === value || nearlyEqual(other, value));
      input.max = String(all.length - 1);
      input.value = String(at < 0 ? nearest(all, value) : at);
      output.textContent = say(value);
      input.setAttribute("aria-valuetext", say(value));
    },
  };
}

/** Place of the value that lies nearest. */
const nearest = (values, value) =>
  values.reduce((best, other, i) => (Math.abs(other - value) < Math.abs(values[best] - value) ? i : best), 0);

/** A menu over choices: value -> what is shown; also: what else is set with a choice. */
function menu(model, trait, { label, choices = () => model.get("choices")[trait], wide = false, also = {} }) {
  const select = html("select", { change: () => choose(model, trait, Object.entries(choices())[select.selectedIndex][0], also) });
  const element = row(label, select);
  if (wide) element.classList.add("lw-wide");
  return {
    element,
    refresh() {
      const all = Object.entries(choices());
      const stale = select.length !== all.length || all.some(([, shown], i) => select.options[i].text !== shown);
      if (stale) select.replaceChildren(...all.map(([, shown]) => html("option", {}, shown)));
      select.selectedIndex = all.findIndex(([value]) => value === String(model.get(trait)));
    },
  };
}

/** A box to tick. */
function tick(model, trait, { label }) {
  const input = html("input", { type: "checkbox", change: () => choose(model, trait, input.checked) });
  return { element: row(label, input), refresh: () => { input.checked = model.get(trait); } };
}

/** A field for the learner's own words, sent on Enter; without a kernel it says that it needs the notebook. */
function field(model, trait, { label, also = {} }) {
  const input = html("input", { type: "text", change: () => choose(model, trait, input.value, also) });
  if (model.alone) Object.assign(input, { disabled: true, title: "Your own text needs the notebook." });
  const element = row(label, input, ...(model.alone ? [html("span", {}, "your own text needs the notebook")] : []));
  element.classList.add("lw-wide");
  return { element, refresh: () => { input.value = model.get(trait); } };
}

/**
 * Layer and head in one grid, a row for each layer, shaded by what matters; arrow keys walk in it.
 *
 * shade: (layer, head) -> 0 … 1; say: (layer, head) -> words; write: -> what stands in the cell; counted from 1.
 *
 * @param {any} model
 * @param {{label?: string, caption?: string, layers?: number, heads?: number, shade?: (layer: number, head: number) => number,
 *   say?: (layer: number, head: number) => string, write?: (layer: number, head: number) => string}} options
 */
function headGrid(model, { label = "Layer and head", caption = `${label} (layers down, heads across)`, layers = 6, heads = 12, shade, say, write }) {
  const grid = html("div", { class: `lw-heads${write ? " lw-written" : ""}`, role: "radiogroup", "aria-label": label });
  const buttons = [];
  grid.append(html("span", {}), ...range(1, heads).map((head) => html("span", { "aria-hidden": "true" }, head)));
  const go = (layer, head) => {
    model.set("layer", layer);
    model.set("head", head);
    model.save_changes();
  };
  for (const layer of range(1, layers)) {
    grid.append(html("span", { "aria-hidden": "true" }, layer));
    for (const head of range(1, heads)) {
      const button = html("button", { type: "button", role: "radio", click: () => go(layer, head) });
      button.dataset.lmSuppressShortcuts = "true";
      button.addEventListener("keydown", (event) => {
        const [down, right] = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key] ?? [0, 0];
        if (!down && !right) return;
        event.preventDefault();
        const to = [clamp(layer + down, 1, layers), clamp(head + right, 1, heads)];
        go(to[0], to[1]);
        buttons[(to[0] - 1) * heads + to[1] - 1].focus();
      });
      buttons.push(button);
      grid.append(button);
    }
  }
  return {
    element: html("div", {}, html("div", { "aria-hidden": "true" }, caption), grid),
    refresh(theme) {
      buttons.forEach((button, i) => {
        const layer = Math.floor(i / heads) + 1, head = (i % heads) + 1;
        const chosen = model.get("layer") === layer && model.get("head") === head;
        const words = `Layer ${layer}, head ${head}${say ? `: ${say(layer, head)}` : ""}`;
        button.setAttribute("aria-checked", String(chosen));
        button.setAttribute("aria-label", words);
        button.title = words;
        if (write) button.textContent = write(layer, head);
        button.tabIndex = chosen ? 0 : -1;
        const pixel = SHADES[theme].weights[clamp(255 * (shade ? shade(layer, head) : 0), 0, 255) | 0];
        button.style.background = `rgb(${pixel & 255}, ${(pixel >> 8) & 255}, ${(pixel >> 16) & 255})`;
      });
    },
  };
}

// Pictures.

/** A picture with its title; the readout below the widget is its description. */
function figure(stage, title, note) {
  const heading = html("b", {}, title), small = html("span", {}, note);
  const element = html("figure", {}, html("figcaption", {}, heading, small));
  stage.append(element);
  return { element, heading, small };
}

const MOST_NAMED = 40; // tokens; a map of so many is made large enough to name them all, where there is room
const LENS = 3; // cells on each side of the one that is pointed at
const [GAP, LEAST_SIDE, MOST_SIDE] = [1.6, 16, 26]; // em, of maps beside each other
const READABLE = 13; // px of a cell from which on every token is named beside its row

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
  const { element, heading, small } = figure(stage, title, note);
  const canvas = html("canvas", { role: "img", "aria-label": title });
  const overlay = document.createElementNS(SVG, "svg");
  overlay.setAttribute("aria-hidden", "true");
  const frame = html("div", { class: "lw-frame", tabindex: 0, role: "group" }, canvas, overlay);
  frame.dataset.lmSuppressShortcuts = "true";
  frame.style.cursor = pick ? "pointer" : "crosshair";
  const scale = html("canvas", { "aria-hidden": "true" }), least = html("span"), most = html("span");
  element.append(frame, html("div", { class: "lw-scale" }, least, scale, most));
  const tip = html("div", { class: "lw-tip", hidden: "" });
  element.append(tip);
  element.style.position = "relative";
  const map = { values: new Float64Array(0), n: 0, m: 0, limit: 1, query: -1, theme: "light", besides: false, marked: {} };
  hover ??= pointing();

  const cellAt = (event) => {
    const box = canvas.getBoundingClientRect();
    const j = Math.floor(((event.clientX - box.left) / box.width) * map.m);
    const i = Math.floor(((event.clientY - box.top) / box.height) * map.n);
    return i >= 0 && j >= 0 && i < map.n && j < map.m ? { i, j } : null;
  };
  frame.addEventListener("pointermove", (event) => hover.point(cellAt(event), map));
  frame.addEventListener("pointerdown", (event) => hover.point(cellAt(event), map));
  frame.addEventListener("pointerleave", () => hover.point(null, map));
  frame.addEventListener("blur", () => hover.point(null, map));
  frame.addEventListener("click", (event) => {
    const cell = cellAt(event);
    if (cell && pick) pick(cell.i, cell.j);
  });
  frame.addEventListener("keydown", (event) => {
    const [down, right] = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key] ?? [0, 0];
    const { i = Math.max(0, map.query), j = 0 } = hover.cell ?? {};
    if (event.key === "Enter" && pick) pick(i, j);
    else if (event.key === "Escape") hover.point(null, map);
    else if (down || right) hover.point({ i: clamp(i + down, 0, map.n - 1), j: clamp(j + right, 0, map.m - 1) }, map);
    else return;
    event.preventDefault();
  });

  function mark() {
    const { i, j } = hover.cell ?? {}, isRow = i < map.n, isColumn = j < map.m;
    const em = parseFloat(getComputedStyle(frame).fontSize) / 16 || 1;
    const width = frame.offsetWidth / em, height = frame.offsetHeight / em; // in units that grow with the type
    overlay.setAttribute("viewBox", `0 0 ${width || 1} ${height || 1}`);
    const colours = PALETTE[map.theme], across = width / map.m, down = height / map.n, picture = d3.select(overlay);
    picture.selectAll("*").remove();
    const outline = (x, y, w, h, colour, wide) =>
      picture.append("rect").attr("x", x).attr("y", y).attr("width", w).attr("height", h)
        .attr("fill", "none").attr("stroke", colour).attr("stroke-width", wide);
    if (map.query >= 0) outline(-1, map.query * down - 1, width + 2, down + 2, colours.query, 2);
    if (map.marked.i >= 0) outline(-1, map.marked.i * down - 1, width + 2, down + 2, colours.ink, 2);
    if (map.marked.j >= 0) outline(map.marked.j * across - 1, -1, across + 2, height + 2, colours.ink, 2);
    if (isRow) outline(0, i * down, width, down, colours.query, 1.5);
    if (isColumn) outline(j * across, 0, across, height, colours.key, 1.5);
    if (!map.besides) label(picture, rows(), down, isRow ? i : map.query, (text, middle) =>
      text.attr("x", -7).attr("y", middle).attr("text-anchor", "end").attr("dominant-baseline", "central"), colours.query);
    label(picture, columns(), across, isColumn ? j : -1, (text, middle) =>
      text.attr("transform", `translate(${middle + 3}, -6) rotate(-50)`), colours.key);
    point(isRow && isColumn ? { i, j } : null, { width, height, across, down });
  }

  function label(picture, names, pitch, marked, place, colour) {
    if (map.named)
      names.forEach((name, i) => {
        const text = place(picture.append("text").text(shorten(name)), (i + 0.5) * pitch).style("font-size", `${clamp(0.75 * pitch, 12, 15)}px`);
        if (i === marked) text.style("font-weight", "bold").style("fill", colour);
      });
  }

  function point(at, { width, height, across, down }) {
    tip.hidden = !at || hover.source !== map;
    if (tip.hidden) return;
    const value = map.values[at.i * map.m + at.j], from = rows()[at.i], to = columns()[at.j];
    tip.replaceChildren(read ? read(value, at.i, at.j) : `“${from}” reads “${to}”: ${signed(value)}`);
    if (!map.named) tip.append(lens(at));
    const left = frame.offsetLeft + (((at.j + 1) * across) / width) * frame.offsetWidth;
    const top = frame.offsetTop + (((at.i + 1) * down) / height) * frame.offsetHeight;
    Object.assign(tip.style, { left: `${left + 10}px`, top: `${top + 10}px` });
    const widget = frame.closest(".lw"), box = widget.getBoundingClientRect(); // a cell cuts what leaves its widget
    const over = ((tip.getBoundingClientRect().right - box.right) * widget.offsetWidth) / box.width;
    if (over > 0) tip.style.left = `${left + 10 - over}px`;
  }

  /** The cells around the one that is pointed at, large, with the names of their rows and columns. */
  function lens(at) {
    const size = 16, window_ = (middle, count) => range(Math.max(0, middle - LENS), Math.min(count - 1, middle + LENS));
    const is = window_(at.i, map.n), js = window_(at.j, map.m);
    const picture = d3.create("svg:svg").attr("aria-hidden", "true").attr("viewBox", `0 0 ${96 + js.length * size + 56} ${66 + is.length * size}`)
      .style("width", "14em").style("display", "block");
    const shades = SHADES[map.theme][map.signed ? "signed" : "weights"];
    is.forEach((i, y) => {
      picture.append("text").text(shorten(rows()[i], 12)).attr("x", 90).attr("y", 66 + (y + 0.75) * size).attr("text-anchor", "end")
        .style("font-weight", i === at.i ? "bold" : null);
      js.forEach((j, x) => {
        const scaled = map.values[i * map.m + j] / map.limit, pixel = shades[clamp(255 * (map.signed ? (scaled + 1) / 2 : scaled), 0, 255) | 0];
        picture.append("rect").attr("x", 96 + x * size).attr("y", 66 + y * size).attr("width", size).attr("height", size)
          .attr("fill", `rgb(${pixel & 255}, ${(pixel >> 8) & 255}, ${(pixel >> 16) & 255})`)
          .attr("stroke", i === at.i && j === at.j ? PALETTE[map.theme].key : "none").attr("stroke-width", 3);
      });
    });
    js.forEach((j, x) => picture.append("text").text(shorten(columns()[j], 9)).attr("transform", `translate(${104 + x * size}, 60) rotate(-45)`)
      .style("font-weight", j === at.j ? "bold" : null));
    return picture.node();
  }

  hover.listen(mark);
  new ResizeObserver(mark).observe(frame); // what stands beside it may give it another width
  return {
    element, canvas, values: () => map.values,
    /**
     * Show numbers (n, m); limit is the number of the strongest colour; query marks a row, marked row i or column j;
     * cell: the largest one, em; high: of a map that is not square, em; besides: what stands to the left names the rows.
     */
    show(values, n, m, { limit, theme, query = -1, cell = Infinity, besides = false, marked = {}, high = null,
      title: now = title, note: below = note, signed: both = isSigned, square = n === m }) {
      Object.assign(map, { values, n, m, limit, theme, query, besides, marked, signed: both });
      heading.textContent = now;
      small.textContent = below;
      canvas.setAttribute("aria-label", `${now}; ${below}`);
      frame.setAttribute("aria-label", `${now}: arrow keys walk from cell to cell${pick ? `, Enter ${picks}` : ""}`);
      const room = element.parentElement.clientWidth / (parseFloat(getComputedStyle(element).fontSize) || 16);
      const longest = Math.max(n, m), names = besides ? 2.5 : 9; // em: rows on the left, slanted columns beyond the right
      const largestSide = longest > MOST_NAMED ? MOST_SIDE : Math.max(MOST_SIDE, (longest * READABLE) / 16);
      const side = Math.min(clamp((room - GAP * (abreast - 1)) / abreast, LEAST_SIDE, largestSide), cell * longest);
      const wide = Math.min(side * (square ? 1 : clamp(m / n, 0.05, 1)), room);
      map.named = (Math.min(side, room - names) * 16) / longest >= READABLE;
      element.style.paddingRight = map.named ? "2.5em" : ""; // where the last of the slanted names ends
      const width = map.named ? Math.min(wide, room - names) : wide;
      Object.assign(frame.style, { width: `${width}em`, height: `${square ? width : (high ?? Math.min(side, room))}em` });
      Object.assign(frame.style, map.named ? { marginLeft: besides ? "" : "6.5em", marginTop: "5.5em" } : { marginLeft: "", marginTop: "" });
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
 * The text itself: the tokens of the row and column that are pointed at are marked; a click picks a query.
 *
 * @param {HTMLElement} stage
 * @param {{tokens: () => string[], hover: any, query?: () => number, pick?: (i: number) => void}} options
 */
function sentence(stage, { tokens, hover, query = () => -1, pick }) {
  const element = html("p", { class: "lw-text" });
  let spans = [], shown = null;
  stage.append(element);
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
        spans = shown.map((token, i) => (pick ? html("button", { type: "button", click: () => pick(i) }, token) : html("span", {}, token)));
        element.replaceChildren(...spans.flatMap((span) => [span, " "]));
      }
      mark();
    },
  };
}

/**
 * A chart of lines, bars and axes, as wide as its place; draw receives an empty group and its size in units
 * that grow with the type, so that 14 units are always 0.875em. height: in em, or a function of the width.
 *
 * @param {HTMLElement} stage
 * @param {{title: string, note?: string, width?: number, height?: number | ((width: number) => number),
 *   margin?: {top: number, right: number, bottom: number, left: number}}} options
 */
function chart(stage, { title, note = "", width = 46, height = 12, margin = { top: 14, right: 20, bottom: 44, left: 64 } }) {
  const { element, heading, small } = figure(stage, title, note);
  element.classList.add("lw-chart");
  element.style.maxWidth = `${width}em`;
  const picture = d3.select(element).append("svg").attr("role", "img");
  return {
    element, margin,
    svg: picture.node(),
    show(draw, { title: now = title, note: below = note } = {}) {
      heading.textContent = now;
      small.textContent = below;
      picture.attr("aria-label", `${now} ${below}`);
      const em = parseFloat(getComputedStyle(element).fontSize) / 16 || 1;
      const wide = (element.clientWidth || 320) / em, high = 16 * (typeof height === "function" ? height(wide / 16) : height);
      picture.attr("viewBox", `0 0 ${wide} ${high}`).style("height", `${high / 16}em`);
      picture.selectAll("*").remove();
      const group = picture.append("g").attr("transform", `translate(${margin.left}, ${margin.top})`);
      draw(group, wide - margin.left - margin.right, high - margin.top - margin.bottom);
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
  group.append("text").attr("class", "lw-quiet").attr("x", width / 2).attr("y", height + 38).attr("text-anchor", "middle").text(across);
  group.append("text").attr("class", "lw-quiet").attr("x", 0).attr("y", -4).text(up);
}

/**
 * Pointing at a chart names the nearest of its points; returns a function that takes them, [{ x, y, say }], in units
 * of the group that was drawn in.
 */
function namedPoints({ element, svg, margin }) {
  const tip = html("div", { class: "lw-tip", hidden: "" });
  element.style.position = "relative";
  element.append(tip);
  let points = [];
  const hide = () => {
    tip.hidden = true;
    d3.select(svg).selectAll(".pointed").remove();
  };
  svg.addEventListener("pointermove", (event) => {
    hide();
    const box = svg.getBoundingClientRect(), unit = box.width / svg.viewBox.baseVal.width;
    const from = ({ x, y }) => Math.hypot(box.left + (x + margin.left) * unit - event.clientX, box.top + (y + margin.top) * unit - event.clientY);
    const point = points.reduce((best, other) => (from(other) < from(best) ? other : best), points[0]);
    if (!point || from(point) > 40 * unit) return;
    tip.hidden = false;
    tip.textContent = point.say;
    d3.select(svg).append("circle").attr("class", "pointed").attr("cx", point.x + margin.left).attr("cy", point.y + margin.top).attr("r", 9)
      .attr("fill", "none").attr("stroke", "var(--ink)").attr("stroke-width", 2);
    const left = (point.x + margin.left) * unit + 12, most = svg.clientWidth - tip.offsetWidth;
    const top = box.top - element.getBoundingClientRect().top + (point.y + margin.top) * unit + 12;
    Object.assign(tip.style, { left: `${clamp(left, 0, Math.max(0, most))}px`, top: `${top}px` });
  });
  svg.addEventListener("pointerleave", hide);
  return (now) => {
    points = now;
    hide();
  };
}

/** Heights of labels that want to stand at ys, moved down or up until they lie a gap apart, within low … high. */
function apart(ys, gap, low, high) {
  const order = ys.map((_, i) => i).sort((a, b) => ys[a] - ys[b]), places = [];
  order.forEach((i, n) => { places[i] = Math.max(ys[i], n ? places[order[n - 1]] + gap : low); });
  order.reverse().forEach((i, n) => { places[i] = Math.min(places[i], n ? places[order[n - 1]] - gap : high); });
  return places;
}

/** A line in a chart; colour: the name of one of the page's. */
function stroke(group, d, colour, width = 1.5, dashes = null) {
  return group.append("path").attr("d", d).attr("fill", "none").attr("stroke", `var(--${colour})`)
    .attr("stroke-width", width).attr("stroke-dasharray", dashes);
}

/** Let a drag on an element say where it is: at(x, y in units of its view box). */
function dragged(svg, at, cursor = "ew-resize") {
  const say = (event) => {
    const box = svg.getBoundingClientRect();
    const unit = svg.viewBox.baseVal.width / box.width;
    at((event.clientX - box.left) * unit, (event.clientY - box.top) * unit);
  };
  svg.style.cursor = cursor;
  svg.addEventListener("pointerdown", (event) => {
    svg.setPointerCapture(event.pointerId);
    say(event);
  });
  svg.addEventListener("pointermove", (event) => svg.hasPointerCapture(event.pointerId) && say(event));
}

// The widget itself.

/** A value as Python reads it; of its texts' characters all but the space are seen. */
function python(value) {
  if (Array.isArray(value)) return `[${value.map(python).join(", ")}]`;
  if (typeof value !== "string") return { true: "True", false: "False", null: "None" }[value] ?? String(value);
  const escaped = (character) => `\\U${character.codePointAt(0).toString(16).padStart(8, "0")}`;
  return JSON.stringify(value).replace(/(?! )[\p{C}\p{Z}]/gu, escaped);
}

/** The text that makes the widget as it stands now, in a notebook. */
function stateText(model) {
  const changed = Object.entries(model.get("defaults")).filter(([name, value]) => JSON.stringify(model.get(name)) !== JSON.stringify(value));
  return `${model.get("name")}(${changed.map(([name]) => `${name}=${python(model.get(name))}`).join(", ")})`;
}

/** A copy of what is shown now, which stays; canvases carry their pixels along. */
function frozen(stage, words) {
  const copy = stage.cloneNode(true), canvases = stage.querySelectorAll("canvas");
  copy.querySelectorAll("canvas").forEach((canvas, i) => canvas.getContext("2d").drawImage(canvases[i], 0, 0));
  copy.querySelectorAll("button").forEach((button) => button.replaceWith(html("span", { style: button.getAttribute("style") }, button.textContent)));
  copy.querySelectorAll("[tabindex]").forEach((element) => element.removeAttribute("tabindex"));
  copy.querySelectorAll(".lw-tip").forEach((element) => element.remove());
  return html("section", { class: "lw-pinned", "aria-label": "Pinned" }, html("b", {}, "Pinned: "), words, copy);
}

/**
 * A widget from its parts. make({ model, stage, theme }) puts pictures on the stage and returns
 * controls: what was made above, in reading order, each above the stage or where it stands on it; draw: (theme) -> the
 * line of numbers, or { refusal: why there is nothing to draw }, and then the picture stays; numbers: what tests look at.
 */
function widget(make) {
  function render({ model, el }) {
    const controls = html("div", { class: "lw-controls" }), stage = html("div", { class: "lw-stage" });
    const words = html("div", { class: "lw-words", id: `lw-${Math.random().toString(36).slice(2)}`, role: "status" });
    const note = html("span", { role: "status" }), pins = html("div");
    const bar = html("div", { class: "lw-bar" },
      html("button", { type: "button", click: pin }, "Pin"), html("button", { type: "button", click: reset }, "Reset"),
      html("button", { type: "button", click: copy }, "Copy state"), note);
    const root = html("div", { class: "lw", role: "group", "aria-label": model.get("heading") }, controls, words, stage, bar, pins);
    el.append(root);
    const made = make({ model, stage });
    controls.append(...made.controls.map((control) => control.element).filter((element) => !stage.contains(element)));
    root.numbers = made.numbers;
    root.pictures = 0; // drawn so far

    let waiting = 0, theme = "", wide = -1;
    function look() {
      const [r, g, b] = paperBehind(el), paper = `rgb(${r}, ${g}, ${b})`;
      if (root.style.getPropertyValue("--paper") === paper) return false;
      theme = 0.2126 * r + 0.7152 * g + 0.0722 * b < 110 ? "dark" : "light";
      const { lines, ...colours } = PALETTE[theme];
      for (const [name, colour] of Object.entries({ ...colours, paper })) root.style.setProperty(`--${name}`, colour);
      root.style.colorScheme = theme;
      return true;
    }
    function draw() {
      waiting = 0;
      wide = stage.clientWidth;
      look();
      made.controls.forEach((control) => control.refresh(theme));
      const said = made.draw(theme);
      words.classList.toggle("lw-refused", Boolean(said.refusal));
      stage.classList.toggle("lw-stale", Boolean(said.refusal)); // the picture is that of the last state
      bar.querySelector("button").disabled = Boolean(said.refusal);
      if (note.textContent !== stateText(model)) note.textContent = "";
      words.textContent = said.refusal ?? said;
      stage.querySelectorAll("[role=img]").forEach((picture) => picture.setAttribute("aria-describedby", words.id));
      root.pictures += 1;
    }
    draw(); // before anything is listened to: where it fails, nothing is left behind
    const soon = () => { waiting ||= requestAnimationFrame(draw); };
    const events = [...Object.keys(model.get("defaults")), "data", "facts"].map((name) => `change:${name}`);
    events.forEach((event) => model.on(event, soon));
    const sizes = new ResizeObserver(() => stage.clientWidth !== wide && soon());
    sizes.observe(stage);
    const themes = new MutationObserver(() => [0, 300].forEach((wait) => setTimeout(() => look() && soon(), wait))); // a sheet loads
    for (const watched of [document.documentElement, document.body, document.head]) themes.observe(watched, { attributes: true, childList: true });
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    scheme.addEventListener("change", soon);
    bar.querySelectorAll("button").forEach((button) => { button.dataset.lmSuppressShortcuts = "true"; });
    root.addEventListener("keydown", (event) => event.stopPropagation()); // keys in here turn no page

    function pin() {
      pins.replaceChildren(frozen(stage, `${stateText(model)}. ${words.textContent}`));
    }
    function reset() {
      made.controls.forEach((control) => control.stop?.());
      for (const [name, value] of Object.entries(model.get("opening"))) model.set(name, value);
      model.save_changes();
      pins.replaceChildren();
      note.textContent = "";
    }
    function copy() {
      note.textContent = stateText(model);
      navigator.clipboard?.writeText(note.textContent).catch(() => {}); // where it is not allowed, the text stands there
    }
    return () => {
      made.controls.forEach((control) => control.stop?.());
      events.forEach((event) => model.off(event, soon));
      sizes.disconnect();
      themes.disconnect();
      scheme.removeEventListener("change", soon);
    };
  }
  return { render };
}
