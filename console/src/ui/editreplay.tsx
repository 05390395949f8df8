import { useMemo, useState } from "react";
import { call, Failed } from "../api/client";
import { print } from "../api/json";
import type { AddedJob, DeadLetter } from "../api/types";
import { useT } from "../i18n";
import { go, href } from "../router";
import { wrongJson } from "./addjob";
import { Dialog, Trouble } from "./bits";
import { diff } from "./diff";

// EditReplay sends a dead letter again with other data: as a new job, which names the
// old one as its parent. The dead letter goes once the job is there.
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
  const send = async () => {
    setBusy(true);
    setError(undefined);
    try {
      const rest = { queue: m.queue, name: m.kind, parent: m.id, priority: m.priority, group: m.group, headers: m.headers, limitKey: m.limitKey };
      const raw = JSON.stringify(rest).slice(0, -1) + `,"data":${text}}`;
      const added = await call<AddedJob>("/api/jobs", { raw, key });
      await call("/api/dead/discard", { body: { seqs: [d.seq], reason: "edited and replayed as " + added.jobId } });
      done();
      close();
      go(href(["jobs", added.jobId]));
    } catch (e) {
      if (e instanceof Failed) setError(e);
    }
    setBusy(false);
  };
  return (
    <Dialog title={t("dead.edit")} close={close} wide>
      <div class="form">
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
        <p class="dim">{t("dead.edit.lead")}</p>
        <Trouble error={error} />
        <div class="acts"><button type="button" class="main" disabled={busy || !!wrong} onClick={send}>{t("dead.edit.send")}</button></div>
      </div>
    </Dialog>
  );
}
