import { useEffect, useState } from "react";
import { call, Failed, numberOf } from "../api/client";
import { useFeed } from "../api/feed";
import type { BulkStarted, Job } from "../api/types";
import { useT, type Key } from "../i18n";
import { count } from "../i18n/format";
import { href } from "../router";
import { Bar, Dialog, Loading, State, Trouble } from "./bits";
import { complain } from "./toast";

export type Action = "retry" | "cancel" | "promote" | "remove";

export const actionKeys: Record<Action, Key> = { retry: "act.retry", cancel: "act.cancel", promote: "act.promote", remove: "act.remove" };

// act does something with one job.
export function act(action: Action, id: string, reason?: string): Promise<unknown> {
  const path = "/api/jobs/" + encodeURIComponent(id);
  if (action === "remove") return call(path, { method: "DELETE" });
  return call(`${path}/${action}`, action === "cancel" ? { body: { reason: reason ?? "" } } : { method: "POST" });
}

// ChosenDialog does an action with jobs that were chosen one by one.
export function ChosenDialog({ action, ids, close, done }: { action: Action; ids: string[]; close: () => void; done: () => void }) {
  const t = useT();
  const [at, setAt] = useState<number | null>(null);
  const [failed, setFailed] = useState<{ id: string; error: Failed }[]>([]);
  const run = async () => {
    setAt(0);
    let next = 0;
    const one = async () => {
      for (let i = next++; i < ids.length; i = next++) {
        try {
          await act(action, ids[i]);
        } catch (e) {
          if (e instanceof Failed) setFailed((all) => [...all, { id: ids[i], error: e }]);
        }
        setAt((n) => (n ?? 0) + 1);
      }
    };
    await Promise.all([one(), one(), one(), one()]);
    done();
  };
  const over = at === ids.length;
  return (
    <Dialog title={t(actionKeys[action])} close={close}>
      <p>{t("bulk.chosen", { n: ids.length })}</p>
      {at !== null && <Bar percent={(at / ids.length) * 100} />}
      {at !== null && <p role="status" class="num">{t("bulk.done", { done: at - failed.length, failed: failed.length })}</p>}
      {failed.slice(0, 5).map((f) => <p key={f.id} class="note bad"><code>{f.id}</code> {t.said(f.error.message) ?? f.error.message}</p>)}
      <div class="acts">
        {over ? <button type="button" class="main" onClick={close}>{t("close")}</button> : (
          <button type="button" class={action === "remove" || action === "cancel" ? "danger" : "main"} disabled={at !== null} onClick={run}>{t(actionKeys[action])}</button>
        )}
      </div>
    </Dialog>
  );
}

// MatchingDialog does an action with all jobs that a filter means: first it counts
// them, then the server does it, as a job that can be watched and cancelled.
export function MatchingDialog({ action, q, close, done }: { action: Action; q: string; close: () => void; done: () => void }) {
  const t = useT();
  const [dry, setDry] = useState<BulkStarted>();
  const [error, setError] = useState<Failed>();
  const [job, setJob] = useState<string>();
  const [typed, setTyped] = useState("");
  const body = { action, ...(q ? { q } : { all: true }) };
  useEffect(() => {
    call<BulkStarted>("/api/jobs/actions", { body: { ...body, dryRun: true } }).then(setDry, (e) => setError(e));
  }, []);
  const matched = numberOf(dry?.matched ?? 0);
  const grave = action === "remove" || action === "cancel";
  const start = async () => {
    try {
      setJob((await call<BulkStarted>("/api/jobs/actions", { body, key: crypto.randomUUID?.() })).jobId);
    } catch (e) {
      complain(e);
    }
  };
  return (
    <Dialog title={t("bulk.matching", { action: t(actionKeys[action]) })} close={close}>
      <p><code>{q || t("bulk.all")}</code></p>
      {error && <Trouble error={error} />}
      {!dry && !error && <Loading />}
      {dry && !job && (
        <>
          <p class="big num">{count(t.lang, matched)}{dry.more && "+"} <small>{t("bulk.meant")}</small></p>
          {dry.sample?.slice(0, 5).map((j) => (
            <p key={j.jobId} class="row"><State state={j.state} /> <span>{j.name}</span> <code class="id">{j.jobId}</code></p>
          ))}
          {grave && matched > 0 && (
            <label>{t("type.confirm", { text: String(matched) })}<input inputMode="numeric" value={typed} onInput={(e) => setTyped(e.currentTarget.value)} autoComplete="off" /></label>
          )}
          <div class="acts">
            <button type="button" class={grave ? "danger" : "main"} disabled={matched === 0 || (grave && typed !== String(matched))} onClick={start}>{t(actionKeys[action])}</button>
          </div>
        </>
      )}
      {job && <Progress id={job} done={done} close={close} />}
    </Dialog>
  );
}

function Progress({ id, done, close }: { id: string; done: () => void; close: () => void }) {
  const t = useT();
  const [job, setJob] = useState<Job>();
  const over = job && ["completed", "dead", "cancelled", "expired"].includes(job.state);
  useFeed(`/api/jobs/${id}/stream`, {}, { snapshot: setJob, state: setJob, progress: setJob, done: (j: Job) => { setJob(j); done(); }, joined: () => void call<Job>(`/api/jobs/${id}`).then(setJob, complain) });
  const result = job?.result as { matched?: number; done?: number; failed?: number } | undefined;
  return (
    <>
      <Bar percent={over ? 100 : (job?.progress.percent ?? 0)} />
      <p role="status">
        {job && <State state={job.state} />} {result ? t("bulk.done", { done: numberOf(result.done ?? 0), failed: numberOf(result.failed ?? 0) }) : (job?.progress.message ?? "")}
        {job?.failedReason && <span class="bad"> {job.failedReason}</span>}
      </p>
      <div class="acts">
        <a class="button" href={href(["jobs", id])} onClick={close}>{t("bulk.job")}</a>
        {over ? <button type="button" class="main" onClick={close}>{t("close")}</button> : <button type="button" onClick={() => void act("cancel", id).catch(complain)}>{t("bulk.stop")}</button>}
      </div>
    </>
  );
}
