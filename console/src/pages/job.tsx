import { useEffect, useState } from "react";
import { call, numberOf } from "../api/client";
import { useFeed, type FeedState } from "../api/feed";
import { print } from "../api/json";
import { useResource } from "../api/resource";
import type { Job, JobProgress, LogLine, LogList } from "../api/types";
import { useT } from "../i18n";
import { clock, span } from "../i18n/format";
import { useMay } from "../roles";
import { go, href } from "../router";
import { AddJob } from "../ui/addjob";
import { Ago, Bar, Empty, Head, Loading, Moment, Pairs, State, Trouble } from "../ui/bits";
import { act, actionKeys, type Action } from "../ui/bulk";
import { Json } from "../ui/json";
import { complain, say } from "../ui/toast";
import { Life } from "./life";

const final = ["completed", "dead", "cancelled", "expired"];

export function One({ id }: { id: string }) {
  const t = useT();
  const path = "/api/jobs/" + encodeURIComponent(id);
  const whole = useResource<Job>(path);
  const [live, setLive] = useState<Job>();
  const [turn, setTurn] = useState(0); // of what happened to it
  const [told, setTold] = useState<LogLine[]>([]);
  const changed = (j: Job) => { setLive(j); setTurn((n) => n + 1); };
  const feed = useFeed(whole.data ? path + "/stream" : null, {}, {
    snapshot: setLive, progress: setLive, state: changed,
    log: (l: LogLine) => setTold((all) => [...all, l].slice(-1000)),
    done: (j: Job) => { changed(j); whole.reload(); },
    joined: () => { whole.reload(); setTurn((n) => n + 1); },
  });
  if (!whole.data) {
    if (!whole.error) return <Loading />;
    return whole.error.code === "not_found" ? <Empty title={t("job.none")}>{t("job.none.lead")}</Empty> : <Trouble error={whole.error} />;
  }
  const fresh = live && !(final.includes(whole.data.state) && whole.data.finishedAt === live.finishedAt);
  const j: Job = fresh ? { ...whole.data, ...live, data: whole.data.data, dataBase64: whole.data.dataBase64 } : whole.data;
  const again = () => { setLive(undefined); whole.reload(); setTurn((n) => n + 1); };
  return (
    <>
      <Head title={<>{j.name} <State state={j.state} /></>} lead={<><a href={href(["jobs"])}>{t("nav.jobs")}</a> / <code class="id">{j.jobId}</code></>}>
        <Acts j={j} done={again} />
      </Head>
      <Stream state={feed} over={final.includes(j.state)} />
      {j.cancelRequested && !final.includes(j.state) && <div class="note" role="status">{t("job.cancelling")}</div>}
      {j.failedReason && j.state !== "completed" && <Failure j={j} />}
      {!final.includes(j.state) && <Progress j={j} />}
      <Facts j={j} />
      <Life id={id} turn={turn} over={final.includes(j.state)} />
      <div class="columns">
        <section>
          <h2>{t("job.data")}</h2>
          {j.dataBase64 ? <pre>{j.dataBase64}</pre> : <Json value={j.data} label={t("job.data")} />}
        </section>
        <section>
          <h2>{t("job.result")}</h2>
          {j.result !== undefined ? <Json value={j.result} label={t("job.result")} /> : <p class="card dim">{final.includes(j.state) ? t("job.noresult") : t("job.notyet")}</p>}
        </section>
      </div>
      <Logs id={id} told={told} />
    </>
  );
}

function Stream({ state, over }: { state: FeedState; over: boolean }) {
  const t = useT();
  if (over || state === "live" || state === "opening" || state === "over") return null;
  return <div class="banner" role="status">{t("banner.stream")}</div>;
}

function Failure({ j }: { j: Job }) {
  const t = useT();
  const cause = j.cause ?? j.failures?.at(-1);
  return (
    <div class={"note" + (j.state === "dead" ? " bad" : "")}>
      <strong>{cause?.code}</strong> {j.failedReason}
      {j.deadSeq && <div><a href={href(["dead", j.deadSeq])}>{t("job.deadletter", { seq: j.deadSeq })}</a></div>}
    </div>
  );
}

