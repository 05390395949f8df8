import { Background, BaseEdge, Controls, Handle, MarkerType, MiniMap, Position, ReactFlow, type Connection, type Edge, type EdgeProps, type Node, type NodeProps } from "@xyflow/react";
import "@xyflow/react/dist/base.css";
import { useEffect, useMemo, useRef, useState } from "react";
import type { FlowStep, RunStep } from "../api/types";
import { useT } from "../i18n";
import { State } from "../ui/bits";
import "./graph.css";
import { height, line, links, look, shape, width, type Point } from "./shape";

type Data = { step: FlowStep; run?: RunStep; wrong?: boolean; down: boolean; editable: boolean };
type StepNode = Node<Data, "step">;

function Step({ data, selected }: NodeProps<StepNode>) {
  const { step, run } = data;
  const state = run ? look(run) : "";
  return (
    <div class={`step ${step.kind} ${state}${selected ? " selected" : ""}${data.wrong ? " wrong" : ""}`}>
      <Handle type="target" position={data.down ? Position.Top : Position.Left} isConnectable={data.editable} />
      <b>{step.title ?? step.id}</b>
      <span class="does" title={step.does}>{step.does}</span>
      {run && (
        <span class="now">
          <State state={state} />
          {run.items && <span class="num">{run.items.done}/{run.items.total}</span>}
          {run.job && run.job.state === "active" && run.job.progress.percent ? <progress class="bar" max={100} value={run.job.progress.percent} aria-hidden="true" /> : null}
        </span>
      )}
      <Handle type="source" position={data.down ? Position.Bottom : Position.Right} isConnectable={data.editable} />
    </div>
  );
}

// many is from how many steps on a drawing begins at a size at which it can be read, and
// is made of what is seen of it only.
const many = 40;
const readable = 0.65;

type Way = Edge<{ way: Point[] }, "way">;

// Way goes around what stands between its ends, as the layout has it.
function Way({ sourceX, sourceY, targetX, targetY, data, markerEnd, label }: EdgeProps<Way>) {
  const way = data!.way;
  const middle = way[Math.floor(way.length / 2)];
  return <BaseEdge path={line({ x: sourceX, y: sourceY }, { x: targetX, y: targetY }, way)} markerEnd={markerEnd} label={label} labelX={middle.x} labelY={middle.y} interactionWidth={18} />;
}

const kinds = { step: Step };
const ways = { way: Way };

export interface Editing {
  connect: (from: string, to: string) => void;
  unlink: (from: string, to: string) => void;
  remove: (id: string) => void;
  drop?: (what: string, onto?: string) => void;
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
export function Graph({ steps, run, chosen, choose, edit, wrong }: { steps: FlowStep[]; run?: RunStep[]; chosen?: string; choose?: (id?: string) => void; edit?: Editing; wrong?: Set<string> }) {
  const t = useT();
  const narrow = useNarrow();
  const down = narrow || !!edit;
  const drawn = useMemo(() => shape(steps, down), [steps, down]);
  const large = steps.length > many;
  const at = chosen ?? run?.find((s) => ["dead", "failed", "active"].includes(look(s)))?.id;
  const pane = useRef<{ setCenter: (x: number, y: number, o: { zoom: number }) => unknown } | undefined>(undefined);
  const show = () => {
    const p = large && at !== undefined ? drawn.places.get(at) : undefined;
    if (p) pane.current?.setCenter(p.x + width / 2, p.y + height / 2, { zoom: readable });
  };
  useEffect(show, [at, large, down]);
  const byId = useMemo(() => new Map(run?.map((s) => [s.id, s])), [run]);
  const nodes = useMemo<StepNode[]>(
    () => steps.map((step) => ({
      id: step.id, type: "step", position: drawn.places.get(step.id)!, selected: step.id === chosen, width, height, handles: handles(down), draggable: false, deletable: !!edit,
      data: { step, run: byId.get(step.id), wrong: wrong?.has(step.id), down, editable: !!edit }, ariaLabel: step.title ?? step.id,
    })),
    [steps, drawn, byId, chosen, wrong, down, edit],
  );
  const edges = useMemo<Way[]>(
    () => links(steps).map((l) => {
      const from = byId.get(l.from);
      const to = byId.get(l.to);
      const moving = !!from && from.state === "completed" && to?.state === "sent";
      const unused = from?.chose ? !from.chose.includes(l.to) : false;
      return {
        id: l.from + ">" + l.to, type: "way", data: { way: drawn.ways.get(l.from + ">" + l.to)! }, source: l.from, target: l.to, label: l.kind === "goto" ? t("flow.onfailure") : l.kind === "case" ? (l.label ?? t("flow.else")) : undefined, animated: moving, deletable: !!edit && l.kind !== "goto",
        className: l.kind + (unused ? " unused" : ""), markerEnd: { type: MarkerType.ArrowClosed, width: 16, height: 16 },
      };
    }),
    [steps, drawn, byId, edit, t],
  );
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
        nodesDraggable={false} nodesConnectable={!!edit} elementsSelectable zoomOnScroll={false} preventScrolling={false} panOnScroll={false}
        onNodeClick={(_, n) => choose?.(n.id)} onPaneClick={() => choose?.()}
        onNodesChange={(all) => { for (const c of all) if (c.type === "select" && c.selected) choose?.(c.id); }}
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
