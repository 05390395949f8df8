import { useState } from "react";
import { call } from "../api/client";
import { useResource } from "../api/resource";
import type { Limits, PeekList, Purged, Queue } from "../api/types";
import { useT } from "../i18n";
import { bytes, count, short, span } from "../i18n/format";
import { useMay } from "../roles";
import { href } from "../router";
import { useStore } from "../store";
import { Ago, Dialog, Empty, FigureRow, Head, Loading, Pairs, Trouble, type Figure } from "../ui/bits";
import { now, refresh } from "../ui/live";
import { drain, QueueTable } from "../ui/queuetable";
import { ConcurrencyForm } from "./concurrency";
import { Heat } from "./heat";
import { complain, say } from "../ui/toast";

export default function Page({ rest }: { rest: string[] }) {
  return rest[0] ? <One name={rest[0]} /> : <All />;
}

function All() {
  const t = useT();
  const v = useStore(now);
  if (!v.overview) return v.error ? <Trouble error={v.error} /> : <Loading />;
  return (
    <>
      <Head title={t("nav.queues")} lead={t("queues.lead")} />
      {v.overview.queues.length > 0 ? <QueueTable queues={v.overview.queues} rates={v.byQueue} /> : (
        <Empty title={t("queues.empty")} command={`forebay jobs add mail welcome '{"to":"a@example.com"}'`}>{t("queues.empty.lead")}</Empty>
      )}
    </>
  );
}

function One({ name }: { name: string }) {
  const t = useT();
  const may = useMay();
  const v = useStore(now);
  const q = v.overview?.queues.find((q) => q.name === name);
  const [purging, setPurging] = useState(false);
  const own = useResource<Queue>(q || !v.overview ? null : "/api/queues/" + encodeURIComponent(name));
  const shown = q ?? own.data;
  if (!shown) {
    if (own.error) return <Empty title={t("queue.none", { name })} command={`forebay jobs add ${name} NAME '{}'`}>{t("queues.empty.lead")}</Empty>;
    return <Loading />;
  }
  const paused = shown.limits?.paused ?? false;
  const flip = async () => {
    try {
      await call(`/api/queues/${encodeURIComponent(name)}/${paused ? "resume" : "pause"}`, { method: "POST" });
      say(t(paused ? "queue.resumed" : "queue.nowpaused", { name }));
      refresh();
    } catch (e) {
      complain(e);
    }
  };
  return (
    <>
      <Head title={<>{name} {paused && <span class="tag warn">{t("queue.paused")}</span>}</>} lead={<a href={href(["queues"])}>{t("nav.queues")}</a>}>
        {shown.limits && may.operate && <button type="button" class={paused ? "main" : ""} onClick={flip}>{paused ? t("resume") : t("pause")}</button>}
        <a class="button" href={href(["jobs"], { q: "queue:" + name })}>{t("queue.jobs")}</a>
        {may.admin && <button type="button" class="danger" onClick={() => setPurging(true)}>{t("queue.purge")}</button>}
      </Head>
      <Counts q={shown} rates={v.byQueue[name]} />
      <div class="columns">
        <section>
          <h2>{t("limits")}</h2>
          {shown.limits ? <LimitsForm key={name} name={name} limits={shown.limits} may={may.operate} /> : <div class="note">{t("limits.unsupported")}</div>}
          <h2>{t("concurrency")}</h2>
          {shown.concurrency ? <ConcurrencyForm key={name} name={name} now={shown.concurrency} may={may.operate} /> : <p class="card dim">{t("concurrency.none")}</p>}
        </section>
        <section>
          <h2>{t("queue.next")}</h2>
          <Peek name={name} />
        </section>
      </div>
      {shown.concurrency && <section><h2>{t("heat")}</h2><Heat name={name} /></section>}
      {purging && <PurgeDialog name={name} q={shown} close={() => setPurging(false)} />}
    </>
  );
}

function Counts({ q, rates }: { q: Queue; rates?: { sent: number; done: number } }) {
  const t = useT();
  const d = drain(q);
  const jobs = (state: string) => href(["jobs"], { q: `queue:${q.name} state:${state}` });
  const figures: Figure[] = [
    { name: t("state.waiting"), value: short(t.lang, q.waiting), link: jobs("waiting"), more: rates ? t("queue.in") + " " + short(t.lang, rates.sent) : undefined },
    { name: t("state.active"), value: short(t.lang, q.active), link: jobs("active"), more: rates ? t("queue.out") + " " + short(t.lang, rates.done) : undefined },
    { name: t("state.delayed"), value: short(t.lang, q.delayed), link: jobs("delayed") },
    { name: t("state.dead"), value: short(t.lang, q.dead), link: href(["dead"], { queue: q.name }), bad: q.dead > 0 },
    { name: t("queue.oldest"), value: q.oldestAgeSeconds > 0 ? span(t.lang, q.oldestAgeSeconds) : "–" },
    { name: t("queue.drain"), value: d === undefined ? "∞" : d === 0 ? "–" : span(t.lang, d), more: q.drainRate > 0 ? t("queue.rate", { n: short(t.lang, q.drainRate) }) : undefined },
  ];
  return (
    <>
      <FigureRow figures={figures} />
      <p class="dim">
        {t("queue.since", { sent: q.sent, completed: q.completed, cancelled: q.cancelled, expired: q.expired, duplicate: q.duplicate })}
        {q.bytes > 0 && " · " + bytes(t.lang, q.bytes)}
      </p>
    </>
  );
}

