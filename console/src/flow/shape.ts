import { graphlib, layout } from "@dagrejs/dagre";
import type { FlowStep, RunStep } from "../api/types";

// The drawing of a flow: its steps, what leads from one to the other, and where each
// stands. The same steps are always drawn the same.

export interface Link {
  from: string;
  to: string;
  kind: "needs" | "case" | "parallel" | "goto";
  label?: string;
}

export const width = 210;
export const height = 66;

// links are all ways from step to step, each pair once: what says more is kept.
export function links(steps: FlowStep[]): Link[] {
  const ids = new Set(steps.map((s) => s.id));
  const all = new Map<string, Link>();
  const add = (l: Link) => {
    const key = l.from + "\u0000" + l.to;
    if (ids.has(l.from) && ids.has(l.to) && (!all.has(key) || all.get(key)!.kind === "needs")) all.set(key, l);
  };
  for (const s of steps) {
    for (const from of s.needs ?? []) add({ from, to: s.id, kind: "needs" });
    for (const to of s.parallel ?? []) add({ from: s.id, to, kind: "parallel" });
    for (const c of s.cases ?? []) for (const to of c.to ?? []) add({ from: s.id, to, kind: "case", label: c.when });
    for (const to of s.goto ?? []) add({ from: s.id, to, kind: "goto" });
  }
  return [...all.values()];
}

export interface Point {
  x: number;
  y: number;
}

export interface Shape {
  places: Map<string, Point>;
  ways: Map<string, Point[]>; // by from>to: around what stands between
  width: number;
  height: number;
}

// shape finds places. Of many steps the first good ranks are taken, in half the time that
// the shortest ways of all would take.
export function shape(steps: FlowStep[], down: boolean): Shape {
  const g = new graphlib.Graph();
  g.setGraph({ ranker: steps.length > 100 ? "tight-tree" : "network-simplex", rankdir: down ? "TB" : "LR", nodesep: 26, ranksep: down ? 48 : 70, edgesep: 18 });
  g.setDefaultEdgeLabel(() => ({}));
  for (const s of steps) g.setNode(s.id, { width, height });
  for (const l of links(steps)) g.setEdge(l.from, l.to, { width: l.label && !down ? Math.min(160, l.label.length * 6) : 0, height: l.label ? 16 : 0, labelpos: "c" });
  layout(g);
  const at = (id: string) => g.node(id) as Point;
  const whole = g.graph() as { width?: number; height?: number };
  return {
    places: new Map(steps.map((s) => [s.id, { x: at(s.id).x - width / 2, y: at(s.id).y - height / 2 }])),
    ways: new Map(links(steps).map((l) => [l.from + ">" + l.to, (g.edge(l.from, l.to) as { points: Point[] }).points])),
    width: whole.width ?? 0, height: whole.height ?? 0,
  };
}

// line draws a way as one soft curve, from handle to handle.
export function line(from: Point, to: Point, way: Point[]): string {
  const all = [from, ...way.slice(1, -1), to];
  if (all.length === 2) return `M${from.x},${from.y}L${to.x},${to.y}`;
  let path = `M${from.x},${from.y}`;
  for (let i = 1; i < all.length - 1; i++) {
    const end = i === all.length - 2 ? to : { x: (all[i].x + all[i + 1].x) / 2, y: (all[i].y + all[i + 1].y) / 2 };
    path += `Q${all[i].x},${all[i].y} ${end.x},${end.y}`;
  }
  return path;
}

// look is how a step of a run is shown: its own state, or that of its job while it is
// under way.
export function look(s: RunStep): string {
  if (s.state === "sent") return s.job?.state === "dead" ? "dead" : (s.job?.state ?? "waiting");
  return s.state === "blocked" ? "blocked" : s.state;
}
