package notify

// What jobs of the kinds say, for forms and checks. What a schema cannot say well, such as
// that a mail has a text or HTML, the handlers do.
const (
	mailSchema = `{
 "type": "object", "required": ["to"],
 "properties": {
  "to": {"title": "To", "oneOf": [{"type": "string", "minLength": 1}, {"type": "array", "items": {"type": "string"}, "minItems": 1}], "description": "An address, or a list of them."},
  "cc": {"title": "CC", "oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
  "from": {"type": "string", "title": "From", "description": "Without it, mail.from of the settings."},
  "replyTo": {"type": "string", "title": "Reply to"},
  "subject": {"type": "string", "title": "Subject"},
  "text": {"type": "string", "title": "Text", "format": "multiline"},
  "html": {"type": "string", "title": "HTML", "format": "multiline"},
  "headers": {"type": "object", "title": "Headers", "additionalProperties": {"type": "string"}}
 }
}`
	webhookSchema = `{
 "type": "object", "required": ["url", "body"],
 "properties": {
  "url": {"type": "string", "title": "Address", "format": "uri", "minLength": 1},
  "body": {"title": "Body", "description": "What is posted, as JSON."}
 }
}`
	inboxSchema = `{
 "type": "object",
 "properties": {
  "user": {"type": "string", "title": "User"},
  "users": {"type": "array", "title": "Users", "items": {"type": "string"}},
  "title": {"type": "string", "title": "Title"},
  "text": {"type": "string", "title": "Text", "format": "multiline"},
  "url": {"type": "string", "title": "Link", "format": "uri"},
  "data": {"title": "Data"}
 }
}`
	inboxResult = `{"type": "object", "properties": {"users": {"type": "integer"}}}`
)
