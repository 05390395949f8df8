import { useState } from "react";
import { call } from "../api/client";
import type { Outcome } from "../api/types";
import { useT } from "../i18n";
import { Dialog } from "./bits";
import { complain, say } from "./toast";

// usePick is which rows of a list were chosen.
export function usePick(): { chosen: Set<number>; flip: (seq: number) => void; all: (seqs: number[]) => void; clear: () => void } {
  const [chosen, set] = useState<Set<number>>(new Set());
  return {
    chosen,
    flip: (seq) => set((old) => { const next = new Set(old); if (!next.delete(seq)) next.add(seq); return next; }),
    all: (seqs) => set((old) => (seqs.every((s) => old.has(s)) ? new Set() : new Set(seqs))),
    clear: () => set(new Set()),
  };
}

// Discard asks why, since what is discarded cannot be had again.
export function Discard({ path, body, n, close, done }: { path: string; body: Record<string, unknown>; n: number; close: () => void; done: () => void }) {
  const t = useT();
  const [busy, setBusy] = useState(false);
  return (
    <Dialog title={t("discard")} close={close}>
      <form
        class="form"
        onSubmit={async (e) => {
          e.preventDefault();
          const reason = String(new FormData(e.currentTarget).get("reason"));
          setBusy(true);
          try {
            tell(await call<Outcome>(path, { body: { ...body, reason } }), t);
            done();
            close();
          } catch (err) {
            complain(err);
            setBusy(false);
          }
        }}
      >
        <p>{t("discard.lead", { n })}</p>
        <label>{t("discard.reason")}<input name="reason" required maxLength={500} autoFocus autoComplete="off" /></label>
        <div class="acts"><button type="submit" class="danger" disabled={busy}>{t("discard")}</button></div>
      </form>
    </Dialog>
  );
}

// tell says what an action did.
export function tell(o: Outcome, t: ReturnType<typeof useT>) {
  const failed = o.failed?.[0];
  say(t("outcome", { done: o.done, failed: o.failedCount }) + (failed ? ` ${t.said(failed.message) ?? failed.message}` : ""));
}
