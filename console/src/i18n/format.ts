import type { Lang } from ".";

const cache = new Map<string, Intl.NumberFormat | Intl.DateTimeFormat>();

function numberFormat(lang: Lang, o: Intl.NumberFormatOptions): Intl.NumberFormat {
  const key = lang + JSON.stringify(o);
  let f = cache.get(key);
  if (!f) cache.set(key, (f = new Intl.NumberFormat(lang, o)));
  return f as Intl.NumberFormat;
}

export function count(lang: Lang, n: number): string {
  return numberFormat(lang, { maximumFractionDigits: 0 }).format(n);
}

export function short(lang: Lang, n: number): string {
  if (n < 10_000) return numberFormat(lang, { maximumFractionDigits: n < 10 && n % 1 !== 0 ? 1 : 0 }).format(n);
  return numberFormat(lang, { notation: "compact", maximumFractionDigits: 1 }).format(n);
}

export function bytes(lang: Lang, n: number): string {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let i = 0;
  for (; n >= 1000 && i < units.length - 1; i++) n /= 1000;
  return numberFormat(lang, { maximumFractionDigits: n < 10 && i > 0 ? 1 : 0 }).format(n) + "\u202f" + units[i];
}

// span is a duration in seconds, in at most two units.
export function span(lang: Lang, seconds: number): string {
  const unit = (n: number, unit: string, digits = 0) => numberFormat(lang, { style: "unit", unit, unitDisplay: "narrow", maximumFractionDigits: digits }).format(n);
  if (!Number.isFinite(seconds)) return "–";
  const s = Math.max(0, seconds);
  if (s < 1) return unit(Math.round(s * 1000), "millisecond");
  if (s < 10) return unit(s, "second", 1);
  if (s < 60) return unit(Math.floor(s), "second");
  if (s < 3600) return unit(Math.floor(s / 60), "minute") + (s % 60 >= 1 ? " " + unit(Math.floor(s % 60), "second") : "");
  if (s < 86400) return unit(Math.floor(s / 3600), "hour") + (s % 3600 >= 60 ? " " + unit(Math.floor((s % 3600) / 60), "minute") : "");
  return unit(Math.floor(s / 86400), "day") + (s % 86400 >= 3600 ? " " + unit(Math.floor((s % 86400) / 3600), "hour") : "");
}

const relative = new Map<Lang, Intl.RelativeTimeFormat>();

export function ago(lang: Lang, at: number, now: number): string {
  const s = (at - now) / 1000;
  let f = relative.get(lang); // it costs more to make than all else that a row does
  if (!f) relative.set(lang, (f = new Intl.RelativeTimeFormat(lang, { numeric: "auto", style: "short" })));
  const a = Math.abs(s);
  if (a < 60) return f.format(Math.trunc(s), "second");
  if (a < 3600) return f.format(Math.trunc(s / 60), "minute");
  if (a < 86400) return f.format(Math.trunc(s / 3600), "hour");
  return f.format(Math.trunc(s / 86400), "day");
}

export function moment(lang: Lang, at: number): string {
  const key = lang + "date";
  let f = cache.get(key);
  if (!f) cache.set(key, (f = new Intl.DateTimeFormat(lang, { dateStyle: "medium", timeStyle: "medium" })));
  return (f as Intl.DateTimeFormat).format(at);
}

export function clock(lang: Lang, at: number): string {
  const key = lang + "clock";
  let f = cache.get(key);
  if (!f) cache.set(key, (f = new Intl.DateTimeFormat(lang, { hour: "2-digit", minute: "2-digit", second: "2-digit", fractionalSecondDigits: 3, hour12: false })));
  return (f as Intl.DateTimeFormat).format(at);
}
