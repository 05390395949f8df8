import type { FlowStep } from "../api/types";
import { useT } from "../i18n";
import { Expression } from "./expression";
import { at, change, Choice, Expr, Line, list, oneOrList, Ticks, toggle, Whole, Word, type Fields, type Own } from "./fields";
import { leads } from "./graph";

// The forms of what a step can be, each made for its part of the file's schema.

type Form = Own & { steps: FlowStep[] };

const others = (f: Form) => f.steps.map((s) => s.id).filter((id) => id !== f.id);
// later are steps to which a line from this one makes no circle.
const later = (f: Form) => (id: string) => leads(f.steps, id, f.id);

interface Case {
  when?: unknown;
  to?: unknown;
}

// Branch has cases; the first that holds is taken, and one without a condition is the
// else at the end.
export function BranchForm(f: Form) {
  const t = useT();
  const read = (v: unknown) => (Array.isArray(v) ? v : []) as Case[];
  const cases = read(f.own.branch);
  const set = (next: (now: Case[]) => Case[]) => f.edit((file) => [{ path: `steps.${f.id}.branch`, value: next(read(file.steps?.[f.id]?.branch)) }]);
  const put = (i: number, make: (c: Case) => Case) => set((now) => now.map((old, n) => (n === i ? make(old) : old)));
  const move = (i: number, by: number) => set((now) => { const next = [...now]; [next[i], next[i + by]] = [next[i + by], next[i]]; return next; });
  return (
    <fieldset class="cases">
      <legend>{t("form.cases")}</legend>
      {cases.map((c, i) => (
        <div key={i} class="case">
          <Expression
            kind="expr" name={c.when === undefined ? t("flow.else") : t("form.case.when", { n: i + 1 })} now={String(c.when ?? "")} placeholder={t("flow.else")}
            give={(when) => put(i, (old) => (when ? { when, to: old.to } : { to: old.to }))}
          />
          <Ticks name={t("form.case.to")} all={others(f)} chosen={list(c.to)} disabled={later(f)} set={(id, on) => void put(i, (old) => ({ ...old, to: oneOrList(toggle(list(old.to), id, on)) ?? [] }))} />
          <div class="row">
            <button type="button" class="quiet small" disabled={i === 0} aria-label={t("form.up")} onClick={() => void move(i, -1)}>↑</button>
            <button type="button" class="quiet small" disabled={i === cases.length - 1} aria-label={t("form.down")} onClick={() => void move(i, 1)}>↓</button>
            <button type="button" class="quiet small" disabled={cases.length === 1} onClick={() => void set((now) => now.filter((_, n) => n !== i))}>{t("delete")}</button>
          </div>
        </div>
      ))}
      <button type="button" class="small" onClick={() => void set((now) => before(now, { when: "true", to: [] }))}>{t("form.case.add")}</button>
    </fieldset>
  );
}

// before puts a case before the else.
function before(cases: Case[], c: Case): Case[] {
  const last = cases.at(-1);
  return last && last.when === undefined ? [...cases.slice(0, -1), c, last] : [...cases, c];
}

export function ParallelForm(f: Form) {
  const t = useT();
  return <Ticks name={t("form.parallel")} all={others(f)} chosen={list(f.own.parallel)} disabled={later(f)} set={(id, on) => void f.edit((file) => [{ path: `steps.${f.id}.parallel`, value: oneOrList(toggle(list(file.steps?.[f.id]?.parallel), id, on)) ?? [] }])} />;
}

export function JoinForm(f: Form) {
  const t = useT();
  const now = f.own.join;
  const kind = typeof now === "number" ? "n" : String(now);
  const set = (value: unknown) => f.edit(change(f.id, "join", value));
  return (
    <>
      <Choice name={t("form.join")} value={kind} options={[["all", t("form.join.all")], ["any", t("form.join.any")], ["n", t("form.join.n")]]} set={(v) => void set(v === "n" ? 2 : v)} />
      {kind === "n" && <Word name={t("form.join.n")} now={String(now)} number give={(text) => set(Math.min(100, Math.max(1, Math.floor(Number(text)) || 1)))} />}
    </>
  );
}

