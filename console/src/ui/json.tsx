import { useMemo, useState } from "react";
import { print } from "../api/json";
import { useT } from "../i18n";
import { bytes } from "../i18n/format";

const shownAtOnce = 16_384;

// Json shows a value with its numbers as they were written. What is large is shown
// when it is asked for.
export function Json({ value, label }: { value: unknown; label: string }) {
  const t = useT();
  const text = useMemo(() => print(value), [value]);
  const [all, setAll] = useState(false);
  const [copied, setCopied] = useState(false);
  const cut = !all && text.length > shownAtOnce;
  return (
    <div class="json">
      <div class="tools">
        <span class="dim">{bytes(t.lang, new Blob([text]).size)}</span>
        <button
          type="button" class="quiet small"
          onClick={() => {
            void navigator.clipboard?.writeText(text).then(() => setCopied(true));
            setTimeout(() => setCopied(false), 1500);
          }}
        >
          {copied ? t("copied") : t("copy")}
        </button>
      </div>
      <pre tabIndex={0} aria-label={label}>{cut ? text.slice(0, shownAtOnce) + "\n…" : paint(text)}</pre>
      {cut && <button type="button" onClick={() => setAll(true)}>{t("json.all")}</button>}
    </div>
  );
}

const tokens = /("(?:[^"\\]|\\.)*")(\s*:)?|\b(true|false|null)\b|-?\d[\d.eE+-]*/g;

function paint(text: string) {
  if (text.length > 200_000) return text;
  const out: (string | preact.JSX.Element)[] = [];
  let at = 0;
  for (const m of text.matchAll(tokens)) {
    if (m.index > at) out.push(text.slice(at, m.index));
    const kind = m[1] ? (m[2] ? "k" : "s") : m[3] ? "l" : "n";
    out.push(<span class={"j" + kind}>{m[1] ?? m[0]}</span>);
    if (m[2]) out.push(m[2]);
    at = m.index + m[0].length;
  }
  out.push(text.slice(at));
  return out;
}
