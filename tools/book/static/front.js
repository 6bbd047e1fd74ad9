// The front page's experiment: which sentences of a text answer a question, read exactly and through k slots. What is
// shown at first was recorded (front_page.py). Once a reader wakes the model of waking.js, it answers, by the same draw().
{
  const { recorded } = window, place = document.querySelector(".experiment");
  const { question: asked, text: own, next, sleep } = place.querySelector("form").elements;
  const slider = place.querySelector("[name=k]"), handle = place.querySelector(".handle"), strip = place.querySelector(".slots canvas");
  const [happens, named] = place.querySelectorAll(".happens > span");
  const sides = ["exact", "slots"].map((name) => place.querySelector(`.${name}`));
  const ks = [...Object.keys(recorded.scores).filter(Number).map(Number), Infinity]; // the last: a slot for each token, k = n
  const [shortest, BEST, questions] = [recorded.opening[1], 3, Object.keys(recorded.questions)], text = own.value;
  const MOST = 512; // tokens that the model has positions for
  const SHORT = 400; // characters of a text that still travels in the address
  const COLOURS = [0xce7c3a, 0x2876d6]; // of map and strip: blue, green, red; they do on white and on black
  const PLACES = ["", "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"];
  const nth = (rank) => PLACES[rank] ?? `place ${rank}`;
  const thousands = (x) => x.toLocaleString("en-US");
  let shown = null; // the result that is drawn, with the sentence that is looked for

  /** What was recorded of a question at k, in the form of every result; with a slot for each token, that is exact attention. */
  function ofRecord(question, k, maps) {
    const i = questions.indexOf(question);
    const half = (way) => ({ scores: recorded.scores[way][i].map((x) => x / 10000), weights: maps[way] });
    return { ...recorded, answer: recorded.questions[question], halves: [half("exact"), half(k in maps ? k : "exact")] };
  }

  /** Cosines of a question and of all sentences: unit vectors, as they come from the model. */
  function cosines(question, sentences) {
    const [count, d] = sentences.shape, [a, b] = [question, sentences].map(({ bytes }) => new Float32Array(bytes.buffer));
    return Array.from({ length: count }, (_, i) => a.reduce((sum, x, j) => sum + x * b[i * d + j], 0));
  }

  /** What the live model finds, in the form of every result; it rejects with one sentence. Seconds are those of one run. */
  async function ask(words, question, k) {
    if (!question.trim()) throw new Error("The question is empty: ask something about the text.");
    const exact = await encoder.read(words, MOST, "sentences");
    if (!exact.sentences.length) throw new Error("The text is empty: paste one, of up to some 400 words.");
    const slots = await encoder.read(words, MOST, "sentences", k), { packed } = await encoder.read(question, MOST, "vector");
    const halves = [exact, slots].map((read) => ({ scores: cosines(packed, read.packed), weights: read.map, seconds: read.seconds }));
    return { ...exact, answer: words === text ? recorded.questions[question] : undefined, halves };
  }

  const order = (scores) => scores.map((_, i) => i).sort((a, b) => scores[b] - scores[a]);

  /** The first sentences, and the one that is looked for where it is not among them. */
  function list(side, ranks, scores) {
    const { sentences, answer, wanted } = shown, best = ranks.slice(0, BEST);
    if (!best.includes(wanted)) best.push(wanted);
    side.querySelector("ol").replaceChildren(...best.map((i) => {
      const rank = ranks.indexOf(i) + 1, line = Object.assign(document.createElement("li"), { value: rank, dir: "auto" });
      line.innerHTML = `<span><b>${rank}${i === answer ? ' <span role="img" aria-label="the answer">✓</span>' : "."}</b> </span>`;
      line.firstChild.append(sentences[i]);
      line.dataset.sentence = i;
      line.style.setProperty("--share", Math.max(0, scores[i]));
      line.className = `${i === answer ? "answer" : ""} ${rank > BEST ? "late" : ""}`;
      return line;
    }));
  }

  /** Light the sentence that an event points at, or the one that is looked for: its rows and its lines. Of a row the word is named. */
  function light({ target, clientY } = { target: place }) {
    const { spans, sentences, tokens, wanted } = shown, line = target.closest("li"), map = target !== handle && target.closest(".seen");
    const { top, height } = (map || place).getBoundingClientRect(), token = map ? Math.floor(((clientY - top) / height) * tokens.length) : -1;
    const at = line ? Number(line.dataset.sentence) : spans.findIndex(([start, end]) => start <= token && token < end);
    const [start, end] = spans[at] ?? spans[wanted], begins = (i) => !tokens[i].startsWith("##");
    place.style.setProperty("--start", start);
    place.style.setProperty("--tokens", end - start);
    for (const one of place.querySelectorAll("li")) one.classList.toggle("pointed", Number(one.dataset.sentence) === at);
    const word = tokens.slice(tokens.findLastIndex((_, i) => i <= token && begins(i)), tokens.findIndex((_, i) => i > token && begins(i)));
    named.textContent = map && spans[at] ? `“${word.join("").replaceAll("##", "")}”: ${sentences[at]}` : "";
  }

  /** Weights (n, m), to scale: the stronger, the less one sees through. */
  function paint(side, colour, values, n, shades) {
    const canvas = side.querySelector("canvas"), m = values.length / n, image = new ImageData(m, n);
    const opacities = Uint32Array.from({ length: shades }, (_, i) => Math.round((255 * i) / (shades - 1)) * 2 ** 24 + colour);
    new Uint32Array(image.data.buffer).set(Uint32Array.from(values, (value) => opacities[value]));
    Object.assign(canvas, { width: m, height: n }).getContext("2d").putImageData(image, 0, 0);
    side.style.setProperty("--m", m);
  }

  /** What m slots do to the place of the sentence that is looked for, in a sentence. */
  function happening([before, after], m, n, what) {
    if (m === n) return `With a slot for each token, strip and square are one: ${what} is ${nth(after)} in both.`;
    if (before === after) return `With ${m} slots ${what} stays ${nth(after)}.`;
    return `With ${m} slots ${what} ${before < after ? "falls" : "rises"} from ${nth(before)} to ${nth(after)}.`;
  }

  /**
   * Show a result at k: sentences, their spans of tokens, tokens; answer: the sentence that answers, where that is known; count: tokens of the
   * whole text, where more than n were given; halves, read exactly and through slots: scores of the sentences, weights (n, n) and (n, k or n),
   * whole numbers below shades, and seconds, where it was read just now.
   */
  function draw(result, k) {
    const { halves, count, shades } = result, n = result.tokens.length, m = Math.min(k, n);
    const ranked = halves.map(({ scores }) => order(scores)), wanted = result.answer ?? ranked[0][0];
    const places = ranked.map((ranks) => ranks.indexOf(wanted) + 1), what = result.answer === undefined ? "exact attention's best sentence" : "answer";
    const said = [`${n} × ${n} = ${thousands(n * n)} numbers a head`, `${n} × ${m}: ${m < n ? `${Math.round(n / m)} times fewer` : "as many"}`];
    shown = { ...result, wanted };
    place.style.setProperty("--n", n);
    sides.forEach((side, i) => {
      list(side, ranked[i], halves[i].scores);
      paint(side, COLOURS[i], halves[i].weights, n, shades);
      side.querySelector("figcaption").textContent = said[i];
      side.querySelector("canvas").setAttribute("aria-label", `How one head attends to the text: ${said[i]}`);
    });
    light();
    happens.textContent = happening(places, m, n, result.answer === undefined ? what : `the ${what}`);
    place.querySelector("output").textContent = m;
    slider.value = ks.indexOf(k);
    slider.setAttribute("aria-valuetext", `${m} slots, ${what} ${nth(places[1])}`);
    const { found } = recorded, [exactly, through] = halves.map(({ seconds }) => seconds?.toFixed(2));
    place.querySelector(".tally").textContent = `Of ${recorded.asked} questions about three texts, exact attention has the answer among its first three ${found.exact} times, ${m < n ? k : "n"} slots ${found[m < n ? k : "exact"]} times.`;
    place.classList.remove("unanswered");
    const cut = count > n ? ` Cut at ${n} of ${thousands(count)} tokens.` : "";
    say(exactly ? `One run on this machine: ${exactly} s exactly, ${through} s through slots.${cut}` : hint());
  }

  const say = (words) => { place.querySelector(".seconds").textContent = words; };
  const hint = () => (encoder.state === "asleep" ? "to ask about your own text, of some 400 words; nothing leaves this machine." : "");

  /** Say why there is no answer; what still stands there belongs to another question. */
  function refuse(words) {
    place.classList.add("unanswered");
    say(words);
  }

  /** Show what is asked now: as the live model answers, or as it was recorded. */
  async function show(maps) {
    const [question, words, k] = [asked.value, own.value, ks[slider.value]], isOurs = words === text;
    next.textContent = isOurs ? "Next" : "Our text";
    next.setAttribute("aria-label", isOurs ? "Next question" : "Back to our text and its questions");
    const { ask: live } = window.frontPage;
    if (live) {
      const slow = setTimeout(() => say("The model reads …"), 200);
      const result = await live(words, question, k).finally(() => clearTimeout(slow));
      return draw(result, k);
    }
    if (isOurs && questions.includes(question)) return draw(ofRecord(question, k, maps), k);
    const press = `${encoder.state === "asleep" ? "Press Enter to wake the model, or" : "Press"} “${next.textContent}”.`;
    refuse(`Nobody has recorded an answer to that. ${encoder.state === "waking" ? "The model will give one, once it’s awake." : press}`);
  }

  /** Keep in the address what is asked, for whoever it is sent to; behind its #, no server sees it. A long text would not fit. */
  function note() {
    const isOurs = own.value === text, state = new URLSearchParams({ q: asked.value, k: ks[slider.value], ...(!isOurs && { text: own.value }) });
    history.replaceState(null, "", `#${isOurs || own.value.length <= SHORT ? state : ""}`);
  }

  /** Take what is asked from the address; whether it says so. */
  function restored() {
    const state = new URLSearchParams(location.hash.slice(1)), at = ks.indexOf(Number(state.get("k")));
    if (state.has("q")) [asked.value, own.value, slider.value] = [state.get("q"), state.get("text") ?? text, Math.max(0, at)];
    return state.has("q");
  }

  window.frontPage = { draw, ask: null };
  addEventListener("DOMContentLoaded", async () => { // host.js has run by now: encoder and revived are its
    const views = Object.entries(await revived(recorded.maps)), maps = Object.fromEntries(views.map(([way, { buffer }]) => [way, new Uint8Array(buffer)]));
    let moving = 0, noting = 0, wanted = 0, reading = Promise.resolve();
    const stop = () => {
      clearInterval(moving);
      happens.ariaLive = "polite";
    };

    /** One reading at a time: what changes meanwhile is shown after it. */
    function again() {
      const mine = ++wanted;
      reading = reading.then(() => mine === wanted && show(maps)).catch(({ message }) => refuse(message));
    }

    /** Show, and keep, what a reader has done. */
    function act() {
      stop();
      again();
      clearTimeout(noting);
      noting = setTimeout(note, 300); // browsers take a hundred addresses in half a minute
    }

    own.addEventListener("input", () => own.value.trim() && encoder.keep(own.value === text ? "" : own.value));
    for (const field of [asked, own, slider]) field.addEventListener("input", act);
    next.addEventListener("click", () => {
      const at = own.value === text ? questions.indexOf(asked.value) + 1 : 0;
      own.value = text;
      asked.value = questions[at % questions.length];
      act();
    });
    handle.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      stop();
      handle.setPointerCapture(event.pointerId);
      slider.focus();
    });
    handle.addEventListener("pointermove", ({ clientX, pointerId }) => {
      if (!handle.hasPointerCapture(pointerId)) return;
      const { left, height } = strip.getBoundingClientRect(), wide = Math.max(1, ((clientX - left) * strip.height) / height);
      const far = (k) => Math.abs(Math.log(Math.min(k, strip.height) / wide)), at = ks.indexOf(ks.reduce((best, one) => (far(one) < far(best) ? one : best)));
      if (at === Number(slider.value)) return;
      slider.value = at;
      act();
    });
    for (const kind of ["pointermove", "pointerdown", "mouseleave"]) place.addEventListener(kind, (event) => shown && light(event));
    sleep.addEventListener("click", () => encoder.sleep());
    place.querySelector("form").addEventListener("submit", (event) => {
      event.preventDefault();
      if (encoder.state === "asleep" && place.classList.contains("unanswered")) encoder.wake();
    });
    const sent = restored(), still = sent || matchMedia("(prefers-reduced-motion: reduce)").matches;
    const set = (at) => { slider.value = at; again(); };
    set(sent ? slider.value : ks.indexOf(still ? shortest : Infinity));
    if (!still) moving = setInterval(() => (ks[slider.value] > shortest ? set(slider.value - 1) : stop()), 600); // the strip grows thin
    addEventListener("hashchange", () => { if (restored()) { stop(); again(); } });
    place.querySelector(".wake").prepend(...encoder.waker(asked, (awake) => {
      if (awake) stop();
      sleep.hidden = !awake;
      window.frontPage.ask = awake ? ask : null;
      again();
    }));
    encoder.follow((words) => { own.value = words || text; act(); }, () => !sent || own.value === encoder.own); // an address's text stands
  });
}