export function DelayForm(f: Form) {
  const t = useT();
  const until = at(f.own, "delay.until");
  const kind = until === undefined ? "for" : "until";
  const path = kind === "until" ? "delay.until" : typeof f.own.delay === "string" ? "delay" : "delay.for";
  return (
    <>
      <Choice name={t("palette.delay")} value={kind} options={[["for", t("form.delay.for")], ["until", t("form.delay.until")]]} set={(v) => void f.edit([{ path: `steps.${f.id}.delay`, value: v === "until" ? { until: "timestamp('2030-01-01T08:00:00Z')" } : "1m" }])} />
      {kind === "until" ? <Expr {...f} path={path} name={t("form.delay.until")} hint="input.at" required /> : <Line {...f} path={path} name={t("form.delay.for")} hint="10m" required />}
    </>
  );
}

export function WaitForm(f: Form) {
  const t = useT();
  const wait = (f.own.wait ?? {}) as Fields;
  const approval = "approval" in wait;
  const event = at(wait, "event");
  const type = typeof event === "string" ? event : String(at(event, "type") ?? "");
  const match = String(at(event, "match") ?? "");
  const base = `steps.${f.id}.wait`;
  const setEvent = (type?: string, match?: string) => f.edit((file) => {
    const now = at(file.steps?.[f.id], "wait.event");
    const is = { type: type ?? (typeof now === "string" ? now : at(now, "type")), match: match ?? at(now, "match") };
    return [{ path: base + ".event", value: is.match ? is : is.type }];
  });
  const turn = (v: string) => {
    const rest = Object.fromEntries(Object.entries(wait).filter(([k]) => k !== "event" && k !== "approval"));
    void f.edit([{ path: base, value: v === "approval" ? { approval: { role: "ops" }, ...rest } : { event: "order.paid", ...rest } }]);
  };
  return (
    <>
      <Choice name={t("form.wait")} value={approval ? "approval" : "event"} options={[["approval", t("palette.approval")], ["event", t("palette.event")]]} set={turn} />
      {approval ? (
        <>
          <Line {...f} path="wait.approval.role" name={t("form.role")} hint={t("form.anybody")} />
          <Whole {...f} path="wait.approval.form" name={t("form.form")} hint='{"type":"object","properties":{"amount":{"type":"number"}}}' />
        </>
      ) : (
        <>
          <Word name={t("form.event")} now={type} required give={(v) => (v ? setEvent(v, undefined) : undefined)} />
          <Expression kind="expr" name={t("form.match")} now={match} placeholder="event.order == input.order" give={(v) => setEvent(undefined, v)} />
        </>
      )}
      <Line {...f} path="wait.timeout" name={t("form.wait.timeout")} hint="1d" required />
      <Failing {...f} path="on_timeout" name={t("form.ontimeout")} modes={["fail", "skip"]} />
    </>
  );
}

export function EmitForm(f: Form) {
  const t = useT();
  const short = typeof f.own.emit === "string";
  return (
    <>
      {short ? <Line {...f} path="emit" name={t("form.event")} required /> : <Line {...f} path="emit.type" name={t("form.event")} required />}
      {short ? <button type="button" class="small" onClick={() => void f.edit([{ path: `steps.${f.id}.emit`, value: { type: f.own.emit, data: { from: "${run.id}" } } }])}>{t("form.emit.data")}</button> : <Whole {...f} path="emit.data" name={t("form.emit.data")} hint='{"id": "${run.id}"}' />}
    </>
  );
}

