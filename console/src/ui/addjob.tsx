import { useState } from "react";
import { call, Failed } from "../api/client";
import { useResource } from "../api/resource";
import type { AddedJob, WorkerList } from "../api/types";
import { useT } from "../i18n";
import { go, href } from "../router";
import { useStore } from "../store";
import { Dialog, Trouble } from "./bits";
import { now } from "./live";

export interface Draft {
  queue?: string;
  name?: string;
  data?: string;
}

// wrongJson says what is wrong with a text that should be JSON; undefined: nothing.
export function wrongJson(text: string): string | undefined {
  try {
    JSON.parse(text);
    return undefined;
  } catch (e) {
    return (e as Error).message;
  }
}

export function AddJob({ close, draft = {} }: { close: () => void; draft?: Draft }) {
  const t = useT();
  const workers = useResource<WorkerList>("/api/workers");
  const queues = useStore(now).overview?.queues.map((q) => q.name) ?? [];
  const [queue, setQueue] = useState(draft.queue ?? "");
  const [data, setData] = useState(draft.data ?? "{}");
  const [error, setError] = useState<Failed>();
  const [busy, setBusy] = useState(false);
  const [key] = useState(() => crypto.randomUUID?.() ?? String(Math.random()));
  const wrong = wrongJson(data);
  const all = [...new Set([...queues, ...(workers.data?.items.map((w) => w.queue) ?? [])])].sort();
  const names = workers.data?.items.filter((w) => !queue || w.queue === queue).flatMap((w) => w.handlers).filter((h) => h !== "*") ?? [];
  return (
    <Dialog title={t("addjob")} close={close}>
      <form
        class="form"
        onSubmit={async (e) => {
          e.preventDefault();
          const f = new FormData(e.currentTarget);
          const rest: Record<string, unknown> = { queue: f.get("queue"), name: f.get("name") };
          for (const k of ["delay", "timeout", "group", "id"]) if (f.get(k)) rest[k] = f.get(k);
          for (const k of ["attempts", "priority"]) if (f.get(k)) rest[k] = Number(f.get(k));
          const tags = String(f.get("tags") ?? "").split(/[\s,]+/).filter(Boolean);
          if (tags.length > 0) rest.tags = tags;
          setBusy(true);
          setError(undefined);
          try {
            const raw = JSON.stringify(rest).slice(0, -1) + `,"data":${data}}`; // its numbers as they were typed
            const added = await call<AddedJob>("/api/jobs", { raw, key });
            close();
            go(href(["jobs", added.jobId]));
          } catch (err) {
            if (err instanceof Failed) setError(err);
          }
          setBusy(false);
        }}
      >
        <div class="pair">
          <label>{t("queue")}<input name="queue" list="queues" required value={queue} onInput={(e) => setQueue(e.currentTarget.value)} autoComplete="off" autoFocus /></label>
          <label>{t("job.name")}<input name="name" list="names" required defaultValue={draft.name} autoComplete="off" /></label>
        </div>
        <datalist id="queues">{all.map((q) => <option key={q} value={q} />)}</datalist>
        <datalist id="names">{names.map((n) => <option key={n} value={n} />)}</datalist>
        <label>{t("job.data")}<textarea name="data" class="code" rows={8} spellcheck={false} value={data} aria-invalid={!!wrong} onInput={(e) => setData(e.currentTarget.value)} /></label>
        {wrong && <p class="bad" role="status">{wrong}</p>}
        <details>
          <summary>{t("addjob.more")}</summary>
          <div class="triple">
            <label>{t("job.delay")}<input name="delay" placeholder="10m" /></label>
            <label>{t("job.attempts.max")}<input name="attempts" type="number" min="1" placeholder="5" /></label>
            <label>{t("job.priority")}<input name="priority" type="number" min="0" max="9" placeholder="5" /></label>
          </div>
          <div class="triple">
            <label>{t("job.timeout")}<input name="timeout" placeholder="30s" /></label>
            <label>{t("job.group")}<input name="group" /></label>
            <label>{t("job.tags")}<input name="tags" /></label>
          </div>
          <label>{t("id")}<input name="id" placeholder={t("addjob.id")} /></label>
        </details>
        <Trouble error={error} />
        <div class="acts"><button type="submit" class="main" disabled={busy || !!wrong}>{t("addjob")}</button></div>
      </form>
    </Dialog>
  );
}
