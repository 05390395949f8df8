import { numberOf } from "../api/client";
import type { Arrivals } from "../api/types";
import { useT } from "../i18n";
import { moment } from "../i18n/format";

// Spark draws how many came in each part of a time. What is not known is hatched.
export function Spark({ a, span }: { a: Arrivals; span: string }) {
  const t = useT();
  const counts = a.counts.map(numberOf);
  const most = Math.max(1, ...counts);
  const from = Date.parse(a.from);
  const part = (Date.now() - from) / counts.length;
  const unknown = Math.max(0, Math.floor((Date.parse(a.whole) - from) / part));
  const label = t("dead.spark", { span, counts: counts.join(" ") }) + (unknown > 0 ? " " + t("dead.spark.since", { at: moment(t.lang, Date.parse(a.whole)) }) : "");
  return (
    <svg class="spark" viewBox={`0 0 ${counts.length * 4} 20`} width={counts.length * 4} height="20" role="img" aria-label={label}>
      <title>{label}</title>
      {unknown > 0 && <rect class="unknown" x="0" y="0" width={unknown * 4} height="20" />}
      {counts.map((n, i) => n > 0 && <rect key={i} x={i * 4} width="3" y={20 - Math.max(2, (n / most) * 20)} height={Math.max(2, (n / most) * 20)} />)}
      <line x1="0" x2={counts.length * 4} y1="19.5" y2="19.5" />
    </svg>
  );
}
