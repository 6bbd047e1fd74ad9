// The pretrained model's tokens of any text, as tokens.py has them from the library tokenizers: BERT's uncased WordPiece.

// The library knows the categories of Unicode 8, the browser newer ones. What has become a mark, a sign of punctuation or
// a format character since then lies in these ranges; each of them reaches from one that Unicode 8 knew to the next.
const NEWER = new RegExp(`[${`
  61d 7fa-815 85f-8e2 9e4-a00 a76-a80 af1-b00 b4e-b55 c01-c3d c64-c80 c82-cbb ce4-d00 d02-d40 d64-dc9 eba ece-f03
  180f-18a8 1abe-1aff 1b43-1b59 1b74-1b7f 1df6-1dfb 2e43-3000 a827-a873 a8c5-a8cd a8fd-a925 a9bd-a9c0 10b9d-11000
  1104e-1107e 110c2-110ff 111ce-111da 1123e-112a8 11302-1133b 11375-114b2 11644-116aa 116b8-1171c 1173f-1246f
  12475-16a6d 16b45-16f8e 16f93-1bc9c 1bca4-1d166 1dab0-1e8cf 1e8d7-e0000
`.replace(/\w+/g, "\\u{$&}").replace(/\s/g, "")}]`, "u");
// Four characters have changed theirs: U+1734 and U+1171E were nonspacing marks, U+166D and U+111C9 were punctuation.
const MARK = /(?!\u{111c9})[\p{Mn}\u1734\u{1171e}]/u, PUNCTUATION = /[\p{P}$+<=>^`|~\u166d\u{111c9}]/u;
const HIDDEN = /[\p{Cc}\p{Cf}\p{Co}\p{Cs}\ufffd]/u, SPACE = /[\t\n\r\p{Z}]/u;
// Blocks as the library has them: of extension E the first 256 are missing, later extensions are not there.
const IDEOGRAPH = /[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u{20000}-\u{2a6df}\u{2a700}-\u{2b81f}\u{2b920}-\u{2ceaf}\u{2f800}-\u{2fa1f}]/u;

const isOld = (category, character) => category.test(character) && !NEWER.test(character);
const apartFromOthers = (isApart, text) => (isApart ? ` ${text} ` : text);

/**
 * What becomes of a character: nothing, or itself in lower case and without accents; what is a word by itself stands
 * between spaces. No character looks at its neighbours: Σ is σ at the end of a word too. (In canonical order, marks that
 * stay would change places with one another; no piece of the vocabulary has such a mark.)
 */
function folded(character) {
  if (SPACE.test(character)) return " ";
  if (isOld(HIDDEN, character)) return "";
  const parts = [...character.normalize("NFD")].filter((part) => !isOld(MARK, part));
  const words = parts.map((part) => apartFromOthers(isOld(PUNCTUATION, part), part.toLowerCase()));
  return apartFromOthers(IDEOGRAPH.test(character), words.join(""));
}

const FOLDED = new Map(); // what became of the characters so far

/** The words of a text, ready to be cut, and where in the text each begins and ends. */
function wordsOf(text) {
  const words = [];
  let word = null, at = 0;
  for (const character of text) {
    if (!FOLDED.has(character)) FOLDED.set(character, folded(character));
    for (const part of FOLDED.get(character)) {
      if (!word && part !== " ") words.push(word = { ready: "", start: at, end: at });
      if (part === " ") word = null;
      else Object.assign(word, { ready: word.ready + part, end: at + character.length });
    }
    at += character.length;
  }
  return words;
}

/** The pieces in the order of their ids, from the text of vocab.txt, or from "\n".join(vocabulary()). */
const vocabularyOf = (lines) => lines.replace(/\n$/, "").split("\n");

/**
 * The tokens of any text, from [CLS] to [SEP]. Those beyond maxTokens, at least 2, are left out; Infinity keeps all. Half
 * of a surrogate pair is no character, and "[SEP]" in the text itself is a word like any other.
 *
 * @param {string[]} vocabulary the pieces in the order of their ids
 */
function wordPiece(vocabulary) {
  const firsts = new Map(), rests = new Map(); // what begins a word, and what continues it, without its ##
  vocabulary.forEach((piece, i) => (piece.startsWith("##") ? rests.set(piece.slice(2), i) : firsts.set(piece, i)));
  const longest = vocabulary.reduce((most, piece) => Math.max(most, piece.length), 0);
  const [unknown, first, last] = ["[UNK]", "[CLS]", "[SEP]"].map((piece) => firsts.get(piece));

  /** Ids of a word's pieces, each the longest that fits; [UNK] where none does or the word has over 100 characters. */
  function cut(word) {
    const found = [];
    if (word.length > 200 || [...word].length > 100) return [unknown]; // a character is one or two units long
    for (let start = 0, end = 0; start < word.length; start = end) {
      const pieces = start ? rests : firsts;
      end = Math.min(word.length, start + longest);
      while (end > start && !pieces.has(word.slice(start, end))) end--;
      if (end === start) return [unknown];
      found.push(pieces.get(word.slice(start, end)));
    }
    return found;
  }

  /** Ids, and for each the part of the text whose word it is of. */
  function read(text, maxTokens) {
    const found = [[first]];
    for (const { ready, start, end } of wordsOf(text)) {
      if (found.length >= maxTokens - 1) break;
      found.push(...cut(ready).map((id) => [id, start, end]));
    }
    return [...found.slice(0, maxTokens - 1), [last]];
  }

  const ids = (text, maxTokens = 512) => read(text, maxTokens).map(([id]) => id);

  /** What the ids stand for; in the place of [UNK] the word as the text has it. */
  function tokens(text, maxTokens = 512) {
    const whole = text.replace(/\p{Cs}/gu, "");
    return read(whole, maxTokens).map(([id, start, end]) => (id === unknown ? whole.slice(start, end) : vocabulary[id]));
  }

  return { ids, tokens, unknown };
}
