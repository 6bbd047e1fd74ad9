// What a small language model is made of, each part with its way back. A value is { data, width, slope }: numbers in rows of
// `width`, and how the loss changes with each; weights are values too. maths.js and learn.js stand in front.

let tape = []; // what there is to do on the way back, in the order of the way forth

const valueOf = (data, width) => ({ data, width, slope: new Float64Array(data.length) });

/** The value of an operation, which hands its slopes on to what it was made of: back(slopes). */
function made(data, width, back) {
  const value = valueOf(data, width);
  tape.push(() => back(value.slope));
  return value;
}

/** Go all the way back. */
function goBack() {
  while (tape.length) tape.pop()();
}

/** Add numbers in place; those that are repeated, as the rows of a bias, from the start again. */
function addTo(sums, numbers) {
  const n = sums.length;
  for (let start = 0; start < numbers.length; start += n) for (let j = 0; j < n; j++) sums[j] += numbers[start + j];
}

/** The rows of a table at these places, times a factor. */
function rowsOf({ data, width, slope }, places, factor = 1) {
  const found = new Float64Array(places.length * width);
  places.forEach((place, i) => { for (let c = 0; c < width; c++) found[i * width + c] = factor * data[place * width + c]; });
  return made(found, width, (d) => places.forEach((place, i) => {
    for (let c = 0; c < width; c++) slope[place * width + c] += factor * d[i * width + c];
  }));
}

function plus(a, b) {
  return made(a.data.map((x, i) => x + b.data[i]), a.width, (d) => [a, b].forEach(({ slope }) => addTo(slope, d)));
}

/** x Wᵀ + b, as nn.Linear: x (rows, in), W (out, in), b (out) or none. */
function affine(x, W, b) {
  const out = W.data.length / x.width, data = product(x.data, transposed(W.data, x.width), x.width);
  if (b) for (let start = 0; start < data.length; start += out) addTo(data.subarray(start, start + out), b.data);
  return made(data, out, (d) => {
    addTo(x.slope, product(d, W.data, out));
    addTo(W.slope, product(transposed(d, out), x.data, d.length / out));
    if (b) addTo(b.slope, d);
  });
}

/** LayerNorm over each row. */
function normed(x, gain, shift) {
  const w = x.width, data = new Float64Array(x.data.length), flat = new Float64Array(data.length), scales = [];
  for (let start = 0; start < data.length; start += w) {
    let mean = 0, spread = 0;
    for (let i = start; i < start + w; i++) mean += x.data[i] / w;
    for (let i = start; i < start + w; i++) spread += (x.data[i] - mean) ** 2 / w;
    scales.push(1 / Math.sqrt(spread + 1e-5));
    for (let c = 0, i = start; c < w; c++, i++) data[i] = (flat[i] = (x.data[i] - mean) * scales.at(-1)) * gain.data[c] + shift.data[c];
  }
  return made(data, w, (d) => {
    addTo(shift.slope, d);
    addTo(gain.slope, d.map((one, i) => one * flat[i]));
    scales.forEach((scale, row) => {
      let mean = 0, along = 0;
      for (let c = 0, i = row * w; c < w; c++, i++) { mean += (d[i] * gain.data[c]) / w; along += (d[i] * gain.data[c] * flat[i]) / w; }
      for (let c = 0, i = row * w; c < w; c++, i++) x.slope[i] += scale * (d[i] * gain.data[c] - mean - along * flat[i]);
    });
  });
}

/** x Φ(x), Φ of the normal distribution by Abramowitz and Stegun's 7.1.26, which is off by at most 1e-7. */
function gelu(x) {
  const data = new Float64Array(x.data.length), steep = new Float64Array(data.length);
  for (let i = 0; i < data.length; i++) {
    const one = x.data[i], bell = Math.exp((-one * one) / 2), t = 1 / (1 + 0.3275911 * Math.abs(one) * Math.SQRT1_2);
    const tail = (bell * t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))) / 2;
    const share = one < 0 ? tail : 1 - tail;
    data[i] = one * share;
    steep[i] = share + (one * bell) / Math.sqrt(2 * Math.PI);
  }
  return made(data, x.width, (d) => { for (let i = 0; i < d.length; i++) x.slope[i] += d[i] * steep[i]; });
}

/** E x of each text: E's first n columns, x (texts · n, width) -> (texts · slots, width). */
function squeezed(E, x, n) {
  const size = n * x.width, mixer = firstColumns(E.data, E.width, n), slots = mixer.length / n, back = transposed(mixer, n);
  const texts = Array.from({ length: x.data.length / size }, (_, i) => x.data.subarray(i * size, (i + 1) * size));
  const data = new Float64Array(texts.length * slots * x.width);
  texts.forEach((text, i) => data.set(product(mixer, text, n), i * slots * x.width));
  return made(data, x.width, (d) => texts.forEach((text, i) => {
    const own = d.subarray(i * slots * x.width, (i + 1) * slots * x.width), dE = scoresOf(own, text, x.width, 1);
    for (let p = 0; p < dE.length; p++) E.slope[Math.floor(p / n) * E.width + (p % n)] += dE[p];
    addTo(x.slope.subarray(i * size, (i + 1) * size), product(back, own, slots));
  }));
}

/** softmax(q kᵀ / √d) v of each text, with n queries and m keys; causal: no query sees a later key. */
function attended(q, k, v, n, m, isCausal) {
  const d = q.width, root = Math.sqrt(d), data = new Float64Array(q.data.length), maps = [];
  const of = (all, i, rows) => all.subarray(i * rows * d, (i + 1) * rows * d);
  for (let i = 0; i * n * d < data.length; i++) {
    const scores = scoresOf(of(q.data, i, n), of(k.data, i, m), d, root);
    if (isCausal) for (let p = 0; p < scores.length; p++) if (p % m > Math.floor(p / m)) scores[p] = -Infinity;
    maps.push(softmax(scores, m));
    data.set(product(maps[i], of(v.data, i, m), m), i * n * d);
  }
  return made(data, d, (slopes) => maps.forEach((P, i) => {
    const own = of(slopes, i, n), dS = throughSoftmax(P, scoresOf(own, of(v.data, i, m), d, 1), m, root);
    addTo(of(q.slope, i, n), product(dS, of(k.data, i, m), m));
    addTo(of(k.slope, i, m), product(transposed(dS, m), of(q.data, i, n), n));
    addTo(of(v.slope, i, m), product(transposed(P, m), own, n));
  }));
}

/** Mean loss of the right answers, in nats, which starts the way back. */
function crossEntropy({ data, width, slope }, right) {
  const shares = softmax(data, width), loss = right.reduce((sum, answer, i) => sum - Math.log(shares[i * width + answer]), 0) / right.length;
  tape.push(() => {
    addTo(slope, shares.map((share) => share / right.length));
    right.forEach((answer, i) => { slope[i * width + answer] -= 1 / right.length; });
  });
  return loss;
}