export function FlowForm(f: Form) {
  const t = useT();
  const short = typeof f.own.flow === "string";
  const version = at(f.own, "flow.version");
  const pin = (text: string) => f.edit((file) => {
    const now = file.steps?.[f.id]?.flow;
    const name = typeof now === "string" ? now : at(now, "name");
    return [{ path: `steps.${f.id}.flow`, value: Number(text) > 0 ? { name, version: Number(text) } : name }];
  });
  return (
    <>
      <Line {...f} path={short ? "flow" : "flow.name"} name={t("flow")} list="flows" required />
      <Word name={t("flow.version")} now={version === undefined || version === "latest" ? "" : String(version)} number placeholder={t("form.latest")} give={pin} />
    </>
  );
}

// EachForm makes a step of each item of a list.
export function EachForm(f: Form) {
  const t = useT();
  const each = f.own.for_each;
  if (each === undefined) return <button type="button" class="small" onClick={() => void f.edit([{ path: `steps.${f.id}.for_each`, value: { in: "input.items", max_in_flight: 10 } }])}>{t("form.each.add")}</button>;
  const short = typeof each !== "object";
  return (
    <fieldset>
      <legend>{t("form.each")}</legend>
      <Expr {...f} path={short ? "for_each" : "for_each.in"} name={t("form.each.in")} hint="input.items" required />
      {!short && <Line {...f} path="for_each.max_in_flight" name={t("form.each.flight")} number hint="10" />}
      {!short && <Line {...f} path="for_each.max_failures" name={t("form.each.failures")} number hint="0" />}
      <button type="button" class="quiet small" onClick={() => void f.edit([{ path: `steps.${f.id}.for_each` }])}>{t("delete")}</button>
    </fieldset>
  );
}

// Failing is what becomes of the run when the step fails, or its time is over.
export function Failing(f: Form & { path: string; name: string; modes: string[] }) {
  const t = useT();
  const now = at(f.own, f.path);
  const to = at(now, "goto");
  const mode = to !== undefined ? "goto" : String(now ?? "fail");
  const words: Record<string, string> = { fail: t("form.fail"), skip: t("form.skip"), dead_letter: t("form.dead"), goto: t("form.goto") };
  const set = (value: unknown) => void f.edit(change(f.id, f.path, value));
  const target = others(f);
  const back = typeof to === "string" && (leads(f.steps, to, f.id) || to === f.id);
  return (
    <>
      <Choice name={f.name} value={mode} options={[...f.modes, ...(target.length > 0 ? ["goto"] : [])].map((m) => [m, words[m]])} set={(m) => set(m === "fail" ? undefined : m === "goto" ? gotoOf(f.steps, f.id, target[0], 3) : m)} />
      {mode === "goto" && (
        <>
          <Choice name={t("form.goto")} value={String(to)} options={target.map((id) => [id, id])} set={(id) => set(gotoOf(f.steps, f.id, id, Number(at(now, "max") ?? 3)))} />
          {back && <Line {...f} path={f.path + ".max"} name={t("form.goto.max")} number hint="3" required />}
        </>
      )}
    </>
  );
}

// gotoOf bounds a way back, which would be a circle without end.
function gotoOf(steps: FlowStep[], from: string, to: string, max: number): Fields {
  return leads(steps, to, from) ? { goto: to, max } : { goto: to };
}

export function UndoForm(f: Form) {
  const t = useT();
  const undo = f.own.compensate;
  if (undo === undefined) return <Line {...f} path="compensate" name={t("step.compensate")} list="handlers" />;
  const short = typeof undo === "string";
  return (
    <fieldset>
      <legend>{t("step.compensate")}</legend>
      <Line {...f} path={short ? "compensate" : "compensate.use"} name={t("step.use")} list="handlers" />
      {short ? <button type="button" class="small" onClick={() => void f.edit([{ path: `steps.${f.id}.compensate`, value: { use: undo, with: { id: "${run.id}" } } }])}>{t("step.with")}</button> : <><Line {...f} path="compensate.queue" name={t("queue")} list="queues" /><Whole {...f} path="compensate.with" name={t("step.gets")} /></>}
    </fieldset>
  );
}
