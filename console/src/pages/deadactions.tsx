import { useState } from "react";
import { call, numberOf } from "../api/client";
import { useFeed } from "../api/feed";
import { useResource } from "../api/resource";
import type { CanaryState, DeadWork, DeadWorkList, JobEvent } from "../api/types";
import { useT, type Key } from "../i18n";
import { useMay } from "../roles";
import { href } from "../router";
import { Ago, Bar, Empty, FigureRow, Head, Loading, Moment, Pairs, Trouble } from "../ui/bits";
import { refresh } from "../ui/live";
import { complain } from "../ui/toast";

const verbs: Record<string, Key> = { replay: "replay", discard: "discard" };
const verdicts: Record<string, Key> = { passed: "canary.passed", lost: "canary.lost", timeout: "canary.timeoutverdict" };
const looks: Record<DeadWork["state"], [string, string]> = {
  running: ["active", "◐"], paused: ["delayed", "‖"], cancelled: ["cancelled", "⊘"], stopped: ["dead", "✕"], interrupted: ["expired", "◌"], completed: ["completed", "●"],
};

function Standing({ state }: { state: DeadWork["state"] }) {
  const t = useT();
  const [look, sign] = looks[state];
  return <span class={"state " + look}><span aria-hidden="true">{sign}</span>{t(`action.${state}`)}</span>;
}

function Meant({ w }: { w: DeadWork }) {
  const t = useT();
  const said = Object.entries(w.filter).filter(([, v]) => v);
  return said.length > 0 ? <code>{said.map(([k, v]) => `${k}:${v}`).join(" ")}</code> : <span>{t("all")}</span>;
}

