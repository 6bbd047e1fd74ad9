// A page without a kernel: a .live-widget becomes alive. PARTS (name -> text) is written in front of this file, and
// behind it when that happens: at once (page.py), or when a reader comes near.

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

/** What a widget needs of its host. */
function hosted(state) {
  const listeners = {};
  return {
    alone: true, // there is no kernel behind it
    get: (name) => state[name],
    set(name, value) {
      state[name] = value;
      (listeners[`change:${name}`] ?? []).forEach((listener) => listener());
    },
    on(event, listener) { (listeners[event] ??= []).push(listener); },
    off(event, listener) { listeners[event] = (listeners[event] ?? []).filter((other) => other !== listener); },
    save_changes() {},
  };
}

const modules = {}; // a widget's parts -> its module, loaded once

/** Make one widget live, of what page.py carries; its still picture goes when the live one stands. */
async function enliven(element, { parts, state }) {
  const text = () => new Blob([parts.map((part) => PARTS[part]).join("\n")], { type: "text/javascript" });
  modules[parts.join()] ??= import(URL.createObjectURL(text()));
  const [{ default: widget }, alive] = await Promise.all([modules[parts.join()], revived(state)]);
  const el = document.createElement("div");
  element.append(el);
  widget.render({ model: hosted(alive), el });
  element.querySelector("img")?.remove();
}
