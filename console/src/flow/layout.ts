import type { FlowStep } from "../api/types";
import type { Edit, File } from "./edits";
import { list, oneOrList, type Fields } from "./lists";
import { height, width, type Point, type Shape } from "./shape";

// The layout of a file: what was moved by hand, notes and groups. It changes nothing that runs.

export interface Layout {
  steps?: Record<string, { x?: number; y?: number }>;
  notes?: Record<string, { x?: number; y?: number; text?: string; width?: number; height?: number }>;
  groups?: Record<string, { title?: string; steps?: string | string[]; collapsed?: boolean }>;
}

export interface Box extends Point {
  width: number;
  height: number;
}

// placed puts what was moved by hand where it is; the ways to it are straight.
export function placed(s: Shape, layout: Layout = {}, dragged: Map<string, Point> = new Map()): Shape {
  const moved = new Map(dragged);
  for (const [id, p] of Object.entries(layout.steps ?? {})) if (!moved.has(id)) moved.set(id, { x: p.x ?? 0, y: p.y ?? 0 });
  if (![...moved.keys()].some((id) => s.places.has(id))) return s;
  const places = new Map([...s.places].map(([id, p]) => [id, moved.get(id) ?? p]));
  const ways = new Map([...s.ways].map(([id, way]) => (id.split(">").some((end) => moved.has(end)) ? [id, []] : [id, way])));
  return { ...s, places, ways };
}

const around = 22;

export interface Drawn extends Box {
  id: string;
  title: string;
  steps: string[];
  collapsed: boolean;
}

// groupsOf are the groups with their boxes. A step is drawn in one.
export function groupsOf(layout: Layout = {}, places: Map<string, Point>): Drawn[] {
  const taken = new Set<string>();
  return Object.entries(layout.groups ?? {}).flatMap(([id, g]) => {
    const steps = list(g.steps).filter((s) => places.has(s) && !taken.has(s));
    if (steps.length === 0) return [];
    for (const s of steps) taken.add(s);
    const at = steps.map((s) => places.get(s)!);
    const x = Math.min(...at.map((p) => p.x)) - around;
    const y = Math.min(...at.map((p) => p.y)) - around - 20;
    const own = { id, title: g.title ?? id, steps, collapsed: !!g.collapsed };
    if (g.collapsed) return [{ ...own, x: x + around, y: y + around + 20, width, height }];
    return [{ ...own, x, y, width: Math.max(...at.map((p) => p.x)) + width + around - x, height: Math.max(...at.map((p) => p.y)) + height + around - y }];
  });
}

const layoutOf = (file: File) => (file.layout ?? {}) as Layout;

export function move(points: Map<string, Point>): (file: File) => Edit[] {
  return (file) => [...points].map(([id, p]) => ({ path: `layout.${layoutOf(file).notes?.[id] && !file.steps?.[id] ? "notes" : "steps"}.${id}`, value: { ...(file.steps?.[id] ? {} : layoutOf(file).notes?.[id]), x: Math.round(p.x), y: Math.round(p.y) } }));
}

function free(taken: object, base: string): string {
  let n = 1;
  while (base + n in taken) n++;
  return base + n;
}

// arrange forgets what was moved by hand.
export const arrange = (file: File): Edit[] => (layoutOf(file).steps ? drop(file, "steps") : []);

// drop takes a part of the layout out, and with its last the layout.
function drop(file: File, part: keyof Layout, id?: string): Edit[] {
  const layout = layoutOf(file);
  const last = id === undefined || Object.keys(layout[part] ?? {}).length === 1;
  if (last && Object.keys(layout).length === 1) return [{ path: "layout" }];
  return [{ path: last ? `layout.${part}` : `layout.${part}.${id}` }];
}

export const addNote = (text: string, at: Point) => (file: File): Edit[] => [{ path: "layout.notes." + free({ ...layoutOf(file).notes, ...file.steps }, "note"), value: { x: Math.round(at.x), y: Math.round(at.y), text } }];
export const writeNote = (id: string, text: string) => (file: File): Edit[] => (!layoutOf(file).notes?.[id] ? [] : text.trim() === "" ? drop(file, "notes", id) : [{ path: `layout.notes.${id}.text`, value: text }]);

