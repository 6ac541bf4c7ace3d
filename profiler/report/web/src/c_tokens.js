// c_tokens.js: the words of a C line, for tinting. It knows no more of C than where comments, texts,
// numbers and words begin and end.

const KEYWORDS = new Set(("auto break case char const continue default do double else enum extern float for goto if inline int long " +
  "register restrict return short signed sizeof static struct switch typedef union unsigned void volatile while bool true false " +
  "class namespace template using new delete public private int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t size_t NULL").split(" "));
const PIECE = /(\/\/.*)|(\/\*.*?(?:\*\/|$))|("(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.)*'?)|(\b\d[\w.]*(?:[eEpP][+-]\w+)?)|([A-Za-z_]\w*)/g;

// Pieces [kind, text] of a line; `inside`: it begins in a comment. Returns {pieces, inside}.
export function tokens(line, inside) {
  const pieces = [];
  let at = 0;
  if (inside) {
    const end = line.indexOf("*/");
    at = end < 0 ? line.length : end + 2;
    pieces.push(["comment", line.slice(0, at)]);
    if (end < 0) return { pieces, inside: true };
  }
  const directive = /^\s*#\s*\w+/.exec(line.slice(at));
  if (directive) {
    pieces.push(["pre", directive[0]]);
    at += directive[0].length;
  }
  PIECE.lastIndex = at;
  let open = false;
  for (let m; (m = PIECE.exec(line));) {
    if (m.index > at) pieces.push(["", line.slice(at, m.index)]);
    at = PIECE.lastIndex;
    const kind = m[1] || m[2] ? "comment" : m[3] ? "text" : m[4] ? "number"
      : KEYWORDS.has(m[5]) ? "word" : m[5].startsWith("ad_") || m[5].startsWith("AD_") ? "ad" : "";
    pieces.push([kind, m[0]]);
    open = Boolean(m[2]) && !m[2].endsWith("*/") ;
  }
  if (at < line.length) pieces.push(["", line.slice(at)]);
  return { pieces, inside: open };
}
