import { useEffect, useState } from "react";
import { call, Failed, session } from "../api/client";
import type { Overview } from "../api/types";
import { Store } from "../store";

// What the whole console knows of the server: one request every two seconds while the
// page is seen, whatever screens show of it. Rates are of this page's own making: the
// differences of two answers.

export interface Sample {
  at: number; // s
  sent: number; // per s
  done: number;
  waiting: number;
  active: number;
  acceptedP99: number | null; // ms
  writtenP99: number | null;
}

export interface Now {
  overview?: Overview;
  error?: Failed;
  samples: Sample[];
  byQueue: Record<string, { sent: number; done: number }>; // per s
}

export const now = new Store<Now>({ samples: [], byQueue: {} });

const every = 2_000;
const keep = 300; // ten minutes

interface Totals {
  sent: number;
  done: number;
}

function totals(v: Overview): Record<string, Totals> {
  const all: Record<string, Totals> = {};
  for (const q of v.queues) all[q.name] = { sent: q.sent, done: q.completed + q.cancelled + q.expired };
  return all;
}

export function sample(before: Overview | undefined, v: Overview): { one: Sample; byQueue: Now["byQueue"] } {
  const byQueue: Now["byQueue"] = {};
  let sent = 0;
  let done = 0;
  if (before && before.startedAt === v.startedAt) {
    const seconds = (Date.parse(v.now) - Date.parse(before.now)) / 1000;
    const old = totals(before);
    for (const [name, t] of Object.entries(totals(v))) {
      const from = old[name] ?? { sent: 0, done: 0 };
      const rate = { sent: Math.max(0, t.sent - from.sent) / seconds, done: Math.max(0, t.done - from.done) / seconds };
      byQueue[name] = rate;
      sent += rate.sent;
      done += rate.done;
    }
  }
  const sum = (f: (q: Overview["queues"][number]) => number) => v.queues.reduce((n, q) => n + f(q), 0);
  return {
    byQueue,
    one: {
      at: Date.parse(v.now) / 1000, sent, done, waiting: sum((q) => q.waiting), active: sum((q) => q.active),
      acceptedP99: v.accepted?.count ? v.accepted.p99ms : null, writtenP99: v.written?.count ? v.written.p99ms : null,
    },
  };
}

let timer: ReturnType<typeof setTimeout> | undefined;
let asking = false;

async function ask() {
  timer = undefined;
  if (document.hidden || asking || !session.get()?.role) {
    timer = setTimeout(ask, every);
    return;
  }
  asking = true;
  const old = now.get();
  try {
    const v = await call<Overview>("/api/overview");
    const { one, byQueue } = sample(old.overview, v);
    const fresh = old.overview?.startedAt === v.startedAt;
    now.set({ overview: v, samples: [...old.samples, ...(fresh || old.samples.length === 0 ? [one] : [])].slice(-keep), byQueue: fresh ? byQueue : {} });
  } catch (e) {
    if (e instanceof Failed) now.set({ ...old, error: e });
  }
  asking = false;
  timer = setTimeout(ask, every);
}

export function begin() {
  void ask();
  session.watch(refresh);
  document.addEventListener("visibilitychange", () => !document.hidden && refresh());
}

// refresh asks at once, after something was changed.
export function refresh() {
  clearTimeout(timer);
  void ask();
}

// useClock ticks, so that ages grow without asking anybody.
export function useClock(every = 1000): number {
  const [at, set] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => set(Date.now()), every);
    return () => clearInterval(timer);
  }, [every]);
  return at;
}
