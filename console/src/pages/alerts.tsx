import { useEffect, useState } from "react";
import { call } from "../api/client";
import { useResource } from "../api/resource";
import type { AlertRule, AlertRuleList, Health, Job, JobList } from "../api/types";
import { useT, type Key } from "../i18n";
import { useMay } from "../roles";
import { href, usePlace } from "../router";
import { Ago, Empty, Head, Loading, State, Trouble } from "../ui/bits";
import { complain } from "../ui/toast";

// What an alert says: it is the data of a job, whose handler tells people.
interface Alert {
  id: string;
  queue: string;
  name: string;
  error: string;
  code: string;
  reason: string;
  owner?: string;
  count: number;
}

const reasons: Record<string, Key> = { rule: "alert.firing", resolved: "alert.resolved", dead: "alert.dead", timeout: "alert.timeout", overdue: "alert.overdue", growth: "alert.growth", dropped: "alert.dropped" };
const page = 20;

// Alerts are what is not well just now, the rules by which people are told, and what they
// were told of, or are about to be.
export default function Page() {
  const t = useT();
  return (
    <>
      <Head title={t("nav.alerts")} lead={t("alerts.lead")} />
      <HealthNow />
      <Rules />
      <Told />
    </>
  );
}

function HealthNow() {
  const t = useT();
  const r = useResource<Health>("/api/health", {}, 5000);
  if (!r.data) return <Trouble error={r.error} />;
  const parts = r.data.parts.filter((p) => p.grade !== "healthy");
  const queues = r.data.queues.filter((q) => q.grade !== "healthy");
  if (parts.length + queues.length === 0) return <div class="note" role="status">{t("alerts.healthy")}</div>;
  return (
    <div class={"note" + (r.data.grade === "critical" ? " bad" : "")} role="status">
      {parts.map((p) => <div key={p.name}><b>{p.name}</b>: {p.text ?? p.code}</div>)}
      {queues.map((q) => <div key={q.queue}><a href={href(["queues", q.queue])}>{q.queue}</a>: {q.reasons.map((x) => x.text).join("; ")}</div>)}
    </div>
  );
}

function Rules() {
  const t = useT();
  const may = useMay();
  const r = useResource<AlertRuleList>("/api/alerts", {}, 5000);
  const rules = [...(r.data?.items ?? [])].sort((a, b) => b.firing.length - a.firing.length);
  const mute = async (a: AlertRule, time: string) => {
    try {
      await call(`/api/alerts/${encodeURIComponent(a.name)}/mute`, { body: { for: time } });
      r.reload();
    } catch (e) {
      complain(e);
    }
  };
  if (rules.length === 0) return <Trouble error={r.error} />;
  return (
    <section>
      <h2>{t("alerts.rules")}</h2>
      <div class="scroll">
        <table>
          <thead><tr><th>{t("job.state")}</th><th>{t("alerts.rule")}</th><th class="wide">{t("alerts.limit")}</th><th class="wide">{t("job.what")}</th>{may.operate && <th class="r" />}</tr></thead>
          <tbody>
            {rules.map((a) => {
              const muted = a.mutedUntil !== undefined && Date.parse(a.mutedUntil) > Date.now();
              return (
                <tr key={a.name}>
                  <td>{a.firing.length > 0 ? <span class="tag danger">{t("alerts.firing")}</span> : a.pending.length > 0 ? <span class="tag warn">{t("alerts.pending")}</span> : <span class="dim">{t("alerts.quiet")}</span>} {muted && <span class="tag">{t("alerts.muted")}</span>}</td>
                  <td class="name">{a.name}</td>
                  <td class="wide"><code>{a.of} {a.under !== undefined ? `< ${a.under}` : `> ${a.over}`}</code> <span class="dim">{a.for}</span></td>
                  <td class="wide what">{a.firing.map((f) => `${f.name} ${f.value}`).join(", ") || a.pending.join(", ") || "–"}</td>
                  {may.operate && <td class="r"><button type="button" class="small" onClick={() => void mute(a, muted ? "0s" : "1h")}>{t(muted ? "alerts.unmute" : "alerts.mute")}</button></td>}
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function Told() {
  const t = useT();
  const { query } = usePlace();
  const after = query.get("after") ?? "";
  const list = useResource<JobList>("/api/jobs", { q: "queue:notifications kind:alert", after, limit: page }, 3000);
  const data = useData(list.data);
  const rows = list.data?.items ?? [];
  return (
    <section>
      <h2>{t("alerts.told")}</h2>
      <Trouble error={list.error} />
      {!list.data ? !list.error && <Loading /> : rows.length === 0 ? <Empty title={t("alerts.empty")} command="FOREBAY_ALERTS_WEBHOOK=https://example.com/hook forebay serve">{t("alerts.empty.lead")}</Empty> : (
        <div class="scroll" data-rows>
          <table>
            <thead><tr><th>{t("alert.reason")}</th><th>{t("job.what")}</th><th class="wide">{t("queue")}</th><th class="r">{t("dead.howmany")}</th><th class="wide">{t("alert.told")}</th><th class="r">{t("time")}</th></tr></thead>
            <tbody>{rows.map((j) => <Row key={j.jobId} j={j} a={data.get(j.jobId)} />)}</tbody>
          </table>
        </div>
      )}
      <div class="pager">
        {after && <a class="button" href={href(["alerts"])}>{t("page.first")}</a>}
        {list.data?.next && rows.length === page && <a class="button" rel="next" href={href(["alerts"], { after: list.data.next })}>{t("page.next")}</a>}
      </div>
    </section>
  );
}

function Row({ j, a }: { j: Job; a?: Alert }) {
  const t = useT();
  return (
    <tr>
      <td>{a ? <span class={"tag" + (a.reason === "dead" || a.reason === "dropped" ? " danger" : " warn")}>{reasons[a.reason] ? t(reasons[a.reason]) : a.reason}</span> : "…"}</td>
      <td class="what cause">{a && (a.id ? <a href={href(["jobs", a.id])}>{a.error}</a> : a.reason === "growth" || a.reason === "dropped" ? <a href={href(["dead"], { queue: a.queue })}>{a.error}</a> : a.error)}<small class="dim">{a && [a.name, a.code].filter(Boolean).join(" · ")}</small></td>
      <td class="wide">{a?.queue}</td>
      <td class="r num">{a?.count}</td>
      <td class="wide"><a href={href(["jobs", j.jobId])}><State state={j.state} /></a></td>
      <td class="r"><Ago at={j.sentAt} /></td>
    </tr>
  );
}

// useData reads what the alerts of a page say: lists of jobs come without their data.
function useData(list?: JobList): Map<string, Alert> {
  const [known, set] = useState<Map<string, Alert>>(new Map());
  useEffect(() => {
    let gone = false;
    const missing = (list?.items ?? []).filter((j) => !known.has(j.jobId));
    void (async () => {
      for (const j of missing) {
        const whole = await call<Job>("/api/jobs/" + encodeURIComponent(j.jobId)).catch(() => undefined);
        if (gone) return;
        if (whole?.data) set((m) => new Map(m).set(j.jobId, whole.data as Alert));
      }
    })();
    return () => { gone = true; };
  }, [list]);
  return known;
}
