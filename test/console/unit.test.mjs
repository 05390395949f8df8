// The parts of the console that need no browser, and that what is embedded is what the
// source gives.
import assert from "node:assert/strict";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import test, { after, before } from "node:test";
import { execFile } from "node:child_process";
import { fileURLToPath, pathToFileURL } from "node:url";
import { promisify } from "node:util";
import workflow from "@serverlessworkflow/sdk";
import yaml from "js-yaml";

const root = fileURLToPath(new URL("../../console/", import.meta.url));
const run = promisify(execFile);
let dir, unit;

before(async () => {
  dir = await mkdtemp(path.join(tmpdir(), "forebay-console-unit-"));
  const { build } = await import(pathToFileURL(path.join(root, "node_modules/vite/dist/node/index.js")));
  await run("node", ["scripts/types.mjs"], { cwd: root });
  await build({
    root, configFile: false, logLevel: "error",
    resolve: { alias: [{ find: /^react$/, replacement: "preact/compat" }] },
    build: { outDir: path.join(dir, "unit"), minify: false, lib: { entry: path.join(root, "src/unit.ts"), formats: ["es"], fileName: () => "unit.mjs" } },
  });
  // They are made for pages, and look at where they are.
  Object.assign(globalThis, { location: new URL("http://localhost/"), addEventListener() {}, localStorage: undefined });
  unit = await import(pathToFileURL(path.join(dir, "unit", "unit.mjs")));
});
after(() => rm(dir, { recursive: true, force: true }));

async function filesOf(folder) {
  const all = new Map();
  for (const e of await readdir(folder, { recursive: true, withFileTypes: true })) {
    if (e.isFile()) {
      const name = path.join(e.parentPath ?? e.path, e.name);
      all.set(path.relative(folder, name), await readFile(name));
    }
  }
  return all;
}

test("what is embedded is what the source gives, byte for byte; the types fit the API", async () => {
  await run("npx", ["tsc", "--noEmit"], { cwd: root });
  await run("npx", ["vite", "build", "--logLevel", "error"], { cwd: root, env: { ...process.env, OUT_DIR: path.join(dir, "dist") } });
  const [built, committed] = await Promise.all([filesOf(path.join(dir, "dist")), filesOf(path.join(root, "dist"))]);
  assert.deepEqual([...committed.keys()].sort(), [...built.keys()].sort());
  for (const [name, text] of built) assert.ok(text.equals(committed.get(name)), `${name} is not what the source gives: npm --prefix console run build`);
});

test("the first screen and the whole are small", async () => {
  const { gzipSync } = await import("node:zlib");
  const files = await filesOf(path.join(root, "dist"));
  const kilobytes = (names) => names.reduce((n, f) => n + gzipSync(files.get(f), { level: 9 }).length, 0) / 1000;
  const first = kilobytes(["app.js", "shared.js", "overview.js", "chart.js"].map((f) => "assets/" + f));
  const raw = [...files.values()].reduce((n, b) => n + b.length, 0) / 1024;
  console.log(`first screen: ${first.toFixed(1)} kB of JavaScript (at most 60); all that is embedded: ${raw.toFixed(0)} KiB (at most 1024)`);
  assert.ok(first <= 60);
  assert.ok(raw <= 1024);
});

