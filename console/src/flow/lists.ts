// Fields are those of a step in its file.
export type Fields = Record<string, unknown>;

// list reads what may be one step or several; one is written as itself.
export function list(v: unknown): string[] {
  return Array.isArray(v) ? v.map(String) : typeof v === "string" && v !== "" ? [v] : [];
}

export function oneOrList(ids: string[]): string | string[] | undefined {
  return ids.length === 0 ? undefined : ids.length === 1 ? ids[0] : ids;
}
