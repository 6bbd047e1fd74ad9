// The pretrained model in a page: asleep until a reader wakes it, then in a worker, which reads texts. MODEL, in front of
// this file, says where its scripts lie and how long they are (page_scripts.py), or is null where a page has none.

const HOME = new URL(document.currentScript?.getAttribute("src") ?? "", document.baseURI);
window.lent ??= {}; // script -> what it holds

const KEY = "linformer"; // of what a browser tab remembers from page to page; where that is refused each page stands alone
/** @type {() => {own?: string, isAwake?: boolean}} the reader's text; whether the model is awake */
const remembered = () => { try { return JSON.parse(sessionStorage.getItem(KEY)) ?? {}; } catch { return {}; } };
let tab = remembered();
const store = (now) => {
  try { sessionStorage.setItem(KEY, JSON.stringify(Object.assign(tab, now))); } catch {}
};

const encoder = {
  state: MODEL ? "asleep" : "missing", // then "waking", then "awake"
  megabytes: MODEL?.megabytes,
  share: 0, // of the scripts that have come
  trouble: "", // why it did not wake
  own: tab.own ?? "", // the reader's text, in all widgets
  wake, sleep, read, waker,
  /** Another text is the reader's; "" forgets it. */
  keep(own) { store({ own }); tell({ own }); },
  listen(listener) { listeners.push(listener); },
  /** Call show with the reader's text, now and whenever it is another one; with "" only when it was forgotten. */
  follow(show, isReady = () => true) {
    let last = "";
    const look = () => encoder.own !== last && (!encoder.own || isReady()) && show(last = encoder.own);
    listeners.push(look);
    look();
  },
};
const listeners = [];
let turn = 0; // how often it was sent to sleep: what began before has no say
let worker = null, waiting = []; // for the worker's answers, in order
let readings = {}; // request -> what was read

const tell = (now) => {
  Object.assign(encoder, now);
  listeners.forEach((listener) => listener());
};

/** The worker's answer. */
const ask = (request) => new Promise((done, failed) => {
  waiting.push({ done, failed });
  worker.postMessage(request);
});

/** What a script holds; nothing of it stays. Rejects with one sentence. */
const script = (name, length) => new Promise((done, failed) => {
  const element = document.createElement("script"), file = `${MODEL.folder}/${name}.js`;
  const take = () => {
    const held = window.lent[name], found = Object.values(held ?? {}).join("").length;
    element.remove();
    delete window.lent[name];
    if (found === length) done(held);
    else failed(new Error(`${file} holds ${found} characters, expected ${length}: it is damaged.`));
  };
  const missing = () => failed(new Error(`${file} did not load; expected it and ${MODEL.scripts.length - 1} more beside this page.`));
  Object.assign(element, { src: new URL(file, HOME).href, onload: take, onerror: missing });
  document.head.append(element);
});

/** A worker that runs the program, which asks for nothing outside. */
function begun({ program }) {
  const address = URL.createObjectURL(new Blob([program], { type: "text/javascript" })), started = new Worker(address);
  started.onmessage = ({ data: { result, trouble } }) => {
    URL.revokeObjectURL(address);
    const { done, failed } = waiting.shift();
    if (trouble) failed(new Error(trouble)); else done(result);
  };
  started.onerror = ({ message }) => fail(`The model's program has stopped: ${message ?? "it could not begin"}.`);
  return started;
}

/** Load the model, script after script; whoever calls sleep meanwhile ends it. */
async function wake() {
  if (encoder.state !== "asleep") return;
  tell({ state: "waking", share: 0, trouble: "" });
  const all = MODEL.scripts, mine = turn;
  try {
    for (const [i, [name, length]] of all.entries()) {
      const held = await script(name, length);
      if (turn !== mine) return;
      if (i === 0) worker = begun(held); else worker.postMessage(held);
      tell({ share: (i + 1) / all.length });
    }
    await ask({});
    store({ isAwake: true });
    tell({ state: "awake" });
  } catch ({ message }) {
    if (turn === mine) fail(message);
  }
}

/** Let go of the model, here and in the pages that follow. */
function sleep() { store({ isAwake: false }); rest(); }

/** Let go of the model and of all that it holds. */
function rest() {
  turn += 1;
  worker?.terminate();
  waiting.forEach(({ failed }) => failed(new Error("The model sleeps.")));
  [worker, waiting, readings] = [null, [], {}];
  if (encoder.state !== "missing") tell({ state: "asleep", share: 0 });
}
addEventListener("pagehide", rest);
addEventListener("pageshow", ({ persisted }) => { // one that comes back as it was left; elsewhere things have changed
  if (persisted) tell({ own: (tab = remembered()).own ?? "" });
  if (persisted && tab.isAwake) wake();
});

function fail(message) {
  sleep();
  tell({ trouble: message });
}

/** What the model makes of the first tokens of a text, exactly or through slots, as encoder.js says. Rejects with one sentence. */
async function read(text, most, sends, slots = 0) {
  if (encoder.state !== "awake") throw new Error("The model sleeps; wake it to read your text.");
  return once(readings, JSON.stringify([text, most, sends, slots]), () => ask({ text, most, sends, slots }));
}

/**
 * What stands beside a field of a reader's own words: until the model is awake a button that wakes it, how far it is, why it
 * cannot; then one that forgets the reader's text. Where the reader had the model awake before, it wakes by itself.
 *
 * @param {HTMLElement} field is focused after it, where the button was
 * @param {(awake: boolean) => void} show what else depends on it
 * @returns {HTMLElement[]}
 */
function waker(field, show) {
  const [button, forget] = ["", "Forget my text"].map((textContent) => Object.assign(document.createElement("button"), { type: "button", textContent }));
  const bar = document.createElement("progress"), words = document.createElement("span");
  const place = location.protocol === "file:" ? "this disk" : "this site";
  forget.addEventListener("click", () => { encoder.keep(""); field.focus(); });
  button.addEventListener("click", () => (encoder.state === "asleep" ? wake() : sleep()));
  bar.setAttribute("aria-label", "The model wakes");
  words.setAttribute("role", "status");
  let before = "";
  const refresh = () => {
    const { state, share, megabytes, trouble } = encoder, isWaking = state === "waking", hadHand = document.activeElement === button;
    Object.assign(bar, { hidden: !isWaking, value: share });
    button.hidden = state === "missing" || state === "awake";
    forget.hidden = state === "missing" || !encoder.own;
    button.textContent = isWaking ? "Stop" : `Wake the model (${megabytes} MB from ${place})`;
    words.textContent = state === "missing" ? "A text of your own works in the book, in its decks, and in the notebook." : trouble;
    if (state !== before) show(state === "awake");
    if (hadHand && state === "awake") field.focus();
    before = state;
  };
  listeners.push(refresh);
  refresh();
  if (tab.isAwake) wake();
  return [button, bar, words, forget];
}
