import { Background, BaseEdge, Controls, MarkerType, MiniMap, Position, ReactFlow, type Connection, type Edge, type EdgeProps } from "@xyflow/react";
import "@xyflow/react/dist/base.css";
import { useEffect, useMemo, useRef, useState } from "react";
import type { FlowStep, RunStep } from "../api/types";
import { useT } from "../i18n";
import "./graph.css";
import { groupsOf, placed, type Layout } from "./layout";
import { Group, Note, Step, type GroupNode, type Heat, type Mark, type NoteNode, type StepNode } from "./nodes";
import { height, line, links, look, shape, width, type Point } from "./shape";

// many is from how many steps on a drawing begins at a size at which it can be read, and
// is made of what is seen of it only.
const many = 40;
const readable = 0.65;

type Way = Edge<{ way: Point[] }, "way">;

// Way goes around what stands between its ends, as the layout has it.
function Way({ sourceX, sourceY, targetX, targetY, data, markerEnd, label }: EdgeProps<Way>) {
  const way = data!.way;
  const middle = way[Math.floor(way.length / 2)] ?? { x: (sourceX + targetX) / 2, y: (sourceY + targetY) / 2 };
  return <BaseEdge path={line({ x: sourceX, y: sourceY }, { x: targetX, y: targetY }, way)} markerEnd={markerEnd} label={label} labelX={middle.x} labelY={middle.y} interactionWidth={18} />;
}

const kinds = { step: Step, note: Note, frame: Group };
const ways = { way: Way };

export interface Editing {
  connect: (from: string, to: string) => void;
  unlink: (from: string, to: string) => void;
  remove: (id: string) => void;
  drop?: (what: string, onto?: string) => void;
  move?: (points: Map<string, Point>) => Promise<boolean>;
  pick?: (ids: string[]) => void; // several
  write?: (note: string, text: string) => Promise<boolean>;
  group?: (id: string, more: { title?: string; collapsed?: boolean }) => Promise<boolean>;
  ungroup?: (id: string) => void;
}

// Look is what is shown on a drawing besides the steps.
export interface Look {
  layout?: Layout;
  picked?: string[];
  goto?: { id: string }; // is brought into the middle
  marks?: Map<string, Mark>;
  heat?: Map<string, Heat>;
}

// handles are where ways begin and end, so that nothing has to be measured first.
function handles(down: boolean) {
  const size = { width: 9, height: 9 };
  return down
    ? [{ ...size, type: "target" as const, position: Position.Top, x: width / 2 - 4.5, y: -4.5 }, { ...size, type: "source" as const, position: Position.Bottom, x: width / 2 - 4.5, y: height - 4.5 }]
    : [{ ...size, type: "target" as const, position: Position.Left, x: -4.5, y: height / 2 - 4.5 }, { ...size, type: "source" as const, position: Position.Right, x: width - 4.5, y: height / 2 - 4.5 }];
}

function useNarrow(): boolean {
  const [narrow, set] = useState(() => innerWidth < 760);
  useEffect(() => {
    const look = () => set(innerWidth < 760);
    addEventListener("resize", look);
    return () => removeEventListener("resize", look);
  }, []);
  return narrow;
}

