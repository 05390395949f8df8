import { Component, type ComponentType, type ComponentChildren } from "preact";
import { useEffect, useState } from "react";
import { call, Failed, held, reach, session, whoAmI } from "./api/client";
import { langs, more, speak, useT, type Lang } from "./i18n";
import icon from "./icon.svg";
import { keyboard } from "./keyboard";
import { go, href, usePlace } from "./router";
import { groups } from "./screens";
import { useStore } from "./store";
import { theme, wear, type Theme } from "./theme";
import { Command, Dialog, Empty, Loading, Trouble } from "./ui/bits";
import { now } from "./ui/live";
import { Toasts } from "./ui/toast";

type Page = ComponentType<{ rest: string[] }>;

const pages: Record<string, () => Promise<{ default: Page }>> = {
  "": () => import("./pages/overview"),
  jobs: () => import("./pages/jobs"),
  queues: () => import("./pages/queues"),
  dead: () => import("./pages/dead"),
  flows: () => import("./pages/flows"),
  runs: () => import("./pages/runs"),
  schedules: () => import("./pages/schedules"),
  workers: () => import("./pages/workers"),
  history: () => import("./pages/history"),
  alerts: () => import("./pages/alerts"),
  audit: () => import("./pages/audit"),
  events: () => import("./pages/events"),
  bad: () => import("./pages/bad"),
  keys: () => import("./pages/keys"),
};

const loaded = new Map<string, Page>();

function Lazy({ name, rest }: { name: string; rest: string[] }) {
  const t = useT();
  const [, turn] = useState(0);
  const [failed, fail] = useState(false);
  const page = loaded.get(name);
  useEffect(() => {
    if (page || !pages[name]) return;
    let gone = false;
    Promise.all([pages[name](), name === "" || more()]).then(
      ([m]) => { loaded.set(name, m.default); if (!gone) turn((n) => n + 1); },
      () => { if (!gone) fail(true); },
    );
    return () => { gone = true; };
  }, [name]);
  if (!pages[name]) return <Empty title={t("notfound")}><a href={href([])}>{t("nav.overview")}</a></Empty>;
  if (failed) return <Empty title={t("outdated")}><button type="button" onClick={() => location.reload()}>{t("reload")}</button></Empty>;
  if (!page) return <Loading />;
  const Page = page;
  return <Page rest={rest} />;
}

// Guard keeps a screen that breaks from taking the others with it.
class Guard extends Component<{ at: string; say: (e: Error) => ComponentChildren; children: ComponentChildren }, { error?: Error }> {
  state: { error?: Error } = {};
  static getDerivedStateFromError(error: Error) {
    return { error };
  }
  componentDidUpdate(before: { at: string }) {
    if (before.at !== this.props.at && this.state.error) this.setState({ error: undefined });
  }
  render() {
    return this.state.error ? this.props.say(this.state.error) : this.props.children;
  }
}

function Banner() {
  const t = useT();
  const reached = useStore(reach);
  const { overview } = useStore(now);
  if (!reached) return <div class="banner bad" role="alert">{t("banner.down")}</div>;
  if (overview?.readiness.draining) return <div class="banner" role="status">{t("banner.draining")}</div>;
  return null;
}

function Nav({ at, close }: { at: string; close: () => void }) {
  const t = useT();
  const { overview } = useStore(now);
  const dead = overview?.queues.reduce((n, q) => n + q.dead, 0) ?? 0;
  const badge: Record<string, number> = { dead, bad: overview?.bad.rows ?? 0 };
  return (
    <nav aria-label={t("nav")}>
      {groups.map((g) => (
        <div key={g.name ?? ""} class="group">
          {g.name && <div class="name">{t(g.name)}</div>}
          {g.screens.map((s) => (
            <a key={s.path} href={href(s.path ? [s.path] : [])} aria-current={s.path === at ? "page" : undefined} onClick={close}>
              {t(s.name)}
              {badge[s.path] > 0 && <span class="badge num">{badge[s.path] > 999 ? "999+" : badge[s.path]}</span>}
            </a>
          ))}
        </div>
      ))}
    </nav>
  );
}

function Who() {
  const t = useT();
  const s = useStore(session);
  const { overview } = useStore(now);
  return (
    <div class="who">
      {s?.role && <div title={s.who}>{s.open ? t("who.open") : t("who.role", { role: t(`role.${s.role}`) })}</div>}
      {s?.expiresAt && (
        <button type="button" class="quiet small" onClick={() => void call("/api/session", { method: "DELETE" }).finally(whoAmI)}>{t("signout")}</button>
      )}
      {overview && <div class="dim">Forebay {overview.version}</div>}
    </div>
  );
}

