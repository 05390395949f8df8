import { useState } from "react";
import { call, numberOf } from "../api/client";
import { useResource } from "../api/resource";
import type { DeadElsewhere, DeadGroup, DeadGroupList, Redriven } from "../api/types";
import { useT } from "../i18n";
import { count } from "../i18n/format";
import { Spark } from "../lists/spark";
import { useMay } from "../roles";
import { href, usePlace, useQuery } from "../router";
import { Ago, Empty, Loading, Num, Trouble } from "../ui/bits";
import { DeadDialog, type DeadVerb } from "../ui/deadact";
import { complain, say } from "../ui/toast";

const trends = ["1h", "24h", "7d"] as const;

// Groups are dead letters by their cause: what is wrong, how often, and since when.
export function Groups({ queue, code }: { queue: string; code: string }) {
  const t = useT();
  const may = useMay();
  const { query } = usePlace();
  const after = query.get("after") ?? "";
  const [order, setOrder] = useQuery("order");
  const [chosen, setTrend] = useQuery("trend");
  const trend = trends.find((s) => s === chosen) ?? "24h";
  const page = useResource<DeadGroupList>("/api/dead/groups", { queue, code, after, order, trend, limit: 50 }, 5000);
  const [acting, setActing] = useState<{ verb: DeadVerb; group: DeadGroup }>();
  const rows = page.data?.items ?? [];
  const most = Math.max(1, ...rows.map((g) => numberOf(g.count)));
  return (
    <>
      <div class="chips" role="group" aria-label={t("dead.order")}>
        {(["", "largest"] as const).map((o) => <button key={o} type="button" class="chip" aria-pressed={order === o} onClick={() => setOrder(o)}>{t(o ? "dead.largest" : "dead.newest")}</button>)}
        <span class="gap" />
        {trends.map((s) => <button key={s} type="button" class="chip" aria-pressed={trend === s} onClick={() => setTrend(s === "24h" ? "" : s)}>{s}</button>)}
      </div>
      <Trouble error={page.error} />
      {page.data?.partial && <div class="note">{t("dead.partial")}</div>}
      {page.loading && !page.data ? <Loading /> : rows.length === 0 ? !page.error && !page.data?.elsewhere?.length && <NoneDead /> : (
        <div class="scroll" data-rows>
          <table>
            <thead>
              <tr>
                <th>{t("dead.cause")}</th><th>{t("job.name")}</th><th class="wide">{t("queue")}</th><th class="r">{t("dead.howmany")}</th><th class="wide">{t("dead.arrivals")}</th><th class="r wide">{t("dead.first")}</th><th class="r">{t("dead.last")}</th>{may.operate && <th class="wide" />}
              </tr>
            </thead>
            <tbody>
              {rows.map((g) => (
                <tr key={g.fingerprint + g.queue + g.kind}>
                  <td class="what cause"><a href={href(["dead"], { tab: "all", group: g.fingerprint })}>{g.text || g.code}</a><small class="dim">{g.code}</small></td>
                  <td class="name">{g.kind || "–"}</td>
                  <td class="wide">{g.queue}</td>
                  <td class="r"><Num n={numberOf(g.count)} /><progress class="bar thin" max={most} value={numberOf(g.count)} aria-hidden="true" /></td>
                  <td class="wide">{g.arrivals && <Spark a={g.arrivals} span={trend} />}</td>
                  <td class="r wide"><Ago at={g.firstAt} /></td>
                  <td class="r"><Ago at={g.lastAt} /></td>
                  {may.operate && (
                    <td class="r wide">
                      <button type="button" class="small" onClick={() => setActing({ verb: "replay", group: g })}>{t("replay")}…</button>{" "}
                      <button type="button" class="small danger" onClick={() => setActing({ verb: "discard", group: g })}>{t("discard")}…</button>
                    </td>
                  )}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      <div class="pager">
        {after && <a class="button" href={href(["dead"], { queue, code, order, trend: chosen })}>{t("page.first")}</a>}
        {page.data?.next && <a class="button" rel="next" href={href(["dead"], { queue, code, order, trend: chosen, after: page.data.next })}>{t("page.next")}</a>}
      </div>
      {page.data?.elsewhere?.map((e) => <Elsewhere key={e.queue} e={e} may={may.operate} done={page.reload} />)}
      {acting && <DeadDialog verb={acting.verb} filter={{ group: acting.group.fingerprint }} close={() => setActing(undefined)} />}
    </>
  );
}

export function NoneDead() {
  const t = useT();
  return <Empty title={t("dead.empty")} command="forebay dead ls">{t("dead.empty.lead")}</Empty>;
}

// Elsewhere are dead letters that another store keeps, such as a queue of AWS SQS.
function Elsewhere({ e, may, done }: { e: DeadElsewhere; may: boolean; done: () => void }) {
  const t = useT();
  const [rate, setRate] = useState("");
  const path = `/api/dead/elsewhere/${encodeURIComponent(e.queue)}/redrive`;
  const runs = e.latest?.state === "RUNNING" ? e.latest.task : undefined;
  const run = async (call: () => Promise<Redriven>) => {
    try {
      await call();
      say(t("job.acted"));
      done();
    } catch (err) {
      complain(err);
    }
  };
  return (
    <section class="card">
      <h2>{e.queue} <span class="dim">{t("dead.count", { n: e.count })}</span></h2>
      <p class="dim">{e.where}</p>
      {e.error && <p class="bad">{e.error}</p>}
      {e.latest && <p>{e.latest.state} · {count(t.lang, numberOf(e.latest.moved))}{e.latest.toMove ? " / " + count(t.lang, numberOf(e.latest.toMove)) : ""} · <Ago at={e.latest.started} /></p>}
      {may && !runs && (
        <form class="fields" onSubmit={(ev) => { ev.preventDefault(); void run(() => call<Redriven>(path, { body: rate ? { rate: Number(rate) } : {} })); }}>
          <label>{t("dead.rate")}<input inputMode="numeric" value={rate} placeholder={t("limits.none")} onInput={(ev) => setRate(ev.currentTarget.value)} /></label>
          <button type="submit">{t("dead.giveback")}</button>
        </form>
      )}
      {may && runs && <button type="button" onClick={() => void run(() => call<Redriven>(`${path}/${encodeURIComponent(runs)}`, { method: "DELETE" }))}>{t("bulk.stop")}</button>}
    </section>
  );
}