function LimitsForm({ name, limits, may }: { name: string; limits: Limits; may: boolean }) {
  const t = useT();
  const [busy, setBusy] = useState(false);
  const n = (f: FormData, key: string) => Number(f.get(key) || 0);
  const save = async (e: preact.TargetedSubmitEvent<HTMLFormElement>) => {
    e.preventDefault();
    const f = new FormData(e.currentTarget);
    const rate = (key: string) => ({ count: n(f, key), perSeconds: n(f, key + "Per") || 1, burst: n(f, key + "Burst") });
    const body: Limits = { paused: limits.paused, active: n(f, "active"), keyActive: n(f, "keyActive") };
    if (n(f, "rate")) body.rate = rate("rate");
    if (n(f, "keyRate")) body.keyRate = rate("keyRate");
    setBusy(true);
    try {
      await call(`/api/queues/${encodeURIComponent(name)}/limits`, { method: "PUT", body });
      say(t("limits.saved"));
      refresh();
    } catch (err) {
      complain(err);
    }
    setBusy(false);
  };
  const field = (key: string, value: number | undefined, label: string) => (
    <label>{label}<input name={key} type="number" min="0" step={key.endsWith("Per") ? "any" : "1"} defaultValue={value ? String(value) : ""} placeholder={/Per|Burst/.test(key) ? "1" : t("limits.none")} disabled={!may} /></label>
  );
  return (
    <form class="card form" onSubmit={save}>
      <div class="pair">{field("active", limits.active, t("limits.active"))}{field("keyActive", limits.keyActive, t("limits.keyActive"))}</div>
      <div class="triple">{field("rate", limits.rate?.count, t("limits.rate"))}{field("ratePer", limits.rate?.perSeconds, t("limits.per"))}{field("rateBurst", limits.rate?.burst, t("limits.burst"))}</div>
      <div class="triple">{field("keyRate", limits.keyRate?.count, t("limits.keyRate"))}{field("keyRatePer", limits.keyRate?.perSeconds, t("limits.per"))}{field("keyRateBurst", limits.keyRate?.burst, t("limits.burst"))}</div>
      <p class="dim">{t("limits.lead")}</p>
      {may && <div><button type="submit" class="main" disabled={busy}>{t("save")}</button></div>}
    </form>
  );
}

function Peek({ name }: { name: string }) {
  const t = useT();
  const r = useResource<PeekList>(`/api/queues/${encodeURIComponent(name)}/messages`, { limit: 10 }, 5000);
  if (r.error) return <Trouble error={r.error} />;
  if (!r.data) return <Loading />;
  if (r.data.items.length === 0) return <p class="card dim">{t("queue.nothing")}</p>;
  return (
    <div class="scroll">
      <table>
        <thead><tr><th>{t("job.name")}</th><th>{t("id")}</th><th>{t("job.state")}</th><th class="r">{t("job.sent")}</th></tr></thead>
        <tbody>
          {r.data.items.map((m) => (
            <tr key={m.message.id}>
              <td>{m.message.kind || "–"}</td>
              <td class="id"><a href={href(["jobs", m.message.id])}>{m.message.id}</a></td>
              <td>{t(`state.${m.where}`)}</td>
              <td class="r"><Ago at={m.sentAt} /></td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function PurgeDialog({ name, q, close }: { name: string; q: Queue; close: () => void }) {
  const t = useT();
  const [typed, setTyped] = useState("");
  return (
    <Dialog title={t("queue.purge")} close={close}>
      <form
        class="form"
        onSubmit={async (e) => {
          e.preventDefault();
          try {
            const r = await call<Purged>(`/api/queues/${encodeURIComponent(name)}/purge`, { body: { confirm: typed } });
            say(t("queue.purged", { n: r.dropped }));
            refresh();
            close();
          } catch (err) {
            complain(err);
          }
        }}
      >
        <Pairs pairs={[{ name: t("state.waiting"), value: count(t.lang, q.waiting) }, { name: t("state.delayed"), value: count(t.lang, q.delayed) }]} />
        <p>{t("queue.purge.lead")}</p>
        <label>{t("type.confirm", { text: name })}<input value={typed} onInput={(e) => setTyped(e.currentTarget.value)} autoFocus autoComplete="off" /></label>
        <div class="acts"><button type="submit" class="danger" disabled={typed !== name}>{t("queue.purge")}</button></div>
      </form>
    </Dialog>
  );
}
