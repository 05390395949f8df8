import { useEffect, useMemo, useRef, useState } from "react";
import { useFeed } from "../api/feed";
import { useResource } from "../api/resource";
import type { Job, JobEvent, WorkerList } from "../api/types";
import { useT } from "../i18n";
import { span } from "../i18n/format";
import { Foot } from "../lists/foot";
import { usePages } from "../lists/pages";
import { Table, type At } from "../lists/table";
import { Views } from "../lists/views";
import { useMay } from "../roles";
import { go, href, usePlace } from "../router";
import { AddJob } from "../ui/addjob";
import { Ago, Bar, Empty, Head, Loading, State, Trouble, useStateName } from "../ui/bits";
import { actionKeys, ChosenDialog, MatchingDialog, type Action } from "../ui/bulk";
import { FilterBox } from "../ui/filter";
import { useClock } from "../ui/live";
import { One } from "./job";

export default function Page({ rest }: { rest: string[] }) {
  return rest[0] ? <One key={rest[0]} id={rest[0]} /> : <All />;
}

const quick = ["active", "waiting", "delayed", "dead", "completed", "cancelled", "expired"];
const actions: Action[] = ["retry", "cancel", "promote", "remove"];

// withState puts a state into a filter, or takes it out.
function withState(q: string, state: string): string {
  const rest = q.split(/\s+/).filter((term) => term && !term.startsWith("state:"));
  return (state ? ["state:" + state, ...rest] : rest).join(" ");
}

const sinces = ["15m", "1h", "24h", "7d"];

// withSince puts a time into a filter, or takes it out.
function withSince(q: string, since: string): string {
  const rest = q.split(/\s+/).filter((term) => term && !/^(since|until):/.test(term));
  return (since ? [...rest, "since:" + since] : rest).join(" ");
}

function All() {
  const t = useT();
  const may = useMay();
  const { query } = usePlace();
  const q = query.get("q") ?? "";
  const after = query.get("after") ?? "";
  const page = usePages<Job>("/api/jobs", { q, after }, "after");
  const workers = useResource<WorkerList>("/api/workers");
  const { rows, fresh, show } = useRows(page.items, page.data, q, page.reload);
  const [chosen, setChosen] = useState<Set<string>>(new Set());
  const [chosenAct, setChosenAct] = useState<Action>();
  const [matchAct, setMatchAct] = useState<Action>();
  const [adding, setAdding] = useState(false);
  const state = useStateName();
  useEffect(() => setChosen(new Set()), [q, after]);
  const search = (next: string) => go(href(["jobs"], { q: next }));
  const known = useMemo(
    () => ({
      kinds: [...new Set([...(workers.data?.items.flatMap((w) => w.handlers) ?? []).filter((h) => h !== "*"), ...rows.map((j) => j.name)])].sort(),
      codes: [...new Set(rows.flatMap((j) => [j.cause?.code, ...(j.failures?.map((f) => f.code) ?? [])]))].filter((c) => c !== undefined),
    }),
    [rows, workers.data],
  );
  const now = q.match(/(?:^|\s)state:(\w+)/)?.[1] ?? "";
  const since = q.match(/(?:^|\s)since:(\w+)/)?.[1] ?? "";
  const anew = () => { setChosen(new Set()); page.reload(); };
  return (
    <>
      <Head title={t("nav.jobs")}>
        {may.operate && <button type="button" class="main" onClick={() => setAdding(true)}>{t("addjob")}</button>}
      </Head>
      <FilterBox value={q} set={search} known={known} />
      <Views screen="jobs" />
      <div class="chips" role="group" aria-label={t("job.state")}>
        {["", ...quick].map((s) => (
          <button key={s} type="button" class="chip" aria-pressed={now === s} onClick={() => search(withState(q, s))}>{s ? state(s) : t("all")}</button>
        ))}
        <span class="gap" />
        {sinces.map((s) => <button key={s} type="button" class="chip" aria-pressed={since === s} title={t("jobs.since")} onClick={() => search(withSince(q, since === s ? "" : s))}>{s}</button>)}
        {fresh > 0 && <button type="button" class="pill" onClick={show}>{t("jobs.new", { n: fresh })}</button>}
      </div>
      {may.operate && rows.length > 0 && (
        <div class="bulk">
          <span class="num" role="status">{chosen.size > 0 ? t("jobs.chosen", { n: chosen.size }) : t("jobs.matching")}</span>
          {actions.map((a) => (
            <button key={a} type="button" class="small" onClick={() => (chosen.size > 0 ? setChosenAct(a) : setMatchAct(a))}>{t(actionKeys[a])}{chosen.size === 0 && "…"}</button>
          ))}
        </div>
      )}
      <Trouble error={page.error} />
      {page.loading && !page.data ? <Loading /> : rows.length > 0 ? <Rows rows={rows} more={page.more} end={page.load} chosen={chosen} choose={may.operate ? setChosen : undefined} /> : !page.error && (
        q || after ? <Empty title={t("jobs.nomatch")}><button type="button" onClick={() => search("")}>{t("jobs.clear")}</button></Empty> : (
          <Empty title={t("jobs.empty")} command={`forebay jobs add mail welcome '{"to":"a@example.com"}' --watch`}>{t("jobs.empty.lead")}</Empty>
        )
      )}
      <Foot list={page} begin={after && href(["jobs"], { q })} on={href(["jobs"], { q, after: page.next })} />
      {adding && <AddJob close={() => setAdding(false)} />}
      {chosenAct && <ChosenDialog action={chosenAct} ids={[...chosen]} close={() => setChosenAct(undefined)} done={anew} />}
      {matchAct && <MatchingDialog action={matchAct} q={q} close={() => setMatchAct(undefined)} done={anew} />}
    </>
  );
}

