import { useResource } from "../api/resource";
import type { Job, JobList, WorkerList } from "../api/types";
import { useT } from "../i18n";
import { href } from "../router";
import { useStore } from "../store";
import { Ago, Bar, Empty, Head, Loading, Num, Trouble } from "../ui/bits";
import { now } from "../ui/live";

export default function Page() {
  const t = useT();
  const workers = useResource<WorkerList>("/api/workers");
  const active = useResource<JobList>("/api/jobs", { q: "state:active", limit: 50 }, 2000);
  const overview = useStore(now).overview;
  const queue = (name: string) => overview?.queues.find((q) => q.name === name);
  return (
    <>
      <Head title={t("nav.workers")} lead={t("workers.lead")} />
      <Trouble error={workers.error} />
      {!workers.data ? !workers.error && <Loading /> : workers.data.items.length === 0 ? <Empty title={t("workers.empty")} command="forebay serve">{t("workers.empty.lead")}</Empty> : (
        <div class="scroll">
          <table>
            <thead><tr><th>{t("queue")}</th><th>{t("workers.handlers")}</th><th class="r">{t("workers.atonce")}</th><th class="r">{t("state.active")}</th><th class="r">{t("state.waiting")}</th></tr></thead>
            <tbody>
              {workers.data.items.map((w) => (
                <tr key={w.queue}>
                  <td><a href={href(["queues", w.queue])}>{w.queue}</a></td>
                  <td>{w.batch ? <span class="dim">{t("workers.batch")}</span> : w.handlers.map((h) => <a key={h} class="tag" href={href(["jobs"], { q: `queue:${w.queue}` + (h === "*" ? "" : ` kind:${h}`) })}>{h}</a>)}</td>
                  <td class="r"><Num n={w.concurrency} /></td>
                  <td class="r"><Num n={queue(w.queue)?.active ?? 0} dim /></td>
                  <td class="r"><Num n={queue(w.queue)?.waiting ?? 0} dim /></td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      <section>
        <h2>{t("workers.now")}</h2>
        <Trouble error={active.error} />
        {active.data && (active.data.items.length > 0 ? <Active jobs={active.data.items} /> : <p class="card dim">{t("workers.idle")}</p>)}
      </section>
      <section>
        <h2>{t("workers.own")}</h2>
        <p class="card dim">{t("workers.own.lead")} <a href={href(["openapi.json"])} target="_blank" rel="noreferrer">/openapi.json</a></p>
      </section>
    </>
  );
}

function Active({ jobs }: { jobs: Job[] }) {
  const t = useT();
  return (
    <div class="scroll" data-rows>
      <table>
        <thead><tr><th>{t("job.name")}</th><th class="wide">{t("queue")}</th><th>{t("job.progress")}</th><th class="r">{t("job.started")}</th></tr></thead>
        <tbody>
          {jobs.map((j) => (
            <tr key={j.jobId}>
              <td class="name"><a href={href(["jobs", j.jobId])}>{j.name}</a><small class="id">{j.jobId}</small></td>
              <td class="wide">{j.queue}</td>
              <td><span class="doing"><Bar percent={j.progress.percent ?? 0} /><span class="dim">{j.progress.message ?? j.progress.stage}</span></span></td>
              <td class="r"><Ago at={j.startedAt} /></td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
