import { useEffect, useState } from "react";
import { call, Failed, numberOf } from "../api/client";
import type { HistoryItem, HistoryList, Replaying } from "../api/types";
import { mostRows } from "../lists/pages";
import { Table, type At } from "../lists/table";
import { useT } from "../i18n";
import { moment } from "../i18n/format";
import { useMay } from "../roles";
import { go, href, usePlace } from "../router";
import { Dialog, Empty, Head, Loading, State, Trouble } from "../ui/bits";
import { Json } from "../ui/json";

const names = ["of", "queue", "type", "kind", "key", "job", "from", "to"] as const;
type Query = Partial<Record<(typeof names)[number], string>>;

const spans = ["-15m", "-1h", "-1d", "-7d"];
const types = ["added", "started", "retry", "completed", "dead", "cancelled", "expired", "progress", "log", "released", "lease_lost"];
const page = 100;

// The history is what happened to jobs, or what was sent to a queue: also of what was
// settled long ago.
export default function Page() {
  const t = useT();
  const { query } = usePlace();
  const may = useMay();
  const q: Query = Object.fromEntries(names.map((n) => [n, query.get(n) ?? ""]));
  const from = q.from || (q.job ? "" : "-1h");
  const messages = q.of === "messages";
  const set = (more: Query) => go(href(["history"], { ...q, ...more }));
  const [replaying, setReplaying] = useState(false);
  const h = useHistory({ ...q, from });
  return (
    <>
      <Head title={t("nav.history")} lead={t(messages ? "history.lead.messages" : "history.lead.jobs")}>
        {may.operate && messages && <button type="button" onClick={() => setReplaying(true)}>{t("replay")}…</button>}
      </Head>
      <div class="chips">
        <button type="button" class="chip" aria-pressed={!messages} onClick={() => go(href(["history"], { from: q.from }))}>{t("history.jobs")}</button>
        <button type="button" class="chip" aria-pressed={messages} onClick={() => go(href(["history"], { of: "messages", from: q.from }))}>{t("history.messages")}</button>
        <span class="gap" />
        {spans.map((s) => <button key={s} type="button" class="chip" aria-pressed={from === s} onClick={() => set({ from: s, to: "" })}>{s}</button>)}
      </div>
      <form
        key={names.map((n) => q[n]).join("\n")} class="fields" role="search"
        onSubmit={(e) => { e.preventDefault(); const f = new FormData(e.currentTarget); set(Object.fromEntries([...f].map(([k, v]) => [k, String(v).trim()]))); }}
      >
        {(messages ? (["queue", "kind", "key", "job", "from", "to"] as const) : (["queue", "type", "kind", "job", "from", "to"] as const)).map((n) => (
          <label key={n}>{t(`history.${n}`)}<input name={n} defaultValue={n === "from" ? from : q[n]} list={n === "type" ? "types" : undefined} placeholder={n === "queue" && messages ? "events" : n === "to" ? t("history.now") : t("all")} autoComplete="off" spellcheck={false} {...(n === "job" ? { "data-search": true } : {})} /></label>
        ))}
        <datalist id="types">{types.map((n) => <option key={n} value={n} />)}</datalist>
        <button type="submit" class="main">{t("show")}</button>
      </form>
      <Trouble error={h.error} />
      {h.items.length > 0 && <Items items={h.items} messages={messages} more={h.more} end={() => !h.loading && h.items.length < mostRows && h.next()} />}
      {h.loading && h.items.length === 0 ? <Loading /> : h.items.length === 0 && !h.error && (
        <Empty title={t("history.empty")} command={messages ? "forebay history --of messages --from -7d" : "forebay history --from -7d"}>{t("history.empty.lead")}</Empty>
      )}
      <div class="pager">
        {h.items.length > 0 && <span class="dim num">{t("history.shown", { n: h.items.length })}</span>}
        <button type="button" disabled={h.loading} onClick={h.next}>{t(h.more ? "more" : "history.newer")}</button>
      </div>
      {replaying && <Replay q={{ ...q, from }} close={() => setReplaying(false)} />}
    </>
  );
}

// useHistory reads page after page, oldest first; at the end it asks for what is new.
function useHistory(q: Query) {
  const [state, set] = useState<{ items: HistoryItem[]; next: number; more: boolean; loading: boolean; error?: Failed }>({ items: [], next: 0, more: false, loading: true });
  const key = JSON.stringify(q);
  const read = async (after: number, before: HistoryItem[], signal?: AbortSignal) => {
    set((s) => ({ ...s, loading: true, error: undefined }));
    try {
      let l: HistoryList;
      const items: HistoryItem[] = [];
      // A page may be short where others fill a look; so look on, a few times.
      for (let looks = 0; ; looks++) {
        l = await call<HistoryList>("/api/history", { query: { ...q, after: after || undefined, limit: page }, signal });
        items.push(...l.items);
        after = numberOf(l.next);
        if (!l.more || items.length >= page || looks === 20) break;
      }
      set({ items: [...before, ...items].slice(-mostRows), next: after, more: l.more, loading: false });
    } catch (e) {
      if (e instanceof Failed && !signal?.aborted) set({ items: before, next: after, more: false, loading: false, error: e });
    }
  };
  useEffect(() => {
    const stop = new AbortController();
    set({ items: [], next: 0, more: false, loading: true });
    void read(0, [], stop.signal);
    return () => stop.abort();
  }, [key]);
  return { ...state, next: () => void read(state.next, state.items) };
}

