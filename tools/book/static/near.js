// The book: a live picture is a still one until a reader comes near; only then its program and its numbers load.
// (STYLE and host.js are written in front of this file. A page on disk may fetch nothing, but it may load scripts.)

const PARTS = {};
const HERE = new URL(".", document.currentScript.src);
const files = {}; // name -> what its file holds

/** What a file of this folder puts into window.held under its name. */
const held = (name) => once(files, name, () => new Promise((done, failed) => {
  const script = document.createElement("script");
  const take = () => (name in window.held ? done(window.held[name]) : failed(new Error(`${script.src} is damaged`)));
  Object.assign(script, { src: new URL(`${name}.js`, HERE).href, onload: take, onerror: failed });
  document.head.append(script);
}));

/** What a widget is made of. */
async function loaded(name) {
  const [parts, found] = await Promise.all([held("parts"), held(name)]);
  Object.assign(PARTS, parts);
  return structuredClone(found);
}

// One that could not be made live is tried again when a reader comes near once more.
const near = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    if (!isIntersecting || target.dataset.woken) continue;
    target.dataset.woken = "true";
    enliven(target, () => loaded(target.dataset.held)).then((lives) => lives || delete target.dataset.woken);
  }
}, { rootMargin: "300px" });

Object.assign(window, { encoder, revived }); // for the front page

document.head.append(Object.assign(document.createElement("style"), { textContent: STYLE }));
addEventListener("load", () => document.querySelectorAll(".live-widget").forEach((one) => near.observe(one)));
