import { useState } from "react";
import { call, Failed } from "../api/client";
import type { FlowStep, TriedFlow, TriedSend } from "../api/types";
import { useT } from "../i18n";
import { wrongJson } from "../ui/addjob";
import { State, Trouble } from "../ui/bits";
import { Json } from "../ui/json";
import { look } from "./shape";

type End = "ok" | "fail" | "timeout";
type Sample = { end: End; output: string };

// DryRun asks what a run would do with an input, where the steps end as it is said here.
// Nothing is sent; the drawing shows how each step would be.
export function DryRun({ text, steps, input, setInput, show, tried }: { text: (use: (text: string) => void) => void; steps: FlowStep[]; input: string; setInput: (s: string) => void; show: (v?: TriedFlow) => void; tried?: TriedFlow }) {
  const t = useT();
  const [samples, setSamples] = useState<Record<string, Sample>>({});
  const [error, setError] = useState<Failed>();
  const ends = steps.filter((s) => ["use", "flow", "wait", "delay"].includes(s.kind));
  const of = (id: string): Sample => samples[id] ?? { end: "ok", output: "" };
  const set = (id: string, more: Partial<Sample>) => setSamples((all) => ({ ...all, [id]: { ...of(id), ...more } }));
  const wrong = wrongJson(input) ?? ends.map((s) => of(s.id).output.trim()).filter(Boolean).map((o) => wrongJson(o)).find(Boolean);
  const run = async (source: string) => {
    setError(undefined);
    const with_ = (f: (s: Sample) => boolean) => ends.filter((s) => f(of(s.id))).map((s) => s.id);
    const outputs = with_((s) => s.end === "ok" && s.output.trim() !== "").map((id) => `${JSON.stringify(id)}:${of(id).output}`);
    const failures = Object.fromEntries(with_((s) => s.end === "fail").map((id) => [id, {}]));
    const rest = JSON.stringify({ source, failures, timedOut: with_((s) => s.end === "timeout") });
    try {
      show(await call<TriedFlow>("/api/flows/dry-run", { raw: `${rest.slice(0, -1)},"input":${input},"outputs":{${outputs.join(",")}}}` }));
    } catch (e) {
      show(undefined);
      if (e instanceof Failed) setError(e);
    }
  };
  return (
    <section>
      <h2>{t("dry")} {tried && <State state={tried.state === "running" ? "delayed" : tried.state} />}</h2>
      <p class="dim">{t("dry.lead")}</p>
      <div class="columns">
        <div class="form">
          <label>{t("flow.input")}<textarea class="code" rows={6} spellcheck={false} value={input} aria-invalid={!!wrongJson(input)} onInput={(e) => setInput(e.currentTarget.value)} /></label>
          {wrong && <p class="bad" role="status">{wrong}</p>}
          <Trouble error={error} />
          <div class="acts"><button type="button" class="main" disabled={!!wrong || steps.length === 0} onClick={() => text((source) => void run(source))}>{t("dry.run")}</button>{tried && <button type="button" onClick={() => show(undefined)}>{t("clear")}</button>}</div>
        </div>
        <div class="samples">
          {ends.map((s) => (
            <div key={s.id} class="row">
              <b>{s.id}</b>
              <select aria-label={t("dry.ends", { step: s.id })} value={of(s.id).end} onChange={(e) => set(s.id, { end: e.currentTarget.value as End })}>
                <option value="ok">{t("dry.ok")}</option>
                <option value="fail">{t("dry.fail")}</option>
                {s.kind === "wait" && <option value="timeout">{t("dry.timeout")}</option>}
              </select>
              {of(s.id).end === "ok" && s.kind !== "delay" && <input class="code" aria-label={t("dry.gives", { step: s.id })} placeholder={s.kind === "wait" ? '{"approved":true}' : "null"} value={of(s.id).output} spellcheck={false} autoComplete="off" onInput={(e) => set(s.id, { output: e.currentTarget.value })} />}
            </div>
          ))}
        </div>
      </div>
      {tried && <Tried v={tried} />}
    </section>
  );
}

function Tried({ v }: { v: TriedFlow }) {
  const t = useT();
  return (
    <>
      {v.failure && <div class="note bad"><strong>{v.failure.code}</strong> {v.failure.step && <b>{v.failure.step}: </b>}{v.failure.message}</div>}
      {v.waiting.length > 0 && <div class="note">{v.waiting.map((w, i) => <div key={i}><b>{w.step}</b> {w.text}</div>)}</div>}
      {v.cut && <div class="note">{t("dry.cut")}</div>}
      <h3>{t("dry.sent", { n: v.sent.length })}</h3>
      <ol class="sent">
        {v.sent.slice(0, 200).map((s, i) => <Sent key={i} s={s} />)}
      </ol>
      {v.steps.some((s) => s.state === "skipped") && <p class="dim">{t("dry.skipped")} {v.steps.filter((s) => look(s) === "skipped").map((s) => s.id).join(", ")}</p>}
      {v.output !== undefined && <><h3>{t("flow.output")}</h3><Json value={v.output} label={t("flow.output")} /></>}
    </>
  );
}

function Sent({ s }: { s: TriedSend }) {
  const t = useT();
  return (
    <li>
      <b>{s.step}{s.item !== undefined && ` [${s.item}]`}</b> {s.undo && <span class="tag warn">{t("step.compensate")}</span>} <span class="dim">{[s.use, s.queue, s.delay].filter(Boolean).join(" · ")}</span>
      {s.payload !== undefined && <details><summary>{t("step.gets")}</summary><Json value={s.payload} label={t("step.gets")} /></details>}
    </li>
  );
}
