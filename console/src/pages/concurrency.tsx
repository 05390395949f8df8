import { useState } from "react";
import { call } from "../api/client";
import type { Concurrency, SetConcurrency } from "../api/types";
import { useT } from "../i18n";
import { Bar } from "../ui/bits";
import { refresh } from "../ui/live";
import { complain, say } from "../ui/toast";

// ConcurrencyForm shows how many of a queue this server works on at once, and sets it: a
// number, or what is found out within bounds.
export function ConcurrencyForm({ name, now, may }: { name: string; now: Concurrency; may: boolean }) {
  const t = useT();
  const [auto, setAuto] = useState(now.auto);
  const save = async (f: FormData) => {
    const n = (key: string) => Number(f.get(key)) || undefined;
    const body: SetConcurrency = auto ? { auto: true, min: n("min"), max: n("max") } : { limit: n("limit") };
    try {
      await call(`/api/queues/${encodeURIComponent(name)}/concurrency`, { method: "PUT", body });
      say(t("concurrency.saved"));
      refresh();
    } catch (e) {
      complain(e);
    }
  };
  const field = (key: string, value: number | undefined, label: string, needed = false) => (
    <label key={key}>{label}<input name={key} type="number" min="1" max="10000" required={needed} defaultValue={value ? String(value) : ""} disabled={!may} /></label>
  );
  return (
    <form class="card form" onSubmit={(e) => { e.preventDefault(); void save(new FormData(e.currentTarget)); }}>
      <div>
        <Bar percent={now.limit > 0 ? (now.running / now.limit) * 100 : 0} label={t("concurrency")} />
        <p class="num" role="status">{t("concurrency.now", { running: now.running, limit: now.limit })} <span class="tag">{now.auto ? "auto" : t("concurrency.fixed")}</span></p>
      </div>
      <label>{t("concurrency.how")}
        <select value={auto ? "auto" : "fixed"} onChange={(e) => setAuto(e.currentTarget.value === "auto")} disabled={!may}>
          <option value="fixed">{t("concurrency.fixed")}</option>
          <option value="auto">{t("concurrency.auto")}</option>
        </select>
      </label>
      {auto ? <div class="pair">{field("min", now.min ?? 1, t("concurrency.min"))}{field("max", now.max ?? 100, t("concurrency.max"))}</div> : field("limit", now.limit, t("concurrency.limit"), true)}
      <p class="dim">{t("concurrency.lead", { name })}</p>
      {may && <div><button type="submit" class="main">{t("concurrency.set")}</button></div>}
    </form>
  );
}
