import { useMemo } from "react";
import { useT } from "../i18n";
import { bytes, short, span } from "../i18n/format";
import { href } from "../router";
import { useStore } from "../store";
import { Ago, Empty, FigureRow, Head, Loading, Trouble, type Figure } from "../ui/bits";
import { Chart } from "../ui/chart";
import { now, type Now } from "../ui/live";
import { QueueTable } from "../ui/queuetable";

export default function Page() {
  const t = useT();
  const v = useStore(now);
  const o = v.overview;
  if (!o) return v.error ? <Trouble error={v.error} /> : <Loading />;
  return (
    <>
      <Head title={t("nav.overview")} lead={<Started at={o.startedAt} />} />
      <Readiness v={v} />
      <Figures v={v} />
      <Charts v={v} />
      <section>
        <h2>{t("nav.queues")}</h2>
        {o.queues.length > 0 ? <QueueTable queues={o.queues} rates={v.byQueue} /> : (
          <Empty title={t("overview.empty")} command={`curl -d '{"eventType":"signup","userId":"42","payload":{"plan":"free"}}' ${location.origin}/ingest/event`}>{t("overview.empty.lead")}</Empty>
        )}
      </section>
    </>
  );
}

function Started({ at }: { at: string }) {
  const t = useT();
  return <>{t("overview.started")} <Ago at={at} /></>;
}

function Readiness({ v }: { v: Now }) {
  const t = useT();
  const failing = v.overview!.readiness.checks.filter((c) => !c.ok);
  if (failing.length === 0) return null;
  return (
    <div class={"note" + (v.overview!.readiness.ready ? "" : " bad")} role="status">
      <strong>{v.overview!.readiness.ready ? t("overview.hurt") : t("overview.notready")}</strong>
      {failing.map((c) => <div key={c.name}><b>{c.name}</b>: {c.message ?? c.code}</div>)}
    </div>
  );
}

function Figures({ v }: { v: Now }) {
  const t = useT();
  const o = v.overview!;
  const sum = (f: (q: (typeof o.queues)[number]) => number) => o.queues.reduce((n, q) => n + f(q), 0);
  const oldest = Math.max(0, ...o.queues.map((q) => q.oldestAgeSeconds));
  const dead = sum((q) => q.dead);
  const figures: Figure[] = [
    { name: t("state.waiting"), value: short(t.lang, sum((q) => q.waiting)), link: href(["jobs"], { q: "state:waiting" }), more: oldest > 0 ? t("overview.oldest", { age: span(t.lang, oldest) }) : undefined },
    { name: t("state.active"), value: short(t.lang, sum((q) => q.active)), link: href(["jobs"], { q: "state:active" }) },
    { name: t("state.delayed"), value: short(t.lang, sum((q) => q.delayed)), link: href(["jobs"], { q: "state:delayed" }) },
    { name: t("nav.dead"), value: short(t.lang, dead), link: href(["dead"]), bad: dead > 0 },
    { name: t("nav.bad"), value: short(t.lang, o.bad.rows), link: href(["bad"]), bad: o.bad.rows > 0 },
  ];
  if (o.disk) figures.push({ name: t("overview.disk"), value: bytes(t.lang, o.disk.used), more: t("overview.free", { size: bytes(t.lang, o.disk.free) }) });
  return <FigureRow figures={figures} />;
}

function Charts({ v }: { v: Now }) {
  const t = useT();
  const s = v.samples;
  const data = useMemo(() => {
    const x = s.map((p) => p.at);
    return {
      rates: [x, s.map((p) => p.sent), s.map((p) => p.done)],
      backlog: [x, s.map((p) => p.waiting), s.map((p) => p.active)],
      latency: [x, s.map((p) => p.acceptedP99), s.map((p) => p.writtenP99)],
    };
  }, [s]);
  const number = (n: number) => short(t.lang, n);
  return (
    <div class="charts">
      <Chart label={t("chart.rates")} data={data.rates} format={number} lines={[{ name: t("chart.in"), colour: "--c1", fill: true }, { name: t("chart.out"), colour: "--c2" }]} />
      <Chart label={t("chart.backlog")} data={data.backlog} format={number} lines={[{ name: t("state.waiting"), colour: "--c1", fill: true }, { name: t("state.active"), colour: "--c2" }]} />
      <Chart label={t("chart.latency")} data={data.latency} format={(ms) => span(t.lang, ms / 1000)} lines={[{ name: t("chart.accepted"), colour: "--c1" }, { name: t("chart.written"), colour: "--c2" }]} />
    </div>
  );
}

