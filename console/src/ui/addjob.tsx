import { useEffect, useState, type ComponentType } from "react";
import { call, Failed } from "../api/client";
import { useResource } from "../api/resource";
import type { AddedJob, HandlerList, WorkerList } from "../api/types";
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

// wrongAt is what the server says is wrong with the data, by where it stands in it.
function wrongAt(error?: Failed): Record<string, string> {
  const of = (error?.problem.errors ?? []).filter((e) => e.pointer.startsWith("/data"));
  return Object.fromEntries(of.map((e) => [e.pointer.split("/").slice(2).map((key) => key.replaceAll("~1", "/").replaceAll("~0", "~")).join("."), e.message]));
}

type DataForm = ComponentType<{ schema: unknown; name: string; text: string; put: (text: string) => void; wrong: Record<string, string> }>;

// useForm loads what makes a form of a schema, which the designer has too, when it is needed.
function useForm(needed: boolean): DataForm | undefined {
  const [form, set] = useState<{ Form: DataForm }>();
  useEffect(() => {
    if (needed && !form) import("../flow/dataform").then((m) => set({ Form: m.default }), () => {}); // without it there is the text
  }, [needed]);
  return form?.Form;
}

export function AddJob({ close, draft = {} }: { close: () => void; draft?: Draft }) {
  const t = useT();
  const workers = useResource<WorkerList>("/api/workers");
  const handlers = useResource<HandlerList>("/api/handlers").data?.items ?? [];
  const queues = useStore(now).overview?.queues.map((q) => q.name) ?? [];
  const [queue, setQueue] = useState(draft.queue ?? "");
  const [name, setName] = useState(draft.name ?? "");
  const [data, setData] = useState(draft.data ?? "{}");
  const [error, setError] = useState<Failed>();
  const [busy, setBusy] = useState(false);
  const [key] = useState(() => crypto.randomUUID?.() ?? String(Math.random()));
  const wrong = wrongJson(data);
  const all = [...new Set([...queues, ...(workers.data?.items.map((w) => w.queue) ?? []), ...handlers.map((h) => h.queue)])].sort();
  const here = <T extends { queue: string }>(some: T[]) => some.filter((o) => !queue || o.queue === queue);
  const names = [...new Set([...here(workers.data?.items ?? []).flatMap((w) => w.handlers).filter((h) => h !== "*"), ...here(handlers).map((h) => h.name)])];
  const schema = handlers.find((h) => h.queue === queue && h.name === name)?.data;
  const Form = useForm(schema !== undefined);
  return (
    <Dialog title={t("addjob")} close={close} wide={schema !== undefined}>
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
          <label>{t("job.name")}<input name="name" list="names" required value={name} onInput={(e) => setName(e.currentTarget.value)} autoComplete="off" /></label>
        </div>
        <datalist id="queues">{all.map((q) => <option key={q} value={q} />)}</datalist>
        <datalist id="names">{names.map((n) => <option key={n} value={n} />)}</datalist>
        <div class={schema !== undefined ? "columns" : undefined}>
          {schema !== undefined && Form && !wrong && <Form key={queue + "/" + name} name={t("addjob.fields", { name })} schema={schema} text={data} put={setData} wrong={wrongAt(error)} />}
          <label>{t("job.data")}<textarea name="data" class="code" rows={schema !== undefined ? 14 : 8} spellcheck={false} value={data} aria-invalid={!!wrong} onInput={(e) => setData(e.currentTarget.value)} /></label>
        </div>
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
