import { base } from "../router";
import { whoAmI } from "./client";
import type { Feed, FeedState } from "./feed";
import { parse } from "./json";
import { Shared } from "./shared";

const silence = 45_000; // the server says something each 15 s
const beat = 5_000; // a tab says what it follows
const gone = 4 * beat; // one that has not said so is not there
const most = 64; // streams that the server takes over one connection

// Topic is an event of a stream, as the server tells it.
interface Topic {
  topic: number;
  event: string;
  id?: string;
  data?: unknown;
}

// Told is what the tab that has the connection tells all, or how a stream stands.
interface Told {
  key?: string; // the stream
  text?: string; // a Topic, as it came: its numbers are kept
  state?: FeedState;
}

// Says is what a tab follows, and what it has heard last of each.
interface Says {
  tab: string;
  follows: Record<string, string>;
}

// Hub has all streams that the tabs of a browser follow go over one connection, which one
// of the tabs has (shared.ts): a browser has six for a server, over HTTP/1.1. It reconnects by
// itself, since a browser gives up for good on any answer but 200, and takes each stream up
// where it was.
export class Hub {
  private feeds = new Set<Feed>();
  private others = new Map<string, Says & { at: number }>();
  private tab = String(Math.random());
  private shared: Shared<Told, Says>;

  // Of the tab that has the connection:
  private source?: EventSource;
  private live = false;
  private open = new Map<string, string>(); // what goes over it, and what was heard last
  private failed = new Map<string, { n: number; until: number }>();
  private timer?: ReturnType<typeof setTimeout>; // of the next connection
  private sooner = Infinity;
  private tries = 0;
  private heard = Date.now();

  constructor() {
    this.shared = new Shared(base, { lead: () => this.plan(0), leave: this.shut, told: this.told, said: this.said });
    setInterval(this.look, beat);
    document.addEventListener("visibilitychange", this.look);
    for (const e of ["online", "pageshow"]) addEventListener(e, this.look);
    addEventListener("pagehide", () => this.say(true));
    this.look();
  }

  add(f: Feed) {
    this.feeds.add(f);
    if (this.live && this.open.has(f.key)) f.become("live");
    this.change();
  }

  drop(f: Feed) {
    if (this.feeds.delete(f)) this.change();
  }

  private change() {
    this.say();
    this.shared.want();
    this.refresh();
  }

  private say(nothing = false) {
    this.shared.say({ tab: this.tab, follows: nothing ? {} : Object.fromEntries([...this.feeds].map((f) => [f.key, f.last])) });
  }

  private said = (s: Says) => {
    const before = this.others.get(s.tab);
    this.others.set(s.tab, { ...s, at: Date.now() });
    if (!this.shared.leads) return;
    for (const key of Object.keys(s.follows)) if (this.live && this.open.has(key) && !(key in (before?.follows ?? {}))) this.shared.tell({ key, state: "live" });
    this.refresh();
  };

  // wanted is what is followed by anybody, and after which event.
  private wanted(): Map<string, string> {
    const all = new Map<string, string>();
    const now = Date.now();
    const add = (key: string, last: string) => {
      if ((this.failed.get(key)?.until ?? 0) > now) return;
      const had = all.get(key);
      all.set(key, this.open.get(key) ?? (had === undefined || earlier(last, had) ? last : had));
    };
    for (const f of this.feeds) add(f.key, f.last);
    for (const [tab, s] of this.others) {
      if (now - s.at > gone) this.others.delete(tab);
      else for (const [key, last] of Object.entries(s.follows)) add(key, last);
    }
    return new Map([...all].slice(0, most));
  }

  // refresh: a stream that is missing is opened at once, one too many goes by and by.
  private refresh() {
    if (!this.shared.leads || document.hidden) return;
    const wanted = this.wanted();
    if ([...wanted.keys()].some((key) => !this.open.has(key))) this.plan(this.tries > 0 ? 1_000 : 20);
    else if ([...this.open.keys()].some((key) => !wanted.has(key))) this.plan(2_000);
  }

  private plan(wait: number) {
    const at = Date.now() + wait;
    if (this.timer !== undefined && at >= this.sooner) return;
    clearTimeout(this.timer);
    this.sooner = at;
    this.timer = setTimeout(this.connect, wait);
  }