// useRows keeps the rows that are shown up to date, and counts new ones instead of
// letting the list jump.
function useRows(items: Job[], page: unknown, q: string, reload: () => void) {
  const [changes, setChanges] = useState<Map<string, JobEvent>>(new Map());
  const [fresh, setFresh] = useState(0);
  const waiting = useRef<JobEvent[]>([]);
  const queue = q.match(/(?:^|\s)queue:(\S+)/)?.[1];
  useEffect(() => {
    setChanges(new Map());
    setFresh(0);
  }, [page]);
  const opened = useRef(false);
  const hear = (e: JobEvent) => waiting.current.push(e);
  useFeed("/api/stream", { queue: queue && !queue.startsWith('"') ? queue : undefined }, {
    state: hear, progress: hear,
    reset: () => (opened.current ? reload() : (opened.current = true)),
  });
  useEffect(() => {
    // All that was heard in a while at once, so that a flood costs few drawings.
    const ids = new Set(items.map((j) => j.jobId));
    const timer = setInterval(() => {
      if (waiting.current.length === 0) return;
      const heard = waiting.current.splice(0);
      const added = heard.filter((e) => e.type === "added").length;
      if (added > 0) setFresh((n) => n + added);
      const mine = heard.filter((e) => ids.has(e.jobId));
      if (mine.length > 0) setChanges((old) => new Map([...old, ...mine.map((e): [string, JobEvent] => [e.jobId, { ...old.get(e.jobId), ...e }])]));
    }, 250);
    return () => clearInterval(timer);
  }, [items]);
  const rows = useMemo(() => items.map((j) => changed(j, changes.get(j.jobId))), [items, changes]);
  return { rows, fresh, show: reload };
}

function changed(j: Job, e?: JobEvent): Job {
  if (!e) return j;
  const over = ["completed", "dead", "cancelled", "expired"].includes(e.state ?? "");
  return {
    ...j,
    state: (e.state as Job["state"]) ?? j.state,
    progress: e.progress ?? j.progress,
    startedAt: e.type === "started" ? e.at : j.startedAt,
    finishedAt: over ? e.at : j.finishedAt,
    failedReason: e.cause?.message ?? j.failedReason,
  };
}

function Rows({ rows, more, end, chosen, choose }: { rows: Job[]; more: boolean; end: () => void; chosen: Set<string>; choose?: (s: Set<string>) => void }) {
  const t = useT();
  const whole = rows.every((j) => chosen.has(j.jobId));
  const flip = (id: string) => {
    const next = new Set(chosen);
    if (!next.delete(id)) next.add(id);
    choose!(next);
  };
  const head = (
    <>
      {choose && <th class="check"><input type="checkbox" aria-label={t("jobs.choose.all")} checked={whole} onChange={() => choose(whole ? new Set() : new Set(rows.map((j) => j.jobId)))} /></th>}
      <th>{t("job.state")}</th>
      <th>{t("job.name")}</th>
      <th class="wide">{t("queue")}</th>
      <th class="wide">{t("job.what")}</th>
      <th class="r wide">{t("job.attempts")}</th>
      <th class="r wide">{t("job.took")}</th>
      <th class="r">{t("job.sent")}</th>
    </>
  );
  const row = (j: Job, { key, ...at }: At) => (
    <tr key={key} {...at} class={chosen.has(j.jobId) ? "chosen" : ""}>
      {choose && <td class="check"><input type="checkbox" aria-label={t("jobs.choose", { id: j.jobId })} checked={chosen.has(j.jobId)} onChange={() => flip(j.jobId)} /></td>}
      <td><State state={j.state} /></td>
      <td class="name">
        <a href={href(["jobs", j.jobId])}>{j.name}</a>
        <small class="id">{j.jobId}</small>
      </td>
      <td class="wide">{j.queue}</td>
      <td class="wide what">{j.state === "active" ? <Doing j={j} /> : <span class={j.failedReason ? "bad" : "dim"} title={j.failedReason}>{j.failedReason ?? j.tags?.join(", ")}</span>}</td>
      <td class="r wide num">{j.attempts || "–"}</td>
      <td class="r wide"><Took j={j} /></td>
      <td class="r"><Ago at={j.sentAt} /></td>
    </tr>
  );
  return <Table name="jobs" items={rows} id={(j) => j.jobId} head={head} row={row} more={more} end={end} />;
}

function Doing({ j }: { j: Job }) {
  return <span class="doing"><Bar percent={j.progress.percent ?? 0} /><span class="dim">{j.progress.message ?? j.progress.stage}</span></span>;
}

function Took({ j }: { j: Job }) {
  const t = useT();
  const now = useClock();
  if (!j.startedAt || (j.state !== "active" && !j.finishedAt)) return <span class="dim">–</span>;
  const end = j.finishedAt ? Date.parse(j.finishedAt) : now;
  return <span class="num">{span(t.lang, (end - Date.parse(j.startedAt)) / 1000)}</span>;
}
