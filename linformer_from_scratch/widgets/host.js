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

/** What was promised under a name, made once; a promise that was broken is made again the next time. */
function once(kept, name, make) {
  return (kept[name] ??= make().catch((reason) => { delete kept[name]; throw reason; }));
}

const modules = {}; // a widget's parts -> its module
const NOT_LIVE = "This picture could not be made live, so it stands still; load the page again to try once more.";

/**
 * Make one widget live, of what page.py carries; its still picture goes when the live one stands. Where that fails,
 * a sentence says so beside it.
 *
 * @param {Element} element
 * @param {() => any} carried gives parts and state, or promises them
 * @returns {Promise<boolean>} whether it lives
 */
async function enliven(element, carried) {
  const el = document.createElement("div"), words = document.createElement("p");
  Object.assign(words, { className: "not-live", textContent: NOT_LIVE });
  element.querySelector(".not-live")?.remove();
  try {
    const { parts, state } = await carried();
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
