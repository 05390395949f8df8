import { useState } from "react";
import { call } from "../api/client";
import { useResource } from "../api/resource";
import type { Schedule, ScheduleList, ScheduleOutcome, ScheduleRun, TickList } from "../api/types";
import { useT } from "../i18n";
import { useMay } from "../roles";
import { go, href } from "../router";
import { Ago, Dialog, Empty, Head, Loading, Moment, Num, Pairs, State, Trouble } from "../ui/bits";
import { Json } from "../ui/json";
import { ScheduleForm } from "../ui/scheduleform";
import { complain, say } from "../ui/toast";

export default function Page({ rest }: { rest: string[] }) {
  return rest[0] ? <One key={rest[0]} name={rest[0]} /> : <All />;
}

export function when(s: { cron?: string; every?: string; timezone?: string }): string {
  return [s.cron ?? s.every, s.timezone].filter(Boolean).join(" · ");
}

function All() {
  const t = useT();
  const may = useMay();
  const r = useResource<ScheduleList>("/api/schedules", { limit: 200 }, 5000);
  const [adding, setAdding] = useState(false);
  return (
    <>
      <Head title={t("nav.schedules")} lead={t("schedules.lead")}>
        {may.operate && <button type="button" class="main" onClick={() => setAdding(true)}>{t("schedules.add")}</button>}
      </Head>
      <Trouble error={r.error} />
      {!r.data ? !r.error && <Loading /> : r.data.items.length === 0 ? (
        <Empty title={t("schedules.empty")} command="forebay schedules add nightly reports daily --cron '30 2 * * *'">{t("schedules.empty.lead")}</Empty>
      ) : (
        <div class="scroll" data-rows>
          <table>
            <thead><tr><th>{t("schedules.name")}</th><th>{t("schedules.when")}</th><th class="wide">{t("schedules.job")}</th><th>{t("schedules.next")}</th><th class="wide">{t("schedules.last")}</th><th class="r wide">{t("schedules.count")}</th></tr></thead>
            <tbody>
              {r.data.items.map((s) => (
                <tr key={s.name}>
                  <td><a href={href(["schedules", s.name])}>{s.name}</a>{s.paused && <span class="tag warn">{t("queue.paused")}</span>}{s.trouble && <span class="tag danger">{t("schedules.trouble")}</span>}</td>
                  <td><code>{when(s)}</code></td>
                  <td class="wide">{s.job.queue} / {s.job.name}</td>
                  <td><Ago at={s.next} /></td>
                  <td class="wide"><Last o={s.last} /></td>
                  <td class="r wide"><Num n={s.count} dim /></td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {adding && <ScheduleForm close={() => setAdding(false)} done={(name) => go(href(["schedules", name]))} />}
    </>
  );
}

function Last({ o }: { o?: ScheduleOutcome }) {
  const t = useT();
  if (!o) return <span class="dim">–</span>;
  if (o.jobId) return <><a href={href(["jobs", o.jobId])}><Ago at={o.at} /></a></>;
  return <span title={o.reason}>{t("schedules.skipped", { why: o.code ?? "" })}</span>;
}

function One({ name }: { name: string }) {
  const t = useT();
  const may = useMay();
  const path = "/api/schedules/" + encodeURIComponent(name);
  const r = useResource<Schedule>(path, {}, 5000);
  const ticks = useResource<TickList>(path + "/preview", { n: 8 }, 30_000);
  const [editing, setEditing] = useState(false);
  const [removing, setRemoving] = useState(false);
  const s = r.data;
  if (!s) return r.error ? (r.error.code === "not_found" ? <Empty title={t("schedules.none")}><a href={href(["schedules"])}>{t("nav.schedules")}</a></Empty> : <Trouble error={r.error} />) : <Loading />;
  const act = async (verb: string) => {
    try {
      const done = await call<ScheduleRun | undefined>(`${path}/${verb}`, { method: "POST" });
      say(t("job.acted"), verb === "run" && done?.jobId ? { to: href(["jobs", done.jobId]), text: t("show") } : undefined);
      r.reload();
    } catch (e) {
      complain(e);
    }
  };
  return (
    <>
      <Head title={<>{s.name} {s.paused && <span class="tag warn">{t("queue.paused")}</span>}</>} lead={<a href={href(["schedules"])}>{t("nav.schedules")}</a>}>
        {may.operate && (
          <>
            <button type="button" class="main" onClick={() => void act("run")}>{t("schedules.run")}</button>
            <button type="button" onClick={() => void act(s.paused ? "resume" : "pause")}>{s.paused ? t("resume") : t("pause")}</button>
            <button type="button" onClick={() => setEditing(true)}>{t("edit")}</button>
            <button type="button" class="danger" onClick={() => setRemoving(true)}>{t("delete")}</button>
          </>
        )}
      </Head>
      {s.trouble && <div class="note bad" role="status">{s.trouble}</div>}
      <Pairs
        pairs={[
          { name: t("schedules.when"), value: <code>{when(s)}</code> },
          { name: t("schedules.next"), value: s.next ? <><Ago at={s.next} /> <span class="dim"><Moment at={s.next} /></span></> : "–" },
          { name: t("schedules.job"), value: <><a href={href(["queues", s.job.queue])}>{s.job.queue}</a> / {s.job.name}</> },
          { name: t("schedules.count"), value: <Num n={s.count} /> },
          { name: t("schedules.skips"), value: <><Num n={s.skipped} /> {s.lastSkip && <span class="dim">{s.lastSkip.code} {s.lastSkip.reason}</span>}</> },
          s.lastJob && { name: t("schedules.lastjob"), value: <><a class="id" href={href(["jobs", s.lastJob.jobId])}>{s.lastJob.jobId}</a> {s.lastJob.state && <State state={s.lastJob.state} />}</> },
          s.overlap && { name: t("schedules.overlap"), value: s.overlap },
          s.missed && { name: t("schedules.missed"), value: s.missed },
          s.jitter && { name: t("schedules.jitter"), value: s.jitter },
        ]}
      />
      <div class="columns">
        <section>
          <h2>{t("schedules.ticks")}</h2>
          {ticks.data && <Ticks items={ticks.data.items} />}
        </section>
        <section>
          <h2>{t("job.data")}</h2>
          <Json value={s.job.data ?? null} label={t("job.data")} />
        </section>
      </div>
      <p><a href={href(["jobs"], { q: "tag:schedule:" + s.name })}>{t("schedules.jobs")}</a></p>
      {editing && <ScheduleForm of={s} close={() => setEditing(false)} done={r.reload} />}
      {removing && (
        <Dialog title={t("delete")} close={() => setRemoving(false)}>
          <p>{t("schedules.delete.lead", { name: s.name })}</p>
          <div class="acts"><button type="button" class="danger" onClick={() => void call(path, { method: "DELETE" }).then(() => go(href(["schedules"]), true), complain)}>{t("delete")}</button></div>
        </Dialog>
      )}
    </>
  );
}

function Ticks({ items }: { items: string[] }) {
  const t = useT();
  if (items.length === 0) return <p class="card dim">{t("schedules.noticks")}</p>;
  return <ol class="card ticks">{items.map((at) => <li key={at}><Moment at={at} /> <span class="dim"><Ago at={at} /></span></li>)}</ol>;
}
