import { useEffect, useState } from "react";
import { call, Failed } from "../api/client";
import { useResource } from "../api/resource";
import type { DeadLetter, DeadList, Outcome } from "../api/types";
import { useT } from "../i18n";
import { useMay } from "../roles";
import { go, href, useQuery } from "../router";
import { useStore } from "../store";
import { Ago, Empty, Head, Loading, Moment, Pairs, Trouble } from "../ui/bits";
import { EditReplay } from "../ui/editreplay";
import { Json } from "../ui/json";
import { now, refresh } from "../ui/live";
import { Discard, tell, usePick } from "../ui/pick";
import { complain } from "../ui/toast";

export default function Page({ rest }: { rest: string[] }) {
  return rest[0] ? <One key={rest[0]} seq={rest[0]} /> : <All />;
}

function All() {
  const t = useT();
  const may = useMay();
  const [queue, setQueue] = useQuery("queue");
  const [code, setCode] = useQuery("code");
  const [cause] = useQuery("cause");
  const [before] = useQuery("before");
  const filter = { queue: queue || undefined, code: code || undefined, ...(cause ? { fingerprint: cause } : {}) };
  const page = useResource<DeadList>("/api/dead", { ...filter, before, limit: 50 });
  const overview = useStore(now).overview;
  const pick = usePick();
  const [discarding, setDiscarding] = useState<{ body: Record<string, unknown>; n: number }>();
  useEffect(pick.clear, [queue, code, cause, before]);
  const rows = page.data?.items ?? [];
  const anew = () => { pick.clear(); page.reload(); refresh(); };
  const body = pick.chosen.size > 0 ? { seqs: [...pick.chosen] } : { all: true, ...filter };
  const replay = async () => {
    try {
      tell(await call<Outcome>("/api/dead/replay", { body }), t);
      anew();
    } catch (e) {
      complain(e);
    }
  };
  const total = overview?.queues.filter((q) => !queue || q.name === queue).reduce((n, q) => n + q.dead, 0) ?? rows.length;
  const filtered = queue || code || cause;
  return (
    <>
      <Head title={t("nav.dead")} lead={t("dead.lead")} />
      <div class="fields">
        <label>{t("queue")}
          <select value={queue} onChange={(e) => setQueue(e.currentTarget.value)}>
            <option value="">{t("all")}</option>
            {[...new Set([...(overview?.queues.map((q) => q.name) ?? []), ...(queue ? [queue] : [])])].map((q) => <option key={q} value={q}>{q}</option>)}
          </select>
        </label>
        <label>{t("dead.code")}<input data-search defaultValue={code} key={code} placeholder={t("all")} onChange={(e) => setCode(e.currentTarget.value.trim())} /></label>
      </div>
      {may.operate && rows.length > 0 && (
        <div class="bulk">
          <span class="num" role="status">{pick.chosen.size > 0 ? t("jobs.chosen", { n: pick.chosen.size }) : t("dead.matching")}</span>
          <button type="button" class="small" onClick={replay}>{t("replay")}</button>
          <button type="button" class="small danger" onClick={() => setDiscarding({ body, n: pick.chosen.size || total })}>{t("discard")}…</button>
        </div>
      )}
      <Trouble error={page.error} />
      {page.loading && !page.data ? <Loading /> : rows.length > 0 ? <Rows rows={rows} pick={may.operate ? pick : undefined} code={setCode} /> : !page.error && (
        filtered ? <Empty title={t("dead.nomatch")}><a href={href(["dead"])}>{t("jobs.clear")}</a></Empty> : <Empty title={t("dead.empty")} command="forebay dead ls">{t("dead.empty.lead")}</Empty>
      )}
      <div class="pager">
        {before && <a class="button" href={href(["dead"], { queue, code, cause })}>{t("page.first")}</a>}
        {page.data?.next && rows.length === 50 && <a class="button" rel="next" href={href(["dead"], { queue, code, cause, before: String(page.data.next) })}>{t("page.next")}</a>}
      </div>
      {discarding && <Discard path="/api/dead/discard" {...discarding} close={() => setDiscarding(undefined)} done={anew} />}
    </>
  );
}

