import type { Handler, Worker } from "../api/types";
import { useT, type Key } from "../i18n";
import type { Fields } from "./fields";

// What is no handler, as it stands in a file to begin with.
const controls: { base: string; name: Key; fields: Fields }[] = [
  { base: "branch", name: "palette.branch", fields: { branch: [{ when: "true", to: [] }] } },
  { base: "parallel", name: "palette.parallel", fields: { parallel: [] } },
  { base: "join", name: "palette.join", fields: { join: "all" } },
  { base: "wait", name: "palette.approval", fields: { wait: { approval: { role: "ops" }, timeout: "1d" }, on_timeout: "fail" } },
  { base: "event", name: "palette.event", fields: { wait: { event: { type: "order.paid" }, timeout: "1d" }, on_timeout: "fail" } },
  { base: "delay", name: "palette.delay", fields: { delay: "1m" } },
  { base: "emit", name: "palette.emit", fields: { emit: { type: "flow.done" } } },
  { base: "flow", name: "palette.flow", fields: { flow: "name" } },
  { base: "dead", name: "palette.dead", fields: { dead_letter: "it cannot go on" } },
];

// offered are the queues with their handlers: those that are worked here, and those that
// are registered, which are worked elsewhere.
function offered(workers: Worker[], handlers: Handler[]): { queue: string; handlers: string[] }[] {
  const all = new Map<string, Set<string>>();
  for (const w of workers) if (!w.batch && w.queue !== "forebay" && !w.queue.startsWith("flow")) all.set(w.queue, new Set(w.handlers));
  for (const h of handlers) if (h.registered) all.set(h.queue, new Set([...(all.get(h.queue) ?? []), h.name]));
  return [...all].map(([queue, names]) => ({ queue, handlers: [...names] }));
}

// Palette offers what steps can be made of: by click, by key, or dragged onto the drawing.
export function Palette({ workers, handlers, flows, after, add }: { workers: Worker[]; handlers: Handler[]; flows: string[]; after: string; add: (fields: Fields, base: string) => void }) {
  const t = useT();
  const offer = (key: string, label: string, fields: Fields, base: string, about?: Handler) => (
    <button
      key={key} type="button" draggable title={[about?.title, about?.description].filter(Boolean).join(": ") || label}
      onDragStart={(e) => e.dataTransfer?.setData("text/plain", JSON.stringify({ fields, base }))}
      onClick={() => add(fields, base)}
    >
      {label}{about?.title && <small class="dim">{about.title}</small>}
    </button>
  );
  const own = offered(workers, handlers);
  const about = (queue: string, name: string) => handlers.find((h) => h.queue === queue && h.name === name);
  return (
    <div class="palette" role="group" aria-label={t("palette")}>
      <p class="dim">{after ? t("palette.after", { step: after }) : t("palette.lead")}</p>
      {own.map((w) => (
        <div key={w.queue} class="palette">
          <h3>{w.queue}</h3>
          {w.handlers.filter((h) => h !== "*").map((h) => offer(w.queue + h, h, w.queue === "default" ? { use: h } : { use: h, queue: w.queue }, h, about(w.queue, h)))}
        </div>
      ))}
      <h3>{t("palette.control")}</h3>
      {controls.map((c) => offer(c.base, t(c.name), c.base === "flow" && flows[0] ? { flow: flows[0] } : c.fields, c.base))}
      <datalist id="handlers">{[...new Set(own.flatMap((w) => w.handlers))].filter((h) => h !== "*").map((h) => <option key={h} value={h} />)}</datalist>
      <datalist id="queues">{own.map((w) => <option key={w.queue} value={w.queue} />)}</datalist>
      <datalist id="flows">{flows.map((n) => <option key={n} value={n} />)}</datalist>
    </div>
  );
}
