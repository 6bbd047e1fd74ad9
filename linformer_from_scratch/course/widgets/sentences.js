// A text's sentences as the front page has them (front_page.py): their vectors, and the text as one head attends to it.

// SENTENCE of front_page.py, with Python's \s and \S.
const SENTENCE = /[^\p{White_Space}\x1c-\x1f](?:[^\n]*?[^\p{White_Space}\x1c-\x1f])??(?:(?<=[.!?؟।])(?=[\p{White_Space}\x1c-\x1f])|(?<=[。！？])[。！？」』”’）]*|(?=[\p{White_Space}\x1c-\x1f]*(?![^\n])))/gu;
const HEAD = 3, LEVELS = 14; // a head of the first layer, from 0; how many its map shows

/**
 * A text's sentences that have tokens among the first n - 1, and where these begin and end.
 *
 * @param {string} text
 * @param {(text: string) => number[]} idsOf
 * @param {number} n tokens that are read, from [CLS] to [SEP]
 */
function sentencesOf(text, idsOf, n) {
  const sentences = [], spans = [];
  let start = 1; // behind [CLS]
  for (const line of text.match(SENTENCE) ?? []) {
    const end = Math.min(start + idsOf(line).length - 2, n - 1);
    if (end > start) {
      sentences.push(line);
      spans.push([start, end]);
    }
    start = end;
  }
  return { sentences, spans };
}

/** A unit vector for each span of tokens: hidden (n, d) -> (spans, d). */
function vectorsOf(hidden, spans, d) {
  return joined(...spans.map(([start, end]) => {
    const sum = new Float64Array(d);
    for (let i = start * d; i < end * d; i++) sum[i % d] += hidden[i];
    const length = norm(sum);
    return sum.map((x) => x / length);
  }));
}

/** Weights as whole numbers below LEVELS, the largest of which is for the highest percent of weights. */
function shaded(weights) {
  const limit = quantile(weights, 0.99);
  return Uint8Array.from(weights, (weight) => Math.round(Math.min(weight / limit, 1) * (LEVELS - 1)));
}

/** What HEAD makes of a text: q (layers, heads, n, d), k (layers, heads, n or slots, d) -> shades (n, n or slots). */
function mapOf(q, k) {
  const [, , n, d] = q.dims, m = k.dims[2];
  const queries = q.data.subarray(HEAD * n * d, (HEAD + 1) * n * d), keys = k.data.subarray(HEAD * m * d, (HEAD + 1) * m * d);
  return shaded(softmax(scoresOf(queries, keys, d, Math.sqrt(d)), m));
}
