// The search of the book: answers while one types, from disk; shows the sentence found, leads to its section.

const SECTIONS = new URL("sections.js", document.currentScript.src).href;
const ROOT = new URL("..", document.currentScript.src).href;
const KINDS = ["Chapters", "To look up", "Solutions", "Reference"]; // in the order in which they are shown
const FEW = 4, MANY = 25; // results of a kind, beside a page and on the page of the search
const LONG = 180; // characters; of a longer sentence a part is shown

const element = (name, properties, inside = []) => {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...inside);
  return made;
};
let loading;

/** The sections of all pages; they are loaded when somebody first wants to search. */
const sections = () => (loading ??= new Promise((done, failed) => {
  document.head.append(element("script", { src: SECTIONS, onerror: failed, onload: () => done(window.sections) }));
}));

/** What finds a word, or the beginning of one of at least three letters, in either case. */
function finder(word) {
  const end = word.length < 3 ? "(?![\\p{L}\\d])" : "";
  return new RegExp(`(?<![\\p{L}\\d])${word.replace(/[$()*+./?[\\\]^{|}]/g, "\\$&")}${end}`, "giu");
}

/** The sections with most of the words, best first: words count twice in a heading, and more side by side. */
function find(all, text) {
  if (text.trim().length < 2) return [];
  const words = text.split(/\s+/).filter(Boolean).map(finder), together = finder(text.trim());
  const has = (where) => (word) => where.search(word) >= 0;
  const count = (where) => words.filter(has(where)).length + 2 * has(where)(together);
  const held = all.map(([, , ...said]) => words.filter(has(said.flat().join(" "))).length);
  const most = Math.max(1, ...held);
  return all.filter((_, i) => held[i] === most).map(([kind, address, page, heading, sentences]) => {
    const counts = sentences.map(count);
    const best = Math.max(0, ...counts), sentence = sentences[counts.indexOf(best)] ?? "";
    return { kind, address, page, heading, sentence, words, score: 2 * count(heading) + best };
  }).sort((one, other) => other.score - one.score);
}

/** The parts of a text, short around the first of the words, in which these are marked. */
function marked(text, words) {
  const any = new RegExp(`(${words.map(({ source }) => source).join("|")})`, "giu"), at = text.search(any);
  const from = text.length > LONG ? Math.max(0, text.lastIndexOf(" ", at - 60)) : 0, to = from + LONG;
  const short = (from ? "… " : "") + text.slice(from, to) + (text.length > to ? " …" : "");
  return short.split(any).map((part, i) => (i % 2 ? element("mark", {}, [part]) : part));
}

/** A result: a link to the section, with the heading and the sentence. */
function item({ address, page, heading, sentence, words }) {
  const where = element("small", {}, page === heading ? [] : [page]);
  const told = [where, element("b", {}, marked(heading, words)), element("span", {}, marked(sentence, words))];
  return element("a", { href: ROOT + address }, told);
}

/** Have a form answer below itself while one types. */
function answering(form) {
  const input = form.querySelector("input[name=q]"), place = form.parentElement;
  const here = document.querySelector("article form.search") === form;
  const list = element("div", { className: "found", hidden: true, tabIndex: -1 }); // a click in it keeps it open
  const said = element("p", { role: "status" });
  form.after(list);
  async function answer() {
    const found = find(await sections(), input.value);
    list.hidden = !input.value.trim();
    said.textContent = `Sections found: ${found.length}`;
    list.replaceChildren(said, ...KINDS.flatMap((kind) => {
      const some = found.filter((one) => one.kind === kind).slice(0, here ? MANY : FEW);
      return some.length ? [element("p", { className: "kind", textContent: kind }), ...some.map(item)] : [];
    }));
  }
  input.autocomplete = "off";
  input.addEventListener("focus", sections);
  input.addEventListener("input", answer);
  place.addEventListener("keydown", (event) => {
    const stops = [input, ...list.querySelectorAll("a")], at = stops.indexOf(event.target);
    if (at < 0) return;
    const next = stops[at + { ArrowDown: 1, ArrowUp: -1 }[event.key]];
    if (event.key === "Escape") list.hidden = true;
    if (next && !list.hidden) next.focus();
    if (next || (event.key === "/" && !input.value)) event.preventDefault(); // "/" is the key that leads here
  });
  if (here) {
    input.value = new URLSearchParams(location.search).get("q") ?? "";
    input.focus();
    answer();
    return;
  }
  list.addEventListener("click", ({ target }) => target.closest("a") && (list.hidden = true));
  place.addEventListener("focusout", ({ relatedTarget }) => {
    list.hidden ||= !form.contains(relatedTarget) && !list.contains(relatedTarget);
  });
}

document.querySelectorAll("form.search, form.sidebar-search-container").forEach(answering);
