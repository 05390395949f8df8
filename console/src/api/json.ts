// Numbers are shown and sent as they are written: what does not fit into a number of
// JavaScript is kept as its text.

export class Exact {
  constructor(readonly text: string) {}
  toString() {
    return this.text;
  }
}

type Reviver = (key: string, value: unknown, context?: { source?: string }) => unknown;

export function parse(text: string): unknown {
  const reviver: Reviver = (_, value, context) => {
    if (typeof value === "number" && context?.source !== undefined && String(value) !== context.source) return new Exact(context.source);
    return value;
  };
  return JSON.parse(text, reviver as (key: string, value: unknown) => unknown);
}

// print writes a value over several lines.
export function print(v: unknown, indent = ""): string {
  if (v instanceof Exact) return v.text;
  if (v === undefined) return "null";
  if (v === null || typeof v !== "object") return JSON.stringify(v);
  const more = indent + "  ";
  if (Array.isArray(v)) {
    if (v.length === 0) return "[]";
    return "[\n" + v.map((x) => more + print(x, more)).join(",\n") + "\n" + indent + "]";
  }
  const entries = Object.entries(v);
  if (entries.length === 0) return "{}";
  return "{\n" + entries.map(([k, x]) => more + JSON.stringify(k) + ": " + print(x, more)).join(",\n") + "\n" + indent + "}";
}

// numberOf is for what is counted or drawn.
export function numberOf(v: unknown): number {
  return v instanceof Exact ? Number(v.text) : Number(v);
}
