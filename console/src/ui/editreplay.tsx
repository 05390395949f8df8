import { useMemo, useState } from "react";
import { call, Failed } from "../api/client";
import { print } from "../api/json";
import type { DeadEdited, DeadLetter } from "../api/types";
import { useT } from "../i18n";
import { go, href } from "../router";
import { wrongJson } from "./addjob";
import { Dialog, Trouble } from "./bits";
import { diff } from "./diff";

// EditReplay sends a dead letter again with changes: the server makes a new job of it,
// which names the old one, and the dead letter goes, in one step.
export function EditReplay({ d, close, done }: { d: DeadLetter; close: () => void; done: () => void }) {
  const t = useT();
  const m = d.message;
  const before = useMemo(() => print(m.payload?.json), [m]);
  const [text, setText] = useState(before);
  const [error, setError] = useState<Failed>();
  const [busy, setBusy] = useState(false);
  const [key] = useState(() => crypto.randomUUID?.() ?? String(Math.random()));
  const wrong = wrongJson(text);
  const lines = useMemo(() => (text.length + before.length > 400_000 ? [] : diff(before, text)), [before, text]);
  const send = async (f: FormData) => {
    setBusy(true);
    setError(undefined);
    const rest: Record<string, unknown> = {};
    for (const k of ["queue", "delay", "timeout"]) if (f.get(k) && f.get(k) !== m.queue) rest[k] = f.get(k);
    if (f.get("attempts")) rest.attempts = Number(f.get("attempts"));
    if (f.get("priority") && Number(f.get("priority")) !== m.priority) rest.priority = Number(f.get("priority"));
    const parts = [JSON.stringify(rest).slice(1, -1), ...(text !== before ? [`"data":${text}`] : [])]; // its numbers as they were typed
    try {
      const sent = await call<DeadEdited>(`/api/dead/${d.seq}/replay`, { raw: `{${parts.filter(Boolean).join(",")}}`, key });
      done();
      close();
      go(href(["jobs", sent.jobId]));
    } catch (e) {
      if (e instanceof Failed) setError(e);
    }
    setBusy(false);
  };
  return (
    <Dialog title={t("dead.edit")} close={close} wide>
      <form class="form" onSubmit={(e) => { e.preventDefault(); void send(new FormData(e.currentTarget)); }}>
        <label>{t("job.data")}<textarea class="code" rows={12} spellcheck={false} value={text} aria-invalid={!!wrong} onInput={(e) => setText(e.currentTarget.value)} autoFocus /></label>
        {wrong && <p class="bad" role="status">{wrong}</p>}
        {text !== before && lines.length > 0 && (
          <>
            <h3>{t("dead.diff")}</h3>
            <pre class="diff" tabIndex={0} aria-label={t("dead.diff")}>
              {lines.map((l, i) => <div key={i} class={l.sign === "+" ? "plus" : l.sign === "-" ? "minus" : ""}>{l.sign} {l.text}</div>)}
            </pre>
          </>
        )}
        <details>
          <summary>{t("addjob.more")}</summary>
          <div class="triple">
            <label>{t("queue")}<input name="queue" defaultValue={m.queue} autoComplete="off" /></label>
            <label>{t("job.delay")}<input name="delay" placeholder="10m" /></label>
            <label>{t("job.priority")}<input name="priority" type="number" min="0" max="9" defaultValue={m.priority} /></label>
          </div>
          <div class="triple">
            <label>{t("job.attempts.max")}<input name="attempts" type="number" min="1" /></label>
            <label>{t("job.timeout")}<input name="timeout" placeholder="30s" /></label>
          </div>
        </details>
        <p class="dim">{t("dead.edit.lead")}</p>
        <Trouble error={error} />
        <div class="acts"><button type="submit" class="main" disabled={busy || !!wrong}>{t("dead.edit.send")}</button></div>
      </form>
    </Dialog>
  );
}
