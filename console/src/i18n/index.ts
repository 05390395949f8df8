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
  text: Partial<Record<Key, string>>;
  said?: (text: string) => string | undefined; // what the server says, in this language
}

const words = new Store<Words>({ lang: "en", text: en });

// more loads what all screens but the first say. Chinese is loaded as a whole.
export async function more() {
  Object.assign(en, (await import("./en.lists")).default);
}

export async function speak(lang: Lang, remember = true) {
  const other = lang === "en" ? undefined : await import("./zh-CN");
  document.documentElement.lang = lang;
  if (remember) kept.set("lang", lang);
  words.set({ lang, text: other?.default ?? en, said: other?.translate });
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

export type Translate = ((key: Key, values?: Values) => string) & { lang: Lang; said: (text: string) => string | undefined };

function translator({ lang, text, said }: Words): Translate {
  const t = (key: Key, values: Values = {}) =>
    (text[key] ?? key).replace(/\{(\w+)\}/g, (_, name: string) => {
      const v = values[name];
      return typeof v === "number" ? new Intl.NumberFormat(lang).format(v) : String(v ?? "");
    });
  return Object.assign(t, { lang, said: said ?? (() => undefined) });
}

let made: { of: Words; t: Translate } | undefined;

export function useT(): Translate {
  const w = useStore(words);
  if (made?.of !== w) made = { of: w, t: translator(w) };
  return made.t;
}
