// What every widget is in: elements, numbers from Python, the colours of the page, the bar below. Like controls.js and
// pictures.js it stands in front of each widget's own file, and behind PALETTE, from colours.py, and the libraries.

/** An element with attributes and children; a function is a listener, null leaves an attribute out. */
function html(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  if ("tabindex" in attributes || /^(button|input|select|summary)$/.test(tag)) element.dataset.lmSuppressShortcuts = "true"; // else JupyterLab takes its keys
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

/** name -> make(name). */
const keyed = (names, make) => Object.fromEntries(names.map((name, i) => [name, make(name, i)]));

/** All arrays that Python packed, by name. */
const arrays = (model) => keyed(Object.keys(model.get("data")), (name) => numbers(model, name));

/** The result of the last call, as long as the keys are the same: make is called again when one changes. */
function remember() {
  let last = null, result = null;
  return (keys, make) => {
    const now = JSON.stringify(keys);
    if (now !== last) [last, result] = [now, make()];
    return result;
  };
}

/** Pixels of an em in an element. */
const emOf = (element) => parseFloat(getComputedStyle(element).fontSize) || 16;

/** The colour behind an element, [red, green, blue]: the first background that is not see-through, or white. */
function paperBehind(element) {
  for (let behind = element; behind; behind = behind.parentElement ?? behind.getRootNode().host) {
    const [r, g, b, opacity = 1] = getComputedStyle(behind).backgroundColor.match(/[\d.]+/g)?.map(Number) ?? [0, 0, 0, 0];
    if (opacity > 0.5) return [r, g, b];
  }
  return [255, 255, 255];
}

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
  copy.querySelectorAll(".lw-tip, .lw-control").forEach((element) => element.remove());
  return html("section", { class: "lw-pinned", "aria-label": "Pinned" }, html("b", {}, "Pinned: "), words, copy);
}

const REACH = 40; // em, from a handle to the far end of what it changes

/**
 * A widget from its parts: what to try, under it the picture over the full width, at most two controls, what came out in a
 * sentence, and the rest under "More". make({ model, stage, redraw }) puts pictures on the stage and returns
 *
 *   controls  the two that matter, in reading order; one that stands on the stage (a handle, a grid) stays there
 *   more      the others, under "More" with pin, reset and copy
 *   draw      (theme) -> { words, numbers, refusal }: what came out, in a sentence (numbers that belong to a place are
 *             labels in the picture); what tests look at; why there is nothing to draw, and then the picture stays
 *   hint      what to try, in a sentence
 */
function widget(make) {
  function render({ model, el }) {
    const stage = html("div", { class: "lw-stage" }), controls = html("div", { class: "lw-controls" });
    const words = html("p", { class: "lw-words", id: `lw-${Math.random().toString(36).slice(2)}`, role: "status" });
    const note = html("span", { role: "status" }), pins = html("div"), tried = html("span"), rest = html("div", { class: "lw-controls" });
    const hint = html("p", { class: "lw-hint" }, html("b", {}, "Try this: "), tried);
    const buttons = Object.entries({ Pin: pin, Reset: reset, "Copy state": copy }).map(([name, click]) => html("button", { type: "button", click }, name));
    const bar = html("div", { class: "lw-bar" }, ...buttons, note);
    const more = html("details", { class: "lw-more" }, html("summary", {}, "More"), html("div", {}, rest, bar));
    const root = html("div", { class: "lw", role: "group", "aria-label": model.get("heading") }, hint, stage, controls, words, more, pins);
    el.append(root);
    const made = { more: [], ...make({ model, stage, redraw: () => soon() }) }, all = [...made.controls, ...made.more];
    const outside = (some) => some.map((control) => control.element).filter((element) => !stage.contains(element));
    controls.append(...outside(made.controls));
    rest.append(...outside(made.more));
    tried.textContent = made.hint;
    root.pictures = 0; // drawn so far

    let waiting = 0, theme = "", wide = -1, flat = 1; // heights of the pictures, as shares of their own
    function look() {
      const [r, g, b] = paperBehind(el), paper = `rgb(${r}, ${g}, ${b})`;
      if (root.style.getPropertyValue("--paper") === paper) return false;
      theme = 0.2126 * r + 0.7152 * g + 0.0722 * b < 110 ? "dark" : "light";
      const { lines, ...colours } = PALETTE[theme];
      for (const [name, colour] of Object.entries({ ...colours, paper })) root.style.setProperty(`--${name}`, colour);
      root.style.colorScheme = theme;
      return true;
    }
    /**
     * The pictures are so high that they, the controls and the words lie within REACH; in a place that has one height, as a
     * slide has, so that the widget just fits.
     */
    const isLow = () => getComputedStyle(root).overflowY === "auto";
    const over = () => (isLow() ? root.scrollHeight - root.clientHeight - 1
      : words.offsetTop + words.offsetHeight - stage.offsetTop - REACH * emOf(root));
    function flatten(now) {
      flat = now;
      root.style.setProperty("--flat", flat);
    }
    function fit() {
      const before = flat;
      for (; over() > 0 && flat > 0.3; made.draw(theme)) flatten(flat - 0.05);
      if (!isLow() || over() <= 0) return;
      flatten(before); // it was not the pictures
      made.draw(theme);
    }
    function draw() {
      waiting = 0;
      if (!stage.clientWidth) return; // it has no place on the page yet; `sizes` says when it has
      if (wide !== stage.clientWidth) flatten(isLow() ? 1.5 : 1);
      wide = stage.clientWidth;
      look();
      all.forEach((control) => control.refresh(theme));
      const { words: line, refusal, numbers = {} } = made.draw(theme), isRefused = Boolean(refusal);
      root.numbers = numbers;
      words.classList.toggle("lw-refused", isRefused);
      stage.classList.toggle("lw-stale", isRefused); // the picture is that of the last state
      buttons[0].disabled = isRefused;
      if (note.textContent !== stateText(model)) note.textContent = "";
      const parts = (refusal || line).split(/(?<=“)([^”]*)(?=”)/); // each word in its own direction
      words.replaceChildren(...parts.map((part, i) => (i % 2 ? html("bdi", {}, part) : part)));
      fit();
      stage.querySelectorAll("[role=img]").forEach((picture) => picture.setAttribute("aria-describedby", words.id));
      root.pictures += 1;
    }
    draw(); // before anything is listened to: where it fails, nothing is left behind
    const soon = () => { waiting ||= requestAnimationFrame(draw); };
    const events = [...Object.keys(model.get("defaults")), "data", "facts", "encoder"].map((name) => `change:${name}`);
    events.forEach((event) => model.on(event, soon));
    const sizes = new ResizeObserver(() => stage.clientWidth !== wide && soon());
    sizes.observe(stage);
    const themes = new MutationObserver(() => [0, 300].forEach((wait) => setTimeout(() => look() && soon(), wait))); // a sheet loads
    for (const watched of [document.documentElement, document.body, document.head]) themes.observe(watched, { attributes: true, childList: true });
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    scheme.addEventListener("change", soon);
    root.addEventListener("keydown", (event) => /^Page/.test(event.key) || event.stopPropagation()); // no other key in here turns a page

    function pin() {
      pins.replaceChildren(frozen(stage, `${stateText(model)}. ${words.textContent}`));
    }
    function reset() {
      all.forEach((control) => (control.reset ?? control.stop)?.());
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
      all.forEach((control) => control.stop?.());
      events.forEach((event) => model.off(event, soon));
      sizes.disconnect();
      themes.disconnect();
      scheme.removeEventListener("change", soon);
    };
  }
  return { render };
}
