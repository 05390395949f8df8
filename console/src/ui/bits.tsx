import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "react";
import { Failed } from "../api/client";
import { useT, type Key } from "../i18n";
import { ago, count, moment, span } from "../i18n/format";
import { useClock } from "./live";

// Num is a number that stands in a column.
export function Num({ n, dim }: { n: number; dim?: boolean }) {
  const t = useT();
  return <span class={"num" + (dim && n === 0 ? " dim" : "")}>{count(t.lang, n)}</span>;
}

export function Ago({ at }: { at?: string }) {
  const t = useT();
  const now = useClock();
  if (!at) return <span class="dim">–</span>;
  const ms = Date.parse(at);
  return <time dateTime={at} title={moment(t.lang, ms)}>{ago(t.lang, ms, now)}</time>;
}

export function Moment({ at }: { at?: string }) {
  const t = useT();
  if (!at) return <span class="dim">–</span>;
  return <time dateTime={at}>{moment(t.lang, Date.parse(at))}</time>;
}

export function Span({ seconds }: { seconds: number }) {
  const t = useT();
  return <span class="num">{span(t.lang, seconds)}</span>;
}

const stateKeys: Record<string, Key> = {
  waiting: "state.waiting", delayed: "state.delayed", active: "state.active", completed: "state.completed",
  dead: "state.dead", cancelled: "state.cancelled", expired: "state.expired", blocked: "state.blocked", skipped: "state.skipped", failed: "state.failed",
};

const marks: Record<string, string> = {
  waiting: "○", delayed: "◷", active: "◐", completed: "●", dead: "✕", cancelled: "⊘", expired: "◌", blocked: "▢", skipped: "↷", failed: "✕",
};

export function useStateName(): (state: string) => string {
  const t = useT();
  return (state) => (stateKeys[state] ? t(stateKeys[state]) : state);
}

// State tells a state by colour, sign and word.
export function State({ state }: { state: string }) {
  const name = useStateName();
  return (
    <span class={"state " + state}>
      <span aria-hidden="true">{marks[state] ?? "·"}</span>
      {name(state)}
    </span>
  );
}

export function Bar({ percent, label }: { percent: number; label?: string }) {
  const t = useT();
  return <progress class="bar" max={100} value={Math.min(100, Math.max(0, percent))} aria-label={label ?? t("job.progress")} />;
}

// Command is one that can be copied: what is empty shows how to fill it.
export function Command({ text }: { text: string }) {
  const t = useT();
  const [copied, set] = useState(false);
  return (
    <div class="command">
      <code>{text}</code>
      <button
        type="button" class="quiet small"
        onClick={() => {
          void navigator.clipboard?.writeText(text).then(() => set(true));
          setTimeout(() => set(false), 1500);
        }}
      >
        {copied ? t("copied") : t("copy")}
      </button>
    </div>
  );
}

export function Empty({ title, children, command }: { title: string; children?: ComponentChildren; command?: string }) {
  return (
    <div class="empty">
      <h2>{title}</h2>
      {children && <p>{children}</p>}
      {command && <Command text={command} />}
    </div>
  );
}

const codeKeys: Record<string, Key> = {
  unreachable: "error.unreachable", unauthorized: "error.unauthorized", not_found: "error.not_found", unsupported: "error.unsupported",
  conflict: "error.conflict", invalid: "error.invalid", full: "error.full", unavailable: "error.unavailable", too_large: "error.too_large",
  limited: "error.limited", closed: "error.unavailable", lease_lost: "error.lease_lost", in_use: "error.in_use", too_new: "error.too_new",
  damaged: "error.damaged", cancelled: "error.cancelled",
};

// Trouble says what is wrong: what its code means in the reader's language, and the server's
// words, which are English, below it, where the reader's language is another.
export function Trouble({ error }: { error?: Failed }) {
  const t = useT();
  if (!error) return null;
  const { detail, hint, errors } = error.problem;
  const own = t.lang === "en";
  const calm = error.code === "unsupported";
  return (
    <div class={calm ? "note" : "note bad"} role={calm ? "status" : "alert"}>
      <strong>{t(codeKeys[error.code] ?? "error.internal")}</strong> {detail && (own ? detail : t.said(detail))}
      {errors?.map((e) => (
        <div key={e.pointer}>
          <code>{e.pointer}</code> {t.said(e.message) ?? e.message}
        </div>
      ))}
      {own ? hint && <div class="dim">{hint}</div> : (detail || hint) && (
        <details open={!!detail && t.said(detail) === undefined}>
          <summary>{t("error.words")}</summary>
          <div lang="en"><code>{error.code}</code> {detail} <span class="dim">{hint}</span></div>
        </details>
      )}
    </div>
  );
}

export function Loading() {
  const t = useT();
  return <div class="loading" role="status">{t("loading")}</div>;
}

export function Head({ title, children, lead }: { title: ComponentChildren; children?: ComponentChildren; lead?: ComponentChildren }) {
  return (
    <header class="head">
      <div>
        <h1>{title}</h1>
        {lead && <p class="lead">{lead}</p>}
      </div>
      {children && <div class="acts">{children}</div>}
    </header>
  );
}

export interface Pair {
  name: string;
  value: ComponentChildren;
}

export function Pairs({ pairs }: { pairs: (Pair | false | null | undefined | "" | 0)[] }) {
  return (
    <dl class="pairs">
      {pairs.map((p) => p && (
        <div key={p.name}>
          <dt>{p.name}</dt>
          <dd>{p.value}</dd>
        </div>
      ))}
    </dl>
  );
}

// Dialog is the browser's own: it keeps the focus and closes with Escape.
export function Dialog({ title, close, children, wide }: { title: string; close: () => void; children: ComponentChildren; wide?: boolean }) {
  const t = useT();
  const ref = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const d = ref.current!;
    if (!d.open) d.showModal();
    return () => d.close();
  }, []);
  return (
    <dialog ref={ref} class={wide ? "wide" : ""} aria-label={title} onCancel={(e) => { e.preventDefault(); close(); }} onClick={(e) => e.target === ref.current && close()}>
      <div class="dialog">
        <header>
          <h2>{title}</h2>
          <button type="button" class="quiet" onClick={close} aria-label={t("close")}>✕</button>
        </header>
        {children}
      </div>
    </dialog>
  );
}

// Figure is one number of a row of them.
export type Figure = { name: string; value: string; link?: string; bad?: boolean; more?: string };

export function FigureRow({ figures }: { figures: Figure[] }) {
  return (
    <ul class="figures">
      {figures.map((f) => (
        <li key={f.name} class={f.bad ? "bad" : ""}>
          <span class="dim">{f.name}</span>
          {f.link ? <a href={f.link} class="num">{f.value}</a> : <span class="num">{f.value}</span>}
          <small class="dim">{f.more ?? "\u00a0"}</small>
        </li>
      ))}
    </ul>
  );
}
