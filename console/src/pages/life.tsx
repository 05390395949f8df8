import { useEffect, useMemo, useRef, useState } from "react";
import { numberOf } from "../api/client";
import { useResource } from "../api/resource";
import type { EventList, JobEvent } from "../api/types";
import { Table, type At } from "../lists/table";
import { useT } from "../i18n";
import { clock, span } from "../i18n/format";
import { Bar, Trouble } from "../ui/bits";
import { useClock } from "../ui/live";
import { life, type Part } from "../ui/waterfall";

// Life draws what a job did, shows how it stood at any moment of it, and lists what happened.
export function Life({ id, turn, over }: { id: string; turn: number; over: boolean }) {
  const t = useT();
  const r = useResource<EventList>(`/api/jobs/${encodeURIComponent(id)}/history`, { limit: 1000 });
  const first = useRef(true);
  useEffect(() => {
    if (first.current) { first.current = false; return; }
    const timer = setTimeout(r.reload, 200); // what happens in a burst is read once
    return () => clearTimeout(timer);
  }, [turn]);
  const now = useClock(over ? 60_000 : 500);
  const [at, setAt] = useState<number>(); // undefined: now
  const events = r.data?.items ?? [];
  const parts = useMemo(() => life(events, now), [events, now]);
  const [listed, list] = useState(false);
  return (
    <section>
      <h2>{t("job.life")}</h2>
      <Trouble error={r.error} />
      {r.data && events.length === 0 && <p class="card dim">{t("job.nohistory")}</p>}
      {parts.length > 0 && <Waterfall parts={parts} at={at} />}
      {parts.length > 0 && <Slider parts={parts} events={events} at={at} set={setAt} />}
      {events.length > 0 && (
        <details onToggle={(e) => list(e.currentTarget.open)}>
          <summary>{t("job.events", { n: events.length })}</summary>
          {listed && <Events events={events} />}
        </details>
      )}
    </section>
  );
}

function Waterfall({ parts, at }: { parts: Part[]; at?: number }) {
  const t = useT();
  const from = parts[0].from;
  const whole = Math.max(1, parts.at(-1)!.to - from);
  const percent = (ms: number) => ((ms / whole) * 100).toFixed(3) + "%";
  return (
    <ol class="waterfall card">
      {parts.map((p, i) => (
        <li key={i}>
          <span class="label">{p.kind === "run" ? t("life.run", { n: p.attempt ?? 1 }) : t(`life.${p.kind}`)}</span>
          <span class="lane">
            <i class={p.kind + " " + (p.end ?? "") + (p.open ? " open" : "")} style={{ left: percent(p.from - from), width: percent(p.to - p.from) }} />
            {at !== undefined && <b class="at" style={{ left: percent(Math.min(whole, at - from)) }} />}
          </span>
          <span class="r num">{span(t.lang, (p.to - p.from) / 1000)}</span>
          {p.message && <span class="message bad">{p.message}</span>}
        </li>
      ))}
    </ol>
  );
}

const steps = 200;

// Slider goes through the life: how the job stood at a moment, and what was told of it last.
function Slider({ parts, events, at, set }: { parts: Part[]; events: JobEvent[]; at?: number; set: (ms?: number) => void }) {
  const t = useT();
  const from = parts[0].from;
  const to = parts.at(-1)!.to;
  const whole = Math.max(1, to - from);
  const ms = Math.min(at ?? to, to);
  const part = parts.filter((p) => p.from <= ms).at(-1) ?? parts[0];
  const until = events.filter((e) => Date.parse(e.at) <= ms);
  const progress = part.kind === "run" ? until.filter((e) => Date.parse(e.at) >= part.from && e.progress).at(-1)?.progress : undefined;
  const last = until.filter((e) => e.type !== "progress" && e.type !== "log").at(-1);
  const name = part.kind === "run" ? t("life.run", { n: part.attempt ?? 1 }) : t(`life.${part.kind}`);
  const text = [clock(t.lang, ms), ms >= part.to && !part.open ? (last?.type ?? name) : name, progress?.message ?? progress?.stage].filter(Boolean).join(" · ");
  return (
    <div class="card life">
      <input
        type="range" min="0" max={steps} step="1" value={at === undefined ? steps : Math.round(((ms - from) / whole) * steps)} aria-label={t("life.at")} aria-valuetext={text}
        onInput={(e) => { const n = Number(e.currentTarget.value); set(n === steps ? undefined : from + (n / steps) * whole); }}
      />
      <output class="row"><span class="num">{text}</span> {progress && <Bar percent={numberOf(progress.percent ?? 0)} />}</output>
    </div>
  );
}

function Events({ events }: { events: JobEvent[] }) {
  const t = useT();
  const all = useMemo(() => [...events].reverse(), [events]);
  const head = <><th>{t("time")}</th><th>{t("event")}</th><th class="r">{t("job.attempt")}</th><th>{t("event.text")}</th></>;
  const row = (e: JobEvent, { key, ...at }: At) => (
    <tr key={key} {...at}>
      <td class="num">{clock(t.lang, Date.parse(e.at))}</td>
      <td>{e.type}</td>
      <td class="r num">{e.attempt ? numberOf(e.attempt) : ""}</td>
      <td class="what">{e.cause ? `${e.cause.code}: ${e.cause.message}` : (e.text ?? e.progress?.message ?? e.progress?.stage ?? "")}</td>
    </tr>
  );
  return <Table name="events" items={all} id={(e) => e.id} head={head} row={row} />;
}
