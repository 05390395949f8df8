import { Store, kept, useStore } from "../store";
import en, { type Key } from "./en";

export type { Key };
export type Lang = "en" | "zh-CN";
export const langs: { lang: Lang; name: string }[] = [
  { lang: "en", name: "English" },
  { lang: "zh-CN", name: "简体中文" },
];

export type Values = Record<string, string | number>;

interface Words {
  lang: Lang;
  text: Record<Key, string>;
}

const words = new Store<Words>({ lang: "en", text: en });

export async function speak(lang: Lang, remember = true) {
  const text = lang === "en" ? en : (await import("./zh-CN")).default;
  document.documentElement.lang = lang;
  if (remember) kept.set("lang", lang);
  words.set({ lang, text });
}

// wanted is the language that was chosen, else the first of the browser's that we have.
export function wanted(): Lang {
  const chosen = kept.get("lang");
  if (chosen === "en" || chosen === "zh-CN") return chosen;
  for (const l of navigator.languages) {
    if (l.startsWith("zh")) return "zh-CN";
    if (l.startsWith("en")) return "en";
  }
  return "en";
}

export type Translate = ((key: Key, values?: Values) => string) & { lang: Lang };

function translator({ lang, text }: Words): Translate {
  const t = (key: Key, values: Values = {}) =>
    text[key].replace(/\{(\w+)\}/g, (_, name: string) => {
      const v = values[name];
      return typeof v === "number" ? new Intl.NumberFormat(lang).format(v) : String(v ?? "");
    });
  return Object.assign(t, { lang });
}

let made: { of: Words; t: Translate } | undefined;

export function useT(): Translate {
  const w = useStore(words);
  if (made?.of !== w) made = { of: w, t: translator(w) };
  return made.t;
}