function Choices() {
  const t = useT();
  const worn = useStore(theme);
  return (
    <div class="choices">
      <select aria-label={t("lang")} value={t.lang} onChange={(e) => void speak(e.currentTarget.value as Lang)}>
        {langs.map((l) => <option key={l.lang} value={l.lang}>{l.name}</option>)}
      </select>
      <select aria-label={t("theme")} value={worn} onChange={(e) => wear(e.currentTarget.value as Theme)}>
        <option value="auto">{t("theme.auto")}</option>
        <option value="light">{t("theme.light")}</option>
        <option value="dark">{t("theme.dark")}</option>
      </select>
    </div>
  );
}

function Help({ close }: { close: () => void }) {
  const t = useT();
  const rows: [string, string][] = [
    ["/", t("help.search")], ["j / k", t("help.move")], ["x", t("help.select")], ["Enter", t("help.open")], ["?", t("help.help")],
    ...groups.flatMap((g) => g.screens).map((s): [string, string] => ["g " + s.key, t(s.name)]),
  ];
  return (
    <Dialog title={t("help")} close={close}>
      <dl class="keys">
        {rows.map(([k, what]) => (
          <div key={k}><dt><kbd>{k}</kbd></dt><dd>{what}</dd></div>
        ))}
      </dl>
    </Dialog>
  );
}

export function App() {
  const t = useT();
  const { path } = usePlace();
  const who = useStore(session);
  const stay = useStore(held);
  const [help, setHelp] = useState(false);
  const [open, setOpen] = useState(false);
  useEffect(() => keyboard(() => setHelp(true)), []);
  // Whoever comes back to a server that was away may have to sign in again.
  useEffect(() => reach.watch((ok) => void (ok && whoAmI())), []);
  const at = path[0] ?? "";
  const part = at === "runs" ? "flows" : at; // a run is shown below its flow
  const screen = groups.flatMap((g) => g.screens).find((s) => s.path === part);
  useEffect(() => {
    document.title = (screen ? t(screen.name) + " · " : "") + "Forebay";
  }, [screen, t]);
  if (who && !who.role && !stay) return <SignIn />;
  return (
    <div class={"shell" + (open ? " open" : "")}>
      <a class="skip" href="#main" onClick={(e) => { e.preventDefault(); document.getElementById("main")?.focus(); }}>{t("skip")}</a>
      <aside>
        <div class="brand">
          <a href={href([])}><img src={icon} alt="" width="24" height="24" />Forebay</a>
          <button type="button" class="quiet menu" aria-expanded={open} aria-label={t("nav")} onClick={() => setOpen(!open)}>☰</button>
        </div>
        <div class="side">
          <Nav at={part} close={() => setOpen(false)} />
          <div class="foot">
            <Choices />
            <button type="button" class="quiet small" onClick={() => setHelp(true)}><kbd>?</kbd> {t("help")}</button>
            <Who />
          </div>
        </div>
      </aside>
      <main id="main" tabIndex={-1}>
        <Banner />
        <Guard at={location.pathname} say={(e) => <Empty title={t("broken")}><code>{e.message}</code></Empty>}>
          <Lazy key={at} name={at} rest={path.slice(1)} />
        </Guard>
      </main>
      {help && <Help close={() => setHelp(false)} />}
      <Toasts />
    </div>
  );
}

function SignIn() {
  const t = useT();
  const [wrong, setWrong] = useState<Failed>();
  const [busy, setBusy] = useState(false);
  return (
    <main id="main" class="signin">
      <Banner />
      <form
        onSubmit={async (e) => {
          e.preventDefault();
          setBusy(true);
          setWrong(undefined);
          try {
            await call("/api/session", { body: { key: new FormData(e.currentTarget).get("key") } });
            await whoAmI();
            if (lastPart() === "signin") go(href([]), true);
          } catch (err) {
            if (err instanceof Failed) setWrong(err);
          }
          setBusy(false);
        }}
      >
        <h1><img src={icon} alt="" width="28" height="28" /> Forebay</h1>
        <p>{t("signin.lead")}</p>
        <label>{t("signin.key")}<input name="key" type="password" required autoComplete="current-password" autoFocus /></label>
        <Trouble error={wrong} />
        <button type="submit" class="main" disabled={busy}>{t("signin")}</button>
        <p class="dim">{t("signin.hint")}</p>
        <Command text="forebay keys add me --scope admin" />
        <Choices />
      </form>
    </main>
  );
}

function lastPart(): string {
  return location.pathname.split("/").filter(Boolean).at(-1) ?? "";
}
