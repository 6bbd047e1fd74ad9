// The front page's experiment: which sentences of a text answer a question, read exactly and through k slots. What is
// shown at first was recorded (front_page.py). Once a reader wakes the model of waking.js, it answers, by the same draw().
{
  const { recorded } = window, place = document.querySelector(".experiment");
  const { question: asked, text: own, next, sleep } = place.querySelector("form").elements;
  const slider = place.querySelector("[name=k]"), handle = place.querySelector(".handle"), strip = place.querySelector(".slots canvas");
  const sides = ["exact", "slots"].map((name) => place.querySelector(`.${name}`)), ks = Object.keys(recorded.scores).filter(Number).map(Number);
  const [shortest, BEST, questions] = [recorded.opening[1], 3, Object.keys(recorded.questions)], text = own.value;
  const MOST = 512; // tokens that the model has positions for
  const COLOURS = [0xce7c3a, 0x2876d6]; // of map and strip: blue, green, red; they do on white and on black
  const thousands = (x) => x.toLocaleString("en-US");

  /** What was recorded of a question at k, in the form of every result. */
  function ofRecord(question, k, maps) {
    const i = questions.indexOf(question), half = (way) => ({ scores: recorded.scores[way][i], weights: maps[way] });
    return { ...recorded, answer: recorded.questions[question], halves: [half("exact"), half(k)] };
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
  function list(side, { sentences, spans, answer }, scores, wanted) {
    const ranks = order(scores), shown = ranks.slice(0, BEST);
    if (!shown.includes(wanted)) shown.push(wanted);
    side.querySelector("ol").replaceChildren(...shown.map((i) => {
      const line = Object.assign(document.createElement("li"), { value: ranks.indexOf(i) + 1 });
      line.append(Object.assign(document.createElement("span"), { textContent: sentences[i] }));
      line.style.setProperty("--share", Math.max(0, scores[i]));
      line.classList.toggle("answer", i === answer);
      line.classList.toggle("late", ranks.indexOf(i) >= BEST);
      line.addEventListener("pointerenter", () => mark(side, spans[i]));
      return line;
    }));
    mark(side, spans[ranks[0]]);
  }

  /** Mark the rows of some tokens: of the sentence found first, or of the one that is pointed at. */
  function mark(side, [start, end]) {
    side.querySelector("i").style.setProperty("--start", start);
    side.querySelector("i").style.setProperty("--tokens", end - start);
  }

  /** Weights (n, m), to scale: the stronger, the less one sees through. */
  function paint(side, colour, values, n, shades) {
    const canvas = side.querySelector("canvas"), m = values.length / n, image = new ImageData(m, n);
    const opacities = Uint32Array.from({ length: shades }, (_, i) => Math.round((255 * i) / (shades - 1)) * 2 ** 24 + colour);
    new Uint32Array(image.data.buffer).set(Uint32Array.from(values, (value) => opacities[value]));
    Object.assign(canvas, { width: m, height: n }).getContext("2d").putImageData(image, 0, 0);
    side.style.setProperty("--n", n);
    side.style.setProperty("--m", m);
  }

  /**
   * Show a result at k.
   *
   * result: sentences; spans: first and last token of each; answer: the sentence that answers, where that is known; count: tokens of the
   * whole text, where more than n were given; halves, read exactly and through slots: scores of the sentences, weights (n, n) and (n, k),
   * for a shorter text (n, n), whole numbers below shades, and seconds, where it was read just now.
   */
  function draw(result, k) {
    const { spans, halves, count, shades } = result, n = spans.at(-1)[1] + 1;
    const wanted = result.answer ?? order(halves[0].scores)[0];
    const m = Math.min(k, n), less = m < n ? `${Math.round(n / m)} times fewer` : "a slot for each token";
    const said = [`${n} × ${n} = ${thousands(n * n)} numbers in each head`, `${n} × ${m}: ${less}. Drag the edge.`];
    sides.forEach((side, i) => {
      list(side, result, halves[i].scores, wanted);
      paint(side, COLOURS[i], halves[i].weights, n, shades);
      side.querySelector("figcaption").textContent = said[i];
      side.querySelector("canvas").setAttribute("aria-label", `How one head attends to the text: ${said[i]}`);
    });
    place.querySelector("output").textContent = k;
    slider.value = ks.indexOf(k);
    slider.setAttribute("aria-valuetext", k);
    const { found } = recorded, [exactly, through] = halves.map(({ seconds }) => seconds?.toFixed(2));
    place.querySelector(".tally").textContent = `Of ${recorded.asked} questions about three texts, exact attention has the answer among its first three ${found.exact} times, ${k} slots ${found[k]} times.`;
    place.classList.remove("unanswered");
    const cut = count > n ? ` Your text is cut at ${n} of its ${thousands(count)} tokens.` : "";
    say(exactly ? `On this machine, one run: ${exactly} s exactly, ${through} s through slots.${cut}` : hint());
  }

  const say = (words) => { place.querySelector(".seconds").textContent = words; };
  const hint = () => (encoder.state === "asleep" ? "to ask your own question about your own text, of up to some 400 words; nothing leaves this machine." : "");

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

  window.frontPage = { draw, ask: null };
  addEventListener("DOMContentLoaded", async () => { // host.js has run by now: encoder and revived are its
    const views = Object.entries(await revived(recorded.maps)), maps = Object.fromEntries(views.map(([way, { buffer }]) => [way, new Uint8Array(buffer)]));
    let moving = 0, wanted = 0, reading = Promise.resolve();
    const stop = () => clearInterval(moving);

    /** One reading at a time: what changes meanwhile is shown after it. */
    function again() {
      const mine = ++wanted;
      reading = reading.then(() => mine === wanted && show(maps)).catch(({ message }) => refuse(message));
    }

    const set = (k) => { slider.value = ks.indexOf(k); again(); };
    for (const field of [asked, own, slider]) field.addEventListener("input", () => { stop(); again(); });
    next.addEventListener("click", () => {
      stop();
      const at = own.value === text ? questions.indexOf(asked.value) + 1 : 0;
      own.value = text;
      asked.value = questions[at % questions.length];
      again();
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
      const far = (k) => Math.abs(Math.log(k / wide));
      const k = ks.reduce((best, one) => (far(one) < far(best) ? one : best));
      if (k !== ks[slider.value]) set(k);
    });
    sleep.addEventListener("click", () => encoder.sleep());
    place.querySelector("form").addEventListener("submit", (event) => {
      event.preventDefault();
      if (encoder.state === "asleep" && place.classList.contains("unanswered")) encoder.wake();
    });
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    set(still ? shortest : ks.at(-1));
    if (!still) moving = setInterval(() => (ks[slider.value] > shortest ? set(ks[slider.value - 1]) : stop()), 600); // the strip grows thin
    place.querySelector(".wake").prepend(...encoder.waker(asked, (awake) => {
      if (awake) stop();
      sleep.hidden = !awake;
      window.frontPage.ask = awake ? ask : null;
      again();
    }));
  });
}
