import { useState } from "react";
import { print } from "../api/json";
import type { FlowStep } from "../api/types";
import { useT, type Key } from "../i18n";
import { wrongJson } from "../ui/addjob";
import type { Edit } from "./designer";
import { leads } from "./graph";

// Fields are those of a step in its file.
export type Fields = Record<string, unknown>;

interface Field {
  path: string; // below the step
  name: Key;
  number?: boolean;
  hint?: string;
}

const fields: Field[] = [
  { path: "title", name: "step.title" },
  { path: "use", name: "step.use" },
  { path: "queue", name: "queue" },
  { path: "when", name: "flow.when", hint: "input.plan == 'pro'" },
  { path: "timeout", name: "job.timeout", hint: "30s" },
  { path: "retry.attempts", name: "job.attempts.max", number: true },
  { path: "retry.base", name: "step.backoff", hint: "1s" },
  { path: "compensate", name: "step.compensate" },
];

function at(v: unknown, path: string): unknown {
  return path.split(".").reduce<unknown>((o, key) => (o && typeof o === "object" ? (o as Fields)[key] : undefined), v);
}

// Inspector is the form of a step. What it sets is set in the file, at once when a field
// is left; needs make the lines of the drawing, without a mouse.
export function Inspector({ id, fields: own, steps, edit, link, remove }: { id: string; fields: Fields; steps: FlowStep[]; edit: (e: Edit[]) => void; link: (needs: string[]) => void; remove: () => void }) {
  const t = useT();
  const step = steps.find((s) => s.id === id);
  const needs = step?.needs ?? [];
  const job = "use" in own;
  const set = (f: Field, text: string) => {
    const value = text === "" ? undefined : f.number ? Number(text) : text;
    if (value !== at(own, f.path)) edit([{ path: `steps.${id}.${f.path}`, value }]);
  };
  return (
    <div class="form">
      <h2>{id} <span class="dim">{step?.does}</span></h2>
      {fields.filter((f) => job || ["title", "when"].includes(f.path)).map((f) => (
        <label key={f.path}>{t(f.name)}
          <input key={String(at(own, f.path) ?? "")} inputMode={f.number ? "numeric" : "text"} defaultValue={String(at(own, f.path) ?? "")} placeholder={f.hint} autoComplete="off" spellcheck={false} onChange={(e) => set(f, e.currentTarget.value.trim())} />
        </label>
      ))}
      {job && (
        <label>{t("flow.onfailure")}
          <select value={String(own.on_failure ?? "fail")} onChange={(e) => edit([{ path: `steps.${id}.on_failure`, value: e.currentTarget.value === "fail" ? undefined : e.currentTarget.value }])}>
            {[...new Set(["fail", "skip", "dead_letter", String(own.on_failure ?? "fail")])].map((o) => <option key={o} value={o}>{o}</option>)}
          </select>
        </label>
      )}
      <fieldset>
        <legend>{t("flow.needs")}</legend>
        {steps.filter((s) => s.id !== id).map((s) => (
          <label key={s.id} class="tick">
            <input type="checkbox" checked={needs.includes(s.id)} disabled={!needs.includes(s.id) && leads(steps, id, s.id)} onChange={(e) => link(e.currentTarget.checked ? [...needs, s.id] : needs.filter((n) => n !== s.id))} /> {s.id}
          </label>
        ))}
      </fieldset>
      {Object.entries(own).filter(([k]) => ["with", "wait", "branch", "parallel", "join", "delay", "emit", "for_each", "flow"].includes(k)).map(([k, v]) => <Whole key={k} path={`steps.${id}.${k}`} name={k} value={v} edit={edit} />)}
      {job && own.with === undefined && <button type="button" class="small" onClick={() => edit([{ path: `steps.${id}.with`, value: "${input}" }])}>{t("step.with")}</button>}
      <div class="acts"><button type="button" class="danger small" onClick={remove}>{t("delete")}</button></div>
    </div>
  );
}

// Whole is a field that is shown as JSON.
function Whole({ path, name, value, edit }: { path: string; name: string; value: unknown; edit: (e: Edit[]) => void }) {
  const before = print(value);
  const [text, setText] = useState(before);
  const wrong = wrongJson(text);
  return (
    <label>{name}
      <textarea class="code" rows={Math.min(8, before.split("\n").length + 1)} spellcheck={false} value={text} aria-invalid={!!wrong} onInput={(e) => setText(e.currentTarget.value)} onBlur={() => !wrong && text !== before && edit([{ path, value: JSON.parse(text) }])} />
      {wrong && <span class="bad">{wrong}</span>}
    </label>
  );
}
