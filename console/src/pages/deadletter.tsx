import { useState } from "react";
import { call, Failed } from "../api/client";
import { useResource } from "../api/resource";
import type { DeadEdited, DeadLetter, Job, Outcome } from "../api/types";
import { useT } from "../i18n";
import { useMay } from "../roles";
import { go, href } from "../router";
import { Empty, Head, Loading, Moment, Pairs, Trouble } from "../ui/bits";
import { EditReplay } from "../ui/editreplay";
import { Json } from "../ui/json";
import { refresh } from "../ui/live";
import { Discard } from "../ui/pick";
import { complain, say } from "../ui/toast";

// send sends it again, and gives the id under which. A step of a flow keeps its own.
async function send(d: DeadLetter): Promise<string> {
  try {
    return (await call<DeadEdited>(`/api/dead/${d.seq}/replay`, { body: {} })).jobId;
  } catch (e) {
    if (!(e instanceof Failed) || e.code !== "conflict") throw e;
  }
  const o = await call<Outcome>("/api/dead/replay", { body: { seqs: [d.seq] } });
  if (o.failed?.[0]) throw new Failed({ status: 409, code: o.failed[0].code, detail: o.failed[0].message });
  return d.message.id;
}

// One dead letter, with all that is known of it.
export function One({ seq }: { seq: string }) {
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
      const id = await send(d);
      refresh();
      say(t("dead.replayed"));
      const job = await call<Job>("/api/jobs/" + encodeURIComponent(id)).catch(() => undefined); // an event is none
      go(job ? href(["jobs", id]) : href(["dead"]));
    } catch (e) {
      complain(e);
    }
  };
  return (
    <>
      <Head title={m.kind || m.queue} lead={<><a href={href(["dead"])}>{t("nav.dead")}</a> / <span class="num">{d.seq}</span></>}>
        {may.operate && (
          <>
            <button type="button" class="main" onClick={replay}>{t("replay")}</button>
            {!m.payload?.base64 && <button type="button" onClick={() => setEditing(true)}>{t("dead.edit")}</button>}
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
          { name: t("dead.same"), value: <a href={href(["dead"], { tab: "all", group: d.fingerprint })}>{t("show")}</a> },
          d.replayOf && { name: t("dead.replayof"), value: <a class="id" href={href(["jobs", d.replayOf])}>{d.replayOf}</a> },
          d.replays && { name: t("dead.replays"), value: <span class="num">{d.replays}</span> },
          { name: t("nav.history"), value: <a href={href(["history"], { job: m.id })}>{t("show")}</a> },
        ]}
      />
      {d.cause.detail && <section><h2>{t("dead.detail")}</h2><Pairs pairs={Object.entries(d.cause.detail).map(([name, value]) => ({ name, value }))} /></section>}
      <section>
        <h2>{t("job.data")}</h2>
        {m.payload?.base64 ? <pre>{m.payload.base64}</pre> : <Json value={m.payload?.json} label={t("job.data")} />}
      </section>
      {m.headers && Object.keys(m.headers).length > 0 && <section><h2>{t("dead.headers")}</h2><Pairs pairs={Object.entries(m.headers).map(([name, value]) => ({ name, value: <code>{value}</code> }))} /></section>}
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
