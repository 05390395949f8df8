import type { FlowStep, Handler } from "../api/types";
import { useT } from "../i18n";
import { BranchForm, DelayForm, EachForm, EmitForm, Failing, FlowForm, JoinForm, ParallelForm, UndoForm, WaitForm } from "./forms";
import { at, change, Choice, Expr, Line, Ticks, Whole, Word, type Fields, type SetEdit } from "./fields";
import { leads } from "./graph";
import type { Schema } from "./sample";
import { SchemaForm } from "./schemaform";

export type { Fields };

// Inspector is the form of a step. What it sets is set in the file, at once when a field
// is left; needs make the lines of the drawing, without a mouse.
export function Inspector({ id, fields: own, steps, handlers, edit, need, rename, remove }: { id: string; fields: Fields; steps: FlowStep[]; handlers: Handler[]; edit: SetEdit; need: (step: string, on: boolean) => void; rename: (to: string) => Promise<boolean>; remove: () => void }) {
  const t = useT();
  const step = steps.find((s) => s.id === id);
  const f = { id, own, edit, steps };
  const job = "use" in own;
  const works = job || "flow" in own; // it gets data, and may fail
  const about = handlers.find((h) => h.name === own.use && h.queue === (own.queue ?? "default"));
  return (
    <div class="form">
      <h2>{id} <span class="dim">{step?.does}</span></h2>
      <Word name={t("step.id")} now={id} required give={(to) => (to === "" ? undefined : rename(to))} />
      <Line {...f} path="title" name={t("step.title")} />
      {job && <div class="pair"><Line {...f} path="use" name={t("step.use")} list="handlers" required /><Line {...f} path="queue" name={t("queue")} hint="default" list="queues" /></div>}
      {"branch" in own && <BranchForm {...f} />}
      {"parallel" in own && <ParallelForm {...f} />}
      {"join" in own && <JoinForm {...f} />}
      {"delay" in own && <DelayForm {...f} />}
      {"wait" in own && <WaitForm {...f} />}
      {"flow" in own && <FlowForm {...f} />}
      {"emit" in own && <EmitForm {...f} />}
      {"dead_letter" in own && <Line {...f} path="dead_letter" name={t("discard.reason")} required />}
      {about?.title && <p class="dim"><b>{about.title}</b> {about.description}</p>}
      {works && (about?.data ? <SchemaForm name={t("step.gets")} schema={about.data as Schema} filled={{ value: own.with, set: (path, v) => edit(change(id, path === "" ? "with" : "with." + path, v)) }} /> : <Whole {...f} path="with" name={t("step.gets")} hint='"${input}"' />)}
      <Expr {...f} path="when" name={t("flow.when")} hint="input.plan == 'pro'" />
      <Ticks name={t("flow.needs")} all={steps.map((s) => s.id).filter((s) => s !== id)} chosen={step?.needs ?? []} disabled={(s) => leads(steps, id, s)} set={need} />
      {works && <EachForm {...f} />}
      {works && <Failing {...f} path="on_failure" name={t("flow.onfailure")} modes={["fail", "skip", "dead_letter"]} />}
      {job && <Policy {...f} />}
      {job && <UndoForm {...f} />}
      <div class="acts"><button type="button" class="danger small" onClick={remove}>{t("delete")}</button></div>
    </div>
  );
}

function Policy(f: { id: string; own: Fields; edit: SetEdit; steps: FlowStep[] }) {
  const t = useT();
  const kind = String(at(f.own, "retry.backoff") ?? "");
  return (
    <details open={["retry", "timeout", "priority", "group", "limit_key"].some((k) => k in f.own)}>
      <summary>{t("form.policy")}</summary>
      <div class="pair"><Line {...f} path="retry.attempts" name={t("job.attempts.max")} number hint="5" /><Line {...f} path="timeout" name={t("job.timeout")} hint="30s" /></div>
      <Choice name={t("form.backoff")} value={kind} options={[["", "–"], ["fixed", t("form.backoff.fixed")], ["exponential", t("form.backoff.exponential")]]} set={(v) => void f.edit(change(f.id, "retry.backoff", v || undefined))} />
      <div class="triple"><Line {...f} path="retry.base" name={t("step.backoff")} hint="1s" /><Line {...f} path="retry.cap" name={t("form.cap")} hint="1m" /><Line {...f} path="retry.jitter" name={t("schedules.jitter")} number hint="0.2" /></div>
      <div class="triple"><Line {...f} path="priority" name={t("job.priority")} number hint="5" /><Expr {...f} kind="value" path="group" name={t("job.group")} hint="${input.user}" /><Line {...f} path="limit_key" name={t("job.limitkey")} /></div>
    </details>
  );
}

// FlowFields is the form of the flow itself.
export function FlowFields({ file, edit }: { file: Fields; edit: SetEdit }) {
  const t = useT();
  const f = { id: "", own: file, edit };
  return (
    <details class="form">
      <summary>{t("form.flow")}</summary>
      <Line {...f} path="description" name={t("flow.description")} />
      <Line {...f} path="timeout" name={t("job.timeout")} hint="1h" />
      <Whole {...f} path="input" name={t("form.input")} hint='{"type":"object","properties":{"user":{"type":"string"}}}' />
      <Whole {...f} path="output" name={t("flow.output")} hint='{"url":"${steps.page.output.url}"}' />
    </details>
  );
}
