import { useState } from "react";
import { parse, print } from "../api/json";
import { useT } from "../i18n";
import { Expression } from "./expression";
import { at, Choice } from "./fields";
import { sampleOf, type Schema } from "./sample";

// A form that is made of a JSON Schema. Every field also takes a text with ${…} in it,
// and what the form cannot show is written as JSON.

// Filled is where the values stand.
export interface Filled {
  value: unknown;
  set: (path: string, value: unknown) => Promise<boolean>; // undefined: it goes
  plain?: boolean; // no expressions: what stands there is the data itself
  beside?: boolean; // all of it stands beside the form as JSON, too
  wrong?: Record<string, string>; // what is wrong with what stands at a path
}

const deepest = 4;

const isMap = (v: unknown): v is Record<string, unknown> => typeof v === "object" && v !== null && !Array.isArray(v);
const isExpression = (v: unknown): v is string => typeof v === "string" && v.includes("${");

// resolved follows a reference within the schema.
function resolved(s: Schema, root: Schema): Schema {
  for (let n = 0; s.$ref?.startsWith("#/") && n < 10; n++) {
    const to = s.$ref.slice(2).split("/").reduce<unknown>((o, key) => (isMap(o) ? o[key.replaceAll("~1", "/").replaceAll("~0", "~")] : undefined), root);
    if (!isMap(to)) break;
    s = { ...s, ...to, $ref: (to as Schema).$ref };
  }
  return s;
}

const kindOf = (v: unknown) => (Array.isArray(v) ? "array" : v === null ? "null" : typeof v);
const typeOf = (s: Schema) => (Array.isArray(s.type) ? s.type.find((k) => k !== "null") : s.type) ?? (s.properties ? "object" : undefined);

// SchemaForm shows the fields of an object, or all of it as JSON.
export function SchemaForm({ schema, filled, name }: { schema: Schema; filled: Filled; name: string }) {
  const t = useT();
  const fits = typeOf(schema) === "object" && Object.keys(schema.properties ?? {}).length > 0;
  const shows = fits && (filled.value === undefined || isMap(filled.value));
  const [raw, setRaw] = useState(!shows);
  return (
    <fieldset class="schema">
      <legend>{name}</legend>
      {fits && !filled.beside && (
        <div class="row" role="group" aria-label={t("schema.as")}>
          <button type="button" class="small" aria-pressed={!raw} disabled={!shows} onClick={() => setRaw(false)}>{t("schema.fields")}</button>
          <button type="button" class="small" aria-pressed={raw || !shows} onClick={() => setRaw(true)}>JSON</button>
          {!shows && <button type="button" class="small" onClick={() => void filled.set("", {}).then((ok) => ok && setRaw(false))}>{t("schema.fill")}</button>}
        </div>
      )}
      {(raw && !filled.beside) || !shows ? <Raw name="JSON" path="" filled={filled} /> : <Members schema={schema} root={schema} path="" filled={filled} depth={0} />}
    </fieldset>
  );
}

interface One {
  schema: Schema;
  root: Schema;
  path: string;
  filled: Filled;
  depth: number;
}

function Members({ schema, root, path, filled, depth }: One) {
  const t = useT();
  const known = Object.entries(schema.properties ?? {}).filter(([key]) => !/[.[\]]/.test(key));
  const value = path === "" ? filled.value : at(filled.value, path);
  const others = isMap(value) ? Object.keys(value).filter((key) => !known.some(([k]) => k === key)) : [];
  return (
    <>
      {known.map(([key, s]) => <Member key={key} name={key} needed={schema.required?.includes(key)} schema={resolved(s, root)} root={root} path={path === "" ? key : path + "." + key} filled={filled} depth={depth} />)}
      {others.length > 0 && <p class="dim">{t("schema.others", { names: others.join(", ") })}</p>}
    </>
  );
}

function Member({ name, needed, schema: s, root, path, filled, depth }: One & { name: string; needed?: boolean }) {
  const now = at(filled.value, path);
  const label = (s.title ?? name) + (needed ? " *" : "");
  return (
    <div class="member">
      <Field label={label} needed={needed} schema={s} root={root} path={path} filled={filled} depth={depth} now={now} />
      {s.description && <p class="dim">{s.description}</p>}
      {filled.wrong?.[path] && <p class="bad" role="alert">{filled.wrong[path]}</p>}
    </div>
  );
}