  private connect = () => {
    this.timer = undefined;
    if (document.hidden || !this.shared.leads) return;
    const wanted = this.wanted();
    this.source?.close();
    this.source = undefined;
    const fresh = [...wanted.keys()].filter((key) => !this.open.has(key));
    this.open = wanted;
    if (wanted.size === 0) return;
    for (const key of fresh) this.stands(key, this.tries === 0 ? "opening" : "down");
    const keys = [...wanted.keys()];
    const topics = new URLSearchParams(keys.map((key) => ["topic", key + (wanted.get(key) ? (key.includes("?") ? "&" : "?") + "last_event_id=" + encodeURIComponent(wanted.get(key)!) : "")]));
    const s = (this.source = new EventSource(`${base}api/stream?${topics}`));
    this.heard = Date.now();
    s.onopen = () => {
      this.tries = 0;
      this.heard = Date.now();
      this.live = true;
      for (const key of keys) if (!fresh.includes(key) || wanted.get(key)) this.stands(key, "live"); // another says so itself
    };
    s.onerror = this.again;
    s.addEventListener("topic", (e) => this.hear(keys, (e as MessageEvent<string>).data));
  };

  // hear is told of an event by the server.
  private hear(keys: string[], text: string) {
    this.heard = Date.now();
    const t = parse(text) as Topic;
    const key = keys[Number(t.topic)];
    if (t.event === "fail") {
      const n = (this.failed.get(key)?.n ?? 0) + 1;
      this.failed.set(key, { n, until: Date.now() + Math.min(60_000, 2_500 * 2 ** n) });
      this.open.delete(key);
      return this.stands(key, "down");
    }
    this.failed.delete(key);
    if (t.event === "done" || t.event === "over") this.open.delete(key);
    else if (t.id && this.open.has(key)) this.open.set(key, t.id);
    this.shared.tell({ key, text });
    this.take(key, t);
  }

  private take(key: string, t: Topic) {
    for (const f of [...this.feeds]) {
      if (f.key !== key) continue;
      f.take(t.event, t.id ?? "", t.data);
      if (this.feeds.has(f)) f.become("live");
    }
  }

  // told is what the tab says that has the connection.
  private told = (m: Told) => {
    this.heard = Date.now();
    if (this.shared.leads || m.key === undefined) return;
    if (![...this.feeds].some((f) => f.key === m.key)) return;
    if (m.text !== undefined) this.take(m.key, parse(m.text) as Topic);
    else if (m.state) this.become(m.key, m.state);
  };

  private stands(key: string, state: FeedState) {
    this.shared.tell({ key, state });
    this.become(key, state);
  }

  private become(key: string, state: FeedState) {
    for (const f of this.feeds) if (f.key === key) f.become(state);
  }

  private again = () => {
    this.source?.close();
    this.source = undefined;
    this.live = false;
    if (this.open.size === 0) return void (this.wanted().size > 0 && this.plan(500)); // all that was followed is over
    this.tries++;
    for (const key of this.open.keys()) this.stands(key, "down");
    if (this.tries === 2) void whoAmI(); // perhaps the session is over
    clearTimeout(this.timer);
    this.timer = undefined;
    this.plan(Math.min(5_000, 400 * 2 ** Math.min(this.tries, 4)) * (0.5 + Math.random()));
  };

  private shut = () => {
    this.source?.close();
    this.source = undefined;
    this.live = false;
    this.open.clear();
    clearTimeout(this.timer);
    this.timer = undefined;
  };

  private look = () => {
    if (document.hidden) {
      // A hidden page holds no connection, and follows nothing.
      this.say(true);
      this.shut();
      this.shared.release();
      return;
    }
    this.say();
    const dumb = Date.now() - this.heard > silence;
    if (!this.shared.leads) {
      if (dumb) this.heard = Date.now(); // whoever has it sleeps: it is taken away, once in a while
      this.shared.want(dumb);
      return;
    }
    this.shared.tell({}); // it is there
    if (!this.source && this.timer === undefined) this.plan(0);
    else if (this.source && dumb) this.again();
    else this.refresh();
  };
}

// earlier tells whether one id of an event is before another; without one all is told anew.
function earlier(a: string, b: string): boolean {
  if (a === "" || b === "") return a === "";
  return Number(a.slice(a.lastIndexOf("-") + 1)) < Number(b.slice(b.lastIndexOf("-") + 1));
}