export const group = (steps: string[], title: string) => (file: File): Edit[] => (steps.length === 0 ? [] : [{ path: "layout.groups." + free({ ...layoutOf(file).groups, ...file.steps }, "group"), value: { title, steps } }]);
export const changeGroup = (id: string, more: { title?: string; collapsed?: boolean }) => (file: File): Edit[] => (layoutOf(file).groups?.[id] ? [{ path: "layout.groups." + id, value: { ...layoutOf(file).groups![id], ...more } }] : []);
export const ungroup = (id: string) => (file: File): Edit[] => (layoutOf(file).groups?.[id] ? drop(file, "groups", id) : []);

// forgetStep takes a step that goes out of the layout.
export function forgetStep(file: File, id: string): Edit[] {
  const layout = layoutOf(file);
  const edits: Edit[] = layout.steps?.[id] ? [{ path: "layout.steps." + id }] : [];
  for (const [g, v] of Object.entries(layout.groups ?? {})) {
    const left = list(v.steps).filter((s) => s !== id);
    if (left.length < list(v.steps).length) edits.push({ path: "layout.groups." + g, value: { ...v, steps: left } });
  }
  return edits;
}

// copied is a text of some steps, for the clipboard: a part of a file.
export function copied(file: File, ids: string[]): { steps: Record<string, Fields> } {
  return { steps: Object.fromEntries(ids.filter((id) => file.steps?.[id]).map((id) => [id, file.steps![id]])) };
}

// paste puts steps into a file under ids that are free there. What they name of each other
// follows; a line to a step that is not there goes.
export function paste(file: File, steps: Record<string, Fields>): { ids: string[]; edits: Edit[] } {
  const taken: Record<string, unknown> = { ...file.steps };
  const to = new Map<string, string>();
  for (const id of Object.keys(steps)) {
    let next = id;
    for (let n = 2; next in taken; n++) next = id.replace(/_\d+$/, "").slice(0, 28) + "_" + n;
    taken[next] = true;
    to.set(id, next);
  }
  const known = (id: string) => to.get(id) ?? (file.steps?.[id] ? id : undefined);
  const names = (v: unknown) => oneOrList(list(v).flatMap((id) => known(id) ?? []));
  const inText = (s: string) => s.replace(/(^|[^\w.])steps\s*\.\s*(\w+)/g, (all, before: string, id: string) => (to.has(id) ? `${before}steps.${to.get(id)}` : all));
  const inside = (v: unknown): unknown => {
    if (typeof v === "string") return inText(v);
    if (Array.isArray(v)) return v.map(inside);
    if (v && Object.getPrototypeOf(v) === Object.prototype) return Object.fromEntries(Object.entries(v).map(([k, one]) => [k, inside(one)]));
    return v; // a number as it is written
  };
  const follow = (key: string, v: unknown): unknown => {
    if (key === "needs") return names(v);
    if (key === "parallel") return names(v) ?? [];
    if (key === "branch" && Array.isArray(v)) return v.map((c: Fields) => ({ ...(inside(c) as Fields), to: names(c.to) ?? [] }));
    const goto = (v as Fields | undefined)?.goto;
    if ((key === "on_failure" || key === "on_timeout") && typeof goto === "string") return { ...(v as Fields), goto: known(goto) ?? goto };
    return inside(v);
  };
  const step = (own: Fields) => Object.fromEntries(Object.entries(own).map(([k, v]) => [k, follow(k, v)]).filter(([, v]) => v !== undefined));
  return { ids: [...to.values()], edits: [...to].map(([id, next]) => ({ path: "steps." + next, value: step(steps[id]) })) };
}

// found are steps in which a text stands: in the id, the title, what they do, or their fields.
export function found(steps: FlowStep[], file: File, text: string): FlowStep[] {
  const wanted = text.trim().toLowerCase();
  if (wanted === "") return [];
  const rank = (s: FlowStep) => (s.id.toLowerCase().startsWith(wanted) ? 0 : (s.id + " " + (s.title ?? "") + " " + s.does).toLowerCase().includes(wanted) ? 1 : JSON.stringify(file.steps?.[s.id] ?? "").toLowerCase().includes(wanted) ? 2 : 3);
  return steps.map((s) => ({ s, at: rank(s) })).filter((f) => f.at < 3).sort((a, b) => a.at - b.at).map((f) => f.s);
}
