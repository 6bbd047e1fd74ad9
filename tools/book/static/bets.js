// Bets on the pages of the book and in decks: this browser keeps them and sends them nowhere. A lecturer counts hands.
{
  const KEPT = "linformer bets";
  const lists = [...document.querySelectorAll(".bet")], lines = document.querySelectorAll("p.bets");
  const bets = lists.map((list) => ({ buttons: [...list.children].map(answer), ...JSON.parse(list.dataset.bet) }));
  let placed = {}; // bet -> answer
  try { placed = JSON.parse(localStorage.getItem(KEPT)) ?? {}; } catch { /* a browser that keeps nothing */ }

  function answer(item) {
    const button = Object.assign(document.createElement("button"), { type: "button", textContent: item.textContent });
    item.replaceChildren(button);
    button.addEventListener("click", ({ shiftKey }) => {
      if (document.querySelector("aside.notes strong")) { // for the teacher: one more, with Shift one less
        button.dataset.hands = String(Math.max(0, Number(button.dataset.hands ?? 0) + (shiftKey ? -1 : 1)));
        return;
      }
      placed[bets.find(({ buttons }) => buttons.includes(button)).id] = button.textContent;
      try { localStorage.setItem(KEPT, JSON.stringify(placed)); } catch { /* it lasts as long as the page */ }
      show();
    });
    return button;
  }

  /** Show what is bet, and say how it has done, as tally of quizzes.py does. */
  function show() {
    for (const bet of bets) {
      bet.chosen = bet.buttons.findIndex(({ textContent }) => textContent === placed[bet.id]);
      bet.buttons.forEach((button, i) => (button.ariaPressed = String(i === bet.chosen)));
    }
    const known = bets.filter(({ chosen }) => chosen >= 0), won = known.filter(({ chosen, right }) => chosen === right);
    let said = `You placed ${known.length} of ${bets.length} bets and won ${won.length}`;
    said += `; a coin wins ${known.reduce((sum, { buttons }) => sum + 1 / buttons.length, 0).toFixed(1)}`;
    for (const [name, who] of [["paper", "the paper's claim"], ["ours", "what we wrote down before the run"]]) {
      const on = known.filter((bet) => name in bet), theirs = on.filter((bet) => bet[name] === bet.right);
      if (on.length) said += `; ${who} wins ${theirs.length} of ${on.length}, you ${on.filter((bet) => won.includes(bet)).length} of these`;
    }
    for (const line of lines) line.textContent = known.length ? `${said}.` : `No bet placed yet, of ${bets.length}.`;
  }
  show();
}
