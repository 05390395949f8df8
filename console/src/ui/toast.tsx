import { Failed } from "../api/client";
import { useT } from "../i18n";
import { Store, useStore } from "../store";
import { Trouble } from "./bits";

interface Toast {
  id: number;
  text?: string;
  error?: Failed;
  link?: { to: string; text: string };
}

const toasts = new Store<Toast[]>([]);
let next = 1;

function add(t: Omit<Toast, "id">) {
  const one = { ...t, id: next++ };
  toasts.set([...toasts.get(), one].slice(-4));
  setTimeout(() => drop(one.id), t.error ? 12_000 : 5_000);
}

function drop(id: number) {
  toasts.set(toasts.get().filter((o) => o.id !== id));
}

export function say(text: string, link?: Toast["link"]) {
  add({ text, link });
}

export function complain(e: unknown) {
  add({ error: e instanceof Failed ? e : new Failed({ status: 0, code: "internal", detail: String(e) }) });
}

export function Toasts() {
  const t = useT();
  const all = useStore(toasts);
  return (
    <div class="toasts" aria-live="polite">
      {all.map((o) => (
        <div key={o.id} class="toast">
          {o.error ? <Trouble error={o.error} /> : <span>{o.text}</span>}
          {o.link && <a href={o.link.to}>{o.link.text}</a>}
          <button type="button" class="quiet small" aria-label={t("close")} onClick={() => drop(o.id)}>✕</button>
        </div>
      ))}
    </div>
  );
}
