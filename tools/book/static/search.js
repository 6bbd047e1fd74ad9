// The search of the book: answers while one types, from disk; shows the sentence found, leads to its section.

const SECTIONS = new URL("sections.js", document.currentScript.src).href;
const ROOT = new URL("..", document.currentScript.src).href;
const KINDS = { "Chapters": 1, "To look up": 1, "Solutions": 1, "Reference": 0.5 }; // and what one found there counts
const FEW = 4, MANY = 25; // results of a kind, beside a page and on the page of the search
const COMMON = "a an and are can do does how i in is it me my of on or the there this to we what when where which who why you".split(" ");
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

/** The words of a question, without those that any question has, unless it has no others. */
function wordsOf(text) {
  const all = text.toLowerCase().split(/[\s\-–?!,;:"“”()]+/).filter(Boolean);
  const own = all.filter((word) => !COMMON.includes(word));
  return own.length ? own : all;
}

/** What finds words side by side, in either case: the last one whole, or in the plural, or as a beginning. */
function finder(words, whole = words.at(-1).length < 3) {
  const end = whole ? "s?(?![\\p{L}\\d])" : "";
  const text = words.map((word) => word.replace(/[$()*+./?[\\\]^{|}]/g, "\\$&")).join("[\\s\\-–]+");
  return new RegExp(`(?<![\\p{L}\\d])${text}${end}`, "iu");
}

/** How many letters are to be put in, left out or replaced to make one word of another. */
function distance(one, other) {
  let row = [...Array(other.length + 1).keys()];
  for (let i = 0; i < one.length; i++) {
    const above = row;
    row = [i + 1];
    for (let j = 0; j < other.length; j++) row.push(Math.min(above[j + 1] + 1, row[j] + 1, above[j] + (one[i] !== other[j])));
  }
  return row.at(-1);
}

/** The word of the texts that is nearest to one which they lack, of equals the most frequent; itself if none is near. */
function nearest(texts, word) {
  const times = Object.create(null), most = word.length < 6 ? 1 : 2;
  for (const known of texts.join(" ").toLowerCase().match(/\p{L}{4,}/gu)) times[known] = (times[known] ?? 0) + 1;
  const alike = Object.keys(times).filter((known) => Math.abs(known.length - word.length) <= most);
  const near = alike.map((known) => ({ known, far: distance(word, known) })).filter(({ far }) => far <= most);
  return near.sort((one, other) => one.far - other.far || times[other.known] - times[one.known])[0]?.known ?? word;
}

/** The sections that have most of the words, best first: what counts more is rare, whole, in a heading, side by side. */
function find(all, text) {
  const texts = all.map(([, , ...said]) => said.flat().join(" "));
  const words = wordsOf(text).map((word) => (texts.some((said) => finder([word]).test(said)) ? word : nearest(texts, word)));
  const together = finder(words), finders = words.map((word) => finder([word])), wholes = words.map((word) => finder([word], true));
  const rare = finders.map((one) => Math.log(1 + all.length / (texts.filter((said) => one.test(said)).length || Infinity)));
  const held = (said) => finders.reduce((sum, one, i) => sum + rare[i] * (one.test(said) + wholes[i].test(said)), 0);
  const count = (said) => held(said) * (together.test(said) ? 2 : 1);
  const shares = texts.map(held), least = Math.max(...shares) / 2;
  const found = all.filter((_, i) => shares[i] > 0 && shares[i] >= least).map(([kind, address, page, heading, sentences]) => {
    const counts = sentences.map(count), best = Math.max(0, ...counts), sentence = sentences[counts.indexOf(best)] ?? "";
    const named = wordsOf(heading.replace(/^\d+ · /, "")).join() === words.join() ? 3 : 1;
    return { kind, address, page, heading, sentence, finders, score: KINDS[kind] * (3 * named * count(heading) + 2 * count(page) + best) };
  });
  return { words, found: found.sort((one, other) => other.score - one.score) };
}

/** The parts of a text, short around the first word that is found, in which such words are marked. */
function marked(text, finders) {
  const any = new RegExp(`(${finders.map(({ source }) => source).join("|")})`, "giu"), at = text.search(any);
  const from = text.length > LONG ? Math.max(0, text.lastIndexOf(" ", at - 60)) : 0, to = from + LONG;
  const short = (from ? "… " : "") + text.slice(from, to) + (text.length > to ? " …" : "");
  return short.split(any).map((part, i) => (i % 2 ? element("mark", {}, [part]) : part));
}

/** A result: a link to the section, with the heading and the sentence. */
function item({ address, page, heading, sentence, finders }) {
  const where = element("small", {}, page === heading ? [] : [page]);
  const told = [where, element("b", {}, marked(heading, finders)), element("span", {}, marked(sentence, finders))];
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
    const asked = wordsOf(input.value), all = await sections();
    const { words, found } = asked.join("").length > 1 ? find(all, input.value) : { words: asked, found: [] };
    list.hidden = !input.value.trim();
    const other = words.filter((word, i) => word !== asked[i]).map((word) => `“${word}”`);
    said.textContent = `Sections found${other.length ? ` with ${other.join(", ")}` : ""}: ${found.length}`;
    const kinds = Object.keys(KINDS).map((kind) => found.filter((one) => one.kind === kind)).filter(({ length }) => length);
    list.replaceChildren(said, ...kinds.sort(([one], [other]) => other.score - one.score).flatMap((some) => [
      element("p", { className: "kind", textContent: some[0].kind }), ...some.slice(0, here ? MANY : FEW).map(item),
    ]));
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
