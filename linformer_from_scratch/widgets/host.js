// A page without a kernel: every .live-widget becomes alive. PARTS (name -> text) is written in front of this file.

/** Bytes that travelled as base64, as the DataView that a kernel would have sent. */
function revived(value) {
  if (Array.isArray(value)) return value.map(revived);
  if (value === null || typeof value !== "object") return value;
  if (typeof value.base64 === "string") {
    return new DataView(Uint8Array.from(atob(value.base64), (character) => character.charCodeAt(0)).buffer);
  }
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, revived(inner)]));
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

/** Make one widget live; its still picture goes when the live one stands. */
async function enliven(element) {
  const { parts, state } = JSON.parse(element.querySelector("script").textContent);
  const text = () => new Blob([parts.map((part) => PARTS[part]).join("\n")], { type: "text/javascript" });
  modules[parts.join()] ??= import(URL.createObjectURL(text()));
  const { default: widget } = await modules[parts.join()];
  const el = document.createElement("div");
  element.append(el);
  widget.render({ model: hosted(revived(state)), el });
  element.querySelector("img")?.remove();
}

document.querySelectorAll(".live-widget").forEach((element) => enliven(element));
