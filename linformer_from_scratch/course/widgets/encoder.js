// The pretrained model in a worker: it reads texts. `ort` (onnxruntime-web), maths.js and wordpiece.js stand in front.

const pieces = {}; // file -> what has come of it, compressed
const graphs = {}, sessions = {}; // "exact" and "slots"
const WARM = { runs: 4, tokens: 128 }; // after which the browser has compiled all to its fastest: seconds are those of later runs
let cutter, weights, last = Promise.resolve();

/** A file, whole. */
async function file(name) {
  const unpacked = new Blob(pieces[name]).stream().pipeThrough(new DecompressionStream("gzip"));
  delete pieces[name];
  return new Uint8Array(await new Response(unpacked).arrayBuffer());
}

/** Make the model of the files; all of them have come. */
async function load() {
  const names = ["ort.wasm", "vocab.txt", "exact.onnx", "slots.onnx", "weights.bin"];
  const [wasmBinary, vocab, exact, slots, data] = await Promise.all(names.map(file));
  Object.assign(ort.env.wasm, { wasmBinary, numThreads: 1 });
  Object.assign(graphs, { exact, slots });
  weights = data;
  cutter = wordPiece(vocabularyOf(new TextDecoder().decode(vocab)));
  const exactly = await session("exact"), ids = tensorOf(Array(WARM.tokens).fill(cutter.ids("")[0]));
  for (let i = 0; i < WARM.runs; i++) await exactly.run({ ids }, ["vector"]);
}

/** Ids as the graphs take them. */
const tensorOf = (ids) => new ort.Tensor("int64", BigInt64Array.from(ids, BigInt), [1, ids.length]);

/** What runs a graph, made when it is first needed. */
const session = (name) =>
  (sessions[name] ??= ort.InferenceSession.create(graphs[name], { externalData: [{ path: "weights.bin", data: weights }] }));

/** What one asks for -> outputs of the graph, and what becomes of them and of the text. */
const ASKED = {
  heads: [["q", "k", "v"], ({ q, k, v }) => ({ packed: packed(joined(q.data, k.data, v.data), [3, ...q.dims]) })],
  maps: [["q", "k"], ({ q: { data, dims: [layers, heads, n, d] }, k }) =>
    ({ packed: packed(joined(...mapsOf(data, k.data, n, d)), [layers, heads, n, n]) })],
  vector: [["vector"], ({ vector }) => ({ packed: packed(vector.data, vector.dims) })],
  sentences: [["hidden", "q", "k"], ({ hidden, q, k }, text) => {
    const [, n, d] = hidden.dims, found = sentencesOf(text, (line) => cutter.ids(line, Infinity), n);
    return { ...found, packed: packed(vectorsOf(hidden.data, found.spans, d), [found.spans.length, d]), map: mapOf(q, k), shades: LEVELS };
  }],
};

/**
 * What the model makes of the first tokens of a text: exactly, or with so many slots through `windows`.
 *
 * sends: "heads", queries, keys and values (3, layers, heads, n, d); "maps" (layers, heads, n, n); "vector" (1, d); or
 * "sentences", which have vectors (sentences, d), spans, and a map.
 *
 * @returns {Promise<{count: number, tokens: string[], unknown: string[], seconds: number, packed: any}>} count: tokens of the
 *   whole text; unknown: those that the vocabulary cannot make, each once; seconds: of this one run
 */
async function read({ text, most, sends, slots }) {
  const count = cutter.ids(text, Infinity).length, ids = cutter.ids(text, most), n = ids.length, k = Math.min(slots, n);
  const [outputs, made] = ASKED[sends], inputs = { ids: tensorOf(ids) };
  if (slots) inputs.E = new ort.Tensor("float32", windows(n, k), [k, n]);
  const runs = await session(slots ? "slots" : "exact"), start = performance.now();
  const found = await runs.run(inputs, outputs), seconds = (performance.now() - start) / 1000;
  const tokens = cutter.tokens(text, most), unknown = [...new Set(tokens.filter((_, i) => ids[i] === cutter.unknown))];
  return { count, tokens, unknown, seconds, ...made(found, text) };
}

/** An array as live.py packs it; the array is given away. */
const packed = (array, shape) => ({ dtype: "float32", shape, bytes: new Uint8Array(array.buffer) });

/** Arrays of one size, one behind the other. */
function joined(...arrays) {
  const all = new Float32Array(arrays.length * (arrays[0]?.length ?? 0));
  arrays.forEach((array, i) => all.set(array, i * array.length));
  return all;
}

/** The bytes of base64. */
function decoded(base64) {
  const text = atob(base64), bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes;
}

/** A piece of a file, or a request: a text to read, or else to begin. Requests are answered in their order. */
onmessage = ({ data }) => {
  if (data.base64) {
    (pieces[data.file] ??= []).push(decoded(data.base64));
    return;
  }
  last = last.then(() => (data.text === undefined ? load() : read(data)))
    .then((result) => postMessage({ result }, { transfer: result ? [result.packed.bytes.buffer] : [] }))
    .catch((reason) => postMessage({ trouble: reason.message }));
};
