import type { Queue } from "../api/types";
import { useT } from "../i18n";
import { short, span } from "../i18n/format";
import { href } from "../router";
import { Num } from "./bits";

// drain is how long a queue needs to become empty at its present pace, in seconds.
export function drain(q: Queue): number | undefined {
  if (q.waiting === 0) return 0;
  return q.drainRate > 0 ? q.waiting / q.drainRate : undefined;
}

export function QueueTable({ queues, rates }: { queues: Queue[]; rates: Record<string, { sent: number; done: number }> }) {
  const t = useT();
  const rate = (n: number | undefined) => (n ? short(t.lang, n) : "–");
  return (
    <div class="scroll" data-rows>
      <table>
        <thead>
          <tr>
            <th>{t("queue")}</th>
            <th class="r">{t("state.waiting")}</th>
            <th class="r">{t("state.active")}</th>
            <th class="r wide">{t("state.delayed")}</th>
            <th class="r">{t("state.dead")}</th>
            <th class="r wide">{t("queue.in")}</th>
            <th class="r wide">{t("queue.out")}</th>
            <th class="r">{t("queue.oldest")}</th>
            <th class="r wide">{t("queue.drain")}</th>
          </tr>
        </thead>
        <tbody>
          {queues.map((q) => {
            const d = drain(q);
            return (
              <tr key={q.name}>
                <td>
                  <a href={href(["queues", q.name])}>{q.name}</a>
                  {q.limits?.paused && <span class="tag warn">{t("queue.paused")}</span>}
                </td>
                <td class="r"><Num n={q.waiting} dim /></td>
                <td class="r"><Num n={q.active} dim /></td>
                <td class="r wide"><Num n={q.delayed} dim /></td>
                <td class={"r" + (q.dead ? " bad" : "")}><Num n={q.dead} dim /></td>
                <td class="r wide num">{rate(rates[q.name]?.sent)}</td>
                <td class="r wide num">{rate(rates[q.name]?.done)}</td>
                <td class="r num">{q.oldestAgeSeconds > 0 ? span(t.lang, q.oldestAgeSeconds) : "–"}</td>
                <td class="r wide num">{d === undefined ? "∞" : d === 0 ? "–" : span(t.lang, d)}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}