// Graph draws a flow. With run, each step shows how it is; with edit, it can be changed.
export function Graph({ steps, run, chosen, choose, edit, wrong, layout, picked, goto, marks, heat }: { steps: FlowStep[]; run?: RunStep[]; chosen?: string; choose?: (id?: string) => void; edit?: Editing; wrong?: Set<string> } & Look) {
  const t = useT();
  const narrow = useNarrow();
  const down = narrow || !!edit || !!layout?.steps;
  const [dragged, drag] = useState<Map<string, Point>>(new Map());
  useEffect(() => drag(new Map()), [layout]);
  const auto = useMemo(() => shape(steps, down), [steps, down]);
  const drawn = useMemo(() => placed(auto, layout, dragged), [auto, layout, dragged]);
  const [folded, fold] = useState<Record<string, boolean>>({}); // by who only looks
  const groups = useMemo(() => groupsOf(edit ? layout : foldedAs(layout, folded), drawn.places), [layout, folded, drawn, edit]);
  const hidden = useMemo(() => new Map(groups.filter((g) => g.collapsed).flatMap((g) => g.steps.map((s) => [s, "group:" + g.id] as const))), [groups]);
  const large = steps.length > many;
  const at = chosen ?? run?.find((s) => ["dead", "failed", "active"].includes(look(s)))?.id;
  const pane = useRef<{ setCenter: (x: number, y: number, o: { zoom: number }) => unknown } | undefined>(undefined);
  const show = () => {
    const p = large && at !== undefined ? drawn.places.get(at) : undefined;
    if (p) pane.current?.setCenter(p.x + width / 2, p.y + height / 2, { zoom: readable });
  };
  useEffect(show, [at, large, down]);
  useEffect(() => {
    const p = goto && drawn.places.get(goto.id);
    if (p) pane.current?.setCenter(p.x + width / 2, p.y + height / 2, { zoom: 1 });
  }, [goto]);
  const byId = useMemo(() => new Map(run?.map((s) => [s.id, s])), [run]);
  const chosenAll = useMemo(() => new Set([...(picked ?? []), ...(chosen === undefined ? [] : [chosen])]), [picked, chosen]);
  const stepNodes = useMemo<StepNode[]>(
    () => steps.filter((s) => !hidden.has(s.id)).map((step) => ({
      id: step.id, type: "step", position: drawn.places.get(step.id)!, selected: chosenAll.has(step.id), width, height, handles: handles(down), draggable: !!edit?.move && !narrow, deletable: !!edit, zIndex: 1,
      data: { step, run: byId.get(step.id), wrong: wrong?.has(step.id), down, editable: !!edit, mark: marks?.get(step.id), heat: heat?.get(step.id) }, ariaLabel: step.title ?? step.id,
    })),
    [steps, hidden, drawn, byId, chosenAll, wrong, down, edit, narrow, marks, heat],
  );
  const others = useMemo<(NoteNode | GroupNode)[]>(() => [
    ...groups.map((g): GroupNode => ({
      id: "group:" + g.id, type: "frame", position: { x: g.x, y: g.y }, width: g.width, height: g.height, handles: handles(down), draggable: false, deletable: false, selectable: false, focusable: false, zIndex: g.collapsed ? 1 : 0,
      data: { group: g, down, change: edit?.group && ((more) => edit.group!(g.id, more)), ungroup: edit?.ungroup && (() => edit.ungroup!(g.id)), toggle: () => (edit?.group ? void edit.group(g.id, { collapsed: !g.collapsed }) : fold((f) => ({ ...f, [g.id]: !g.collapsed }))) },
    })),
    ...Object.entries(layout?.notes ?? {}).map(([id, n]): NoteNode => ({
      id: "note:" + id, type: "note", position: dragged.get("note:" + id) ?? { x: n.x ?? 0, y: n.y ?? 0 }, width: n.width ?? 200, height: n.height ?? 84, draggable: !!edit?.move && !narrow, deletable: false, selectable: false, zIndex: 2,
      data: { text: n.text ?? "", write: edit?.write && ((text) => edit.write!(id, text)) },
    })),
  ], [groups, layout, dragged, down, edit, narrow]);
  const nodes = useMemo(() => [...others, ...stepNodes], [others, stepNodes]);
  const edges = useMemo<Way[]>(() => {
    const all = new Map<string, Way>();
    for (const l of links(steps)) {
      const from = byId.get(l.from);
      const to = byId.get(l.to);
      const [source, target] = [hidden.get(l.from) ?? l.from, hidden.get(l.to) ?? l.to];
      const id = source + ">" + target;
      if (source === target || all.has(id)) continue;
      const moving = !!from && from.state === "completed" && to?.state === "sent";
      const unused = from?.chose ? !from.chose.includes(l.to) : false;
      all.set(id, {
        id, type: "way", data: { way: hidden.has(l.from) || hidden.has(l.to) ? [] : drawn.ways.get(id)! }, source, target, label: l.kind === "goto" ? t("flow.onfailure") : l.kind === "case" ? (l.label ?? t("flow.else")) : undefined, animated: moving, deletable: !!edit && l.kind !== "goto" && id === l.from + ">" + l.to, zIndex: 1,
        className: l.kind + (unused ? " unused" : ""), markerEnd: { type: MarkerType.ArrowClosed, width: 16, height: 16 },
      });
    }
    return [...all.values()];
  }, [steps, hidden, drawn, byId, edit, t]);
  const changed = (all: Change[]) => {
    const points = all.filter((c) => c.type === "position" && c.position);
    if (points.length > 0) drag((now) => new Map([...now, ...points.map((c) => [c.id!, c.position!] as const)]));
    const selected = all.filter((c) => c.type === "select" && c.selected && !c.id!.includes(":")).map((c) => c.id!);
    if (selected.length > 1 && edit?.pick) edit.pick(selected);
    else if (selected.length === 1) choose?.(selected[0]);
  };
  const click = (e: { shiftKey: boolean; ctrlKey: boolean; metaKey: boolean }, id: string) => {
    if (id.includes(":")) return;
    if (!edit?.pick || !(e.shiftKey || e.ctrlKey || e.metaKey)) return choose?.(id);
    edit.pick(chosenAll.has(id) ? [...chosenAll].filter((s) => s !== id) : [...chosenAll, id]);
  };
  return (
    <div
      class="graph"
      style={edit || narrow ? undefined : { height: Math.min(460, Math.max(220, drawn.height + 90)) }}
      onDragOver={(e) => edit?.drop && e.preventDefault()}
      onDrop={(e) => {
        const what = e.dataTransfer?.getData("text/plain");
        if (!edit?.drop || !what) return;
        e.preventDefault();
        edit.drop(what, (e.target as Element).closest<HTMLElement>(".react-flow__node")?.dataset.id);
      }}
    >
      <ReactFlow
        nodes={nodes} edges={edges} nodeTypes={kinds} edgeTypes={ways} fitView={!large} fitViewOptions={{ maxZoom: 1, padding: 0.12 }} defaultViewport={{ x: 24, y: 24, zoom: large ? readable : 1 }} onlyRenderVisibleElements={large} onInit={(i) => { pane.current = i; show(); }} minZoom={0.15} maxZoom={1.5}
        key={down ? "down" : "right"}
        nodesDraggable={!!edit?.move && !narrow} multiSelectionKeyCode={null} selectionKeyCode={edit?.pick ? "Shift" : null} snapToGrid={!!edit} snapGrid={grid} nodesConnectable={!!edit} elementsSelectable zoomOnScroll={false} preventScrolling={false} panOnScroll={false}
        onNodeClick={(e, n) => click(e, n.id)} onPaneClick={() => { choose?.(); edit?.pick?.([]); }}
        onNodesChange={changed}
        onNodeDragStop={(_, __, all) => void edit?.move?.(new Map(all.map((n) => [n.id.replace("note:", ""), n.position])))}
        onConnect={(c: Connection) => edit?.connect(c.source, c.target)}
        isValidConnection={(c) => c.source !== c.target && !leads(steps, c.target, c.source)}
        onNodesDelete={(all) => { for (const n of all) edit?.remove(n.id); }}
        onEdgesDelete={(all) => { for (const e of all) edit?.unlink(e.source, e.target); }}
        deleteKeyCode={edit ? ["Delete", "Backspace"] : null}
        aria-label={t("flow.graph")}
      >
        <Background gap={18} size={1} />
        <Controls showInteractive={false} />
        {steps.length > 12 && <MiniMap pannable nodeStrokeWidth={2} />}
      </ReactFlow>
    </div>
  );
}

type Change = { type: string; id?: string; selected?: boolean; position?: Point };

const grid: [number, number] = [6, 6];

// foldedAs is a layout as somebody looks at it who does not change it.
function foldedAs(layout: Layout | undefined, folded: Record<string, boolean>): Layout | undefined {
  if (!layout?.groups) return layout;
  return { ...layout, groups: Object.fromEntries(Object.entries(layout.groups).map(([id, g]) => [id, { ...g, collapsed: folded[id] ?? g.collapsed }])) };
}

// leads tells whether one comes from a step to another: a link back would be a circle.
export function leads(steps: FlowStep[], from: string, to: string): boolean {
  const next = new Map<string, string[]>();
  for (const l of links(steps)) if (l.kind !== "goto") next.set(l.from, [...(next.get(l.from) ?? []), l.to]);
  const seen = new Set<string>();
  const way = [from];
  while (way.length > 0) {
    const at = way.pop()!;
    if (at === to) return true;
    if (seen.has(at)) continue;
    seen.add(at);
    way.push(...(next.get(at) ?? []));
  }
  return false;
}
