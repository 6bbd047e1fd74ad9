// What the book's pages do by themselves: quizzes answer, the ledger is filtered, links and keys lead on.

/** Make a quiz answer: a click on an option says whether it is right, and why. */
function asking(question) {
  const [summary, options, answer] = question.children;
  const reasons = [...answer.querySelectorAll("li")];
  [...options.children].forEach((option, i) => {
    const button = Object.assign(document.createElement("button"), { type: "button" });
    const reason = Object.assign(document.createElement("p"), { role: "status" });
    button.append(...option.childNodes);
    button.addEventListener("click", () => {
      reason.innerHTML = reasons[i].innerHTML;
      option.classList.add(reasons[i].textContent.startsWith("✓") ? "right" : "wrong");
    });
    option.append(button, reason);
  });
  answer.remove(); // every option has its own
  question.removeAttribute("name"); // all questions stand open
  question.open = true;
}

/** Show the rows of the ledger that all its menus allow; the address keeps what is chosen. */
function filtering(form) {
  const rows = [...document.querySelectorAll("[data-verdict]")];
  const menus = [...form.querySelectorAll("select")], said = form.querySelector("output");
  function show() {
    const shown = rows.filter((row) => {
      row.hidden = !menus.every(({ name, value }) => !value || row.dataset[name] === value);
      return !row.hidden;
    });
    said.textContent = `${shown.length} of ${rows.length} claims`;
  }
  const chosen = new URLSearchParams(location.search);
  for (const menu of menus) menu.value = chosen.get(menu.name) ?? "";
  form.addEventListener("change", () => {
    const choices = new URLSearchParams(menus.filter(({ value }) => value).map(({ name, value }) => [name, value]));
    history.replaceState(null, "", `?${choices}`);
    show();
  });
  show();
}

/** Keep what the address names where it is while formulas and live pictures above it come, until the reader moves. */
function landing() {
  const growing = new ResizeObserver(() => document.querySelector(":target")?.scrollIntoView({ behavior: "instant" }));
  const stop = () => growing.disconnect();
  growing.observe(document.querySelector("article"));
  for (const deed of ["wheel", "touchmove", "pointerdown", "keydown"]) addEventListener(deed, stop, { once: true, passive: true });
  setTimeout(stop, 5000); // by then they have come, and who drags the scroll bar does none of these deeds
}

/** j leads to the next section, k back; / to the search is Sphinx's own. */
function walking({ key, target, ctrlKey, altKey, metaKey }) {
  const step = { j: 1, k: -1 }[key];
  if (!step || ctrlKey || altKey || metaKey || target.closest("input, select, textarea, .lw")) return;
  const tops = [...document.querySelectorAll("article h2, article h3")].map((heading) => heading.parentElement)
    .filter((section) => section.checkVisibility());
  const below = (section) => section.getBoundingClientRect().top - parseFloat(getComputedStyle(section).scrollMarginTop);
  const next = step > 0 ? tops.find((one) => below(one) > 2) : tops.findLast((one) => below(one) < -2);
  next?.scrollIntoView({ behavior: "instant" });
}

const reachable = () => {
  for (const large of document.querySelectorAll("article :is(figure, p):has(> img), article :is(pre, .long, .table-wrapper)")) {
    const { scrollWidth, clientWidth, scrollHeight, clientHeight } = large;
    if (scrollWidth > clientWidth || scrollHeight > clientHeight || large.querySelector("table .math")) large.tabIndex = 0; // arrow keys move it
  }
};

/** Load the pictures that nobody has come near, for those who print; the page is at rest by then. */
const illustrated = () => document.querySelectorAll("img[loading]").forEach((picture) => (picture.loading = "eager"));

document.querySelector(".main").after(document.querySelector(".sidebar-drawer")); // Tab comes to the text before the list of pages
reachable();
document.fonts.ready.then(reachable); // some are wider in their own font
document.querySelectorAll(".quiz > details").forEach(asking);
document.querySelectorAll("form.filter").forEach(filtering);
addEventListener("beforeprint", illustrated);
if (!document.querySelector(".experiment")) addEventListener("load", () => setTimeout(illustrated, 2000)); // the front page stays small
addEventListener("keydown", walking);
addEventListener("hashchange", landing);
landing();