// Actions are what was done to many dead letters, by whom, and why.
export function Actions() {
  const t = useT();
  const r = useResource<DeadWorkList>("/api/dead/actions", {}, 2000);
  if (!r.data) return r.error ? <Trouble error={r.error} /> : <Loading />;
  if (r.data.items.length === 0) return <Empty title={t("action.none")} command="forebay dead replay --all --dry-run">{t("action.none.lead")}</Empty>;
  return (
    <div class="scroll" data-rows>
      <table>
        <thead><tr><th>{t("action")}</th><th>{t("job.state")}</th><th class="wide">{t("action.meant")}</th><th class="r">{t("action.done")}</th><th class="wide">{t("discard.reason")}</th><th class="wide">{t("action.by")}</th><th class="r">{t("job.started")}</th></tr></thead>
        <tbody>
          {r.data.items.map((w) => (
            <tr key={w.id}>
              <td><a href={href(["dead", "actions", w.id])}>{verbs[w.action] ? t(verbs[w.action]) : w.action}</a></td>
              <td><Standing state={w.state} /></td>
              <td class="wide"><Meant w={w} /></td>
              <td class="r num">{numberOf(w.done)} / {numberOf(w.total)}{w.failed > 0 && <span class="bad"> ✕ {w.failed}</span>}</td>
              <td class="wide what">{w.reason || "–"}</td>
              <td class="wide">{w.by || "–"}</td>
              <td class="r"><Ago at={w.startedAt} /></td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

// Action is one of them: how far it is, live.
export function Action({ id }: { id: string }) {
  const t = useT();
  const may = useMay();
  const path = "/api/dead/actions/" + encodeURIComponent(id);
  const [told, setTold] = useState<DeadWork>();
  const r = useResource<DeadWork>(path, {}, told && told.state !== "running" ? 0 : 2000);
  const w = r.data;
  // Its job pushes how far it is; what the action says of itself is asked for then.
  const heard = (e?: JobEvent) => { r.reload(); if (e?.state) refresh(); };
  useFeed(w && w.state === "running" ? w.streamUrl : null, {}, { progress: () => heard(), state: heard, done: heard });
  if (w && told?.state !== w.state) setTold(w);
  if (!w) return r.error ? (r.error.code === "not_found" ? <Empty title={t("action.gone")}><a href={href(["dead"], { tab: "actions" })}>{t("dead.actions")}</a></Empty> : <Trouble error={r.error} />) : <Loading />;
  const tell = async (verb: "pause" | "resume" | "cancel") => {
    try {
      await call(`${path}/${verb}`, { method: "POST" });
      r.reload();
    } catch (e) {
      complain(e);
    }
  };
  const gone = numberOf(w.done) + numberOf(w.failed);
  return (
    <>
      <Head title={<>{verbs[w.action] ? t(verbs[w.action]) : w.action} <Standing state={w.state} /></>} lead={<><a href={href(["dead"], { tab: "actions" })}>{t("dead.actions")}</a> / <code class="id">{w.id}</code></>}>
        {may.operate && w.state === "running" && <button type="button" onClick={() => void tell("pause")}>{t("pause")}</button>}
        {may.operate && !["running", "completed"].includes(w.state) && <button type="button" class="main" onClick={() => void tell("resume")}>{t("resume")}</button>}
        {may.operate && !["cancelled", "completed"].includes(w.state) && <button type="button" class="danger" onClick={() => void tell("cancel")}>{t("bulk.stop")}</button>}
      </Head>
      <Trouble error={r.error} />
      {w.state === "stopped" && <div class="note bad"><strong>{t("canary.lost")}</strong> {t("canary.lost.lead")}</div>}
      <div class="card progress"><Bar percent={w.total > 0 ? (100 * gone) / Math.max(numberOf(w.total), gone) : w.state === "completed" ? 100 : 0} /></div>
      <FigureRow figures={[
        { name: t("action.total"), value: String(w.total) + (w.more ? "+" : "") }, { name: t("action.done"), value: String(w.done) },
        { name: t("action.failed"), value: String(w.failed), bad: w.failed > 0 },
      ]} />
      {w.canary && <Canary c={w.canary} />}
      <Pairs
        pairs={[
          { name: t("action.meant"), value: <Meant w={w} /> },
          w.reason && { name: t("discard.reason"), value: w.reason },
          w.rate && { name: t("dead.rate"), value: <span class="num">{w.rate}</span> },
          w.by && { name: t("action.by"), value: w.by },
          { name: t("job.started"), value: <Moment at={w.startedAt} /> },
          w.endedAt && { name: t("job.finished"), value: <Moment at={w.endedAt} /> },
          { name: t("action.runs"), value: <span class="num">{w.runs}</span> },
          { name: t("bulk.job"), value: <a class="id" href={href(["jobs", w.jobId])}>{w.jobId}</a> },
        ]}
      />
      {w.errors && w.errors.length > 0 && (
        <section>
          <h2>{t("action.errors")}</h2>
          <div class="scroll">
            <table>
              <thead><tr><th class="r">{t("nav.dead")}</th><th>{t("dead.code")}</th><th>{t("event.text")}</th></tr></thead>
              <tbody>{w.errors.map((f) => <tr key={f.seq}><td class="r"><a class="num" href={href(["dead", f.seq])}>{f.seq}</a></td><td>{f.code}</td><td class="what">{f.message}</td></tr>)}</tbody>
            </table>
          </div>
        </section>
      )}
    </>
  );
}

function Canary({ c }: { c: CanaryState }) {
  const t = useT();
  return (
    <section>
      <h2>{t("canary")} {c.verdict && <span class={"tag" + (c.verdict === "passed" ? "" : " danger")}>{t(verdicts[c.verdict] ?? "canary.unknown")}</span>}</h2>
      <p class="num">{t("canary.state", { sent: c.sent, count: c.count, passed: c.passed, lost: c.lost })}</p>
      {c.failures?.map((f) => <p key={f.jobId} class="note bad"><a class="id" href={href(["jobs", f.jobId])}>{f.jobId}</a> <strong>{f.code}</strong> {f.message}</p>)}
    </section>
  );
}
