// Writes the types of the API from its OpenAPI document, so that the type check fails
// when the console and the API no longer fit.
import { readFileSync, writeFileSync } from "node:fs";

const spec = JSON.parse(readFileSync(new URL("../../api/testdata/openapi.json", import.meta.url), "utf8"));

function typeOf(s) {
  if (s.$ref) return s.$ref.split("/").at(-1);
  if (s.enum) return s.enum.map((v) => JSON.stringify(v)).join(" | ");
  const kinds = Array.isArray(s.type) ? s.type : [s.type];
  return kinds.map((k) => {
    switch (k) {
      case "array": return `(${typeOf(s.items)})[]`;
      case "object": return s.additionalProperties ? `Record<string, ${typeOf(s.additionalProperties)}>` : "Record<string, unknown>";
      case "integer": case "number": return "number";
      case "string": case "boolean": case "null": return k;
      default: return "unknown";
    }
  }).join(" | ");
}

let text = "// Made from the OpenAPI document by scripts/types.mjs.\n";
for (const [name, schema] of Object.entries(spec.components.schemas).sort(([a], [b]) => (a < b ? -1 : 1))) {
  if (!schema.properties) {
    text += `export type ${name} = ${typeOf(schema)};\n`;
    continue;
  }
  const needed = new Set(schema.required ?? []);
  text += `export interface ${name} {\n`;
  for (const [key, value] of Object.entries(schema.properties)) {
    if (key === "$schema") continue;
    text += `  ${JSON.stringify(key)}${needed.has(key) ? "" : "?"}: ${typeOf(value)};\n`;
  }
  text += "}\n";
}
writeFileSync(new URL("../src/api/types.ts", import.meta.url), text);
