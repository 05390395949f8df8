import { useMemo, useState } from "react";
import { call } from "../api/client";
import { useFeed } from "../api/feed";
import { print } from "../api/json";
import { useResource } from "../api/resource";
import type { Flow, FlowRun, Job, JobEvent, RunStep } from "../api/types";
import { Graph } from "../flow/graph";
import type { Layout } from "../flow/layout";
import { Slider } from "../flow/past";
import { RunState } from "../flow/runstate";
import { look } from "../flow/shape";
import { useT } from "../i18n";
import { useMay } from "../roles";
import { href } from "../router";
import { wrongJson } from "../ui/addjob";
import { Bar, Dialog, Empty, Head, Loading, Moment, Pairs, State, Trouble } from "../ui/bits";
import { Json } from "../ui/json";
import { complain, say } from "../ui/toast";

export default function Page({ rest }: { rest: string[] }) {
  const t = useT();
  return rest[0] ? <Run key={rest[0]} id={rest[0]} /> : <Empty title={t("notfound")}><a href={href(["flows"])}>{t("nav.flows")}</a></Empty>;
}

const over = (r: FlowRun) => ["completed", "failed", "cancelled"].includes(r.state);

function Run({ id }: { id: string }) {
  const t = useT();
  const path = "/api/runs/" + encodeURIComponent(id);
  const first = useResource<FlowRun>(path);
  const [live, setLive] = useState<FlowRun>();
  const [chosen, choose] = useState<string>();
  const [was, showPast] = useState<RunStep[]>();
  // Between two looks at the whole run, what its jobs tell is put into it.
  const step = (e: JobEvent & { step: string; undo?: boolean }) =>
    setLive((r) => r && !e.undo ? { ...r, steps: r.steps.map((s) => (s.id === e.step ? tell(s, e) : s)) } : r);
  const feed = useFeed(first.data ? path + "/stream" : null, {}, { snapshot: setLive, run: setLive, done: setLive, step, joined: () => void call<FlowRun>(path).then(setLive, complain) });
  const run = live ?? first.data;
  const flow = useResource<Flow>(run ? "/api/flows/" + encodeURIComponent(run.flow) : null, { version: run?.version });
  if (!run) return first.error ? (first.error.code === "not_found" ? <Empty title={t("run.none")}><a href={href(["flows"])}>{t("nav.flows")}</a></Empty> : <Trouble error={first.error} />) : <Loading />;
  const one = run.steps.find((s) => s.id === chosen);
  return (
    <>
      <Head title={<>{run.flow} <RunState run={run} /></>} lead={<><a href={href(["flows", run.flow], { tab: "runs" })}>{run.flow}</a> / <code class="id">{run.runId}</code></>}>
        <Acts run={run} />
      </Head>
      {feed === "down" && !over(run) && <div class="banner" role="status">{t("banner.stream")}</div>}
      {run.failure && <div class="note bad"><strong>{run.failure.code}</strong> {run.failure.step && <b>{run.failure.step}: </b>}{run.failure.message}</div>}
      {run.waiting.length > 0 && !over(run) && (
        <div class="note" role="status">{run.waiting.map((w, i) => <div key={i}>{w.step && <button type="button" class="quiet small" onClick={() => choose(w.step)}>{w.step}</button>} {w.text}</div>)}</div>
      )}
      {flow.data && <Graph steps={flow.data.steps} layout={flow.data.layout as Layout | undefined} run={was ?? run.steps} chosen={chosen} choose={choose} />}
      {flow.data && <Slider run={run} steps={flow.data.steps} show={showPast} />}
      <Trouble error={flow.error} />
      {one ? <StepPanel key={one.id} run={run} step={one} form={flow.data?.steps.find((s) => s.id === one.id)?.approval} /> : <Outline steps={run.steps} choose={choose} />}
      <Pairs pairs={[{ name: t("flow.version"), value: <a href={href(["flows", run.flow], { version: String(run.version) })}>{run.version}</a> }, { name: t("job.started"), value: <Moment at={run.startedAt} /> }, run.finishedAt && { name: t("job.finished"), value: <Moment at={run.finishedAt} /> }]} />
      <div class="columns">
        <section><h2>{t("flow.input")}</h2><Json value={run.input} label={t("flow.input")} /></section>
        <section><h2>{t("flow.output")}</h2>{run.output !== undefined ? <Json value={run.output} label={t("flow.output")} /> : <p class="card dim">{over(run) ? t("job.noresult") : t("job.notyet")}</p>}</section>
      </div>
    </>
  );
}

function tell(s: RunStep, e: JobEvent): RunStep {
  if (!s.job) return s;
  return { ...s, job: { ...s.job, state: (e.state as typeof s.job.state) ?? s.job.state, progress: e.progress ?? s.job.progress, failedReason: e.cause?.message ?? s.job.failedReason } };
}

