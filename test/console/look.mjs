// In which looks screens are drawn, and what is wrong with how they are.
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";

const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

export const looks = {
  "light, English": { colorScheme: "light", locale: "en-US" },
  "dark, Chinese": { colorScheme: "dark", locale: "zh-CN" },
  "360 px wide": { colorScheme: "light", locale: "en-US", viewport: { width: 360, height: 740 }, hasTouch: true },
};

// faults are what axe finds that keeps somebody from using a page. It is put in by the
// tools for developers, which the page's policy does not bind.
export async function faults(page) {
  await page.evaluate(axe);
  const found = await page.evaluate(async () => (await globalThis.axe.run(document, { resultTypes: ["violations"], runOnly: ["wcag2a", "wcag2aa", "best-practice"] })).violations);
  return found.filter((v) => ["serious", "critical"].includes(v.impact)).map((v) => `${v.id}: ${v.nodes.slice(0, 3).map((n) => n.target.join(" ") + " " + (n.any[0]?.message ?? "")).join("; ")}`);
}
