// A page without a kernel: a .live-widget becomes alive. PARTS (name -> text) and waking.js are written in front of this
// file, and behind it when that happens: at once (page.py), or when a reader comes near.

/** A state with its bytes, which travelled compressed as base64, as the DataViews that a kernel would have sent. */
async function revived(value) {
  if (value === null || typeof value !== "object") return value;
  if (Array.isArray(value)) return Promise.all(value.map(revived));
  if (typeof value.gzip === "string") {
    const bytes = Uint8Array.from(atob(value.gzip), (character) => character.charCodeAt(0));
    const unpacked = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new DataView(await new Response(unpacked).arrayBuffer());
  }
  const inner = Object.entries(value).map(async ([name, one]) => [name, await revived(one)]);
  return Object.fromEntries(await Promise.all(inner));
}

/** What a widget needs of its host. Where it takes a reader's own text, the page's model reads that, as Python would. */
function hosted(state) {
  const listeners = {}, sent = { ...state }, { trait, also } = state.facts.reads ?? {};
  const tell = (name) => (listeners[`change:${name}`] ?? []).forEach((listener) => listener());
  const model = {
    alone: true, // there is no kernel behind it
    encoder,
    get: (name) => state[name],
    set(name, value) {
      state[name] = value;
      tell(name);
      if (name !== trait || Object.hasOwn(state.facts.tokens, value)) return;
      take(model, value, sent);
      if (!EMPTY.test(value)) encoder.keep(value);
    },
    on(event, listener) { (listeners[event] ??= []).push(listener); },
    off(event, listener) { listeners[event] = (listeners[event] ?? []).filter((other) => other !== listener); },
    save_changes() {},
  };
  encoder.listen(() => tell("encoder"));
  if (trait) encoder.follow((own) => {
    const isShown = !Object.hasOwn(sent.facts.tokens, state[trait]), { facts, data, opening } = sent;
    const next = own ? own !== state[trait] && { ...also, [trait]: own } : { ...(isShown && { [trait]: opening[trait] }), facts, data };
    Object.entries(next).forEach(([name, value]) => model.set(name, value));
  }, () => encoder.state === "awake");
  return model;
}

const EMPTY = /^[\s\x1c-\x1f\x85]*$/; // what Python's strip() leaves nothing of

/** Read a text that a widget was not sent; then it has what Python would send: tokens and numbers, or why there are none. */
async function take(model, text, { facts, data }) {
  const { reads } = facts, { least, most } = reads;
  let found = null, refusal = EMPTY.test(text) ? reads.empty : "";
  try {
    found = refusal ? null : await encoder.read(text, most, reads.sends);
    if (found?.count < least) refusal = reads.short;
  } catch ({ message }) {
    refusal = message;
  }
  if (model.get(reads.trait) !== text) return; // meanwhile another one was chosen
  if (refusal) return model.set("facts", { ...model.get("facts"), refused: { [text]: refusal.replace("{n}", found?.count) } });
  const { count, unknown } = found, words = [...unknown.slice(0, reads.named).map((word) => `“${word}”`), "…"].slice(0, unknown.length).join(", ");
  const cut = count > most ? reads.cut.replace("{n}", count.toLocaleString("en-US")) : "";
  model.set("data", { ...data, [text]: found.packed });
  const own = { unknown, remark: cut + (words && reads.unknown.replace("{words}", () => words)) };
  model.set("facts", { ...facts, tokens: { ...facts.tokens, [text]: found.tokens }, ...own });
}

/** What was promised under a name, made once; a promise that was broken is made again the next time. */
function once(cache, name, make) {
  return (cache[name] ??= make().catch((reason) => { delete cache[name]; throw reason; }));
}

const modules = {}; // a widget's parts -> its module
const NOT_LIVE = "This picture could not be made live, so it stands still; load the page again to try once more.";

/**
 * Make one widget live, of what page.py carries; its still picture goes when the live one stands. Where that fails,
 * a sentence says so beside it.
 *
 * @param {Element} element
 * @param {() => any} load gives parts and state, or promises them
 * @returns {Promise<boolean>} whether it lives
 */
async function enliven(element, load) {
  const el = document.createElement("div"), words = document.createElement("p");
  Object.assign(words, { className: "not-live", textContent: NOT_LIVE });
  element.querySelector(".not-live")?.remove();
  try {
    const { parts, state } = await load();
    const text = () => new Blob([parts.map((part) => PARTS[part]).join("\n")], { type: "text/javascript" });
    const loaded = once(modules, parts.join(), async () => import(URL.createObjectURL(text())));
    const [{ default: widget }, alive] = await Promise.all([loaded, revived(state)]);
    element.append(el);
    widget.render({ model: hosted(alive), el });
    element.querySelector("img")?.remove();
    return true;
  } catch (reason) {
    console.error(reason);
    el.remove();
    element.append(words);
    return false;
  }
}
