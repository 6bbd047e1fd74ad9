// The controls of widgets: each has an element, and refresh(theme), which shows the present value; stop ends what it runs.

const ARROWS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }; // rows down, columns to the right

/** A labelled row for a control; its label names the control for everyone. */
function row(label, control, ...more) {
  control.id = `lw-${Math.random().toString(36).slice(2)}`;
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
 * values: in order, or a function that gives them where they change; say: a value in words; pace: of playing, ms a step;
 * value: () -> the present one, where the trait may be empty.
 */
function slider(model, trait, { label, values, say = (value) => thousands(value), value: now = () => model.get(trait), pace = 125 }) {
  const list = () => (typeof values === "function" ? values() : values);
  const input = html("input", { type: "range", min: 0, step: 1, input: () => choose(model, trait, list()[+input.value]) });
  const output = html("output", { "aria-hidden": "true" });
  const button = html("button", { type: "button", click: () => (timer ? stop() : play()) });
  let timer = 0;
  const show = () => {
    button.title = `${timer ? "Stop" : "Play"} ${label}`;
    button.replaceChildren(timer ? "❚❚" : "▶", html("span", { class: "lw-hidden" }, button.title));
  };
  const stop = () => { clearInterval(timer); timer = 0; show(); };
  const play = () => {
    const slowly = matchMedia("(prefers-reduced-motion: reduce)").matches ? Math.max(pace, 500) : pace;
    timer = setInterval(() => choose(model, trait, list()[(+input.value + 1) % list().length]), slowly);
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

/** A menu over choices: value -> what is shown; one choice alone is not shown. also: what else is set with a choice. */
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
      element.hidden = all.length === 1;
    },
  };
}

/** A box to tick. */
function tick(model, trait, { label }) {
  const input = html("input", { type: "checkbox", change: () => choose(model, trait, input.checked) });
  return { element: row(label, input), refresh: () => { input.checked = model.get(trait); } };
}

/**
 * A button that runs something, a step for each picture, until it is pressed again.
 *
 * can: () -> whether it may run now; forget: what a reset does besides.
 */
function runner({ label, running, step, can, forget }) {
  const button = html("button", { type: "button", click: () => (waiting ? stop() : go()) });
  let waiting = 0;
  const show = () => { button.textContent = waiting ? running : label; };
  const stop = () => { cancelAnimationFrame(waiting); waiting = 0; show(); };
  const go = () => {
    step();
    waiting = requestAnimationFrame(go);
    show();
  };
  show();
  const refresh = () => {
    button.disabled = !can();
    if (button.disabled) stop();
  };
  const reset = () => { stop(); forget(); };
  return { element: html("div", { class: "lw-control" }, button), refresh, stop, reset };
}

/** A field for the learner's own words, sent on Enter. In a page without a kernel the model must be awake to read them. */
function field(model, trait, { label, also, hint }) {
  const input = html("input", { type: "text", dir: "auto", placeholder: hint, change: () => choose(model, trait, input.value, also) });
  const wake = model.encoder?.waker(input, (awake) => { input.hidden = input.disabled = !awake; }) ?? [];
  const element = row(label, input, ...wake);
  element.classList.add("lw-wide");
  return {
    element,
    refresh() {
      const value = model.get(trait), isOfMenu = Object.hasOwn(model.get("choices")[trait], value);
      input.value = isOfMenu ? "" : value.replace(/\n/g, " "); // empty, it says how much will be shown
    },
  };
}

/**
 * Layer and head in one grid, a row for each layer, shaded by what matters; arrow keys walk in it.
 *
 * shade: (layer, head) -> 0 … 1; say: (layer, head) -> words; write: -> what stands in the cell; counted from 1.
 *
 * @param {any} model
 * @param {{caption?: string, shade?: (layer: number, head: number) => number,
 *   say: (layer: number, head: number) => string, write?: (layer: number, head: number) => string}} options
 */
function headGrid(model, { caption = "", shade = () => 0, say, write }) {
  const grid = html("div", { class: `lw-heads${write ? " lw-written" : ""}`, role: "radiogroup", "aria-label": "Layer and head" });
  const [layers, heads] = [6, 12], placeOf = (i) => [Math.floor(i / heads) + 1, (i % heads) + 1];
  const go = (layer, head) => choose(model, "layer", layer, { head });
  const buttons = range(0, layers * heads - 1).map((i) => html("button", {
    type: "button", role: "radio", click: () => go(...placeOf(i)),
    keydown(event) {
      if (!ARROWS[event.key]) return;
      event.preventDefault();
      const [layer, head] = placeOf(i).map((now, axis) => clamp(now + ARROWS[event.key][axis], 1, [layers, heads][axis]));
      go(layer, head);
      buttons[(layer - 1) * heads + head - 1].focus();
    },
  }));
  const number = (one) => html("span", { "aria-hidden": "true" }, one);
  grid.append(html("span"), ...range(1, heads).map(number));
  buttons.forEach((button, i) => grid.append(...(i % heads ? [] : [number(i / heads + 1)]), button));
  return {
    element: html("div", {}, html("div", { "aria-hidden": "true" }, caption), grid),
    refresh(theme) {
      buttons.forEach((button, i) => {
        const [layer, head] = placeOf(i), chosen = model.get("layer") === layer && model.get("head") === head;
        const words = `Layer ${layer}, head ${head}: ${say(layer, head)}`;
        button.setAttribute("aria-checked", String(chosen));
        button.setAttribute("aria-label", words);
        button.title = words;
        if (write) button.textContent = write(layer, head);
        button.tabIndex = chosen ? 0 : -1;
        const pixel = SHADES[theme].weights[clamp(255 * shade(layer, head), 0, 255) | 0];
        button.style.background = `rgb(${pixel & 255}, ${(pixel >> 8) & 255}, ${(pixel >> 16) & 255})`;
      });
    },
  };
}
