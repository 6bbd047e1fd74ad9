// Two small models of bytes that learn in a worker, and write. backwards.js stands in front; the twin is in training_explorer.py.

const BLOCK = "encoder.blocks.0", ATTENTION = `${BLOCK}.attention`;

/**
 * A MaskedLanguageModel with one block of one head, which learns by Adam, of weights as PyTorch names them: name ->
 * { data, shape }. With E and F it is a Linformer, and without them a causal Transformer. Texts are arrays of tokens.
 */
function languageModel(given, rate) {
  const weights = {}, moves = [];
  for (const [name, { data, shape }] of Object.entries(given)) {
    weights[name] = valueOf(Float64Array.from(data), shape.at(-1));
    moves.push([weights[name], adam(weights[name].data, rate)]);
  }
  const tokens = weights["encoder.tokens.weight"], isLinformer = `${ATTENTION}.E.weight` in weights;
  const layer = (x, name) => affine(x, weights[`${name}.weight`], weights[`${name}.bias`]);
  const norm = (x, name) => normed(x, weights[`${name}.weight`], weights[`${name}.bias`]);

  /** Texts of n tokens each to vectors (texts · n, d). */
  function encoded(texts, n) {
    const ids = texts.flat(), places = ids.map((_, i) => i % n);
    let x = plus(rowsOf(tokens, ids, Math.sqrt(tokens.width)), rowsOf(weights["encoder.positions.weight"], places));
    const seen = norm(x, `${BLOCK}.attention_norm`), slots = (name) => (isLinformer ? squeezed(weights[`${ATTENTION}.${name}.weight`], seen, n) : seen);
    const [q, k, v] = [[seen, "query"], [slots("E"), "key"], [slots("F"), "value"]].map(([rows, name]) => layer(rows, `${ATTENTION}.${name}`));
    x = plus(x, layer(attended(q, k, v, n, k.data.length / k.width / texts.length, !isLinformer), `${ATTENTION}.output`));
    x = plus(x, layer(gelu(layer(norm(x, `${BLOCK}.feed_forward_norm`), `${BLOCK}.feed_forward.0`)), `${BLOCK}.feed_forward.2`));
    return norm(x, "encoder.norm");
  }
  const scores = (x) => affine(norm(gelu(layer(x, "transform.0")), "transform.2"), tokens, weights["vocabulary.bias"]);
  const lastScores = (texts, n) => scores(rowsOf(encoded(texts, n), texts.map((_, i) => (i + 1) * n - 1)));

  return {
    /** Mean loss of each next token, with the whole text in sight. */
    there: (texts) => crossEntropy(scores(encoded(texts.map((text) => text.slice(0, -1)), texts[0].length - 1)), texts.flatMap((text) => text.slice(1))),
    /** Mean loss of the token that follows so many that are given. */
    yet: (texts, given) => crossEntropy(lastScores(texts.map((text) => text.slice(0, given)), given), texts.map((text) => text[given])),
    /** An update; the loss before it. */
    learn(texts) {
      const before = this.there(texts);
      goBack();
      for (const [{ slope }, move] of moves) {
        move(slope);
        slope.fill(0);
      }
      return before;
    },
    /** The likeliest next token. */
    next(text) {
      const { data } = lastScores([text], text.length);
      return data.indexOf(Math.max(...data));
    },
  };
}

let models, plan, updates = 0;
const LESSONS = {
  begin(given) {
    plan = given;
    models = plan.weights.map((weights) => languageModel(weights, plan.rate));
  },
  /** So many updates, each with its losses; then those of unseen texts, of each model: all there, or only their beginning. */
  learn(count) {
    const { ids, n, batch, stride, unseen, given } = plan, losses = [];
    for (const end = updates + count; updates < end; updates++) {
      const starts = Array.from({ length: batch }, (_, i) => ((updates * batch + i) * stride) % (ids.length - n));
      const texts = starts.map((start) => Array.from(ids.subarray(start, start + n + 1)));
      losses.push(models.map((model) => model.learn(texts)));
    }
    const there = models.map((model) => model.there(unseen));
    const yet = models.map((model) => given.reduce((sum, length) => sum + model.yet(unseen, length), 0) / given.length);
    tape.length = 0; // nothing is learned of them
    return { updates, losses, there, yet };
  },
  /** What each model adds to a text, of whose last tokens it sees so many. */
  write({ text, count, sees }) {
    return models.map((model) => {
      const all = [...text];
      for (let i = 0; i < count; i++) all.push(model.next(all.slice(-sees)));
      tape.length = 0;
      return all.slice(text.length);
    });
  },
};

onmessage = ({ data: { lesson, given } }) => {
  const result = LESSONS[lesson](given);
  if (result) postMessage({ lesson, result });
};
