export interface DiffLine {
  sign: " " | "+" | "-";
  text: string;
}

// diff compares two texts by lines, by their longest common part. Texts of very many
// lines are only told apart where they begin and end to differ.
export function diff(before: string, after: string): DiffLine[] {
  const a = before.split("\n");
  const b = after.split("\n");
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  const x = a.slice(head, a.length - tail);
  const y = b.slice(head, b.length - tail);
  const line = (sign: DiffLine["sign"]) => (text: string): DiffLine => ({ sign, text });
  const middle = x.length * y.length > 250_000 ? [...x.map(line("-")), ...y.map(line("+"))] : common(x, y);
  return [...a.slice(0, head).map(line(" ")), ...middle, ...a.slice(a.length - tail).map(line(" "))];
}

function common(x: string[], y: string[]): DiffLine[] {
  const width = y.length + 1;
  const best = new Uint32Array((x.length + 1) * width);
  for (let i = x.length - 1; i >= 0; i--) {
    for (let j = y.length - 1; j >= 0; j--) {
      best[i * width + j] = x[i] === y[j] ? best[(i + 1) * width + j + 1] + 1 : Math.max(best[(i + 1) * width + j], best[i * width + j + 1]);
    }
  }
  const out: DiffLine[] = [];
  let i = 0;
  let j = 0;
  while (i < x.length || j < y.length) {
    if (i < x.length && j < y.length && x[i] === y[j]) out.push({ sign: " ", text: x[i] }), i++, j++;
    else if (j === y.length || (i < x.length && best[(i + 1) * width + j] >= best[i * width + j + 1])) out.push({ sign: "-", text: x[i++] });
    else out.push({ sign: "+", text: y[j++] });
  }
  return out;
}
