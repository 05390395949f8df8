// A flow that is drawn from nothing, and processes a real uploaded photo:
//
//	node test/console/photo.mjs [FILE]
//
// It does what a person does, at a person's pace, says when it did what, and leaves
// pictures of it in docs/console when UPDATE_SCREENSHOTS=1 is set.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { performance } from "node:perf_hooks";
import { browser, eventually, open, Server } from "./server.mjs";

const photo = process.argv[2] ?? new URL("../../task/image/testdata/cmyk.jpg", import.meta.url).pathname;
const pictures = process.env.UPDATE_SCREENSHOTS === "1" ? new URL("../../docs/console/", import.meta.url).pathname : undefined;

const [server, chrome] = await Promise.all([Server.start(), browser()]);
try {
  const page = await open(chrome);
  const began = performance.now();
  const say = (what) => console.log(`${((performance.now() - began) / 1000).toFixed(1).padStart(5)} s  ${what}`);
  const keep = async (name) => pictures && (await page.waitForTimeout(600), page.screenshot({ path: `${pictures}${name}.png` }));
  const node = (id) => page.locator(`.react-flow__node[data-id="${id}"]`);
  const leave = async (field, text) => {
    await field.fill(text);
    await page.waitForTimeout(15 * text.length); // as long as it takes to type it
    await field.press("Tab");
  };
  // What a step gets, as JSON where there is a form of fields too.
  const gets = async (text) => {
    const form = page.locator(".inspector fieldset.schema");
    await form.getByRole("button", { name: "JSON" }).click();
    await leave(form.getByLabel("JSON", { exact: true }), text);
  };

  const form = new FormData();
  form.set("file", new Blob([await readFile(photo)]), photo.split("/").pop());
  const upload = await fetch(server.url + "/api/images/upload", { method: "POST", headers: { Authorization: "Bearer " + server.token }, body: form }).then((r) => r.json());
  const source = upload.data.originalUrl.replace(/^.*\/files\//, "");
  say(`the photo is uploaded: ${source}`);

  await page.goto(server.url + "/flows");
  await page.getByRole("button", { name: "New flow" }).click();
  await page.getByLabel("Name").pressSequentially("my-photo", { delay: 15 });
  await page.getByRole("button", { name: "Draw it" }).click();
  await page.getByRole("button", { name: /^image/ }).first().dragTo(page.locator(".empty.graph"));
  await node("image").waitFor();
  await gets('{"source": "${input.source}", "steps": [{"op": "resize", "width": 640}, {"op": "convert", "format": "webp"}]}');
  say("a step that makes it smaller");
  await page.getByRole("button", { name: "Branch" }).click();
  await node("branch").waitFor();
  await leave(page.locator(".inspector").getByLabel("Case 1: when"), "has(input.user)");
  await page.getByRole("button", { name: /^inbox/ }).first().click();
  await node("inbox").waitFor();
  await gets('{"user": "${input.user}", "title": "Your photo is ready", "url": "${steps.image.output.url}"}');
  say("whoever sent it is told, where it is known who that is");
  await eventually("it can be published", () => page.getByRole("button", { name: "Publish" }).isEnabled()).catch(async (e) => {
    throw new Error(`${e.message}: ${await page.locator(".problems, .toasts").allInnerTexts()}`);
  });
  await keep("designer-light");
  await page.getByRole("button", { name: "Dry run" }).click();
  await page.getByLabel("Input", { exact: true }).fill(JSON.stringify({ source, user: "ada" }));
  await page.getByLabel("What image gives").fill('{"url": "/files/x.webp"}');
  await page.getByRole("button", { name: "Try" }).click();
  await page.locator("h2 .state.completed").waitFor();
  await node("inbox").locator(".state.completed").waitFor();
  await keep("dry-run-light");
  say("a dry run takes the way that is meant");
  await page.getByRole("button", { name: "Publish" }).click();
  await page.waitForURL("**/flows/my-photo");
  await page.getByRole("button", { name: "Run", exact: true }).click();
  await page.getByRole("dialog").getByLabel("Input").fill(JSON.stringify({ source, user: "ada" }));
  await page.getByRole("dialog").getByRole("button", { name: "Run", exact: true }).click();
  await page.waitForURL("**/runs/*");
  say("it is published, and runs");
  await page.locator("h1 .state.completed").waitFor({ timeout: 60_000 });
  await keep("run-light");
  say("it has run");

  const run = await server.get("/api/runs/" + page.url().split("/").pop());
  const made = run.steps.find((s) => s.id === "image").output;
  const bytes = await eventually("the picture is there", () => fetch(new URL(made.url, server.url)).then((r) => (r.ok ? r.arrayBuffer() : undefined)));
  assert.equal(Buffer.from(bytes).subarray(8, 12).toString(), "WEBP");
  assert.equal(run.steps.find((s) => s.id === "inbox").state, "completed");
  assert.deepEqual(page.wrong, []);
  say(`the photo is a WebP of ${made.width} × ${made.height}, ${(bytes.byteLength / 1000).toFixed(1)} kB`);
  assert.ok(performance.now() - began < 120_000, "it took more than two minutes");
  await page.context().close();
  for (const [locale, colorScheme] of pictures ? [["en-US", "light"], ["en-US", "dark"], ["zh-CN", "light"], ["zh-CN", "dark"]] : []) {
    const other = await open(chrome, { locale, colorScheme });
    for (const [name, where] of [["flows", "/flows"], ["flow", "/flows/my-photo"], ["designer", "/flows/my-photo/edit?step=branch"], ["dry-run", "/flows/my-photo/edit?pane=dry"], ["run", "/runs/" + run.runId]]) {
      if (colorScheme === "light" && locale === "en-US" && ["designer", "dry-run", "run"].includes(name)) continue; // made above
      await other.goto(server.url + where);
      await other.locator(name === "flows" ? "tbody tr" : ".react-flow__node").first().waitFor();
      if (name === "dry-run") {
        await other.locator("section textarea.code").first().fill(JSON.stringify({ source, user: "ada" }));
        await other.locator(".samples input").first().fill('{"url": "/files/x.webp"}');
        await other.locator("section .acts button.main").click();
        await other.locator("h2 .state.completed").waitFor();
      }
      await other.waitForTimeout(800);
      await other.screenshot({ path: `${pictures}${name}-${colorScheme}${locale === "en-US" ? "" : ".zh-CN"}.png` });
    }
    await other.context().close();
  }
} finally {
  await chrome.close();
  await server.stop();
}
