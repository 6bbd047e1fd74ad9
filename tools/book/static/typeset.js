// Formulas are typeset when the first of them comes near: MathJax is larger than all else that a page loads.
window.MathJax = {
  loader: { load: ["input/tex", "output/svg", "a11y/assistive-mml"] },
  tex: { inlineMath: [["\\(", "\\)"]], displayMath: [["\\[", "\\]"]] },
  options: { ignoreHtmlClass: ".*", processHtmlClass: "math" },
};

const MATHJAX = new URL("../slides/vendor/mathjax/startup.js", document.currentScript.src).href;

function typeset() {
  formulas.disconnect();
  if (document.getElementById("mathjax")) return;
  document.head.append(Object.assign(document.createElement("script"), { src: MATHJAX, id: "mathjax" }));
}

const formulas = new IntersectionObserver((entries) => entries.some((entry) => entry.isIntersecting) && typeset(), { rootMargin: "600px" });
document.querySelectorAll(".math").forEach((formula) => formulas.observe(formula));
for (const deed of ["keydown", "pointerdown", "wheel"]) addEventListener(deed, typeset, { once: true, passive: true }); // a print, a jump
