import { useEffect, useMemo, useState } from "react";
import { call } from "../api/client";
import type { EventList, FlowHeat, FlowRun, FlowStep, JobEvent, RunStep } from "../api/types";
import { useResource } from "../api/resource";
import { useT } from "../i18n";
import { Moment, Trouble } from "../ui/bits";
import { Graph } from "./graph";
import type { Layout } from "./layout";
import type { Heat } from "./nodes";

// What was: a run as it was at a time, and how many runs were, step by step.

export interface Past {
  at: number; // ms
  step: string;
  state: string; // of its job; or how the step ended
}

const mostJobs = 150;

// pastOf puts what happened to the jobs of a run in order. A step without a job has ended
// when all that it needs had.
export function pastOf(run: FlowRun, steps: FlowStep[], events: Map<string, JobEvent[]>): Past[] {
  const all: Past[] = [];
  for (const [step, list] of events) for (const e of list) if (e.state) all.push({ at: Date.parse(e.at), step, state: e.state });
  const ended = new Map<string, number>();
  for (const p of all) ended.set(p.step, Math.max(ended.get(p.step) ?? 0, p.at));
  const start = Date.parse(run.startedAt);
  const byOrder = [...run.steps].sort((a, b) => (a.order ?? Infinity) - (b.order ?? Infinity));
  for (const s of byOrder) {
    if (events.has(s.id) || s.state === "blocked") continue;
    const needs = steps.find((d) => d.id === s.id)?.needs ?? [];
    const at = Math.max(start, ...needs.map((n) => ended.get(n) ?? start));
    ended.set(s.id, at);
    all.push({ at, step: s.id, state: s.state });
  }
  return all.sort((a, b) => a.at - b.at);
}

// asOf is the run as the first n of these left it.
export function asOf(steps: RunStep[], past: Past[], n: number): RunStep[] {
  const last = new Map<string, string>();
  for (const p of past.slice(0, n)) last.set(p.step, p.state);
  const ends = ["completed", "skipped", "failed", "cancelled"];
  return steps.map((s) => {
    const state = last.get(s.id);
    if (state === undefined) return { ...s, state: "blocked", job: undefined, items: undefined, error: undefined, output: undefined };
    if (!s.job) return s;
    const done = ends.includes(state);
    return { ...s, state: (done ? state : "sent") as RunStep["state"], job: { ...s.job, state: state as "active" } };
  });
}

// Slider goes through what happened in a run; the drawing shows it as it was.
export function Slider({ run, steps, show }: { run: FlowRun; steps: FlowStep[]; show: (as?: RunStep[]) => void }) {
  const t = useT();
  const [events, set] = useState<Map<string, JobEvent[]>>();
  useEffect(() => {
    const stop = new AbortController();
    const jobs = run.steps.flatMap((s) => (s.job ? [[s.id, s.job.jobId] as const] : [])).slice(0, mostJobs);
    const found = new Map<string, JobEvent[]>();
    const read = async () => {
      for (let job = jobs.shift(); job && !stop.signal.aborted; job = jobs.shift()) {
        const [step, id] = job;
        const list = await call<EventList>(`/api/jobs/${encodeURIComponent(id)}/history`, { query: { limit: 200 }, signal: stop.signal }).catch(() => undefined); // what has left is not shown
        if (list) found.set(step, list.items);
      }
    };
    void Promise.all([1, 2, 3, 4].map(read)).then(() => stop.signal.aborted || set(found));
    return () => stop.abort();
  }, [run.runId, run.state]);
  const past = useMemo(() => (events ? pastOf(run, steps, events) : []), [events, steps]);
  const [n, go] = useState<number>();
  const at = n === undefined ? past.length : n;
  useEffect(() => show(n === undefined ? undefined : asOf(run.steps, past, at)), [n, past]);
  if (past.length === 0) return null;
  const last = past[at - 1];
  return (
    <div class="row slider">
      <label>{t("past")}
        <input type="range" min={0} max={past.length} value={at} aria-valuetext={last ? `${last.step} ${last.state}` : t("past.start")} onInput={(e) => { const to = Number(e.currentTarget.value); go(to === past.length ? undefined : to); }} />
      </label>
      <span role="status">{last ? <><b>{last.step}</b> {last.state} <span class="dim"><Moment at={new Date(last.at).toISOString()} /></span></> : t("past.start")}</span>
      {n !== undefined && <button type="button" class="small" onClick={() => go(undefined)}>{t("past.now")}</button>}
    </div>
  );
}

const seconds = (n: number) => (n < 10 ? n.toFixed(2) : n.toFixed(0)) + " s";

// HeatMap draws a flow with how long its steps took in the runs of a day, or how often they failed.
export function HeatMap({ name, steps, layout }: { name: string; steps: FlowStep[]; layout?: Layout }) {
  const t = useT();
  const [of, show] = useState<"time" | "wait" | "failures">("time");
  const r = useResource<FlowHeat>(`/api/flows/${encodeURIComponent(name)}/heat`, { since: "24h" });
  const heat = useMemo(() => {
    const value = (s: FlowHeat["steps"][number]) => (of === "time" ? s.p95Seconds : of === "wait" ? s.waitP95Seconds : s.failed / Math.max(1, s.count));
    const most = Math.max(1e-9, ...(r.data?.steps ?? []).map(value));
    return new Map<string, Heat>((r.data?.steps ?? []).map((s) => [s.id, { share: value(s) / most, text: of === "failures" ? t("heatmap.failed", { failed: s.failed, count: s.count }) : (of === "time" ? `p50 ${seconds(s.p50Seconds)} · ` : "") + `p95 ${seconds(value(s))}` }]));
  }, [r.data, of]);
  if (!r.data) return <Trouble error={r.error} />;
  return (
    <section>
      <h2>{t("heatmap")}</h2>
      <div class="chips" role="group" aria-label={t("heatmap")}>
        {(["time", "wait", "failures"] as const).map((k) => <button key={k} type="button" class="chip" aria-pressed={of === k} onClick={() => show(k)}>{t(`heatmap.${k}`)}</button>)}
        <span class="dim">{t("heatmap.of", { n: r.data.runs })}{r.data.more && " +"}</span>
      </div>
      <Graph steps={steps} layout={layout} heat={heat} />
    </section>
  );
}
