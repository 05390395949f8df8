export interface Schema {
  type?: string | string[];
  title?: string;
  description?: string;
  required?: string[];
  oneOf?: Schema[];
  anyOf?: Schema[];
  $ref?: string;
  properties?: Record<string, Schema>;
  items?: Schema;
  format?: string;
  enum?: unknown[];
  default?: unknown;
}

// sampleOf makes an input to begin with out of the schema.
export function sampleOf(schema: unknown): string {
  const make = (s: Schema): unknown => {
    if (s.default !== undefined) return s.default;
    if (s.enum) return s.enum[0];
    switch (Array.isArray(s.type) ? s.type[0] : s.type) {
      case "object": return Object.fromEntries(Object.entries(s.properties ?? {}).map(([k, v]) => [k, make(v)]));
      case "array": return s.items ? [make(s.items)] : [];
      case "integer": case "number": return 1;
      case "boolean": return true;
      case "string": return s.format === "email" ? "ann@example.com" : "text";
      default: return null;
    }
  };
  return JSON.stringify(schema ? make(schema as Schema) : {}, null, 2);
}
