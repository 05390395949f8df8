import { base } from "../router";
import { Store } from "../store";
import { numberOf, parse } from "./json";
import type { Problem, Session } from "./types";

// Failed is an answer that says what is wrong.
export class Failed extends Error {
  constructor(readonly problem: Partial<Problem> & { status: number; code: string }) {
    super(problem.detail ?? problem.title ?? problem.code);
  }
  get code() {
    return this.problem.code;
  }
}

// reach tells whether the server was reached by the last request.
export const reach = new Store<boolean>(true);

// session is who we are; undefined: not asked yet.
export const session = new Store<Session | undefined>(undefined);

// held: something is shown that nobody can show again, so that nobody is sent to sign in.
export const held = new Store<boolean>(false);

export interface Options {
  method?: string;
  query?: Record<string, string | number | undefined>;
  body?: unknown;
  raw?: string; // a body that is text already: JSON with its numbers as they are, or YAML
  type?: string; // of the body, where it is not JSON
  signal?: AbortSignal;
  key?: string; // an Idempotency-Key
}

export function address(path: string, query: Options["query"] = {}): string {
  const q = new URLSearchParams();
  for (const [k, v] of Object.entries(query)) if (v !== undefined && v !== "") q.set(k, String(v));
  const text = q.toString();
  return base + path.replace(/^\//, "") + (text ? "?" + text : "");
}

// keyOf makes the key of a request: one that was refused and then changed is another request.
function keyOf(key: string, body: string): string {
  let sum = 5381;
  for (let i = 0; i < body.length; i++) sum = (Math.imul(sum, 33) ^ body.charCodeAt(i)) >>> 0;
  return `${key}-${body.length}-${sum.toString(36)}`;
}

export async function call<T>(path: string, o: Options = {}): Promise<T> {
  const headers: Record<string, string> = { Accept: "application/json" };
  let body: string | undefined;
  if (o.raw !== undefined) body = o.raw;
  else if (o.body !== undefined) body = JSON.stringify(o.body);
  if (body !== undefined) headers["Content-Type"] = o.type ?? "application/json";
  if (o.key) headers["Idempotency-Key"] = keyOf(o.key, body ?? "");
  let r: Response;
  try {
    r = await fetch(address(path, o.query), { method: o.method ?? (body === undefined ? "GET" : "POST"), headers, body, signal: o.signal, credentials: "same-origin" });
  } catch (e) {
    if (o.signal?.aborted) throw e;
    reach.set(false);
    throw new Failed({ status: 0, code: "unreachable" });
  }
  const text = await r.text();
  const type = r.headers.get("Content-Type") ?? "";
  if (!r.ok) {
    if (type.includes("json")) {
      reach.set(true);
      const problem = parse(text) as Problem;
      if (r.status === 401 && session.get()?.role && path !== "/api/session") void whoAmI();
      throw new Failed({ ...problem, status: r.status, code: problem.code ?? "internal" });
    }
    reach.set(r.status < 502); // a proxy that answers for a server that is away
    throw new Failed({ status: r.status, code: r.status >= 502 ? "unreachable" : "internal", title: r.statusText });
  }
  reach.set(true);
  return (text === "" ? undefined : parse(text)) as T;
}

export async function whoAmI(): Promise<void> {
  try {
    session.set(await call<Session>("/api/session"));
  } catch {
    // not reached: asked again when it is
  }
}

export { numberOf };
