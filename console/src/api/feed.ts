import { useEffect, useRef, useState } from "react";
import { Hub } from "./hub";

export type FeedState = "opening" | "live" | "down" | "over";

export interface Events {
  [name: string]: (data: any) => void;
}

const once = /^(state|progress|log|step)$/; // events that have an id of their own; others show a whole

let hub: Hub | undefined; // this page's

// Feed follows a stream, over the one connection that all tabs of a browser share.
export class Feed {
  last = ""; // the id of the last event
  private fresh = true;

  constructor(readonly key: string, private on: Events, private state: (s: FeedState) => void) {
    (hub ??= new Hub()).add(this);
  }

  become(s: FeedState) {
    if (s === "live") this.join();
    this.state(s);
  }

  // join: where the others follow it already, there is no snapshot for whoever comes later.
  private join() {
    if (this.fresh) this.on.joined?.(undefined);
    this.fresh = false;
  }

  // take is told of an event, perhaps once more after another tab has taken over.
  take(event: string, id: string, data: unknown) {
    if (event === "reset") this.last = "";
    if (id && this.seen(event, id)) return;
    if (id) this.last = id;
    if (event === "snapshot" || event === "reset") this.fresh = false;
    else this.join();
    if (event === "done" || event === "over") this.close("over");
    this.on[event]?.(data);
  }

  private seen(event: string, id: string): boolean {
    const [a, b] = [id.lastIndexOf("-"), this.last.lastIndexOf("-")];
    if (id.slice(0, a) !== this.last.slice(0, b)) return false;
    const ahead = Number(id.slice(a + 1)) - Number(this.last.slice(b + 1));
    return ahead < 0 || (ahead === 0 && once.test(event));
  }

  close(state?: FeedState) {
    hub!.drop(this);
    if (state) this.state(state);
  }
}

// useFeed follows a stream for as long as it is shown. path null: none.
export function useFeed(path: string | null, query: Record<string, string | undefined>, on: Events): FeedState {
  const [state, setState] = useState<FeedState>("opening");
  const handlers = useRef(on);
  handlers.current = on;
  const asked = new URLSearchParams(Object.entries(query).filter((e): e is [string, string] => !!e[1])).toString();
  const key = path === null ? null : path + (asked && "?" + asked);
  useEffect(() => {
    if (key === null) return;
    const through: Events = {};
    for (const name of Object.keys(on)) through[name] = (d) => handlers.current[name]?.(d);
    setState("opening");
    const feed = new Feed(key, through, setState);
    return () => feed.close();
  }, [key]);
  return state;
}

