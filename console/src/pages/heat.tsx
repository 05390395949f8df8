import { numberOf } from "../api/client";
import { useResource } from "../api/resource";
import type { Durations } from "../api/types";
import { useT } from "../i18n";
import { clock, span } from "../i18n/format";
import { useQuery } from "../router";
import { Trouble } from "../ui/bits";

const w = 12;
const h = 12;
const ranges = { "15m": 15, "30m": 30, "1h": 60 };

// below is the bound under which a part of all lies; what is longer than all has none.
function below(rows: number[], bounds: number[], part: number): number | undefined {
  const all = rows.reduce((n, c) => n + c, 0);
  let sum = 0;
  const at = rows.findIndex((c) => (sum += c) >= all * part);
  return bounds[at];
}

// Heat draws how long handlers took, minute by minute: the darker a field, the more of them.
export function Heat({ name }: { name: string }) {
  const t = useT();
  const [chosen, setRange] = useQuery("range");
  const range = chosen in ranges ? (chosen as keyof typeof ranges) : "1h";
  const r = useResource<Durations>(`/api/queues/${encodeURIComponent(name)}/durations`, {}, 10_000);
  if (!r.data) return <Trouble error={r.error} />;
  const minutes = r.data.counts.map((m) => (m ?? []).map(numberOf)).slice(-ranges[range]);
  const bounds = r.data.bounds.map(numberOf);
  const rows = Array.from({ length: bounds.length + 1 }, (_, i) => minutes.reduce((n, m) => n + m[i], 0));
  const all = rows.reduce((n, c) => n + c, 0);
  const most = Math.max(1, ...minutes.flat());
  const [width, height] = [minutes.length * w, rows.length * h];
  const say = (part: number) => {
    const b = below(rows, bounds, part);
    return b === undefined ? "> " + span(t.lang, bounds.at(-1)!) : "≤ " + span(t.lang, b);
  };
  const label = all === 0 ? t("heat.none") : t("heat.label", { n: all, half: say(0.5), most: say(0.95) });
  const from = Date.parse(r.data.from) + (r.data.counts.length - minutes.length) * 60_000;
  return (
    <figure class="card heat">
      <figcaption>
        <span class="num">{label}</span>
        <span class="chips">{Object.keys(ranges).map((k) => <button key={k} type="button" class="chip" aria-pressed={range === k} onClick={() => setRange(k === "1h" ? "" : k)}>{k}</button>)}</span>
      </figcaption>
      <svg viewBox={`-64 0 ${width + 64} ${height + 18}`} role="img" aria-label={label}>
        {minutes.map((m, x) => m.map((n, y) => n > 0 && (
          <rect key={x + "." + y} x={x * w} y={height - (y + 1) * h} width={w - 1} height={h - 1} fill-opacity={0.15 + 0.85 * (Math.log(n + 1) / Math.log(most + 1))}>
            <title>{`${clock(t.lang, from + x * 60_000).slice(0, 5)} · ${bounds[y] === undefined ? "> " + span(t.lang, bounds.at(-1)!) : "≤ " + span(t.lang, bounds[y])}: ${n}`}</title>
          </rect>
        )))}
        {bounds.map((b, y) => y % 2 === 0 && <text key={b} x="-6" y={height - y * h - 2} text-anchor="end">{span(t.lang, b)}</text>)}
        <line x1="0" x2={width} y1={height + 0.5} y2={height + 0.5} />
        <text x="0" y={height + 14}>{clock(t.lang, from).slice(0, 5)}</text>
        <text x={width} y={height + 14} text-anchor="end">{t("history.now")}</text>
      </svg>
    </figure>
  );
}
