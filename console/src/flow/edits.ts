import { forgetStep } from "./layout";
import { list, oneOrList, type Fields } from "./lists";

// What a gesture on the drawing changes in the file. A line from a branch is one of its
// cases, one from a parallel is in its list, any other is a need of where it leads.

export interface File {
  [field: string]: unknown;
  steps?: Record<string, Fields>;
}

// Edit is one change of a file.
export interface Edit {
  path: string;
  value?: unknown; // absent: the field is taken out
  rename?: string; // of a step: its new id, also where others name it
}

interface Case {
  when?: unknown;
  to?: unknown;
}

const needsOf = (file: File, id: string) => list(file.steps?.[id]?.needs);
const casesOf = (file: File, id: string) => (Array.isArray(file.steps?.[id]?.branch) ? (file.steps[id].branch as Case[]) : undefined);
const link = (id: string, needs: string[]): Edit => ({ path: `steps.${id}.needs`, value: oneOrList(needs) });

// withCase puts a case before the else, or gives a case that leads nowhere its step.
export function withCase(cases: Case[], to: string): Case[] {
  const empty = cases.findIndex((c) => list(c.to).length === 0);
  if (empty >= 0) return cases.map((c, i) => (i === empty ? { ...c, to } : c));
  const last = cases.at(-1);
  const added = { when: "true", to };
  return last && last.when === undefined ? [...cases.slice(0, -1), added, last] : [...cases, added];
}

export function connect(file: File, from: string, to: string): Edit[] {
  const cases = casesOf(file, from);
  if (cases) return cases.some((c) => list(c.to).includes(to)) ? [] : [{ path: `steps.${from}.branch`, value: withCase(cases, to) }];
  if (file.steps?.[from] && "parallel" in file.steps[from]) {
    const all = list(file.steps[from].parallel);
    return all.includes(to) ? [] : [{ path: `steps.${from}.parallel`, value: [...all, to] }];
  }
  const needs = needsOf(file, to);
  return needs.includes(from) ? [] : [link(to, [...needs, from])];
}

export function unlink(file: File, from: string, to: string): Edit[] {
  const edits: Edit[] = [];
  const needs = needsOf(file, to);
  if (needs.includes(from)) edits.push(link(to, needs.filter((n) => n !== from)));
  return [...edits, ...forget(file, from, to)];
}

// forget takes a step out of what another leads to.
function forget(file: File, from: string, to: string): Edit[] {
  const edits: Edit[] = [];
  const cases = casesOf(file, from);
  if (cases?.some((c) => list(c.to).includes(to))) {
    const left = cases.map((c) => (list(c.to).includes(to) ? { ...c, to: oneOrList(list(c.to).filter((s) => s !== to)) ?? [] } : c));
    const kept = left.filter((c) => list(c.to).length > 0);
    edits.push({ path: `steps.${from}.branch`, value: kept.length > 0 ? kept : left.slice(0, 1) });
  }
  const side = list(file.steps?.[from]?.parallel);
  if (side.includes(to)) edits.push({ path: `steps.${from}.parallel`, value: side.filter((s) => s !== to) });
  return edits;
}

// remove takes a step out, and all that names it.
export function remove(file: File, id: string): Edit[] {
  const edits: Edit[] = [];
  for (const [other, own] of Object.entries(file.steps ?? {})) {
    if (other === id) continue;
    edits.push(...unlink(file, id, other), ...forget(file, other, id));
    for (const on of ["on_failure", "on_timeout"]) if ((own[on] as Fields | undefined)?.goto === id) edits.push({ path: `steps.${other}.${on}` });
  }
  // What stands in the step itself goes with it.
  return [...edits.filter((e) => !e.path.startsWith(`steps.${id}.`)), ...forgetStep(file, id), { path: "steps." + id }];
}

export function add(file: File, fields: Fields, base: string, after?: string): { id: string; edits: Edit[] } {
  let id = base.replace(/[^a-zA-Z0-9_]+/g, "_").replace(/^(\d)/, "_$1").toLowerCase().slice(0, 28);
  for (let n = 2; file.steps && id in file.steps; n++) id = id.replace(/_\d+$/, "") + "_" + n;
  const follows = after && file.steps?.[after];
  const leads = follows && ("branch" in follows || "parallel" in follows);
  const edits: Edit[] = [{ path: "steps." + id, value: { ...fields, ...(follows && !leads ? { needs: after } : {}) } }];
  return { id, edits: leads ? [...edits, ...connect(file, after, id)] : edits };
}
