import { parse, print } from "../api/json";
import type { Schema } from "./sample";
import { SchemaForm, within } from "./schemaform";

// DataForm is a form of a job's data beside their text: what is written in one stands in
// the other. wrong: what is wrong with what stands at a path, after it was sent.
export default function DataForm({ schema, name, text, put, wrong }: { schema: unknown; name: string; text: string; put: (text: string) => void; wrong: Record<string, string> }) {
  const value = parse(text);
  const set = (path: string, v: unknown) => {
    put(print(path === "" ? v : within(value, path.split("."), v)));
    return Promise.resolve(true);
  };
  return <SchemaForm name={name} schema={schema as Schema} filled={{ plain: true, beside: true, value, set, wrong }} />;
}
