package image

// DataSchema is what a job says, for forms and checks.
const DataSchema = `{
 "type": "object", "required": ["source"],
 "properties": {
  "source": {"type": "string", "title": "Source", "minLength": 1, "description": "The name of the original in the storage."},
  "steps": {
   "type": "array", "title": "Steps", "maxItems": 16, "description": "Without them: at most 1200 on each side, quality 80.",
   "items": {
    "type": "object", "required": ["op"],
    "properties": {
     "op": {"title": "Operation", "enum": ["resize", "watermark", "compress", "convert", "thumbnail", "format-convert"]},
     "width": {"type": "integer", "title": "Width", "minimum": 0, "maximum": 65500},
     "height": {"type": "integer", "title": "Height", "minimum": 0, "maximum": 65500},
     "format": {"type": "string", "title": "Format"},
     "quality": {"type": "integer", "title": "Quality", "minimum": 0, "maximum": 100},
     "sizes": {"type": "array", "title": "Sizes", "maxItems": 8, "items": {"type": "object", "properties": {"width": {"type": "integer"}, "height": {"type": "integer"}}}},
     "text": {"type": "string", "title": "Text"},
     "image": {"type": "string", "title": "Picture"},
     "gravity": {"type": "string", "title": "Where"},
     "opacity": {"type": "number", "title": "Opacity", "minimum": 0, "maximum": 1},
     "margin": {"type": "number", "title": "Margin"},
     "scale": {"type": "number", "title": "Scale"}
    }
   }
  }
 }
}`
