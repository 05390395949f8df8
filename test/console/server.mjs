// The real program with the embedded engine, and a browser beside it.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const here = path.dirname(fileURLToPath(import.meta.url));
const binary = process.env.FOREBAY_BIN ?? path.join(here, "../../bin/forebay");

export async function eventually(what, ask, seconds = 30) {
  const until = Date.now() + seconds * 1000;
  for (;;) {
    const got = await ask();
    if (got) return got;
    if (Date.now() > until) throw new Error(`not within ${seconds} s: ${what}`);
    await sleep(50);
  }
}

export class Server {
  static async start() {
    const s = new Server();
    s.dir = await mkdtemp(path.join(tmpdir(), "forebay-console-"));
    s.listen = "127.0.0.1:0";
    const handler = { command: ["node", path.join(here, "handler.mjs")] };
    await writeFile(path.join(s.dir, "forebay.yaml"), JSON.stringify({
      handlers: { welcome: { queue: "mail", ...handler }, charge: { queue: "billing", ...handler }, resize: { queue: "media", ...handler } },
    }));
    await s.run();
    return s;
  }

  async run() {
    const file = path.join(this.dir, "data", "server.json");
    await rm(file, { force: true });
    this.process = spawn(binary, ["serve", "--config", path.join(this.dir, "forebay.yaml"), "--data", path.join(this.dir, "data"), "--listen", this.listen, "--sqs-listen", "off"], { stdio: ["ignore", "ignore", "pipe"], cwd: this.dir });
    this.said = "";
    this.process.stderr.on("data", (b) => (this.said += b));
    this.ended = once(this.process, "exit");
    const info = await eventually("the server starts: " + this.said, async () => JSON.parse(await readFile(file, "utf8").catch(() => "null")), 60);
    this.url = info.url;
    this.token = info.token;
    this.listen = new URL(info.url).host;
    await eventually("it is ready", () => fetch(this.url + "/readyz").then((r) => r.ok, () => false));
  }

  async kill() {
    this.process.kill("SIGKILL");
    await this.ended;
  }

  async stop() {
    this.process.kill("SIGTERM");
    await this.ended;
    await rm(this.dir, { recursive: true, force: true });
  }

  async call(method, where, body) {
    const r = await fetch(this.url + where, {
      method, headers: { Authorization: "Bearer " + this.token, "Content-Type": "application/json" }, body: body === undefined ? undefined : typeof body === "string" ? body : JSON.stringify(body),
    });
    const text = await r.text();
    if (!r.ok && r.status !== 202) throw new Error(`${method} ${where}: ${r.status} ${text}`);
    return text ? JSON.parse(text) : undefined;
  }

  get(where) {
    return this.call("GET", where);
  }

  post(where, body) {
    return this.call("POST", where, body);
  }
}

export function browser() {
  return chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
  });
}

// open gives a page that collects all that went wrong on it. A request that failed as
// the server was away is no fault of the page.
export async function open(chrome, options = {}) {
  const context = await chrome.newContext({ locale: "en-US", viewport: { width: 1280, height: 860 }, colorScheme: "light", timezoneId: "UTC", ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(30_000);
  page.wrong = [];
  page.on("pageerror", (e) => page.wrong.push("error: " + e.message));
  page.on("console", (m) => {
    if (m.type() === "error" && !/Failed to load resource/.test(m.text())) page.wrong.push("console: " + m.text());
  });
  page.on("request", (r) => {
    const to = new URL(r.url());
    if (to.protocol !== "data:" && to.hostname !== "127.0.0.1" && to.hostname !== "localhost") page.wrong.push("asks another host: " + r.url());
  });
  return page;
}