function Items({ items, messages, more, end }: { items: HistoryItem[]; messages: boolean; more: boolean; end: () => void }) {
  const t = useT();
  const [open, setOpen] = useState<number>();
  const head = <><th>{t("time")}</th><th>{t(messages ? "job.name" : "event")}</th><th class="wide">{t("queue")}</th><th>{t("id")}</th><th class="wide">{t("job.what")}</th><th class="r" /></>;
  const row = (i: HistoryItem, { key, ...at }: At) => <Row key={key} at={at} i={i} messages={messages} open={open === i.seq} flip={() => setOpen(open === i.seq ? undefined : i.seq)} />;
  return <Table name="history" items={items} id={(i) => i.seq} head={head} row={row} more={more} end={end} open={open} />;
}

function Row({ at, i, messages, open, flip }: { at: Omit<At, "key">; i: HistoryItem; messages: boolean; open: boolean; flip: () => void }) {
  const t = useT();
  const more = i.payload ?? i.result ?? i.cause ?? i.progress?.data ?? i.headers;
  const what = i.cause ? `${i.cause.code}: ${i.cause.message}` : (i.text ?? i.progress?.message ?? i.progress?.stage ?? (messages ? (i.key ?? "") : ""));
  return (
    <>
      <tr {...at}>
        <td class="num">{moment(t.lang, Date.parse(i.at))}</td>
        <td>{messages ? i.kind : i.state && i.type !== "progress" ? <State state={i.state} /> : <span class="dim">{i.type}</span>}{!messages && <small>{i.type === i.state ? "" : i.type}{i.attempt ? ` · ${t("life.run", { n: i.attempt })}` : ""}</small>}</td>
        <td class="wide">{i.queue}</td>
        <td class="name">{messages ? <a class="id" href={i.queue === "events" ? href(["events"], { id: i.id }) : href(["history"], { of: "messages", queue: i.queue, job: i.id })}>{i.id}</a> : <><a href={href(["jobs", i.id])}>{i.kind}</a><small class="id">{i.id}</small></>}</td>
        <td class={"wide what" + (i.cause ? " bad" : "")}>{what}</td>
        <td class="r">{more !== undefined && <button type="button" class="quiet small" aria-expanded={open} onClick={flip}>{t(open ? "close" : "show")}</button>}</td>
      </tr>
      {open && (
        <tr data-at={at["data-at"]}>
          <td colSpan={6}>
            {i.headers && <Json value={i.headers} label={t("dead.headers")} />}
            {i.payload?.base64 ? <pre>{i.payload.base64}</pre> : <Json value={i.payload ? i.payload.json : (i.result ?? i.cause ?? i.progress?.data)} label={t("job.data")} />}
          </td>
        </tr>
      )}
    </>
  );
}

// Replay sends what the filter means again, as a job; first it may only be counted.
function Replay({ q, close }: { q: Query; close: () => void }) {
  const t = useT();
  const [error, setError] = useState<Failed>();
  const [into, setInto] = useState("queue");
  const [key] = useState(() => crypto.randomUUID?.() ?? String(Math.random()));
  const start = async (f: FormData, dryRun: boolean) => {
    setError(undefined);
    const text = (name: string) => String(f.get(name) ?? "").trim() || undefined;
    const body = { queue: q.queue || undefined, types: q.kind ? q.kind.split(",") : undefined, key: q.key || undefined, id: q.job || undefined, from: q.from || undefined, to: q.to || undefined, into, name: text("name"), rate: Number(text("rate") ?? 0) || undefined, dryRun: dryRun || undefined };
    try {
      const r = await call<Replaying>("/api/history/replay", { body, key: key + (dryRun ? "-dry" : "") });
      close();
      go(href(["jobs", r.jobId]));
    } catch (e) {
      if (e instanceof Failed) setError(e);
    }
  };
  return (
    <Dialog title={t("history.replay")} close={close}>
      <form class="form" onSubmit={(e) => { e.preventDefault(); void start(new FormData(e.currentTarget), (e as unknown as SubmitEvent).submitter?.getAttribute("value") === "dry"); }}>
        <p class="dim">{t("history.replay.lead")}</p>
        <p><code>{names.filter((n) => n !== "of" && q[n]).map((n) => `${n}:${q[n]}`).join(" ") || t("all")}</code></p>
        <label>{t("history.into")}
          <select value={into} onChange={(e) => setInto(e.currentTarget.value)}>
            <option value="queue">{t("queue")}</option>
            <option value="sink">{t("place.sink")}</option>
            <option value="projection">{t("history.projection")}</option>
          </select>
        </label>
        {into !== "sink" && <label>{t("job.name")}<input name="name" required={into === "projection"} placeholder={into === "queue" ? q.queue || "events" : ""} autoComplete="off" /></label>}
        <label>{t("dead.rate")}<input name="rate" type="number" min="0" max="1000000" placeholder={t("history.rate")} /></label>
        <Trouble error={error} />
        <div class="acts">
          <button type="submit" value="dry">{t("history.dry")}</button>
          <button type="submit" class="main">{t("replay")}</button>
        </div>
      </form>
    </Dialog>
  );
}
