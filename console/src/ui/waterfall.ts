import type { JobEvent } from "../api/types";

// A life of a job is what it did, one after the other.
export interface Part {
  kind: "wait" | "run" | "delay";
  from: number; // ms
  to: number;
  open: boolean; // it goes on
  attempt?: number;
  end?: string; // of a run: the type of the event that ended it
  message?: string;
}

const ends = new Set(["retry", "released", "lease_lost", "completed", "dead", "cancelled", "expired"]);

// life makes the parts of a job's history, oldest first; now ends what goes on.
export function life(events: JobEvent[], now: number): Part[] {
  const parts: Part[] = [];
  let open: Part | undefined;
  const close = (at: number, end?: string, message?: string) => {
    if (!open) return;
    open.to = Math.max(open.from, at);
    open.open = false;
    open.end = end;
    open.message = message;
    parts.push(open);
    open = undefined;
  };
  const begin = (kind: Part["kind"], at: number, attempt?: number) => {
    open = { kind, from: at, to: at, open: true, attempt };
  };
  let attempt = 0;
  for (const e of events) {
    const at = Date.parse(e.at);
    if (e.type === "added" || e.type === "replayed" || e.type === "replaced") {
      close(at);
      begin(e.state === "delayed" ? "delay" : "wait", at);
    } else if (e.type === "started") {
      close(at);
      begin("run", at, ++attempt);
    } else if (ends.has(e.type)) {
      close(at, e.type, e.cause?.message ?? e.text);
      const until = e.runAt ? Date.parse(e.runAt) : 0;
      if (e.type === "retry") begin(until > at ? "delay" : "wait", at);
      else if (e.type === "released" || e.type === "lease_lost") begin("wait", at);
    } else if (e.type === "changed" && open && open.kind !== "run") {
      const kind = e.state === "delayed" ? "delay" : e.state === "waiting" ? "wait" : open.kind;
      if (kind !== open.kind) {
        close(at);
        begin(kind, at);
      }
    }
  }
  if (open) {
    open.to = Math.max(open.from, now);
    parts.push(open);
  }
  return parts;
}
