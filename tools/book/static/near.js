// The book: a live picture is a still one until a reader comes near; only then its program and its numbers load.
// (STYLE and host.js are written in front of this file. A page on disk may fetch nothing, but it may load scripts.)

const PARTS = {};
const HERE = new URL(".", document.currentScript.src);
const loading = {}; // file -> a promise that it has run

/** Run a file of this folder, once. */
function run(file) {
  loading[file] ??= new Promise((done, failed) => {
    const script = document.createElement("script");
    Object.assign(script, { src: new URL(file, HERE).href, onload: done, onerror: failed });
    document.head.append(script);
  });
  return loading[file];
}

/** Make a widget live. */
async function wake(element) {
  const name = element.dataset.held;
  await Promise.all([run("parts.js"), run(`${name}.js`)]);
  Object.assign(PARTS, window.held.parts);
  await enliven(element, structuredClone(window.held[name]));
}

const near = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    if (!isIntersecting) continue;
    near.unobserve(target);
    wake(target);
  }
}, { rootMargin: "300px" });

document.head.append(Object.assign(document.createElement("style"), { textContent: STYLE }));
const begun = new AbortController();
function begin() {
  begun.abort(); // one deed is enough
  document.querySelectorAll(".live-widget").forEach((one) => near.observe(one));
}
for (const deed of ["keydown", "pointerdown", "pointermove", "scroll"]) addEventListener(deed, begin, { signal: begun.signal, passive: true });