function Field({ label, needed, schema: s, root, path, filled, depth, now }: One & { label: string; needed?: boolean; now: unknown }) {
  const t = useT();
  const set = (v: unknown) => filled.set(path, v);
  const type = typeOf(s);
  const variants = (s.oneOf ?? s.anyOf)?.map((v) => resolved(v, root));
  if (variants && !isExpression(now)) return <Variants label={label} needed={needed} variants={variants} root={root} path={path} filled={filled} depth={depth} now={now} />;
  if ((s.enum || type === "boolean") && !isExpression(now)) {
    const all = s.enum ?? [true, false];
    const options: [string, string][] = all.map((v, i) => [String(i), typeof v === "string" ? v : print(v)]);
    const chosen = all.findIndex((v) => print(v) === print(now));
    const blank: [string, string] = ["", s.default !== undefined ? t("schema.default", { value: print(s.default) }) : "–"];
    const other: [string, string][] = filled.plain ? [] : [["${", "${…}"]];
    return <Choice name={label} value={now === undefined || chosen < 0 ? "" : String(chosen)} options={[blank, ...options, ...other]} set={(v) => void set(v === "" ? undefined : v === "${" ? "${input}" : all[Number(v)])} />;
  }
  if (type === "object" && s.properties && depth < deepest && (now === undefined || isMap(now))) {
    return <fieldset><legend>{label}</legend><Members schema={s} root={root} path={path} filled={filled} depth={depth + 1} /></fieldset>;
  }
  if (type === "array" && s.items && (now === undefined || Array.isArray(now))) return <Items label={label} schema={resolved(s.items, root)} root={root} path={path} filled={filled} depth={depth} now={(now ?? []) as unknown[]} />;
  if (type === "string" || type === "number" || type === "integer" || isExpression(now)) {
    const numeric = type === "number" || type === "integer";
    const give = (text: string) => set(text === "" ? undefined : numeric && !wrongNumber(text) ? parse(text) : text);
    return <Expression name={label} kind="value" now={now === undefined ? "" : typeof now === "string" ? now : print(now)} give={give} required={needed} number={numeric} rows={s.format === "multiline" ? 3 : undefined} placeholder={s.default !== undefined ? String(s.default) : undefined} />;
  }
  return <Raw name={label} path={path} filled={filled} />;
}

const wrongNumber = (text: string) => !/^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/.test(text);

// Variants are several forms that a value may have: the one that it has is shown.
function Variants({ label, needed, variants, root, path, filled, depth, now }: Omit<One, "schema"> & { label: string; needed?: boolean; variants: Schema[]; now: unknown }) {
  const fits = (s: Schema) => now !== undefined && (typeOf(s) === kindOf(now) || (typeOf(s) === "integer" && kindOf(now) === "number"));
  const [chosen, choose] = useState(Math.max(0, variants.findIndex(fits)));
  const name = (s: Schema, i: number) => s.title ?? typeOf(s) ?? String(i + 1);
  return (
    <>
      <Choice name={label} value={String(chosen)} options={variants.map((s, i) => [String(i), name(s, i)])} set={(v) => { choose(Number(v)); if (now !== undefined) void filled.set(path, undefined); }} />
      <Field label={name(variants[chosen], chosen)} needed={needed} schema={variants[chosen]} root={root} path={path} filled={filled} depth={depth + 1} now={fits(variants[chosen]) ? now : undefined} />
    </>
  );
}

// Items are those of a list, which is always set as a whole.
function Items({ label, schema, root, path, filled, depth, now }: One & { label: string; now: unknown[] }) {
  const t = useT();
  const put = (all: unknown[]) => filled.set(path, all.length === 0 ? undefined : all);
  const item = (i: number): Filled => ({
    plain: filled.plain, value: now[i],
    set: (inner, v) => put(now.map((old, n) => (n === i ? (inner === "" ? v : within(old, inner.split("."), v)) : old)).filter((v) => v !== undefined)),
  });
  return (
    <fieldset>
      <legend>{label}</legend>
      {now.map((v, i) => (
        <div key={i} class="row item">
          {typeOf(schema) === "object" && schema.properties && isMap(v) && depth < deepest
            ? <fieldset><legend>{i + 1}</legend><Members schema={schema} root={root} path="" filled={item(i)} depth={depth + 1} /></fieldset>
            : typeOf(schema) === "string" || isExpression(v)
              ? <Expression name={String(i + 1)} kind="value" now={String(v)} give={(text) => item(i).set("", text === "" ? undefined : text)} />
              : <Raw name={String(i + 1)} path="" filled={item(i)} />}
          <button type="button" class="quiet small" aria-label={t("schema.remove", { name: label, n: i + 1 })} onClick={() => void put(now.filter((_, n) => n !== i))}>×</button>
        </div>
      ))}
      <button type="button" class="small" onClick={() => void put([...now, parse(sampleOf(schema))])}>{t("schema.add", { name: label })}</button>
    </fieldset>
  );
}

// within sets a member of a value that is not changed itself.
export function within(v: unknown, keys: string[], to: unknown): unknown {
  if (keys.length === 0) return to;
  const next = within(isMap(v) || Array.isArray(v) ? (v as Record<string, unknown>)[keys[0]] : undefined, keys.slice(1), to);
  if (Array.isArray(v)) return v.map((old, i) => (String(i) === keys[0] ? next : old));
  const { [keys[0]]: _, ...rest } = isMap(v) ? v : {};
  return next === undefined ? rest : isMap(v) && keys[0] in v ? Object.fromEntries(Object.entries(v).map(([k, old]) => [k, k === keys[0] ? next : old])) : { ...rest, [keys[0]]: next };
}

function Raw({ name, path, filled }: { name: string; path: string; filled: Filled }) {
  const value = path === "" ? filled.value : at(filled.value, path);
  const before = value === undefined ? "" : print(value);
  return <Expression name={name} kind="json" now={before} rows={Math.min(10, Math.max(2, before.split("\n").length))} placeholder={filled.plain ? undefined : '"${input}"'} give={(text) => filled.set(path, text.trim() === "" ? undefined : parse(text))} />;
}
