import { useEffect, useState } from "react";
import { address } from "../api/client";
import { useResource } from "../api/resource";
import type { BadList, KeyList } from "../api/types";
import { useT } from "../i18n";
import { count } from "../i18n/format";
import { useMay } from "../roles";
import { href } from "../router";
import { useStore } from "../store";
import { Ago, Num } from "../ui/bits";
import { now } from "../ui/live";

export interface Count {
  labels: Record<string, string>;
  n: number;
}

// countsOf reads one counter out of the text of /metrics.
export function countsOf(text: string, name: string): Count[] {
  const all: Count[] = [];
  for (const line of text.split("\n")) {
    const m = line.startsWith(name + "{") && /^[^{]+\{(.*)\} (\S+)/.exec(line);
    if (m) all.push({ labels: Object.fromEntries([...m[1].matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map((l) => [l[1], l[2]])), n: Number(m[2]) });
  }
  return all;
}

// useMetrics asks for them while the page is seen, and keeps what they were before, for rates.
function useMetrics(every: number): { text: string; before?: { text: string; seconds: number } } | undefined {
  const [state, set] = useState<{ text: string; at: number; before?: { text: string; seconds: number } }>();
  useEffect(() => {
    const stop = new AbortController();
    const ask = async () => {
      if (document.hidden) return;
      const r = await fetch(address("/metrics"), { signal: stop.signal, credentials: "same-origin" }).catch(() => undefined);
      if (!r?.ok) return; // it is another's to tell that the server is away
      const text = await r.text();
      const at = performance.now();
      set((s) => ({ text, at, before: s && { text: s.text, seconds: (at - s.at) / 1000 } }));
    };
    void ask();
    const timer = setInterval(() => void ask(), every);
    return () => { stop.abort(); clearInterval(timer); };
  }, [every]);
  return state;
}

// Ingest shows what the edge does: accepted and rejected by reason, bad rows, and the keys
// with which events are written.
export function Ingest() {
  const t = useT();
  const may = useMay();
  const m = useMetrics(5000);
  const bad = useStore(now).overview?.bad;
  const rows = useResource<BadList>("/api/bad", { limit: 5 }, 10_000);
  const keys = useResource<KeyList>(may.admin ? "/api/keys" : null);
  const verdicts = countsOf(m?.text ?? "", "forebay_ingest_events_total").filter((v) => v.n > 0).sort((a, b) => (a.labels.verdict < b.labels.verdict ? -1 : a.labels.verdict > b.labels.verdict ? 1 : b.n - a.n));
  const before = new Map(countsOf(m?.before?.text ?? "", "forebay_ingest_events_total").map((v) => [JSON.stringify(v.labels), v.n]));
  const rate = (v: Count) => (m?.before ? Math.max(0, v.n - (before.get(JSON.stringify(v.labels)) ?? 0)) / m.before.seconds : undefined);
  const requests = new Map<string, number>();
  for (const r of countsOf(m?.text ?? "", "forebay_ingest_requests_total")) if (r.n > 0) requests.set(r.labels.status, (requests.get(r.labels.status) ?? 0) + r.n);
  const writers = keys.data?.items.filter((k) => !k.revokedAt && k.scopes?.includes("ingest")) ?? [];
  return (
    <>
      {verdicts.length > 0 && (
        <section>
          <h2>{t("ingest.verdicts")}</h2>
          <div class="scroll">
            <table>
              <thead><tr><th>{t("ingest.verdict")}</th><th>{t("bad.code")}</th><th class="wide">{t("bad.dialect")}</th><th class="r">{t("ingest.events")}</th><th class="r">{t("ingest.rate")}</th></tr></thead>
              <tbody>
                {verdicts.map((v) => (
                  <tr key={JSON.stringify(v.labels)}>
                    <td>{t(`verdict.${v.labels.verdict as "accepted"}`)}</td>
                    <td>{v.labels.verdict === "rejected" ? <a href={href(["bad"], { code: v.labels.code })}>{v.labels.code}</a> : v.labels.code || "–"}</td>
                    <td class="wide dim">{v.labels.dialect}</td>
                    <td class="r"><Num n={v.n} /></td>
                    <td class="r num">{rate(v)?.toFixed(1) ?? "–"}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
          <p class="dim">{t("ingest.requests")} {[...requests].sort().map(([status, n]) => `${status}: ${count(t.lang, n)}`).join(" · ")}</p>
        </section>
      )}
      {bad && bad.rows > 0 && (
        <section>
          <h2><a href={href(["bad"])}>{t("nav.bad")}</a> <span class="dim num">{count(t.lang, bad.rows)}</span></h2>
          <ul class="card">{rows.data?.items.map((b) => <li key={b.seq}><a href={href(["bad", b.seq])}>{b.code}</a> {b.reason} <span class="dim"><Ago at={b.at} /></span></li>)}</ul>
        </section>
      )}
      {may.admin && keys.data && (
        <section>
          <h2><a href={href(["keys"])}>{t("ingest.keys")}</a></h2>
          {writers.length === 0 ? <p class="card dim">{t("ingest.nokeys")}</p> : <ul class="card">{writers.map((k) => <li key={k.id}><b>{k.name}</b> <code>{k.prefix}</code> <span class="dim">{t("ingest.used", { n: count(t.lang, k.usedToday) })}</span></li>)}</ul>}
        </section>
      )}
    </>
  );
}