test("every word is there in both languages, and none is left over", async () => {
  const { en, zh } = unit;
  assert.deepEqual(Object.keys(zh).sort(), Object.keys(en).sort());
  const names = (s) => [...s.matchAll(/\{(\w+)\}/g)].map((m) => m[1]).sort();
  for (const key of Object.keys(en)) assert.deepEqual(names(zh[key]), names(en[key]), key);
  const source = [...(await filesOf(path.join(root, "src")))].filter(([n]) => /\.tsx?$/.test(n) && !n.startsWith("i18n")).map(([, b]) => b.toString()).join("\n");
  const made = [...source.matchAll(/`([a-z]+\.)\$\{/g)].map((m) => m[1]); // `state.${s}`
  for (const key of Object.keys(en)) assert.ok(source.includes(`"${key}"`) || made.some((p) => key.startsWith(p)), `nothing says ${key}`);
});

test("numbers stay as they are written", () => {
  const text = '{\n  "big": 12345678901234567890,\n  "fine": 1.50,\n  "n": 7\n}';
  assert.equal(unit.print(unit.parse(text)), process.versions.node.split(".")[0] >= 21 ? text : unit.print(JSON.parse(text)));
  assert.equal(unit.print([new unit.Exact("1e400"), "a\"b", null, {}]), '[\n  1e400,\n  "a\\"b",\n  null,\n  {}\n]');
});

test("filters are completed term by term", () => {
  const known = { kinds: ["welcome", "with space"], codes: ["timeout"] };
  assert.deepEqual(unit.termAt('error:"a b" sta', 15), { term: "sta", start: 12 });
  assert.deepEqual(unit.suggest("sta", [], known), ["state:"]);
  assert.deepEqual(unit.suggest("state:de", [], known), ["state:delayed", "state:dead"]);
  assert.deepEqual(unit.suggest("queue:", ["mail"], known), ["queue:mail"]);
  assert.deepEqual(unit.suggest("kind:w", [], known), ["kind:welcome", 'kind:"with space"']);
  assert.equal(unit.quote('a"b\\'), '"a\\"b\\\\"');
});

test("a difference of texts makes one out of the other", () => {
  const random = (() => { let x = 7; return (n) => (x = (x * 48271) % 2147483647) % n; })();
  for (let turn = 0; turn < 300; turn++) {
    const make = () => Array.from({ length: 1 + random(8) }, () => "abc"[random(3)]).join("\n");
    const [a, b] = [make(), make()];
    const lines = unit.diff(a, b);
    const side = (sign) => lines.filter((l) => l.sign === " " || l.sign === sign).map((l) => l.text).join("\n");
    assert.equal(side("-"), a);
    assert.equal(side("+"), b);
  }
});

test("a life is drawn without gaps", () => {
  const at = (s) => new Date(s * 1000).toISOString();
  const e = (type, s, more = {}) => ({ id: "e-" + s, type, at: at(s), jobId: "j", queue: "q", name: "n", ...more });
  const parts = unit.life([
    e("added", 0, { state: "waiting" }), e("started", 2), e("retry", 5, { runAt: at(9), cause: { code: "x", message: "no" } }), e("started", 9), e("completed", 10),
  ], 99_000);
  assert.deepEqual(parts.map((p) => [p.kind, p.from / 1000, p.to / 1000, p.end ?? ""]), [["wait", 0, 2, ""], ["run", 2, 5, "retry"], ["delay", 5, 9, ""], ["run", 9, 10, "completed"]]);
  const open = unit.life([e("added", 0), e("started", 1)], 4_000).at(-1);
  assert.ok(open.open && open.to === 4000);
});

test("rates are differences, and begin anew with the server", () => {
  const queue = (sent, completed) => [{ name: "q", sent, completed, cancelled: 0, expired: 0, waiting: 3, active: 1 }];
  const v = (now, sent, done, startedAt = "a") => ({ startedAt, now: new Date(now * 1000).toISOString(), queues: queue(sent, done) });
  assert.deepEqual(unit.sample(v(0, 10, 0), v(2, 14, 6)).byQueue, { q: { sent: 2, done: 3 } });
  assert.deepEqual(unit.sample(v(0, 10, 0), v(2, 14, 6, "b")).byQueue, {});
});

test("a gesture on the drawing is a change of the file", () => {
  const { add, connect, remove, unlink } = unit.edits;
  const file = { steps: {
    a: { use: "x" },
    b: { needs: ["a"], branch: [{ when: "input.n > 1", to: ["c", "d"] }, { to: "e" }] },
    c: { use: "x" }, d: { use: "x", needs: "c", on_failure: { goto: "e" } }, e: { use: "x" },
    p: { parallel: ["c"] },
  } };
  assert.deepEqual(connect(file, "a", "c"), [{ path: "steps.c.needs", value: "a" }]);
  assert.deepEqual(connect(file, "a", "b"), []);
  assert.deepEqual(connect(file, "b", "a"), [{ path: "steps.b.branch", value: [file.steps.b.branch[0], { when: "true", to: "a" }, { to: "e" }] }]);
  assert.deepEqual(connect(file, "p", "d"), [{ path: "steps.p.parallel", value: ["c", "d"] }]);
  assert.deepEqual(unlink(file, "b", "d"), [{ path: "steps.b.branch", value: [{ when: "input.n > 1", to: "c" }, { to: "e" }] }]);
  assert.deepEqual(unlink(file, "b", "e"), [{ path: "steps.b.branch", value: [file.steps.b.branch[0]] }]);
  assert.deepEqual(remove(file, "e"), [
    { path: "steps.b.branch", value: [file.steps.b.branch[0]] }, { path: "steps.d.on_failure" }, { path: "steps.e" },
  ]);
  assert.deepEqual(remove(file, "c").map((e) => e.path).sort(), ["steps.b.branch", "steps.c", "steps.d.needs", "steps.p.parallel"]);
  // A branch that leads nowhere yet gets the step that is added after it.
  const fresh = { steps: { b: { branch: [{ when: "true", to: [] }] } } };
  assert.deepEqual(add(fresh, { use: "x" }, "b", "b"), { id: "b_2", edits: [{ path: "steps.b_2", value: { use: "x" } }, { path: "steps.b.branch", value: [{ when: "true", to: "b_2" }] }] });
  assert.deepEqual(add({}, { use: "x" }, "42-things"), { id: "_42_things", edits: [{ path: "steps._42_things", value: { use: "x" } }] });
});

// The files are what Go's tests hold the export of each example against. The schema that the
// SDK brings is that of 1.0.0, of which 1.0.3 mends words.
test("what is exported is an Open Workflow document", async () => {
  const folder = path.join(root, "../flow/openworkflow/testdata");
  const files = (await readdir(folder)).filter((f) => f.endsWith(".openworkflow.yaml"));
  assert.ok(files.length >= 5);
  const read = async (f) => { const d = yaml.load(await readFile(path.join(folder, f), "utf8")); return { ...d, document: { ...d.document, dsl: "1.0.0" } }; };
  for (const f of files) workflow.validate("Workflow", await read(f));
  const broken = await read(files[0]);
  broken.do[0] = { nothing: { wait: "soon" } };
  assert.throws(() => workflow.validate("Workflow", broken), /do\/0\/nothing/);
});

test("a counter is read out of the metrics", () => {
  const text = '# HELP a_total x\na_total{verdict="rejected",code="a\\"b"} 3\na_total_more{verdict="no"} 9\na_total{verdict="accepted",code=""} 1.2e+06\n';
  assert.deepEqual(unit.countsOf(text, "a_total"), [{ labels: { verdict: "rejected", code: 'a\\"b' }, n: 3 }, { labels: { verdict: "accepted", code: "" }, n: 1200000 }]);
});
