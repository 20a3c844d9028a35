// Which lines two texts have in common, by their longest common subsequence.

/** The lines of both: each `[sign, line]` with the sign " ", "-" or "+". */
export function difference(before, after) {
  const [one, other] = [before.split("\n"), after.split("\n")];
  const lengths = Array.from({ length: one.length + 1 }, () => new Uint32Array(other.length + 1));
  for (let i = one.length - 1; i >= 0; i -= 1) {
    for (let j = other.length - 1; j >= 0; j -= 1) {
      lengths[i][j] = one[i] === other[j] ? lengths[i + 1][j + 1] + 1 : Math.max(lengths[i + 1][j], lengths[i][j + 1]);
    }
  }
  const lines = [];
  let [i, j] = [0, 0];
  while (i < one.length || j < other.length) {
    if (i < one.length && j < other.length && one[i] === other[j]) {
      lines.push([" ", one[i]]);
      i += 1;
      j += 1;
    } else if (j < other.length && (i === one.length || lengths[i][j + 1] > lengths[i + 1][j])) {
      lines.push(["+", other[j]]);
      j += 1;
    } else {
      lines.push(["-", one[i]]);
      i += 1;
    }
  }
  return lines;
}
