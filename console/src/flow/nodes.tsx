import { Handle, Position, type Node, type NodeProps } from "@xyflow/react";
import type { FlowStep, RunStep } from "../api/types";
import { useT } from "../i18n";
import { State } from "../ui/bits";
import { useDraft } from "../ui/draft";
import type { Drawn } from "./layout";
import { look } from "./shape";

// What stands on the drawing: steps, notes and groups.

export type Heat = { text: string; share: number }; // share of the hottest, 0 to 1
export type Mark = "added" | "removed" | "changed";
type Data = { step: FlowStep; run?: RunStep; wrong?: boolean; down: boolean; editable: boolean; mark?: Mark; heat?: Heat };
export type StepNode = Node<Data, "step">;

export function Step({ data, selected }: NodeProps<StepNode>) {
  const t = useT();
  const { step, run, mark, heat } = data;
  const state = run ? look(run) : "";
  return (
    <div class={`step ${step.kind} ${state}${selected ? " selected" : ""}${data.wrong ? " wrong" : ""}${mark ? " marked " + mark : ""}${heat ? " heat" : ""}`} style={heat ? { "--heat": `${Math.round(heat.share * 70)}%` } : undefined}>
      <Handle type="target" position={data.down ? Position.Top : Position.Left} isConnectable={data.editable} />
      <b>{step.title ?? step.id}</b>
      <span class="does" title={step.does}>{step.does}</span>
      {mark && <span class="now">{t(`diff.${mark}`)}</span>}
      {heat && <span class="now num">{heat.text}</span>}
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

export type NoteNode = Node<{ text: string; write?: (text: string) => Promise<boolean> }, "note">;

export function Note({ data }: NodeProps<NoteNode>) {
  const t = useT();
  const { field } = useDraft(data.text, (s) => data.write?.(s));
  if (!data.write) return <div class="notepaper">{data.text}</div>;
  return <div class="notepaper"><textarea class="nodrag" aria-label={t("layout.note")} rows={3} {...field} /></div>;
}

export type GroupNode = Node<{ group: Drawn; down: boolean; change?: (more: { title?: string; collapsed?: boolean }) => Promise<boolean>; ungroup?: () => void; toggle: () => void }, "frame">;

export function Group({ data }: NodeProps<GroupNode>) {
  const t = useT();
  const g = data.group;
  const { field, enter } = useDraft(g.title, (s) => (s.trim() === "" ? undefined : data.change?.({ title: s.trim() })));
  return (
    <div class={g.collapsed ? "frame collapsed" : "frame"}>
      <Handle type="target" position={data.down ? Position.Top : Position.Left} isConnectable={false} />
      <div class="row nodrag">
        <button type="button" class="quiet small" aria-expanded={!g.collapsed} aria-label={t("layout.collapse", { name: g.title })} onClick={data.toggle}>{g.collapsed ? "▸" : "▾"}</button>
        {data.change ? <input type="text" aria-label={t("layout.group.name")} {...field} onKeyDown={enter} /> : <b>{g.title}</b>}
        {g.collapsed && <span class="dim num">{g.steps.length}</span>}
        {data.ungroup && <button type="button" class="quiet small" aria-label={t("layout.ungroup", { name: g.title })} onClick={data.ungroup}>×</button>}
      </div>
      <Handle type="source" position={data.down ? Position.Bottom : Position.Right} isConnectable={false} />
    </div>
  );
}