function Rows({ rows, pick, code }: { rows: DeadLetter[]; pick?: ReturnType<typeof usePick>; code: (c: string) => void }) {
  const t = useT();
  return (
    <div class="scroll" data-rows>
      <table>
        <thead>
          <tr>
            {pick && <th class="check"><input type="checkbox" aria-label={t("jobs.choose.all")} checked={rows.every((r) => pick.chosen.has(r.seq))} onChange={() => pick.all(rows.map((r) => r.seq))} /></th>}
            <th>{t("dead.cause")}</th>
            <th>{t("job.name")}</th>
            <th class="wide">{t("queue")}</th>
            <th class="r wide">{t("job.attempts")}</th>
            <th class="r">{t("dead.died")}</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((d) => (
            <tr key={d.seq} class={pick?.chosen.has(d.seq) ? "chosen" : ""}>
              {pick && <td class="check"><input type="checkbox" aria-label={t("jobs.choose", { id: d.message.id })} checked={pick.chosen.has(d.seq)} onChange={() => pick.flip(d.seq)} /></td>}
              <td class="what cause"><a href={href(["dead", d.seq])}>{d.cause.message || d.cause.code}</a><small><button type="button" class="quiet small" onClick={() => code(d.cause.code)}>{d.cause.code}</button></small></td>
              <td class="name">{d.message.kind || "–"}<small class="id">{d.message.id}</small></td>
              <td class="wide">{d.message.queue}</td>
              <td class="r wide num">{d.attempts}</td>
              <td class="r"><Ago at={d.diedAt} /></td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function One({ seq }: { seq: string }) {
  const t = useT();
  const may = useMay();
  const r = useResource<DeadLetter>("/api/dead/" + encodeURIComponent(seq));
  const [editing, setEditing] = useState(false);
  const [discarding, setDiscarding] = useState(false);
  const d = r.data;
  if (!d) {
    if (!r.error) return <Loading />;
    return r.error.code === "not_found" ? <Empty title={t("dead.none")}><a href={href(["dead"])}>{t("nav.dead")}</a></Empty> : <Trouble error={r.error} />;
  }
  const m = d.message;
  const away = () => { refresh(); go(href(["dead"]), true); };
  const replay = async () => {
    try {
      const o = await call<Outcome>("/api/dead/replay", { body: { seqs: [d.seq] } });
      tell(o, t);
      if (o.done === 1) go(href(["jobs", m.id]));
      refresh();
    } catch (e) {
      complain(e as Failed);
    }
  };
  return (
    <>
      <Head title={m.kind || m.queue} lead={<><a href={href(["dead"])}>{t("nav.dead")}</a> / <span class="num">{d.seq}</span></>}>
        {may.operate && (
          <>
            <button type="button" class="main" onClick={replay}>{t("replay")}</button>
            {m.payload?.json !== undefined && <button type="button" onClick={() => setEditing(true)}>{t("dead.edit")}</button>}
            <button type="button" class="danger" onClick={() => setDiscarding(true)}>{t("discard")}…</button>
          </>
        )}
      </Head>
      <div class="note bad"><strong>{d.cause.code}</strong> {d.cause.message}</div>
      <Pairs
        pairs={[
          { name: t("queue"), value: <a href={href(["queues", m.queue])}>{m.queue}</a> },
          { name: t("id"), value: <a class="id" href={href(["jobs", m.id])}>{m.id}</a> },
          { name: t("dead.died"), value: <Moment at={d.diedAt} /> },
          { name: t("job.sent"), value: <Moment at={d.sentAt} /> },
          { name: t("job.attempts"), value: <span class="num">{d.attempts}</span> },
          { name: t("job.deliveries"), value: <span class="num">{d.deliveries}</span> },
          m.group && { name: t("job.group"), value: m.group },
        ]}
      />
      {d.cause.detail && <section><h2>{t("dead.detail")}</h2><Pairs pairs={Object.entries(d.cause.detail).map(([name, value]) => ({ name, value }))} /></section>}
      <section>
        <h2>{t("job.data")}</h2>
        {m.payload?.base64 ? <pre>{m.payload.base64}</pre> : <Json value={m.payload?.json} label={t("job.data")} />}
      </section>
      {d.failures && d.failures.length > 0 && (
        <section>
          <h2>{t("dead.failures")}</h2>
          <div class="scroll">
            <table>
              <thead><tr><th class="r">{t("job.attempt")}</th><th>{t("dead.code")}</th><th>{t("event.text")}</th><th class="r">{t("time")}</th></tr></thead>
              <tbody>
                {[...d.failures].reverse().map((f, i) => (
                  <tr key={i}><td class="r num">{f.attempt ?? d.failures!.length - i}</td><td>{f.code}</td><td class="what">{f.message}</td><td class="r"><Moment at={f.at} /></td></tr>
                ))}
              </tbody>
            </table>
          </div>
        </section>
      )}
      {editing && <EditReplay d={d} close={() => setEditing(false)} done={refresh} />}
      {discarding && <Discard path="/api/dead/discard" body={{ seqs: [d.seq] }} n={1} close={() => setDiscarding(false)} done={away} />}
    </>
  );
}