function Acts({ j, done }: { j: Job; done: () => void }) {
  const t = useT();
  const may = useMay();
  const [copying, setCopying] = useState(false);
  if (!may.operate) return null;
  const can: Action[] = [];
  if (!final.includes(j.state)) can.push("cancel");
  if (j.state === "delayed") can.push("promote");
  if (final.includes(j.state)) can.push("retry", "remove");
  const run = async (a: Action) => {
    try {
      const r = (await act(a, j.jobId)) as { jobId?: string } | undefined;
      say(t("job.acted"));
      if (a === "remove") go(href(["jobs"]), true);
      else if (r?.jobId && r.jobId !== j.jobId) go(href(["jobs", r.jobId]));
      else done();
    } catch (e) {
      complain(e);
    }
  };
  const curl = `curl -d '${print({ queue: j.queue, name: j.name, data: j.data }).replace(/\n\s*/g, " ").replaceAll("'", "'\\''")}' ${location.origin}/api/jobs`;
  return (
    <>
      {can.map((a) => <button key={a} type="button" class={a === "retry" ? "main" : a === "remove" || a === "cancel" ? "danger" : ""} onClick={() => void run(a)}>{t(actionKeys[a])}</button>)}
      <button type="button" onClick={() => setCopying(true)}>{t("job.copy")}</button>
      <button type="button" onClick={() => void navigator.clipboard?.writeText(curl).then(() => say(t("copied")))}>curl</button>
      {copying && <AddJob draft={{ queue: j.queue, name: j.name, data: print(j.data) }} close={() => setCopying(false)} />}
    </>
  );
}

function Progress({ j }: { j: Job }) {
  const t = useT();
  const eta = useResource<JobProgress>(`/api/jobs/${encodeURIComponent(j.jobId)}/progress`, {}, 5000);
  const e = eta.data?.estimatedSeconds;
  return (
    <div class="card progress">
      <Bar percent={j.progress.percent ?? 0} />
      <div class="row">
        <b class="num">{Math.round(j.progress.percent ?? 0)} %</b>
        <span>{[j.progress.stage, j.progress.message].filter(Boolean).join(" · ")}</span>
        {e && <span class="dim">{t("job.eta", { low: span(t.lang, e.low), high: span(t.lang, e.high) })}</span>}
      </div>
    </div>
  );
}

function Facts({ j }: { j: Job }) {
  const t = useT();
  return (
    <Pairs
      pairs={[
        { name: t("queue"), value: <a href={href(["queues", j.queue])}>{j.queue}</a> },
        { name: t("job.sent"), value: <Ago at={j.sentAt} /> },
        j.state === "delayed" && { name: t("job.runat"), value: <Moment at={j.runAt} /> },
        j.startedAt && { name: t("job.started"), value: <Ago at={j.startedAt} /> },
        j.finishedAt && { name: t("job.finished"), value: <Ago at={j.finishedAt} /> },
        { name: t("job.attempts"), value: <span class="num">{j.attempts}{j.maxAttempts ? ` / ${j.maxAttempts}` : ""}</span> },
        { name: t("job.deliveries"), value: <span class="num">{j.deliveries}</span> },
        { name: t("job.priority"), value: <span class="num">{j.priority}</span> },
        j.timeout && { name: t("job.timeout"), value: j.timeout },
        j.group && { name: t("job.group"), value: j.group },
        j.tenant && { name: t("job.tenant"), value: j.tenant },
        j.owner && { name: t("job.owner"), value: j.owner },
        j.limitKey && { name: t("job.limitkey"), value: j.limitKey },
        j.dedupKey && { name: t("job.dedupkey"), value: j.dedupKey },
        j.tags && { name: t("job.tags"), value: j.tags.map((tag) => <a key={tag} class="tag" href={href(["jobs"], { q: "tag:" + tag })}>{tag}</a>) },
        j.parent && { name: t("job.parent"), value: <a class="id" href={href(["jobs", j.parent])}>{j.parent}</a> },
        j.trace && { name: t("job.trace"), value: <code>{j.trace}</code> },
        { name: t("nav.history"), value: <a href={href(["history"], { job: j.jobId })}>{t("show")}</a> },
        { name: t("job.children"), value: <a href={href(["jobs"], { q: "parent:" + j.jobId })}>{t("show")}</a> },
      ]}
    />
  );
}

function Logs({ id, told }: { id: string; told: LogLine[] }) {
  const t = useT();
  const [lines, setLines] = useState<LogLine[]>([]);
  const [more, setMore] = useState<number>();
  const load = async (after: number) => {
    try {
      const l = await call<LogList>(`/api/jobs/${encodeURIComponent(id)}/logs`, { query: { after, limit: 500 } });
      setLines((old) => (after === 0 ? l.items : [...old, ...l.items]));
      setMore(l.more ? numberOf(l.next) : undefined);
    } catch {
      // no logs: the list says so
    }
  };
  useEffect(() => void load(0), [id]);
  const last = lines.at(-1)?.at ?? "";
  const all = more === undefined ? [...lines, ...told.filter((l) => (l.at ?? "") > last)] : lines;
  return (
    <section>
      <h2>{t("job.logs")}</h2>
      {all.length === 0 ? <p class="card dim">{t("job.nologs")}</p> : (
        <pre class="logs" tabIndex={0} aria-label={t("job.logs")}>
          {all.map((l, i) => <div key={i}><span class="dim">{l.at && clock(t.lang, Date.parse(l.at))}</span> {l.text}</div>)}
        </pre>
      )}
      {more !== undefined && <button type="button" onClick={() => void load(more)}>{t("more")}</button>}
    </section>
  );
}