// Outline is the run without the drawing: for the keyboard, for readers of screens, and
// for small ones.
function Outline({ steps, choose }: { steps: RunStep[]; choose: (id: string) => void }) {
  const t = useT();
  const sorted = useMemo(() => [...steps].sort((a, b) => (a.order ?? 1e9) - (b.order ?? 1e9)), [steps]);
  return (
    <section>
      <h2>{t("flow.steps")}</h2>
      <div class="scroll" data-rows>
        <table>
          <thead><tr><th>{t("flow.step")}</th><th>{t("job.state")}</th><th class="wide">{t("job.what")}</th><th class="r wide">{t("job.attempts")}</th></tr></thead>
          <tbody>
            {sorted.map((s) => (
              <tr key={s.id}>
                <td><button type="button" class="quiet small" onClick={() => choose(s.id)}>{s.title ?? s.id}</button></td>
                <td><State state={look(s)} /></td>
                <td class="wide what"><span class={s.error ? "bad" : "dim"}>{s.error?.message ?? s.waitsFor ?? s.job?.progress.message ?? s.does}</span></td>
                <td class="r wide num">{s.job?.attempts || "–"}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

async function command(run: FlowRun, verb: string, body: unknown, done: string, raw?: string) {
  try {
    await call(`/api/runs/${encodeURIComponent(run.runId)}/${verb}`, raw !== undefined ? { raw } : { body });
    say(done);
  } catch (e) {
    complain(e);
  }
}

function Acts({ run }: { run: FlowRun }) {
  const t = useT();
  const may = useMay();
  if (!may.operate) return null;
  const told = t("run.told");
  return (
    <>
      {!over(run) && <button type="button" onClick={() => void command(run, run.paused ? "resume" : "pause", {}, told)}>{run.paused ? t("resume") : t("pause")}</button>}
      {!over(run) && <button type="button" class="danger" onClick={() => void command(run, "cancel", {}, told)}>{t("run.cancel")}</button>}
      {run.state === "failed" && <button type="button" class="main" onClick={() => void command(run, "retry", {}, told)}>{t("act.retry")}</button>}
    </>
  );
}

function StepPanel({ run, step, form }: { run: FlowRun; step: RunStep; form?: boolean }) {
  const t = useT();
  const may = useMay();
  const [editing, setEditing] = useState(false);
  const told = t("run.told");
  const waits = step.state === "sent";
  return (
    <section>
      <h2>{step.title ?? step.id} <State state={look(step)} /></h2>
      {step.waitsFor && <p class="dim">{step.waitsFor}</p>}
      {step.error && <div class="note bad"><strong>{step.error.code}</strong> {step.error.message}</div>}
      {step.job && step.job.state === "active" && <Bar percent={step.job.progress.percent ?? 0} />}
      {may.operate && (
        <div class="bulk">
          {form && waits && <button type="button" class="main small" onClick={() => void command(run, "approve", { step: step.id, approved: true }, told)}>{t("run.approve")}</button>}
          {form && waits && <button type="button" class="danger small" onClick={() => void command(run, "approve", { step: step.id, approved: false }, told)}>{t("run.refuse")}</button>}
          {["failed", "dead", "completed", "skipped"].includes(look(step)) && <button type="button" class="small" onClick={() => void command(run, "retry", { step: step.id }, told)}>{t("run.retry")}</button>}
          {["failed", "dead"].includes(look(step)) && <button type="button" class="small" onClick={() => setEditing(true)}>{t("run.retry.edit")}</button>}
          {!["completed", "skipped"].includes(step.state) && <button type="button" class="small" onClick={() => void command(run, "skip", { step: step.id }, told)}>{t("run.skip")}</button>}
        </div>
      )}
      <Pairs
        pairs={[
          { name: t("flow.does"), value: step.does },
          step.job && { name: t("nav.jobs"), value: <a class="id" href={href(["jobs", step.job.jobId])}>{step.job.jobId}</a> },
          step.job && { name: t("job.attempts"), value: <span class="num">{step.job.attempts}</span> },
          step.round && { name: t("run.round"), value: <span class="num">{step.round}</span> },
          step.items && { name: t("run.items"), value: t("run.itemsof", { done: step.items.done, total: step.items.total, failed: step.items.failed }) },
          step.chose && { name: t("run.chose"), value: step.chose.join(", ") },
          step.runId && { name: t("run"), value: <a class="id" href={href(["runs", step.runId])}>{step.runId}</a> },
        ]}
      />
      {step.output !== undefined && <><h3>{t("flow.output")}</h3><Json value={step.output} label={t("flow.output")} /></>}
      {editing && <EditInput run={run} step={step} close={() => setEditing(false)} />}
    </section>
  );
}

function EditInput({ run, step, close }: { run: FlowRun; step: RunStep; close: () => void }) {
  const t = useT();
  const job = useResource<Job>(step.job ? "/api/jobs/" + encodeURIComponent(step.job.jobId) : null);
  const [typed, setText] = useState<string>();
  const text = typed ?? (job.data ? print(job.data.data) : "{}");
  const wrong = wrongJson(text);
  return (
    <Dialog title={t("run.retry.edit")} close={close}>
      <label>{t("flow.input")}<textarea class="code" rows={8} spellcheck={false} value={text} aria-invalid={!!wrong} onInput={(e) => setText(e.currentTarget.value)} autoFocus /></label>
      <div class="acts">
        <button type="button" class="main" disabled={!!wrong} onClick={() => { void command(run, "retry", undefined, t("run.told"), `{"step":${JSON.stringify(step.id)},"input":${text}}`); close(); }}>{t("run.retry")}</button>
      </div>
    </Dialog>
  );
}
