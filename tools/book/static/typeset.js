// Formulas are typeset when one is seen, or the page is read, printed or at rest: MathJax is larger than all else on it.
window.MathJax = {
  loader: { load: ["input/tex", "output/svg", "a11y/assistive-mml"] },
  tex: { inlineMath: [["\\(", "\\)"]], displayMath: [["\\[", "\\]"]] },
  options: { ignoreHtmlClass: ".*", processHtmlClass: "math" },
};

const MATHJAX = new URL("../slides/vendor/mathjax/startup.js", document.currentScript.src).href;

function typeset() {
  if (document.getElementById("mathjax")) return;
  const script = Object.assign(document.createElement("script"), { src: MATHJAX, id: "mathjax" });
  script.onload = () => formulas.disconnect();
  script.onerror = () => script.remove(); // the next time somebody reads on it is tried again
  document.head.append(script);
}

const formulas = new IntersectionObserver((entries) => entries.some((entry) => entry.isIntersecting) && typeset());
document.querySelectorAll(".math").forEach((formula) => formulas.observe(formula));
for (const deed of ["keydown", "pointerdown", "scroll", "beforeprint"]) addEventListener(deed, typeset, { passive: true });
addEventListener("load", () => setTimeout(typeset, 2000)); // at rest
